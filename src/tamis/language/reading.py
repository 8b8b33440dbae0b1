"""Ids and expressions → queries, each once, and the errors of those that cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.errors import (
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    UnsupportedExpression,
)
from tamis.core.limits import Limits
from tamis.language.columns import Int64, Texts
from tamis.language.constraints import reads_as_xpath
from tamis.language.entries import BULK_MIN, Entries
from tamis.language.model import Constant, Query
from tamis.language.plain import NO_PLAIN_QUERIES, PlainQueries
from tamis.language.queries import Queries
from tamis.language.xpath import parse, parse_for_slow_lane

log = logging.getLogger("tamis")

Int32 = NDArray[np.int32]
Unsupported = Literal["refuse", "slow"]
Meaning = tuple[Query | None, str | None]
"""A query; or None, and the absolute expression for the slow lane."""
Progress = Callable[[int, int], object]
"""Is told now and then how many expressions were read, and of how many."""

_CHUNK = 1 << 16


class Rules(NamedTuple):
    """How expressions are read.

    Attributes:
        namespaces: prefix → URI; ``""`` → the default namespace of elements.
    """

    namespaces: Mapping[str, str]
    unsupported: Unsupported
    limits: Limits


class Read(NamedTuple):
    """What entries are.

    Attributes:
        kept: the numbers of the entries that can be used.
        queries: the queries of these.
        query_numbers: int32[kept]; the query of each; -1 for the slow lane.
        absolute: by the place in ``kept``, the expressions for the slow lane.
        errors: of the others, in their order.
    """

    kept: Int64
    queries: Queries
    query_numbers: Int32
    absolute: dict[int, str]
    errors: tuple[SubscriptionError, ...]


def read_entries(
    entries: Entries,
    rules: Rules,
    known: Mapping[str, Meaning],
    progress: Progress | None = None,
) -> Read:
    """Read all entries.

    Args:
        known: expressions that were read before.
    """
    refused = [(error.line or 0, error) for error in entries.refused]
    is_good = np.ones(len(entries.ids), np.bool_)

    def refuse(number: int, error: SubscriptionError) -> None:
        is_good[number] = False
        line = None if entries.lines is None else int(entries.lines[number])
        place = number if line is None else line
        refused.append((place, error.located(entries.ids[number], line)))

    for number, id_error in bad_ids(entries):
        refuse(number, id_error)
    plain, numbers = _read_plain(entries.expressions, np.flatnonzero(is_good), rules, progress)
    rest = _Rest(rules, known, len(plain))
    absolute: dict[int, str] = {}
    filters: list[int] = []
    left = np.flatnonzero(is_good & (numbers < 0))
    for count, number in enumerate(left.tolist()):
        if progress is not None and count % 256 == 0:
            progress(len(is_good) - len(left) + count, len(is_good))
        try:
            expression = entries.expressions[number]
            numbers[number], slow = rest.read(expression)
        except SubscriptionError as error:
            refuse(number, error)
            continue
        if expression in rest.filters:
            filters.append(number)
        if slow is not None:
            absolute[number] = slow
        elif expression in rest.constants:
            always = rest.constants[expression]
            log.warning("subscription %r is always %s: %s", entries.ids[number], always, expression)
    if filters:
        log.warning(
            "%d of %d subscriptions look like filters of events, as %r does: %s; as XPath they are "
            "about root elements; for events there is tamis.compile_events (tamis match-events)",
            len(filters),
            len(is_good),
            entries.ids[filters[0]],
            entries.expressions[filters[0]],
        )
    kept = np.flatnonzero(is_good)
    query_numbers = numbers[kept]
    queries = Queries(
        plain,
        list(rest.queries),
        entries.expressions.part(kept).compact(),
        _examples(query_numbers, len(plain)),
        rules.namespaces,
        rules.limits,
    )
    refused.sort(key=lambda pair: pair[0])
    return Read(
        kept,
        queries,
        query_numbers,
        {int(np.searchsorted(kept, number)): text for number, text in absolute.items()},
        tuple(error for _, error in refused),
    )


class _Rest:
    """Expressions that Python's parser reads, each once.

    Attributes:
        queries: the number of each query, counted from a first one.
        constants: what each of the expressions always is that are not about documents.
        filters: the expressions that were most likely meant for events.
    """

    def __init__(self, rules: Rules, known: Mapping[str, Meaning], first: int) -> None:
        self.rules = rules
        self.first = first
        self.queries: dict[Query, int] = {}
        self.constants: dict[str, str] = {}
        self.filters: set[str] = set()
        self._known = known
        self._read: dict[str, tuple[int, str | None]] = {}

    def read(self, expression: str) -> tuple[int, str | None]:
        """The number of an expression's query; or -1, and the expression for the slow lane."""
        found = self._read.get(expression)
        if found is None:
            known = self._known.get(expression)
            query, absolute = known or self._parse(expression)
            if known is None and reads_as_xpath(expression, self.rules.limits):
                self.filters.add(expression)
            number = -1
            if query is not None:
                number = self.queries.setdefault(query, self.first + len(self.queries))
                if isinstance(query.expression, Constant):
                    self.constants[expression] = "true" if query.expression.value else "false"
            found = self._read[expression] = number, absolute
        return found

    def _parse(self, expression: str) -> Meaning:
        namespaces, unsupported, limits = self.rules
        is_refused = unsupported == "refuse"
        try:
            return parse(expression, namespaces, limits, with_hint=is_refused), None
        except UnsupportedExpression:
            if is_refused:
                raise
        return None, parse_for_slow_lane(expression, namespaces, limits)


def slow_lane_helps(errors: Iterable[SubscriptionError], rules: Rules) -> bool:
    """Whether some errors would be none if the slow lane took what is not supported."""
    if rules.unsupported == "slow":
        return False
    for error in errors:
        if isinstance(error, UnsupportedExpression) and error.expression is not None:
            try:
                parse_for_slow_lane(error.expression, rules.namespaces, rules.limits)
            except SubscriptionError:
                continue
            return True
    return False


def _read_plain(
    expressions: Texts, chosen: Int64, rules: Rules, progress: Progress | None
) -> tuple[PlainQueries, Int32]:
    """The plain queries of some of the expressions, and which each expression has, -1 for none."""
    found = np.full(len(expressions), -1, np.int32)
    if len(expressions) < BULK_MIN:
        return NO_PLAIN_QUERIES, found
    from tamis.language.plain.reader import PlainReader  # noqa: PLC0415 - imports kernels

    reader = PlainReader(rules.namespaces, rules.limits)
    data = np.frombuffer(expressions.data, np.uint8)
    done = 0
    for first in range(0, len(chosen), _CHUNK):
        some = chosen[first : first + _CHUNK]
        found[some] = reader.read(data, expressions.starts[some], expressions.ends[some])
        if progress is not None:
            done += int(np.count_nonzero(found[some] >= 0))
            progress(done, len(expressions))
    return reader.queries(), found


def _examples(query_numbers: Int32, count: int) -> Int32:
    """For each of the first ``count`` queries, who is the first to ask it."""
    examples = np.empty(count, np.int32)
    of_plain = np.flatnonzero((query_numbers >= 0) & (query_numbers < count))[::-1]
    examples[query_numbers[of_plain]] = of_plain  # the last one to be written stays
    return examples


def bad_ids(entries: Entries) -> Iterator[tuple[int, SubscriptionIdError]]:
    """The numbers of entries whose ids cannot be used, and why."""
    for number, id, first in _suspects(entries):
        if first >= 0:
            where = "" if entries.lines is None else f", first in line {entries.lines[first]}"
            problem = f"the id is used twice{where}: ids must be unique"
        elif isinstance(id, int) or (id and id.isprintable()):
            continue
        elif not id:
            problem = "the id is empty"
        else:
            problem = "the id has a tab, a newline or another character that cannot be printed"
        yield number, SubscriptionIdError(problem)


def _suspects(entries: Entries) -> Iterator[tuple[int, SubscriptionId, int]]:
    """Entries to be looked at: their ids, and the first entry with the same id before, or -1."""
    if len(entries.ids) < BULK_MIN:
        seen: dict[SubscriptionId, int] = {}
        for number, id in enumerate(entries.ids):
            first = seen.setdefault(id, number)
            yield number, id, first if first < number else -1
        return
    from tamis.language.plain.reader import suspect_ids  # noqa: PLC0415 - imports kernels

    first_ones, is_odd = suspect_ids(entries.ids)
    for number in np.flatnonzero((first_ones >= 0) | (is_odd != 0)).tolist():
        yield number, entries.ids[number], int(first_ones[number])
