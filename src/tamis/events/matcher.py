"""Subscriptions of events, compiled: events in, ids of the matching subscriptions out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from tamis.core.arguments import check_many, checked_limits, is_one_of
from tamis.core.errors import SubscriptionId, UnknownSubscription, UsageError
from tamis.core.index.columns import Ids
from tamis.core.index.matchset import MatchSet
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.threads import Flush, WorkerPool, check_threads
from tamis.events.answers import EventAnswers, EventMatch, unread
from tamis.events.arrow import read_rows
from tamis.events.checks import Part
from tamis.events.encode import EncodedLines, Encoder
from tamis.events.model import By, EventBatch, FilterTable, Owners, check_batch
from tamis.events.ndjson import Source, chunks
from tamis.events.planner import Searcher, choose
from tamis.events.subscriptions import EventSubscriptions
from tamis.language.entries import SubscriptionItems

if TYPE_CHECKING:
    from tamis.core.index.matchset import Explanation

GROUP_EVENTS, _LINES_MAX = 1 << 10, 1 << 15
"""The events of a batch, at most: of mappings, of a file. Much of an engine's cost is per batch."""
MATCHES_MAX = 1 << 22
"""The matches of a batch that are aimed at, at most."""
_AT_FIRST, _GROWTH = 64, 8


class EventMatcher:
    """Compiled subscriptions of events: immutable, safe to share between threads, picklable.

    Made by :func:`tamis.compile_events`. A pickle holds the filters, which are compiled again when
    it is loaded.
    """

    def __init__(
        self, ids: Ids, interface_ids: Ids, table: FilterTable, engine: str, limits: Limits
    ) -> None:
        self.ids, self.interface_ids = ids, interface_ids
        self.table = table.frozen()  # which it is not when it is unpickled
        self.limits = limits
        self.named_engine = engine
        self._engine = choose(engine)
        self._program = self._engine.compile(table)
        self._encoder = Encoder(table.names, limits)
        self._owners: dict[By, Owners] = {}
        self._idle: dict[By, list[Searcher]] = {by: [] for by in get_args(By)}

    @property
    def engine(self) -> str:
        """The name of the engine that was chosen."""
        return self._engine.name

    def memory_usage(self) -> dict[str, int]:
        """Bytes: of the "program", and of the "work" that threads do not use now."""
        idle = [searcher for found in self._idle.values() for searcher in list(found)]
        work = sum(searcher.memory_usage() for searcher in idle)
        return {"program": self._program.memory_usage(), "work": work}

    def match(self, event: Mapping[str, Any], *, by: By = "subscription") -> EventMatch:
        """Match one event.

        Args:
            event: names and values: str, int within 64 bits, float, bool or None, which counts as
                a missing name. Names that no filter has may have any value.
            by: what to report: each "filter" by its number, each "subscription" by its id, or each
                "interface" that has a subscription that matches, which may take less work.

        Raises:
            EventError: it cannot be answered.

        >>> matcher = compile_events({"s": 'area = "a1" and temp > 30 or wind > 20'})
        >>> list(matcher.match({"area": "a1", "temp": 35})), list(matcher.match({"temp": 35}))
        (['s'], [])
        >>> list(matcher.match({"area": "a1", "temp": 35, "wind": 25}, by="filter"))
        [0, 1]
        """
        (match,) = self.match_many([event], by=by)
        if match.error is not None:
            raise match.error
        return match

    def match_many(
        self, events: Iterable[Mapping[str, Any]], *, by: By = "subscription", threads: int = 1
    ) -> Iterator[EventMatch]:
        """Match events, in their order; the ``EventMatch`` of an event in error has the error.

        Events are taken in groups of at most 1,024: one group at a time, and with several threads
        at most one group more than there are threads.

        Raises:
            UsageError: ``events`` is itself an event, or ``threads`` is less than 1.

        >>> found = compile_events({"hot": "temp > 30"}).match_many([{"temp": 35}, {"temp": 3}])
        >>> [match.error or list(match) for match in found]
        [['hot'], []]
        """
        check_many(events, "events", "match()")
        sizer = BatchSizer(GROUP_EVENTS)

        def encode(part: Part) -> EncodedLines:
            return EncodedLines(self._encoder.events(part.data), None)

        return _matches(self._answers(_groups(events, sizer), encode, sizer, by, threads))

    def match_ndjson(
        self, source: Source, *, by: By = "subscription", threads: int = 1
    ) -> Iterator[EventMatch]:
        r"""Match the lines of a file or stream of any size, each a JSON object, in their order.

        The source is read while it is matched, some thousand lines at a time, or as many as a pipe
        has. Blank lines are skipped, but counted. Sources that begin as gzip does are decompressed.
        Where the source cannot be read any further, the last match has the error.

        Args:
            source: bytes, memoryview, :class:`pathlib.Path`, or a file that is open for bytes.
            threads: how many match at once; the caller's thread reads.

        Raises:
            UsageError: the source is none of these, or ``threads`` is less than 1.

        >>> matcher = compile_events({"hot": "temp > 30"})
        >>> lines = b'{"temp": 35}\n\n{"temp": [3]}\n{"temp": null}\n'
        >>> for match in matcher.match_ndjson(lines):
        ...     print(match.line, match.error or list(match))
        1 ['hot']
        3 line 3: the attribute 'temp' is of type list: make what is in it attributes of their own
        4 []
        """
        return _matches(self.ndjson_answers(source, by, threads))

    def ndjson_answers(
        self, source: Source, by: By = "subscription", threads: int = 1
    ) -> Generator[EventAnswers, None, None]:
        """The answers of :meth:`match_ndjson`, many lines at a time."""
        sizer = BatchSizer(_LINES_MAX)

        def encode(part: Part) -> EncodedLines:
            return self._encoder.ndjson(part.data, part.line)

        parts = _fewer_lines(chunks(source, self.limits), sizer)
        return self._answers(parts, encode, sizer, by, threads)

    def match_arrow(
        self, source: object, *, by: By = "subscription", threads: int = 1
    ) -> Iterator[EventMatch]:
        """Match rows, whose columns are attributes; ``line`` is the row, from 1.

        Columns are integers, floats, booleans or strings, also by dictionaries. Where rows cannot
        be read any further, the last match has the error.

        Args:
            source: a record batch, a table, a data set; record batches, as a reader or otherwise;
                an object that offers Arrow's stream, or the :class:`pathlib.Path` of a Parquet
                file.

        Raises:
            MissingExtra: pyarrow is not installed.
            UsageError: there are two columns of a name, or one of a type that values cannot have;
                the source is none of these, or ``threads`` is less than 1.

        >>> import pyarrow
        >>> rows = pyarrow.table({"temp": [35, None, 31.5], "area": ["a", "b", "c"]})
        >>> [list(match) for match in compile_events({"hot": "temp > 30"}).match_arrow(rows)]
        [['hot'], [], ['hot']]
        """
        return _matches(self.arrow_answers(source, by, threads))

    def arrow_answers(
        self, source: object, by: By = "subscription", threads: int = 1
    ) -> Generator[EventAnswers, None, None]:
        """The answers of :meth:`match_arrow`, many rows at a time."""
        sizer = BatchSizer(_LINES_MAX)

        def encode(part: Part) -> EncodedLines:
            batch = self._encoder.arrow(part.data)
            errors = {
                event: type(error)(error.message, part.line + event)
                for event, error in batch.errors.items()
            }
            rows = np.arange(part.line, part.line + batch.events)
            return EncodedLines(batch._replace(errors=errors), rows)

        parts = read_rows(source, lambda: sizer.events)
        return self._answers(parts, encode, sizer, by, threads)

    def _answers(
        self,
        parts: Iterable[Part | Flush],
        encode: Callable[[Part], EncodedLines],
        sizer: BatchSizer,
        by: By,
        threads: int,
    ) -> Generator[EventAnswers, None, None]:
        """The answers of the parts of a source, in their order."""
        _check_by(by)
        ids = {"filter": None, "subscription": self.ids, "interface": self.interface_ids}[by]

        def match_part(part: Part) -> EventAnswers:
            if part.error is not None:
                return unread(part.line, part.error)
            batch, lines = encode(part)
            with self._searcher(by) as searcher:
                matches = searcher.match(batch)
            sizer.adapt(batch.events, len(matches.set_ids))
            return EventAnswers(matches, batch.errors, ids, lines)

        return WorkerPool(check_threads(threads)).map_in_order(match_part, parts)

    def match_batch(self, batch: EventBatch, by: By = "subscription") -> MatchSet:
        """Match events that were encoded for the names of the ``table``.

        Document n of the result is event n; its members are numbers of filters, subscriptions or
        interfaces. Errors stay in the batch.

        Raises:
            UsageError: the arrays are no batch for these names.
        """
        check_batch(batch, len(self.table.names))
        _check_by(by)
        with self._searcher(by) as searcher:
            return searcher.match(batch)

    def explain(self, event: Mapping[str, Any], id: SubscriptionId) -> Explanation:
        """Which filters of a subscription match an event, and which constraint fails first.

        Raises:
            EventError: the event cannot be answered.
            UnknownSubscription: there is none with this id.

        >>> matcher = compile_events({"s": 'area = "a1" and temp > 30 or wind exists'})
        >>> print(matcher.explain({"area": "a1", "temp": 25}, "s"))
        false: s
          false: area = "a1" and temp > 30
            area = "a1"  found: "a1"
            temp > 30    found: 25  ← fails here
          false: wind exists
            wind exists  found: no such attribute  ← fails here
        """
        number = self.ids.find(id)
        if number < 0:
            raise UnknownSubscription(id=id)
        from tamis.events.explain import explain  # noqa: PLC0415 - few ask

        return explain(self.table, number, id, self._encoder.checked(event))

    @contextmanager
    def _searcher(self, by: By) -> Iterator[Searcher]:
        """A searcher for one thread; one that raises is not used again."""
        try:
            searcher = self._idle[by].pop()
        except IndexError:
            if by not in self._owners:
                self._owners[by] = self.table.owners(by)
            searcher = self._engine.searcher(self._program, self._owners[by], 1)
        yield searcher
        self._idle[by].append(searcher)

    def __reduce__(self) -> tuple[Any, ...]:
        of = self.ids, self.interface_ids, self.table, self.named_engine, self.limits
        return EventMatcher, of

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<EventMatcher: {len(self):,} subscriptions, engine {self.engine}>"


def compile_events(
    subscriptions: EventSubscriptions | SubscriptionItems,
    *,
    engine: str = "auto",
    interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> EventMatcher:
    """Compile subscriptions of events; exported as :func:`tamis.compile_events`.

    An expression is constraints on attributes, joined with ``and``, ``or`` and parentheses:
    ``name = value``, ``!= < <= > >=``, ``name prefix "…"``, ``suffix``, ``contains``, ``name in
    (…, …)``, ``name exists``. See docs/events.md, or :mod:`tamis.language.constraints`.

    Args:
        subscriptions: id → expression, or pairs; the path of a file of such lines; or
            :class:`tamis.events.EventSubscriptions`, which can leave out bad ones.
        engine: ``"auto"``, or an engine to use.
        interfaces: as for :class:`EventSubscriptions`, where one has to be made.
        limits: bounds on each event and expression.

    Raises:
        BadSubscriptions: some expressions cannot be used.
        EngineRefused: there is no engine of that name.
        UsageError: ``interfaces`` is given for subscriptions that were made with theirs.
    """
    if not isinstance(subscriptions, EventSubscriptions):
        subscriptions = EventSubscriptions(subscriptions, interfaces=interfaces, limits=limits)
    elif interfaces is not None:
        raise UsageError("give interfaces to EventSubscriptions, which has them already")
    ids, table = subscriptions.ids, subscriptions.table
    return EventMatcher(ids, subscriptions.interface_ids, table, engine, checked_limits(limits))


def _check_by(by: By) -> None:
    if not is_one_of(by, get_args(By)):
        raise UsageError(f"by={by!r}: write 'filter', 'subscription' or 'interface'")


# -- batches -----------------------------------------------------------------------------------


class BatchSizer:
    """How many events the next batch may have, by how much those before it matched.

    Several threads may share one: it is an estimate.

    >>> sizer = BatchSizer(events_max=1_000)
    >>> sizer.events
    64
    >>> sizer.adapt(events=64, matches=64_000_000)  # each event matches a million filters
    >>> sizer.events
    4
    """

    def __init__(self, events_max: int) -> None:
        self._events_max = events_max
        self.events = min(_AT_FIRST, events_max)

    def adapt(self, events: int, matches: int) -> None:
        """So many events have had so many matches, all together."""
        fitting = MATCHES_MAX * max(events, 1) // max(matches, 1)
        self.events = max(1, min(fitting, _GROWTH * self.events, self._events_max))


def _fewer_lines(found: Iterable[Part | Flush], sizer: BatchSizer) -> Iterator[Part | Flush]:
    """Parts of lines, divided where they have too many."""
    for part in found:
        if isinstance(part, Flush) or part.error is not None:
            yield part
            continue
        data, start, line = part.data, 0, part.line
        bytes_each = len(data) // max(1, data.count(b"\n")) + 1
        while start < len(data):
            end = data.find(b"\n", min(start + sizer.events * bytes_each, len(data)) - 1) + 1
            end = end or len(data)
            yield Part(data[start:end], line)
            line += data.count(b"\n", start, end)
            start = end


def _groups(events: Iterable[Mapping[str, Any]], sizer: BatchSizer) -> Iterator[Part]:
    """Events, many at a time; where taking one fails, those before it come first."""
    source = iter(events)
    group: list[Mapping[str, Any]] = []
    try:
        while True:
            group.extend(islice(source, sizer.events))
            if not group:
                return
            yield Part(group, 0)
            group = []
    except Exception:  # of the caller's iterator
        if group:
            yield Part(group, 0)
        raise


def _matches(found: Generator[EventAnswers, None, None]) -> Iterator[EventMatch]:
    with closing(found):
        for answers in found:
            yield from answers
