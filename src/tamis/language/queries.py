"""The distinct queries of a set of subscriptions: read from entries, and what engines compile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import SubscriptionError, UnsupportedExpression
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.columns import Texts
from tamis.language.constraints import reads_as_xpath
from tamis.language.entries import BULK_MIN, Entries, bad_ids
from tamis.language.model import Constant, Query
from tamis.language.plain import ANCHOR, KIND_BITS, NO_PLAIN_QUERIES, PlainQueries
from tamis.language.xpath import parse, parse_for_slow_lane

log = logging.getLogger("tamis")

Unsupported = Literal["refuse", "slow"]
ParseOutcome = tuple[Query | None, str | None]
"""A query; or None, and the absolute expression for the slow lane."""
Progress = Callable[[int, int], object]
"""Is told now and then how many expressions were read, and of how many."""

_CHUNK = 1 << 16
_NONE = np.zeros(0, np.int32)


class ParseOptions(NamedTuple):
    """How expressions are read; the prefix ``""`` is of elements without one."""

    namespaces: Mapping[str, str]
    unsupported: Unsupported
    limits: Limits


class Queries(Sequence[Query]):
    """Queries; those that are plain have the first numbers, and become objects when asked for.

    Args:
        plain: the plain ones, as arrays.
        others: the others.
        texts: expressions, all of the set.
        examples: for each plain query, which of the texts says it.
        namespaces, limits: what these are read with.

    >>> queries = Queries.of([parse("//a"), parse("//b")])
    >>> len(queries), len(queries.plain), queries[1] == parse("//b")
    (2, 0, True)
    """

    def __init__(
        self,
        plain: PlainQueries,
        others: Sequence[Query],
        texts: Sequence[str],
        examples: Int32,
        namespaces: Mapping[str, str],
        limits: Limits,
    ) -> None:
        assert len(plain) == len(examples)
        self.plain = plain
        self.others = others
        self.texts = texts
        self._examples = examples
        self._namespaces = namespaces
        self._limits = limits

    @classmethod
    def of(cls, queries: Sequence[Query]) -> Queries:
        """Queries that were parsed; others than these of one's own stay as they are."""
        if isinstance(queries, Queries):
            return queries
        return cls(NO_PLAIN_QUERIES, tuple(queries), (), _NONE, {}, DEFAULT_LIMITS)

    @classmethod
    def written(
        cls,
        texts: Sequence[str],
        examples: Int32,
        namespaces: Mapping[str, str],
        limits: Limits,
    ) -> Queries:
        """Queries of which only texts are known, and an example of each: parsed when asked for.

        >>> queries = Queries.written(["//a", "//b", "//a"], np.array([0, 1]), {}, DEFAULT_LIMITS)
        >>> len(queries), queries[1] == parse("//b")
        (2, True)
        """
        others = _Written(texts, examples, namespaces, limits)
        return cls(NO_PLAIN_QUERIES, others, texts, _NONE, namespaces, limits)

    def part(self, with_plain: bool, others: NDArray[np.integer[Any]]) -> Queries:
        """All plain ones or none, and of the others those of some numbers, counted from 0."""
        chosen: Sequence[Query]
        if isinstance(self.others, _Written):
            chosen = self.others.part(others)
        else:
            chosen = [self.others[number] for number in others.tolist()]
        if not with_plain:
            return Queries(NO_PLAIN_QUERIES, chosen, (), _NONE, {}, DEFAULT_LIMITS)
        return Queries(
            self.plain, chosen, self.texts, self._examples, self._namespaces, self._limits
        )

    def __len__(self) -> int:
        return len(self.plain) + len(self.others)

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Query, ...]: ...
    def __getitem__(self, index: int | slice) -> Query | tuple[Query, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        number = range(len(self))[index]
        if number >= len(self.plain):
            return self.others[number - len(self.plain)]
        return self._plain(number)

    def known(self, number: int) -> Query | None:
        """A query, if it is an object already; else it is parsed when it is asked for."""
        other = number - len(self.plain)
        return None if other < 0 or isinstance(self.others, _Written) else self.others[other]

    def __iter__(self) -> Iterator[Query]:
        yield from map(self._plain, range(len(self.plain)))
        yield from self.others

    def is_path(self, number: int) -> bool:
        """Whether a plain query has no predicates: nothing is between its anchor and the END."""
        start, end = self.plain.starts[number : number + 2].tolist()
        words = self.plain.code[start:end]
        return bool(np.argmax(words >> KIND_BITS & ANCHOR != 0) == len(words) - 2)

    def _plain(self, number: int) -> Query:
        return self.parse(self.texts[self._examples[number]])

    def parse(self, text: str) -> Query:
        """The meaning of one of the texts."""
        return parse(text, self._namespaces, self._limits)

    def __repr__(self) -> str:
        return f"<Queries: {len(self):,}>"


class _Written(Sequence[Query]):
    """Queries that are parsed each time they are asked for, by number, from an example of each."""

    def __init__(
        self,
        texts: Sequence[str],
        examples: Int32,
        namespaces: Mapping[str, str],
        limits: Limits,
    ) -> None:
        self._given = texts, namespaces, limits
        self._examples = examples

    def part(self, numbers: NDArray[np.integer[Any]]) -> _Written:
        texts, namespaces, limits = self._given
        return _Written(texts, self._examples[numbers], namespaces, limits)

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, index: Any) -> Any:
        texts, namespaces, limits = self._given
        return parse(texts[self._examples[index]], namespaces, limits)


# -- from entries --------------------------------------------------------------------------------


class Read(NamedTuple):
    """What entries are.

    Attributes:
        kept: the numbers of the entries that can be used.
        queries: the queries of these.
        query_numbers: int32[kept]; the query of each; -1 for the slow lane.
        absolute: by the index in ``kept``, the expressions for the slow lane.
        errors: of the others, in their order.
    """

    kept: Int64
    queries: Queries
    query_numbers: Int32
    absolute: dict[int, str]
    errors: tuple[SubscriptionError, ...]


def read_entries(
    entries: Entries,
    options: ParseOptions,
    known: Mapping[str, ParseOutcome],
    progress: Progress | None = None,
) -> Read:
    """Read all entries; ``known`` are expressions that were read before."""
    refused = [(error.line or 0, error) for error in entries.refused]
    is_good = np.ones(len(entries.ids), np.bool_)

    def refuse(number: int, error: SubscriptionError) -> None:
        is_good[number] = False
        line = None if entries.lines is None else int(entries.lines[number])
        order = number if line is None else line
        refused.append((order, error.located(entries.ids[number], line)))

    for number, id_error in bad_ids(entries):
        refuse(number, id_error)
    plain, numbers = _read_plain(entries.expressions, np.flatnonzero(is_good), options, progress)
    rest = _Rest(options, known, len(plain))
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
        options.namespaces,
        options.limits,
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

    def __init__(
        self, options: ParseOptions, known: Mapping[str, ParseOutcome], first: int
    ) -> None:
        self.options = options
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
            if known is None and reads_as_xpath(expression, self.options.limits):
                self.filters.add(expression)
            number = -1
            if query is not None:
                number = self.queries.setdefault(query, self.first + len(self.queries))
                if isinstance(query.expression, Constant):
                    self.constants[expression] = "true" if query.expression.value else "false"
            found = self._read[expression] = number, absolute
        return found

    def _parse(self, expression: str) -> ParseOutcome:
        namespaces, unsupported, limits = self.options
        is_refused = unsupported == "refuse"
        try:
            return parse(expression, namespaces, limits, with_hint=is_refused), None
        except UnsupportedExpression:
            if is_refused:
                raise
        return None, parse_for_slow_lane(expression, namespaces, limits)


def slow_lane_helps(errors: Iterable[SubscriptionError], options: ParseOptions) -> bool:
    """Whether some errors would be none if the slow lane took what is not supported."""
    if options.unsupported == "slow":
        return False
    for error in errors:
        if isinstance(error, UnsupportedExpression) and error.expression is not None:
            try:
                parse_for_slow_lane(error.expression, options.namespaces, options.limits)
            except SubscriptionError:
                continue
            return True
    return False


def _read_plain(
    expressions: Texts, chosen: Int64, options: ParseOptions, progress: Progress | None
) -> tuple[PlainQueries, Int32]:
    """The plain queries of some of the expressions, and which each expression has, -1 for none."""
    found = np.full(len(expressions), -1, np.int32)
    if len(expressions) < BULK_MIN:
        return NO_PLAIN_QUERIES, found
    from tamis.language.plain.reader import PlainReader  # noqa: PLC0415 - imports kernels

    reader = PlainReader(options.namespaces, options.limits)
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
    examples = np.empty(count, np.int32)
    of_plain = np.flatnonzero((query_numbers >= 0) & (query_numbers < count))[::-1]
    examples[query_numbers[of_plain]] = of_plain  # the last one to be written stays
    return examples
