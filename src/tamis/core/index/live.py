"""``LiveSet``: subscriptions of any kind that come and go while others are matched."""

from __future__ import annotations

import dataclasses
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from tamis.core.arguments import id_problem
from tamis.core.errors import (
    BadSubscriptions,
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    UnknownSubscription,
    UsageError,
)
from tamis.core.index.columns import WrittenIds
from tamis.core.index.segments import Identified, Segment, SnapshotIds

log = logging.getLogger("tamis.core.index.live")

NEWEST_MAX = 64
"""The newest subscriptions, which are compiled again with each change, are fewer than this."""
_BULK_MIN = 16
"""So many subscriptions at least are read together."""
_RATIO = 2
"""A segment is merged with those behind it where it is at most so many times as large."""
_AT_ONCE_MAX = 256
"""Larger merges are left to a thread, so that no match waits long for one."""
_SEGMENTS_MAX = 12
"""With each segment more, a match may merge twice as much."""


class Entry(Protocol):
    """A subscription, parsed."""

    @property
    def id(self) -> SubscriptionId:
        """Unique in its set."""

    @property
    def expression(self) -> str:
        """As it was given."""


class Compiled(Identified, Protocol):
    """Subscriptions, compiled together: immutable."""

    def entry(self, number: int) -> Any:
        """The subscription of a number, as it was given."""


class Stats(NamedTuple):
    """What a live set is made of.

    Attributes:
        version: how many changes there were.
        subscriptions: how many there are.
        segments: the compiled parts of the set.
        newest: the subscriptions that are in no segment yet.
        removed: those that segments still have, though they were removed or replaced.
    """

    version: int
    subscriptions: int
    segments: int
    newest: int
    removed: int


E = TypeVar("E", bound=Entry)
C = TypeVar("C", bound=Compiled)
S = TypeVar("S")


class LiveSet(ABC, Generic[E, C, S]):
    """Subscriptions that come and go: what all kinds of live sets share.

    Every call sees the set as it was when the call began. All methods may be called from any
    thread; changes never wait for a match, nor for a compilation. ``add_many`` and ``update``
    change all or, where one subscription cannot be used, nothing.

    The set is made of segments, each compiled once, and of the newest subscriptions, which the
    first match after a change compiles. Some dozens of these become a segment; where the segment
    before is not much larger, both become one. So a subscription is compiled a few times, however
    large the set is. Large segments are merged by a thread of the set, beside which matches go on.

    Args:
        compiled: the subscriptions at first.
    """

    def __init__(self, compiled: C) -> None:
        self._lock = threading.Lock()  # of what follows; it is held shortly
        self._compiling = threading.Lock()  # one thread compiles, others wait for what it makes
        self._segments: list[Segment[C]] = [Segment(compiled)]
        self._new: dict[SubscriptionId, E] = {}
        self._newest: tuple[list[E], C | None] = [], None  # of the last snapshot, and compiled
        self._version = 0
        self._snapshot: S | None = None
        self._merging: Sequence[Segment[C]] = ()
        self._merger: threading.Thread | None = None

    # -- what kinds of subscriptions differ in -----------------------------------------------------

    @abstractmethod
    def _parsed(self, id: SubscriptionId, expression: Any) -> E | None:
        """A subscription with a good id; None or a ``SubscriptionError`` leaves it to ``_read``."""

    @abstractmethod
    def _read(self, given: Any) -> tuple[Iterable[E], Sequence[SubscriptionError]]:
        """Those of some subscriptions that can be used, and the errors of the others."""

    @abstractmethod
    def _compile(self, old: Sequence[Segment[C]], new: Sequence[E]) -> C:
        """What is left of some segments and then some subscriptions, compiled together."""

    @abstractmethod
    def _snapshot_of(self, segments: Sequence[Segment[C]], version: int) -> S:
        """What answers for segments, of which there is at least one."""

    # -- changes -----------------------------------------------------------------------------------

    def add(self, id: SubscriptionId, expression: Any, *, durable: bool = False) -> None:
        """Add a subscription.

        Args:
            durable: return when the change is durable, as after :meth:`flush`.

        Raises:
            SubscriptionError: the expression cannot be used, or the id is taken.
            EngineRefused: the engine that was named cannot run it.
            StoreError: the folder cannot be written to.
        """
        given: Any = [(id, expression)]
        with suppress(TypeError):  # of what cannot be an id, which is told as in other calls
            given = {id: expression}
        try:
            self._change(given, may_replace=False, durable=durable)
        except BadSubscriptions as several:
            raise several.errors[0] from None

    def check(self, expression: Any) -> None:
        """See that a subscription with an expression could be added.

        Raises:
            SubscriptionError: the expression cannot be used.
            EngineRefused: the engine that was named cannot run it.
        """
        if self._parsed(0, expression) is None:
            _, errors = self._read({0: expression})
            for error in errors:
                raise dataclasses.replace(error, id=None)

    def add_many(self, subscriptions: Any, *, durable: bool = False) -> None:
        """Add subscriptions, all of them or none; they are given as when the set is made.

        ``durable`` is as for :meth:`add`.

        Raises:
            BadSubscriptions: some cannot be used, or their ids are taken; it lists all of them.
            EngineRefused: the engine that was named cannot run them.
            StoreError: the folder cannot be written to.
        """
        self._change(subscriptions, may_replace=False, durable=durable)

    def update(self, subscriptions: Any, *, durable: bool = False) -> None:
        """Add subscriptions, and replace those whose ids are there, which go to the end.

        All of them are changed, or none. They are given as for :meth:`add_many`, and ``durable`` is
        as for :meth:`add`.

        Raises:
            BadSubscriptions: some cannot be used; it lists all of them.
            EngineRefused: the engine that was named cannot run them.
            StoreError: the folder cannot be written to.
        """
        self._change(subscriptions, may_replace=True, durable=durable)

    def _change(self, given: Any, *, may_replace: bool, durable: bool) -> None:
        new: Iterable[E | None] = ()
        refused: Sequence[SubscriptionError] = ()
        is_small = type(given) is dict and len(given) < _BULK_MIN
        if is_small and {*map(type, given)} <= {str, int} and not any(map(id_problem, given)):
            with suppress(SubscriptionError):
                new = [self._parsed(id, expression) for id, expression in given.items()]
        if not new or None in new:
            new, refused = self._read(given)
        errors = list(refused)
        entries = {entry.id: entry for entry in new if entry is not None}
        put, ids = self._encoded(entries.values()), list(entries)
        wanted = WrittenIds.of(ids) if len(ids) >= _BULK_MIN else None
        with self._lock:
            taken = self._taken(ids, wanted)
            if not may_replace:
                errors += [SubscriptionIdError("the id is taken", id=id) for id in taken]
            if errors:
                raise BadSubscriptions(tuple(errors))
            self._write(put, taken)
            self._remove(taken)
            self._new.update(entries)
            self._changed()
        if durable:
            self.flush()

    def remove(self, id: SubscriptionId, *, durable: bool = False) -> None:
        """Remove a subscription; ``durable`` is as for :meth:`add`.

        Raises:
            UnknownSubscription: there is none with this id.
            StoreError: the folder cannot be written to.
        """
        with self._lock:
            if self._find(id) is None:
                raise UnknownSubscription(id=id)
            self._write("[]", [id])
            self._remove([id])
            self._changed()
        if durable:
            self.flush()

    def flush(self) -> None:
        """Wait until all changes so far are durable; a set without a folder has nothing to do."""

    def _encoded(self, entries: Iterable[E]) -> str:
        """What a record of a change says of new subscriptions."""
        return ""

    def _write(self, put: str, gone: Sequence[SubscriptionId] = ()) -> None:
        """Write a change, before it is made; the lock is held."""

    # -- what is there -----------------------------------------------------------------------------

    @property
    def ids(self) -> tuple[SubscriptionId, ...]:
        """The ids as they are now, in the order of the results."""
        segments, new = self._present()
        return (*SnapshotIds(segments), *(entry.id for entry in new))

    def get(self, id: SubscriptionId) -> str | None:
        """The expression of a subscription, or None where there is none with this id."""
        with self._lock:
            found = self._find(id)
        return None if found is None else found.expression

    def entries(self) -> Iterator[E]:
        """The subscriptions as they are now, in the order of the results."""
        segments, new = self._present()
        old = (map(each.compiled.entry, each.left().tolist()) for each in segments)
        return chain(chain.from_iterable(old), new)

    def _present(self) -> tuple[list[Segment[C]], list[E]]:
        """The segments and the subscriptions behind them, as they are now."""
        with self._lock:
            return list(self._segments), list(self._new.values())

    @property
    def version(self) -> int:
        """How many changes there were; a snapshot has the version that it is of."""
        return self._version

    def stats(self) -> Stats:
        """What the set is made of."""
        with self._lock:
            left = sum(map(len, self._segments))
            total = sum(len(segment.compiled.ids) for segment in self._segments)
            new = len(self._new)
            return Stats(self._version, left + new, len(self._segments), new, total - left)

    # The lock is held in what follows.

    def _find(self, id: object) -> E | None:
        """The subscription with an id."""
        if not isinstance(id, str | int) or isinstance(id, bool):  # as True would be 1
            return None
        if id in self._new:
            return self._new[id]
        for segment in reversed(self._segments):
            if (number := segment.find(id)) >= 0:
                entry: E = segment.compiled.entry(number)
                return entry
        return None

    def _taken(
        self, ids: Sequence[SubscriptionId], wanted: WrittenIds | None
    ) -> list[SubscriptionId]:
        """Those of some ids that are there."""
        if wanted is None:
            return [id for id in ids if self._find(id) is not None]
        is_taken = np.array([id in self._new for id in ids])
        for segment in self._segments:
            is_taken |= segment.find_many(wanted) >= 0
        return [ids[index] for index in np.flatnonzero(is_taken).tolist()]

    def _remove(self, ids: Sequence[SubscriptionId]) -> None:
        """Remove subscriptions that are there."""
        old = [id for id in ids if self._new.pop(id, None) is None]
        wanted = WrittenIds.of(old) if len(old) >= _BULK_MIN else None
        for place, segment in enumerate(self._segments if old else ()):
            found = segment.find_many(wanted) if wanted else np.array(list(map(segment.find, old)))
            numbers = found[found >= 0]
            if len(numbers):
                self._segments[place] = segment.without(numbers)

    def _changed(self) -> None:
        self._snapshot = None  # first, so that nobody who read the new version finds the old one
        self._version += 1

    # -- segments ----------------------------------------------------------------------------------

    def snapshot(self) -> S:
        """The present subscriptions, compiled; later changes do not touch them."""
        if (known := self._snapshot) is not None:
            return known
        with self._compiling:
            with self._lock:
                if self._snapshot is not None:
                    return self._snapshot
                self._drop_empty()
                kept, taken = self._to_compile()
                new, version = list(self._new.values()), self._version
            segments = list(kept)
            newest = None
            if taken or new or not kept:
                before, newest = self._newest
                if taken or newest is None or before != new:
                    newest = self._compile(taken, new)
                self._newest = new, newest
                segments.append(Segment(newest))
            snapshot = self._snapshot_of(segments, version)
            with self._lock:
                if newest is not None and (taken or len(new) >= NEWEST_MAX or not kept):
                    self._replace(taken, new, newest)
                    self._newest = [], None
                self._drop_empty()
                if self._version == version and all(each in self._segments for each in kept):
                    self._snapshot = snapshot
                self._merge_beside()
            return snapshot

    def compiled(self) -> C:
        """The present subscriptions, compiled together: what can be saved.

        Matches of changes since the last snapshot wait for it.
        """
        with self._compiling:
            while True:
                before, new = self._present()
                if len(before) == 1 and before[0].is_removed is None and not new:
                    return before[0].compiled
                compiled = self._compile(before, new)
                with self._lock:
                    if self._replace(before, new, compiled):  # else a merge ended meanwhile
                        self._snapshot = None
                        return compiled

    def _to_compile(self) -> tuple[list[Segment[C]], list[Segment[C]]]:
        """The segments that stay, and those behind them that are merged with the newest."""
        kept = [each for each in self._segments if len(each)]
        taken: list[Segment[C]] = []
        merging = {id(each.compiled) for each in self._merging}
        total = len(self._new)
        most = _AT_ONCE_MAX << max(0, len(kept) - _SEGMENTS_MAX)
        is_sealed = total >= NEWEST_MAX
        while is_sealed and kept and id(kept[-1].compiled) not in merging:
            size = len(kept[-1])
            if size > _RATIO * total or total + size > most:
                break
            total += size
            taken.insert(0, kept.pop())
        return kept, taken

    def _drop_empty(self) -> None:
        """Forget segments of which all was removed; one stays, where there is nothing else."""
        self._segments = [each for each in self._segments if len(each)] or self._segments[-1:]

    def _replace(self, old: Sequence[Segment[C]], new: Sequence[E], compiled: C) -> bool:
        """Put a segment in the place of others and of new subscriptions, if these are still there.

        What was removed or replaced while it was compiled is removed from it.

        Args:
            old: adjacent segments, as they were when the compilation began; so is ``new``, behind.
        """
        known = [id(segment.compiled) for segment in self._segments]
        replaced = [id(segment.compiled) for segment in old]
        place = known.index(replaced[0]) if replaced and replaced[0] in known else len(known)
        if known[place : place + len(replaced)] != replaced:
            return False
        stale: list[SubscriptionId] = []
        for segment, later in zip(old, self._segments[place:], strict=False):
            if later is not segment:
                stale += segment.ids_removed(later)
        for entry in new:
            if self._new.get(entry.id) is entry:
                del self._new[entry.id]
            else:
                stale.append(entry.id)
        result = Segment(compiled)
        if stale:
            result = result.without(compiled.ids.find_many(WrittenIds.of(stale)))
        self._segments[place : place + len(old)] = [result]
        return True

    # -- merges ------------------------------------------------------------------------------------

    def _merge_beside(self) -> None:
        """Have a thread merge segments, if some are due; the lock is held."""
        if self._merger is None or not self._merger.is_alive():  # a fork has no threads
            self._merging = _due(self._segments)
            if self._merging:
                self._merger = threading.Thread(target=self._merge, name="tamis-merge", daemon=True)
                self._merger.start()

    def _merge(self) -> None:
        merging = self._merging  # after the last merge, that may be of the next thread
        while merging:
            try:
                compiled = self._compile(merging, ())
                compiled.ids.make_index()  # before the lock is held, which matches wait for
            except Exception:  # the set is as right as it was
                log.exception("segments of a live set cannot be merged")
                with self._lock:
                    self._merging, self._merger = (), None
                return
            with self._lock:
                if self._replace(merging, (), compiled):
                    self._snapshot = None
                merging = self._merging = _due(self._segments)
                if not merging:
                    self._merger = None

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._segments)) + len(self._new)

    def __contains__(self, id: object) -> bool:
        with self._lock:
            return self._find(id) is not None

    def __iter__(self) -> Iterator[SubscriptionId]:
        return iter(self.ids)

    def __reduce__(self) -> tuple[Any, ...]:
        raise UsageError("a live set cannot be pickled: pickle compiled() of it")

    def _shown(self) -> str:
        return f"{len(self):,} subscriptions"

    def __repr__(self) -> str:
        is_made = hasattr(self, "_merger")  # else its constructor raised
        return f"<{type(self).__name__}: {self._shown() if is_made else 'not made'}>"


def _due(segments: Sequence[Segment[C]]) -> Sequence[Segment[C]]:
    """Adjacent segments that are to become one; or one of which most was removed."""
    for segment in segments:
        if 2 * len(segment) < len(segment.compiled.ids):
            return [segment]
    for end in range(len(segments), 1, -1):
        first, total = end - 1, len(segments[end - 1])
        while first and len(segments[first - 1]) <= _RATIO * total:
            first -= 1
            total += len(segments[first])
        if end - first > 1:
            return segments[first:end]
    return ()
