"""Live subscriptions: added and removed while documents flow."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.errors import (
    BadSubscriptions,
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    UnknownSubscription,
    UsageError,
)
from tamis.core.limits import Limits
from tamis.documents.vocabulary import Projection
from tamis.language.columns import IdsOfSegment
from tamis.language.constraints import reads_as_xpath
from tamis.language.model import Constant
from tamis.language.subscriptions import Subscription, SubscriptionItems, Subscriptions, Unsupported
from tamis.matching.batches import BatchMatcher, Part
from tamis.matching.matcher import CompiledMatcher, compile_subscriptions
from tamis.matching.snapshot import DocumentMatcher, Snapshot
from tamis.schema.graph import SchemaGraph

NEWEST_MAX = 64
"""The newest subscriptions, which are compiled again with each change, are fewer than this."""
_RATIO = 2
"""A segment is merged with those behind it where it is at most so many times as large."""


class Matcher(DocumentMatcher):
    """The same as :func:`tamis.compile` gives, with subscriptions that come and go.

    Every call sees the set as it was when the call began; all methods may be called from any
    thread, and changes never wait for a match. ``add_many`` and ``update`` change all or, where one
    subscription cannot be used, nothing.

    The set is made of *segments*, each compiled once. The newest subscriptions are compiled by the
    first match after a change. Some dozens become a segment; where the segment before is not much
    larger, both become one. So a subscription is compiled a few times, however large the set is;
    but a match that merges large segments takes long, and others wait for it.

    Arguments and errors are those of :func:`tamis.compile`.

    >>> live = Matcher({"s1": "//a"})
    >>> live.add("s2", "//a/b")
    >>> live.update({"s1": "//c", "s3": "//a"})
    >>> list(live.match(b"<a><b/></a>")), live.ids, live.get("s1")
    (['s2', 's3'], ('s2', 's1', 's3'), '//c')
    >>> live.remove("s2")
    >>> list(live.match(b"<a><b/></a>"))
    ['s3']
    """

    def __init__(  # noqa: PLR0913 - as compile has them
        self,
        subscriptions: Subscriptions | SubscriptionItems = (),
        *,
        engine: str = "auto",
        dtd: str | os.PathLike[str] | SchemaGraph | None = None,
        root: str | None = None,
        dtd_trust: bool = False,
        namespaces: Mapping[str, str] | None = None,
        default_namespace: str | None = None,
        unsupported: Unsupported = "refuse",
        limits: Limits | None = None,
    ) -> None:
        compiled = compile_subscriptions(
            subscriptions,
            engine=engine,
            dtd=dtd,
            root=root,
            dtd_trust=dtd_trust,
            namespaces=namespaces,
            default_namespace=default_namespace,
            unsupported=unsupported,
            limits=limits,
        )
        self._engine, self._limits, self._schema = engine, compiled.limits, compiled.schema
        self._none = compiled.subscriptions.with_entries([])
        self._lock = threading.Lock()  # of what follows; it is held shortly
        self._compiling = threading.Lock()  # one thread compiles, others wait for what it makes
        self._segments = [_Segment(compiled, None)]
        self._new: dict[SubscriptionId, Subscription] = {}
        self._snapshot: Snapshot | None = compiled
        self._parsers: list[Any] = []
        self._changes = 0

    def add(self, id: SubscriptionId, expression: str) -> None:
        """Add a subscription.

        Raises:
            SubscriptionError: the expression cannot be used, or the id is taken.
            EngineRefused: the engine that was named cannot run it.
        """
        entry = self._parsed(id, expression)
        if entry is not None:
            with self._lock:
                if self._find(id) is None:
                    self._new[id] = entry
                    self._changed()
                    return
        try:
            self.add_many([(id, expression)])
        except BadSubscriptions as several:
            raise several.errors[0] from None

    def add_many(self, subscriptions: Subscriptions | SubscriptionItems) -> None:
        """Add subscriptions, all of them or none.

        They are id → expression, pairs, the path of a file with these, or a set that was parsed
        with the same namespaces and limits.

        Raises:
            BadSubscriptions: some cannot be used, or their ids are taken; it lists all of them.
            EngineRefused: the engine that was named cannot run them.
        """
        self._change(subscriptions, may_replace=False)

    def update(self, subscriptions: Subscriptions | SubscriptionItems) -> None:
        """Add subscriptions, and replace those whose ids are there, which go to the end.

        All of them are changed, or none. They are given as for :meth:`add_many`.

        Raises:
            BadSubscriptions: some cannot be used; it lists all of them.
            EngineRefused: the engine that was named cannot run them.
        """
        self._change(subscriptions, may_replace=True)

    def remove(self, id: SubscriptionId) -> None:
        """Remove a subscription.

        Raises:
            UnknownSubscription: there is none with this id.
        """
        with self._lock:
            if self._find(id) is None:
                raise UnknownSubscription(id=id)
            self._remove([id])
            self._changed()

    @property
    def ids(self) -> tuple[SubscriptionId, ...]:
        """The ids as they are now, in the order of the results."""
        with self._lock:
            segments, new = list(self._segments), tuple(self._new)
        return (*chain.from_iterable(each.ids.left() for each in segments), *new)

    def get(self, id: SubscriptionId) -> str | None:
        """The expression of a subscription, or None where there is none with this id."""
        with self._lock:
            found = self._find(id)
        return None if found is None else found.expression

    def _parsed(self, id: SubscriptionId, expression: str) -> Subscription | None:
        """A subscription that is good beyond doubt; None leaves it to what reads many."""
        is_id = type(id) is int or (type(id) is str and bool(id) and id.isprintable())
        if self._engine != "auto" or not is_id or type(expression) is not str:
            return None
        try:
            query = self._none.queries.parse(expression)
        except SubscriptionError:
            return None
        is_odd = query.unstreamed is not None or isinstance(query.expression, Constant)
        if is_odd or reads_as_xpath(expression, self._none.limits):  # which is warned of
            return None
        return Subscription(id, expression, query)

    def _change(self, given: Subscriptions | SubscriptionItems, *, may_replace: bool) -> None:
        new, errors = self._read(given)
        if self._engine != "auto" or new.slow:  # else some engine takes each of them
            try:
                self._compile(new)
            except BadSubscriptions as several:
                errors += several.errors
        entries = {entry.id: entry for entry in new}
        with self._lock:
            taken = [id for id in entries if self._find(id) is not None]
            if not may_replace:
                errors += tuple(SubscriptionIdError("the id is taken", id=id) for id in taken)
            if errors:
                raise BadSubscriptions(errors)
            self._remove(taken)
            self._new.update(entries)
            self._changed()

    def _read(
        self, given: Subscriptions | SubscriptionItems
    ) -> tuple[Subscriptions, tuple[SubscriptionError, ...]]:
        """Subscriptions, parsed as the others were, and the errors of bad ones."""
        rules = self._none.options
        if not isinstance(given, Subscriptions):
            new = Subscriptions(
                given,
                namespaces=self._none.namespaces,
                default_namespace=self._none.default_namespace,
                unsupported=rules.unsupported,
                skip_bad=True,
                limits=rules.limits,
            )
            return new, new.errors
        if given.options != rules:
            raise UsageError(
                "the subscriptions were parsed with other namespaces, limits or unsupported than "
                "the others: give them as id → expression"
            )
        return given, ()

    # -- segments --------------------------------------------------------------------------------

    def _find(self, id: object) -> Subscription | None:
        """The subscription with an id; the lock is held, as in what follows."""
        if not isinstance(id, str | int) or isinstance(id, bool):  # as True would be 1
            return None
        if id in self._new:
            return self._new[id]
        for segment in reversed(self._segments):
            number = segment.ids.find(id)
            if number >= 0:
                return segment.matcher.subscriptions.find(id)
        return None

    def _remove(self, ids: Sequence[SubscriptionId]) -> None:
        """Remove subscriptions that are there."""
        old = [id for id in ids if self._new.pop(id, None) is None]
        for place, segment in enumerate(self._segments):
            numbers = [number for id in old if (number := segment.ids.find(id)) >= 0]
            if numbers:
                self._segments[place] = segment.without(numbers)

    def _changed(self) -> None:
        self._changes += 1
        self._snapshot = None

    def snapshot(self) -> Snapshot:
        """The present subscriptions, compiled; later changes do not touch them."""
        if (known := self._snapshot) is not None:
            return known
        with self._compiling:
            with self._lock:
                if self._snapshot is not None:
                    return self._snapshot
                before, new, changes = list(self._segments), list(self._new.values()), self._changes
            kept, entries = _to_compile(before, new)
            newest = None
            if entries or not kept:
                newest = _Segment(self._compile(self._none.with_entries(entries)), None)
            snapshot = self._snapshot_of([*kept, newest] if newest is not None else kept)
            is_sealed = len(entries) > len(new) or len(entries) >= NEWEST_MAX or not kept
            with self._lock:
                if newest is not None and is_sealed:
                    self._seal(before, kept, new, newest)
                elif len(kept) < len(before):
                    self._segments = [each for each in self._segments if len(each)]
                if self._changes == changes:
                    self._snapshot = snapshot
            return snapshot

    def compiled(self) -> CompiledMatcher:
        """The present subscriptions, compiled together: what can be saved."""
        with self._compiling:
            with self._lock:
                before, new, changes = list(self._segments), list(self._new.values()), self._changes
            if len(before) == 1 and before[0].is_removed is None and not new:
                return before[0].matcher
            entries = [*chain.from_iterable(each.entries() for each in before), *new]
            compiled = self._compile(self._none.with_entries(entries))
            with self._lock:
                self._seal(before, [], new, _Segment(compiled, None))
                if self._changes == changes:
                    self._snapshot = compiled
            return compiled

    def _snapshot_of(self, segments: Sequence[_Segment]) -> Snapshot:
        if len(segments) == 1 and segments[0].is_removed is None:
            return segments[0].matcher
        parts, first = [], 0
        for segment in segments:
            parts.append(Part(segment.matcher.segment, first, segment.is_removed))
            first += len(segment.matcher)
        return Snapshot(BatchMatcher(parts, self._limits, Projection(), self._parsers))

    def _seal(
        self,
        before: Sequence[_Segment],
        kept: Sequence[_Segment],
        new: Sequence[Subscription],
        newest: _Segment,
    ) -> None:
        """Put a segment in the place of new subscriptions and of segments that are not kept.

        What was removed or replaced while it was compiled is removed from it.

        Args:
            before: all segments, as they were when the compilation began; so are the others.
        """
        stale: list[SubscriptionId] = []
        segments: list[_Segment] = []
        for old, now in zip(before, self._segments, strict=True):
            if any(old is each for each in kept):
                segments.append(now)
            elif now is not old:
                stale += old.ids_removed(now)
        for entry in new:
            if self._new.get(entry.id) is entry:
                del self._new[entry.id]
            else:
                stale.append(entry.id)
        if stale:
            newest = newest.without([newest.ids.find(id) for id in stale])
        self._segments = [*segments, newest]

    def _compile(self, subscriptions: Subscriptions) -> CompiledMatcher:
        return CompiledMatcher(subscriptions, self._engine, self._limits, None, self._schema)

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._segments)) + len(self._new)

    def __contains__(self, id: object) -> bool:
        with self._lock:
            return self._find(id) is not None

    def __iter__(self) -> Iterator[SubscriptionId]:
        return iter(self.ids)

    def __reduce__(self) -> tuple[Any, ...]:
        raise UsageError("a live set cannot be pickled: pickle matcher.compiled()")

    def __repr__(self) -> str:
        return f"<Matcher: {len(self):,} subscriptions, engine {self._engine}>"


@dataclass(frozen=True)
class _Segment:
    """A compiled part of the set; ``is_removed`` says which subscriptions are no longer there."""

    matcher: CompiledMatcher
    is_removed: NDArray[np.bool_] | None

    @property
    def ids(self) -> IdsOfSegment:
        """The ids that are there."""
        return IdsOfSegment(self.matcher.subscriptions.ids, 0, self.is_removed)

    def without(self, numbers: Sequence[int]) -> _Segment:
        """The same without some more subscriptions."""
        if self.is_removed is None:
            is_removed = np.zeros(len(self.matcher), np.bool_)
        else:
            is_removed = self.is_removed.copy()
        is_removed[numbers] = True
        return _Segment(self.matcher, is_removed)

    def ids_removed(self, later: _Segment) -> list[SubscriptionId]:
        """The ids that are here, and not in the same segment later."""
        assert later.is_removed is not None
        gone = later.is_removed if self.is_removed is None else later.is_removed & ~self.is_removed
        return self.matcher.subscriptions.ids.take(np.flatnonzero(gone))

    def entries(self) -> Iterator[Subscription]:
        """The subscriptions that are there."""
        subscriptions = self.matcher.subscriptions
        if self.is_removed is None:
            return iter(subscriptions)
        return compress(subscriptions, (~self.is_removed).tolist())

    def __len__(self) -> int:
        return self.ids.count


def _to_compile(
    segments: Sequence[_Segment], new: Sequence[Subscription]
) -> tuple[list[_Segment], list[Subscription]]:
    """The segments that stay, and all that is compiled together, in order."""
    kept, entries = [each for each in segments if len(each)], list(new)
    while any(2 * len(each) < len(each.matcher) for each in kept):
        entries = [*kept.pop().entries(), *entries]
    if len(entries) >= NEWEST_MAX:
        while kept and len(kept[-1]) <= _RATIO * len(entries):
            entries = [*kept.pop().entries(), *entries]
    return kept, entries
