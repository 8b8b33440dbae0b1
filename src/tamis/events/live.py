"""Live subscriptions of events: added and removed while events flow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tamis.core.arguments import checked_limits
from tamis.core.errors import OtherVersion, SubscriptionError, SubscriptionId
from tamis.core.index.durable import DurableSet
from tamis.core.index.segments import Segment
from tamis.core.index.store import read_texts
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.events.encode import Encoder
from tamis.events.matcher import CompiledEventMatcher, EventSnapshot, MatchesEvents, compile_events
from tamis.events.saved import KIND, load_events, save_events
from tamis.events.segmented import names_left
from tamis.events.subscriptions import EventSubscription, EventSubscriptions
from tamis.language.constraints import parse_filters
from tamis.language.entries import SubscriptionItems


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

    KIND = "events"

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
        save_events(path, compiled.subscriptions)

    def _read_segment(self, path: Path) -> CompiledEventMatcher:
        try:
            return self._compiled(load_events(path))
        except OtherVersion:
            return self._compiled_again(path, *read_texts(path, KIND))

    def _parsed(self, id: SubscriptionId, expression: Any) -> EventSubscription | None:
        if type(expression) is not str:
            return None
        try:
            filters = parse_filters(expression, self.limits)
        except SubscriptionError:
            return None
        return EventSubscription(id, expression, id, filters)

    def _read(
        self, given: EventSubscriptions | SubscriptionItems
    ) -> tuple[Iterable[EventSubscription], Sequence[SubscriptionError]]:
        errors: Sequence[SubscriptionError] = ()
        if not isinstance(given, EventSubscriptions):
            given = EventSubscriptions(given, skip_bad=True, limits=self.limits)
            errors = given.errors
        return map(given.subscription, range(len(given))), errors

    def _compile(
        self, old: Sequence[Segment[CompiledEventMatcher]], new: Sequence[EventSubscription]
    ) -> CompiledEventMatcher:
        parts = [(each.compiled.subscriptions, each.left()) for each in old]
        return self._compiled(EventSubscriptions.joined(parts, new))

    def _compiled(self, subscriptions: EventSubscriptions) -> CompiledEventMatcher:
        return CompiledEventMatcher(subscriptions, self._engine, self.limits)

    def _snapshot_of(
        self, segments: Sequence[Segment[CompiledEventMatcher]], version: int
    ) -> EventSnapshot:
        names = dict.fromkeys(name for each in segments for name in names_left(each))
        if names.keys() != set(self._encoder.names):  # others may have any value
            self._encoder = Encoder(tuple(names), self.limits)
        programs = [Segment(each.compiled.program, each.is_removed) for each in segments]
        return EventSnapshot(programs, self._encoder, version)
