"""The distinct queries of a set of subscriptions: read from entries, and what engines compile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import SubscriptionError, UnsupportedExpression
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.columns import Texts
from tamis.language.constraints import reads_as_xpath
from tamis.language.entries import BULK_MIN, Entries, bad_ids
from tamis.language.model import Constant, Query
from tamis.language.table import KIND_BITS, KIND_MASK, MAIN, NO_QUERIES, STEP, QueryTable
from tamis.language.xpath import Unsupported, absolute_xpath, parse_any

log = logging.getLogger("tamis")

Progress = Callable[[int, int], object]
"""Is told now and then how many expressions were read, and of how many."""

_CHUNK = 1 << 16


class ParseOptions(NamedTuple):
    """How expressions are read; the prefix ``""`` is of elements without one."""

    namespaces: Mapping[str, str]
    unsupported: Unsupported
    limits: Limits


_DEFAULTS = ParseOptions({}, "refuse", DEFAULT_LIMITS)


@dataclass(eq=False, repr=False)
class Queries(Sequence[Query]):
    """Queries; those that are plain have the first numbers, and become objects when asked for.

    ``texts`` are all expressions of the set; for each plain query, ``examples`` has the number of a
    text that says it.

    >>> from tamis.language.xpath import parse
    >>> queries = Queries.of([parse("//a"), parse("//b")])
    >>> len(queries), len(queries.plain), queries[1] == parse("//b")
    (2, 0, True)
    """

    plain: QueryTable
    others: Sequence[Query]
    texts: Sequence[str] = ()
    examples: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    options: ParseOptions = _DEFAULTS

    @classmethod
    def of(cls, queries: Sequence[Query]) -> Queries:
        """Parsed queries, as an object of this class, if they are none yet."""
        if isinstance(queries, Queries):
            return queries
        return cls(NO_QUERIES, tuple(queries))

    @classmethod
    def written(cls, texts: Sequence[str], examples: Int32, options: ParseOptions) -> Queries:
        """Queries of which only texts are known, and an example of each: parsed when asked for.

        >>> from tamis.language.xpath import parse
        >>> queries = Queries.written(["//a", "//b", "//a"], np.array([0, 1]), _DEFAULTS)
        >>> len(queries), queries[1] == parse("//b")
        (2, True)
        """
        result = cls(NO_QUERIES, (), texts, options=options)
        result.others = _Written(result, examples)
        return result

    def part(self, with_plain: bool, others: NDArray[np.integer[Any]]) -> Queries:
        """All plain ones or none, and of the others those of some numbers, counted from 0."""
        chosen: Sequence[Query]
        if isinstance(self.others, _Written):
            chosen = self.others.part(others)
        else:
            chosen = [self.others[number] for number in others.tolist()]
        if not with_plain:
            return Queries(NO_QUERIES, chosen)
        return replace(self, others=chosen)

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
        return self.parse(self.texts[self.examples[number]])

    def known(self, number: int) -> Query | None:
        """A query, if it is an object already; else it is parsed when it is asked for."""
        other = number - len(self.plain)
        return None if other < 0 or isinstance(self.others, _Written) else self.others[other]

    def __iter__(self) -> Iterator[Query]:
        yield from (self[number] for number in range(len(self.plain)))
        yield from self.others

    def is_path(self, number: int) -> bool:
        """Whether a plain query has no predicates: the first half of its words are steps."""
        words = self.plain.words(number)
        step = STEP | MAIN << KIND_BITS
        return all(word & (KIND_MASK | step) == step for word in words[: len(words) // 2])

    def parse(self, text: str) -> Query:
        """The meaning of one of the texts."""
        return parse_any(text, *self.options)

    def unstreamed(self) -> list[int]:
        """The numbers of the queries outside the streamed fragment; plain ones are all inside."""
        others = enumerate(self.others, start=len(self.plain))
        return [number for number, query in others if query.unstreamed is not None]

    def __repr__(self) -> str:
        return f"<Queries: {len(self):,}>"


class _Written(Sequence[Query]):
    """Queries that are parsed each time they are asked for, by number, from an example of each."""

    def __init__(self, owner: Queries, examples: Int32) -> None:
        self._owner = owner
        self._examples = examples

    def part(self, numbers: NDArray[np.integer[Any]]) -> _Written:
        return _Written(self._owner, self._examples[numbers])

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, index: Any) -> Any:
        return self._owner.parse(self._owner.texts[self._examples[index]])


# -- from entries --------------------------------------------------------------------------------


def read_entries(
    entries: Entries,
    options: ParseOptions,
    known: Mapping[str, Query],
    progress: Progress | None = None,
) -> tuple[Int64, Queries, Int32, tuple[SubscriptionError, ...]]:
    """Read all entries; ``known`` are expressions that were read before.

    Returns the numbers of the entries that can be used, the queries of these, the number of each
    one's query, and the errors of the others, in their order.
    """
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
    filters: list[int] = []
    left = np.flatnonzero(is_good & (numbers < 0))
    for count, number in enumerate(left.tolist()):
        if progress is not None and count % 256 == 0:
            progress(len(is_good) - len(left) + count, len(is_good))
        try:
            expression = entries.expressions[number]
            numbers[number] = rest.read(expression)
        except SubscriptionError as error:
            refuse(number, error)
            continue
        if expression in rest.filters:
            filters.append(number)
        if expression in rest.constants:
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
    examples = np.empty(len(plain), np.int32)
    of_plain = np.flatnonzero(query_numbers < len(plain))[::-1]
    examples[query_numbers[of_plain]] = of_plain  # the last one to be written stays
    texts = entries.expressions.part(kept).compact()
    queries = Queries(plain, list(rest.queries), texts, examples, options)
    refused.sort(key=lambda pair: pair[0])
    return kept, queries, query_numbers, tuple(error for _, error in refused)


class _Rest:
    """Expressions that Python's parser reads, each once."""

    def __init__(self, options: ParseOptions, known: Mapping[str, Query], first: int) -> None:
        self.queries: dict[Query, int] = {}  # with their numbers, from ``first`` on
        self.constants: dict[str, str] = {}  # what expressions always are that ask no document
        self.filters: set[str] = set()  # the expressions that were most likely meant for events
        self._options = options
        self._first = first
        self._known = known
        self._read: dict[str, int] = {}

    def read(self, expression: str) -> int:
        """The number of an expression's query."""
        found = self._read.get(expression)
        if found is None:
            query = self._known.get(expression)
            if query is None:
                query = parse_any(expression, *self._options)
                if reads_as_xpath(expression, self._options.limits):
                    self.filters.add(expression)
            found = self.queries.setdefault(query, self._first + len(self.queries))
            if isinstance(query.expression, Constant) and query.unstreamed is None:
                self.constants[expression] = "true" if query.expression.value else "false"
            self._read[expression] = found
        return found


def lxml_would_help(errors: Iterable[SubscriptionError], options: ParseOptions) -> bool:
    """Whether some errors would be none with ``unsupported="slow"``."""
    if options.unsupported == "slow":
        return False
    for error in errors:
        if isinstance(error, UnsupportedExpression) and error.expression is not None:
            try:
                absolute_xpath(error.expression, options.namespaces, options.limits)
            except SubscriptionError:
                continue
            return True
    return False


def _read_plain(
    expressions: Texts, chosen: Int64, options: ParseOptions, progress: Progress | None
) -> tuple[QueryTable, Int32]:
    """The plain queries of some of the expressions, and which each expression has, -1 for none."""
    found = np.full(len(expressions), -1, np.int32)
    if len(expressions) < BULK_MIN:
        return NO_QUERIES, found
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
