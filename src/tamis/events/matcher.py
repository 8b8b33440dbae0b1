"""Subscriptions of events, compiled: events in, ids of the matching subscriptions out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

from tamis.core.arguments import check_many, checked_limits, is_one_of
from tamis.core.errors import SubscriptionId, UnknownSubscription, UsageError
from tamis.core.index.columns import Ids
from tamis.core.index.segments import Segment, SnapshotIds
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.threads import Flush, WorkerPool, check_threads
from tamis.events.arrow import read_rows
from tamis.events.batches import GROUP_EVENTS, LINES_MAX, BatchSizer, fewer_lines, groups
from tamis.events.checks import Part
from tamis.events.encode import Encoder
from tamis.events.forms import GeneralForm, singular_form
from tamis.events.matches import EventMatch, EventMatches
from tamis.events.model import By, EventBatch, FilterTable, check_batch
from tamis.events.ndjson import Source, chunks
from tamis.events.planner import choose
from tamis.events.segmented import EventProgram, Segmented
from tamis.events.subscriptions import EventSubscription, EventSubscriptions
from tamis.language.entries import SubscriptionItems

if TYPE_CHECKING:
    from tamis.core.index.matchset import Explanation


class MatchesEvents:
    """The methods of all matchers; each call uses the subscriptions as they are when it begins."""

    def snapshot(self) -> EventSnapshot:
        """The present subscriptions, compiled; later changes do not touch them."""
        raise NotImplementedError

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
        form = self.snapshot()._form(by)
        matches = form.one(event) if by == "subscription" else None
        if matches is None:
            matches = form.events([event], by)
        if matches.errors:
            raise matches.errors[0]
        return EventMatch(matches, 0)

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
        return _matches(self.snapshot().event_answers(events, by, threads))

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
        3 line 3: the attribute 'temp' is of type list: write temp[] for some element of it
        4 []
        """
        return _matches(self.snapshot().ndjson_answers(source, by, threads))

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
        return _matches(self.snapshot().arrow_answers(source, by, threads))

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
        compiled = self.snapshot()
        for segment in reversed(compiled.segments):
            if (number := segment.find(id)) >= 0:
                from tamis.events.explain import explain  # noqa: PLC0415 - few ask

                table = segment.compiled.subscriptions.table
                encoder = compiled.encoder
                return explain(table, number, id, encoder.with_derived(encoder.checked(event)))
        raise UnknownSubscription(id=id)


class EventSnapshot(MatchesEvents):
    """Compiled subscriptions as they were at one time: immutable, safe to share between threads.

    Attributes:
        segments: what it is made of.
        encoder: encodes events for the names of all segments.
        version: of the live set that it is of; see :attr:`EventMatcher.version`.
    """

    def __init__(
        self, segments: Sequence[Segment[EventProgram]], encoder: Encoder, version: int = 0
    ) -> None:
        self.segments, self.encoder, self.version = segments, encoder, version
        self.limits = encoder.limits
        self._general = GeneralForm(Segmented(segments, encoder.names, version), encoder)

    @cached_property
    def _singular(self) -> GeneralForm:
        """The form for events without lists where ``[]`` asks for them; or for all."""
        return singular_form(self.segments, self._general, self.version)

    def _form(self, by: By) -> GeneralForm:
        """How events are answered: singular filters have other numbers."""
        _check_by(by)
        return self._general if by == "filter" else self._singular

    @property
    def ids(self) -> Ids | SnapshotIds:
        """The ids of the subscriptions, by the numbers that matches have."""
        return self._general.segmented.ids

    @property
    def interface_ids(self) -> Ids | SnapshotIds:
        """The ids of the interfaces, by the numbers that matches have."""
        return self._general.segmented.interface_ids

    def snapshot(self) -> EventSnapshot:
        """The same: its subscriptions do not change."""
        return self

    def event_answers(
        self, events: Iterable[Mapping[str, Any]], by: By = "subscription", threads: int = 1
    ) -> Generator[EventMatches, None, None]:
        """The answers of :meth:`match_many`, many events at a time."""
        sizer, form = BatchSizer(GROUP_EVENTS), self._form(by)

        def answer(part: Part) -> EventMatches:
            return form.events(part.data, by)

        return self.answers(groups(events, sizer), answer, sizer, threads)

    def ndjson_answers(
        self, source: Source, by: By = "subscription", threads: int = 1
    ) -> Generator[EventMatches, None, None]:
        """The answers of :meth:`match_ndjson`, many lines at a time."""
        sizer, form = BatchSizer(LINES_MAX), self._form(by)

        def answer(part: Part) -> EventMatches:
            return form.lines(part.data, part.line, by)

        parts = fewer_lines(chunks(source, self.limits), sizer)
        return self.answers(parts, answer, sizer, threads)

    def arrow_answers(
        self, source: object, by: By = "subscription", threads: int = 1
    ) -> Generator[EventMatches, None, None]:
        """The answers of :meth:`match_arrow`, many rows at a time."""
        sizer, form = BatchSizer(LINES_MAX), self._form(by)

        def answer(part: Part) -> EventMatches:
            matches = form.rows(part.data, by)
            matches.number_rows(part.line)
            return matches

        parts = read_rows(source, lambda: sizer.events)
        return self.answers(parts, answer, sizer, threads)

    def answers(
        self,
        parts: Iterable[Part | Flush],
        answer: Callable[[Part], EventMatches],
        sizer: BatchSizer,
        threads: int,
    ) -> Generator[EventMatches, None, None]:
        """The answers of the parts of a source, in their order."""

        def match_part(part: Part) -> EventMatches:
            if part.error is not None:
                return EventMatches.unread(part.line, part.error)
            matches = answer(part)
            found = sum(len(each.set_ids) for each in matches.found)
            sizer.adapt(matches.documents, found)
            return matches

        return WorkerPool(check_threads(threads)).map_in_order(match_part, parts)

    def match_batch(self, batch: EventBatch, by: By = "subscription") -> EventMatches:
        """Match events that were encoded for the names of the ``encoder``.

        Document n of the result is event n; its numbers are of filters, subscriptions or
        interfaces.

        Raises:
            UsageError: the arrays are no batch for these names.
        """
        check_batch(batch, len(self.encoder.names))
        _check_by(by)
        return self._general.batch(batch, by)

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[Any, ...]:
        raise UsageError("a snapshot of a live set cannot be pickled: pickle compiled() of the set")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} subscriptions>"


class CompiledEventMatcher(EventSnapshot):
    """Compiled subscriptions of events: immutable, safe to share between threads, picklable.

    Made by :func:`tamis.compile_events`. A pickle holds the filters, which are compiled again when
    it is loaded.
    """

    def __init__(self, subscriptions: EventSubscriptions, engine: str, limits: Limits) -> None:
        subscriptions.table.frozen()  # which it is not when it is unpickled
        chosen = choose(engine)
        self.subscriptions, self.named_engine, self.engine = subscriptions, engine, chosen.name
        self.program = EventProgram(subscriptions, chosen)
        super().__init__([Segment(self.program)], Encoder(subscriptions.table.names, limits))

    @property
    def ids(self) -> Ids:
        """The ids of the subscriptions, by the numbers that matches have."""
        return self.subscriptions.ids

    @property
    def interface_ids(self) -> Ids:
        """The ids of the interfaces, by the numbers that matches have."""
        return self.subscriptions.interface_ids

    def entry(self, number: int) -> EventSubscription:
        """The subscription of a number."""
        return self.subscriptions.subscription(number)

    @property
    def table(self) -> FilterTable:
        """The filters."""
        return self.subscriptions.table

    def memory_usage(self) -> dict[str, int]:
        """Bytes: of the "program", and of the "work" that threads do not use now."""
        return self.program.memory_usage()

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledEventMatcher, (self.subscriptions, self.named_engine, self.limits)

    def __repr__(self) -> str:
        return f"<CompiledEventMatcher: {len(self):,} subscriptions, engine {self.engine}>"


def compile_events(
    subscriptions: EventSubscriptions | SubscriptionItems,
    *,
    engine: str = "auto",
    interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> CompiledEventMatcher:
    """Compile subscriptions of events; exported as :func:`tamis.compile_events`.

    An expression is constraints on attributes, joined with ``and``, ``or``, ``not`` and
    parentheses: ``name = value``, ``name like "a*b"``, ``name exists`` and so on. See
    docs/events.md, or :mod:`tamis.language.events`.

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
    return CompiledEventMatcher(subscriptions, engine, checked_limits(limits))


def _check_by(by: By) -> None:
    if not is_one_of(by, get_args(By)):
        raise UsageError(f"by={by!r}: write 'filter', 'subscription' or 'interface'")


def _matches(found: Generator[EventMatches, None, None]) -> Iterator[EventMatch]:
    with closing(found):
        for answers in found:
            yield from answers
