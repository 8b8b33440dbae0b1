"""Live subscriptions of events: added and removed while events flow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tamis.core.arguments import checked_limits
from tamis.core.array_file import open_arrays, write_arrays
from tamis.core.errors import (
    DamagedProgram,
    OtherVersion,
    SubscriptionError,
    SubscriptionId,
    UsageError,
)
from tamis.core.index.columns import Ids, Texts, packed_texts, unpacked_texts
from tamis.core.index.durable import DurableSet
from tamis.core.index.segments import Segment
from tamis.core.index.store import read_texts
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.events.encode import Encoder
from tamis.events.matcher import CompiledEventMatcher, EventSnapshot, MatchesEvents, compile_events
from tamis.events.model import ARRAY_TYPES, FilterTable, checked_table
from tamis.events.segmented import names_left
from tamis.events.subscriptions import EventSubscription, EventSubscriptions
from tamis.language.entries import SubscriptionItems
from tamis.language.events import parse_filters

_Segments = Sequence[Segment[CompiledEventMatcher]]
_KIND, _VERSION = "events", 4
_OF_INTERFACES = ("interface_id_bytes", "interface_id_bounds")


class EventMatcher(
    DurableSet[EventSubscription, CompiledEventMatcher, EventSnapshot], MatchesEvents
):
    """The same as :func:`tamis.compile_events` gives, with subscriptions that come and go.

    See :class:`tamis.core.index.live.LiveSet` for how they change, and
    :class:`tamis.core.index.durable.DurableSet` for how a folder keeps them. Arguments and errors
    are those of :func:`tamis.compile_events`. ``add_many`` and ``update`` also take
    :class:`tamis.events.EventSubscriptions`, which may have interfaces.

    >>> live = EventMatcher({"hot": "temp > 30"})
    >>> live.add("storm", "wind > 20")
    >>> list(live.match({"temp": 35, "wind": 25})), live.get("storm")
    (['hot', 'storm'], 'wind > 20')
    >>> live.update({"hot": "temp > 40"})
    >>> live.remove("storm")
    >>> list(live.match({"temp": 35, "wind": 25}))
    []
    """

    KIND = _KIND

    def __init__(
        self,
        subscriptions: EventSubscriptions | SubscriptionItems = (),
        *,
        engine: str = "auto",
        interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._engine, self.limits = engine, checked_limits(limits)
        self._encoder = Encoder((), self.limits)
        compiled = compile_events(
            subscriptions, engine=engine, interfaces=interfaces, limits=self.limits
        )
        super().__init__(compiled)

    def _settings(self) -> dict[str, Any]:
        return {"engine": self._engine, "limits": self.limits.changed()}

    @classmethod
    def _arguments(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {**settings, "limits": Limits(**settings["limits"])}

    def _written(self, entry: EventSubscription) -> Any:
        is_own = entry.interface == entry.id
        return entry.expression if is_own else [entry.expression, entry.interface]

    def _again(self, pairs: list[tuple[SubscriptionId, Any]]) -> Any:
        own = {id: it if isinstance(it, list) else [it, id] for id, it in pairs}
        expressions = {id: expression for id, (expression, _) in own.items()}
        interfaces = {id: interface for id, (_, interface) in own.items()}
        if all(id is interface for id, interface in interfaces.items()):
            return expressions
        return EventSubscriptions(expressions, interfaces=interfaces, limits=self.limits)

    def _write_segment(self, path: Path, compiled: CompiledEventMatcher) -> None:
        _save(path, compiled.subscriptions)

    def _read_segment(self, path: Path) -> CompiledEventMatcher:
        try:
            return self._compiled(_load(path))
        except OtherVersion:
            return self._compiled_again(path, *read_texts(path, _KIND))

    def _parsed(self, id: SubscriptionId, expression: Any) -> EventSubscription | None:
        if type(expression) is not str:
            return None
        return EventSubscription(id, expression, id, parse_filters(expression, self.limits))

    def _read(
        self, given: EventSubscriptions | SubscriptionItems
    ) -> tuple[Iterable[EventSubscription], Sequence[SubscriptionError]]:
        errors: Sequence[SubscriptionError] = ()
        if not isinstance(given, EventSubscriptions):
            given = EventSubscriptions(given, skip_bad=True, limits=self.limits)
            errors = given.errors
        return map(given.subscription, range(len(given))), errors

    @property
    def subscriptions(self) -> EventSubscriptions:
        """The present subscriptions, parsed; they are not compiled together."""
        return _joined(*self._present())

    def _compile(self, old: _Segments, new: Sequence[EventSubscription]) -> CompiledEventMatcher:
        return self._compiled(_joined(old, new))

    def _compiled(self, subscriptions: EventSubscriptions) -> CompiledEventMatcher:
        return CompiledEventMatcher(subscriptions, self._engine, self.limits)

    def _snapshot_of(self, segments: _Segments, version: int) -> EventSnapshot:
        names = dict.fromkeys(name for each in segments for name in names_left(each))
        if names.keys() != set(self._encoder.names):  # others may have any value
            self._encoder = Encoder(tuple(names), self.limits)
        programs = [Segment(each.compiled.program, each.is_removed) for each in segments]
        return EventSnapshot(programs, self._encoder, version)


def _joined(old: _Segments, new: Sequence[EventSubscription]) -> EventSubscriptions:
    parts = [(each.compiled.subscriptions, each.left()) for each in old]
    return EventSubscriptions.joined(parts, new)


def _save(path: Path, subscriptions: EventSubscriptions) -> None:
    """Write a set to a file, of which its filters are read where it is mapped."""
    table = subscriptions.table
    expressions = map(subscriptions.expression, range(len(subscriptions)))
    arrays = packed_texts(subscriptions.ids, Texts.of(expressions))
    arrays |= {f"table_{name}": getattr(table, name) for name in ARRAY_TYPES[FilterTable]}
    if subscriptions.interface_ids is not subscriptions.ids:
        arrays |= zip(_OF_INTERFACES, subscriptions.interface_ids.arrays(), strict=True)
    metadata = {"names": table.names, "interface_count": table.interface_count}
    write_arrays(path, _KIND, _VERSION, arrays, metadata)


def _load(path: Path) -> EventSubscriptions:
    """Read what ``_save`` wrote.

    Raises:
        ProgramError: there is no such file, or it is damaged, or of another version of Tamis.
    """
    found = open_arrays(path, _KIND, _VERSION)
    arrays: dict[str, Any] = dict(found.arrays)
    try:
        ids, texts = unpacked_texts(arrays)
        interface_ids = ids
        if _OF_INTERFACES[0] in arrays:
            interface_ids = Ids.of_arrays(*(arrays[name] for name in _OF_INTERFACES))
        own = {name: arrays[f"table_{name}"] for name in ARRAY_TYPES[FilterTable]}
        names, count = tuple(found.metadata["names"]), found.metadata["interface_count"]
        table = checked_table(FilterTable(names, interface_count=count, **own))
    except (KeyError, TypeError, UsageError) as error:
        raise DamagedProgram(f"it is no set of event subscriptions: {error}", str(path)) from None
    if not len(ids) == len(texts) == len(table.interfaces):
        raise DamagedProgram("it has not as many ids as subscriptions", str(path))
    return EventSubscriptions.of_columns(ids, interface_ids, table, texts)
