"""The distinct queries of a set of subscriptions: read from entries, and what engines compile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import SubscriptionError, UnsupportedExpression
from tamis.core.index.columns import Texts
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.entries import BULK_MIN, Entries, bad_ids
from tamis.language.events import reads_as_xpath
from tamis.language.lower import Lowering, lowered
from tamis.language.model import Constant, Query
from tamis.language.table import NO_QUERIES, QueryTable
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


class Queries(Sequence[Query]):
    """The distinct queries of a set: the words of each, and a text that says it.

    They become objects when asked for.

    Args:
        texts: all expressions of the set.
        examples: for each query, the number of a text that says it.
        options: how the texts are read.
        known: the objects that there are, by number; others are parsed each time.
        table: the words; by default all queries are parsed when these are asked for.

    >>> from tamis.language.xpath import parse
    >>> queries = Queries.of([parse("//a"), parse("//b")])
    >>> len(queries), queries[1] == parse("//b"), len(queries.words(1))
    (2, True, 2)
    """

    def __init__(
        self,
        texts: Sequence[str],
        examples: Int32,
        options: ParseOptions,
        known: Mapping[int, Query] | None = None,
        table: QueryTable | None = None,
    ) -> None:
        self.texts, self.examples, self.options = texts, examples, options
        self._known, self._table = known or {}, table

    @classmethod
    def of(cls, queries: Sequence[Query]) -> Queries:
        """Parsed queries, as an object of this class, if they are none yet."""
        if isinstance(queries, Queries):
            return queries
        examples = np.full(len(queries), -1, np.int32)
        return cls((), examples, _DEFAULTS, dict(enumerate(queries)))

    @property
    def table(self) -> QueryTable:
        """The words of all queries; those outside the streamed fragment have none."""
        if self._table is None:
            self._table = lowered(self)
        return self._table

    @property
    def is_lowered(self) -> bool:
        """Whether the words are there: of a set that was loaded, all texts have to be parsed."""
        return self._table is not None

    def words(self, number: int) -> list[int]:
        """The words of a query."""
        table, place = self._table, number
        if table is None:
            table, place = lowered([self[number]]), 0
        return table.words(place)

    def part(self, numbers: NDArray[np.integer[Any]]) -> Queries:
        """Some queries, by ascending numbers."""
        chosen = numbers.tolist() if self._known else []
        known = {place: self._known[n] for place, n in enumerate(chosen) if n in self._known}
        table = None if self._table is None else self._table.part(numbers)
        return Queries(self.texts, self.examples[numbers], self.options, known, table)

    def __len__(self) -> int:
        return len(self.examples)

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Query, ...]: ...
    def __getitem__(self, index: int | slice) -> Query | tuple[Query, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        number = range(len(self))[index]
        return self.known(number) or self.parse(self.texts[self.examples[number]])

    def known(self, number: int) -> Query | None:
        """A query, if it is an object already; else it is parsed when it is asked for."""
        return self._known.get(number)

    def parse(self, text: str) -> Query:
        """The meaning of one of the texts."""
        return parse_any(text, *self.options)

    @cached_property
    def unstreamed(self) -> Int64:
        """The numbers of the queries outside the streamed fragment."""
        if self.options.unsupported == "refuse" and len(self.texts):
            return np.zeros(0, np.int64)
        return np.flatnonzero(np.diff(self.table.starts) == 0)

    def __repr__(self) -> str:
        return f"<Queries: {len(self):,}>"


# -- from entries --------------------------------------------------------------------------------


def read_entries(
    entries: Entries,
    options: ParseOptions,
    known: Mapping[str, Query],
    progress: Progress | None = None,
    warns: bool = True,
) -> tuple[Int64, Queries, Int32, tuple[SubscriptionError, ...]]:
    """Read all entries; ``known`` are expressions that were read before.

    ``warns`` says whether odd ones are told in the log.

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
    rest = _Rest(options, known, plain)
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
        if not warns:
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
    table = rest.table()
    examples = np.empty(len(table), np.int32)
    examples[query_numbers[::-1]] = np.arange(len(kept))[::-1]  # the last one to be written stays
    texts = entries.expressions.part(kept).compact()
    queries = Queries(texts, examples, options, rest.queries, table)
    if warns and len(queries.unstreamed):
        slow = np.count_nonzero(np.isin(query_numbers, queries.unstreamed))
        log.warning("%d of %d subscriptions go through lxml", slow, len(kept))
    refused.sort(key=lambda pair: pair[0])
    return kept, queries, query_numbers, tuple(error for _, error in refused)


class _Rest:
    """Expressions that Python's parser reads, each once; their numbers follow the plain ones'."""

    def __init__(
        self, options: ParseOptions, known: Mapping[str, Query], plain: QueryTable
    ) -> None:
        self.queries: dict[int, Query] = {}
        self.constants: dict[str, str] = {}  # what expressions always are that ask no document
        self.filters: set[str] = set()  # the expressions that were most likely meant for events
        self._options = options
        self._known = known
        self._plain = plain
        self._read: dict[str, int] = {}

    @cached_property
    def _lowering(self) -> Lowering:
        return Lowering(self._plain)

    def read(self, expression: str) -> int:
        """The number of an expression's query."""
        found = self._read.get(expression)
        if found is None:
            query = self._known.get(expression)
            if query is None:
                query = parse_any(expression, *self._options)
                if reads_as_xpath(expression, self._options.limits):
                    self.filters.add(expression)
                if isinstance(query.expression, Constant) and query.unstreamed is None:
                    self.constants[expression] = "true" if query.expression.value else "false"
            found = self._lowering.add(query)
            self.queries.setdefault(found, query)
            self._read[expression] = found
        return found

    def table(self) -> QueryTable:
        """All queries."""
        return self._lowering.table() if self._read else self._plain


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
