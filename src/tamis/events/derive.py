"""``Deriver``: the attributes of an event that are found in others: see ``language.attributes``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.core.arrays import Int64, distinct
from tamis.core.errors import EventError
from tamis.core.index.matchset import ranges
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.events.checks import plain_value, too_many_values
from tamis.events.model import EventBatch
from tamis.language.attributes import (
    ADDRESS,
    ELEMENTS,
    EVERY,
    FOLDED,
    INSTEAD,
    ITSELF,
    NULL,
    SEPARATOR,
    Path,
    attribute_of,
    path_name,
    print_name,
)
from tamis.language.constraints import fold
from tamis.language.networks import address_bits

if TYPE_CHECKING:
    from tamis.events.matcher import CompiledEventMatcher

_MISSING = object()
_OF_NUMBERS = lazy_pattern(r" [=<>!]+ -?[0-9]")
"""Conditions on elements, as they are written, that hold of numbers alone."""
_UNBOUNDED = 1 << 40


class Place:
    """A place in events, and what is asked of it.

    Attributes:
        inside: what is asked of the values in an object, by name, or in a list, by position.
        names: of the attributes that have the value, by mark.
        conditions: on elements, each with the name of the attribute that says so.
    """

    def __init__(self, limits: Limits, path: Path = ()) -> None:
        self.path = path
        self.inside: dict[str | int, Place] = {}
        self.names: dict[str, str] = {}
        self.conditions: dict[str, str] = {}
        self._limits = limits

    def at(self, path: Path) -> Place:
        """The place that a path leads to from here."""
        place = self
        for part in path:
            inner = place.inside.get(part)
            if inner is None:
                inner = place.inside[part] = Place(self._limits, (*place.path, part))
            place = inner
        return place

    @cached_property
    def asks_strings(self) -> bool:
        """Whether some condition may hold of a string."""
        return not all(map(_OF_NUMBERS.match, self.conditions))

    @cached_property
    def of_elements(self) -> CompiledEventMatcher:
        """Matches elements with the conditions, by their numbers."""
        return _compiled(tuple(map(_expression, self.conditions)), self._limits)


@lru_cache(1 << 8)
def _compiled(asked: tuple[str, ...], limits: Limits) -> CompiledEventMatcher:
    """Conditions by their numbers; when a live set changes, most places keep theirs."""
    from tamis.events.matcher import compile_events  # noqa: PLC0415 - it imports this module

    bounds = ("chars", "nesting", "predicates", "filters")  # they were held before
    unbounded = dict.fromkeys((f"subscription_{bound}" for bound in bounds), _UNBOUNDED)
    return compile_events(dict(enumerate(asked)), limits=replace(limits, **unbounded))


def as_event(element: object) -> Mapping[str, Any]:
    """An element as an event: an object, or a value that is nameless; a list has no value."""
    if not isinstance(element, Mapping):
        return {} if isinstance(element, list | tuple) else {ITSELF: element}
    if ITSELF in element:  # nobody but this gives it
        return {name: value for name, value in element.items() if name != ITSELF}
    return element


_Listed = dict[Place, list[tuple[int, Any]]]
"""The values at places, with the numbers of their events."""


def _expression(condition: str) -> str:
    """The condition on an element, as an expression about it: ITSELF says so to the parser."""
    if condition.startswith(".("):
        return ITSELF + condition[2:-1]
    return ITSELF + (condition[1:] if condition.startswith(".") else f".{condition}")


def values_in(event: Mapping[str, Any], limits: Limits) -> list[Any]:
    """All strings, numbers and booleans of an event, however deep they are.

    Raises an ``EventError`` where there are too many, with objects and lists.

    >>> values_in({"a": 1, "b": [{"c": "x"}, None]}, Limits())
    ['x', 1]
    """
    found: list[Any] = []
    left: list[Any] = [event]
    count = 0
    while left:
        value = left.pop()
        count += 1
        if count > limits.event_attributes:
            raise too_many_values(limits)
        if isinstance(value, Mapping):
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value
        elif value is not None:
            found.append(value)
    return found


class Deriver:
    """Adds derived attributes to events. Threads may share it.

    >>> from tamis.language.attributes import elements_name
    >>> names = [path_name(("a", "b")), elements_name(("a", "l"), " > 2")]
    >>> deriver = Deriver(names, Limits())
    >>> [event] = deriver.derived([{"a": {"b": 7, "l": [1, 3]}}], {})
    >>> [event[name] for name in names]
    [7, True]

    Attributes:
        top: the tree of all places.
        every: what is asked of all values, wherever they are. Its names are of their strings, all
            together.
        reads_every: whether anything is.
        dotted: paths by what they are as one name.
        roots: the attributes whose objects and lists are looked into.
        single: others whose values it reads, which have to be plain.
        listed: the places whose elements have conditions.
    """

    def __init__(self, names: Sequence[str], limits: Limits) -> None:
        self._all = names
        self._names = {name for name in names if attribute_of(name).mark}
        self._limits = limits
        self.top = Place(limits)
        self.dotted: dict[str, Place] = {}
        self._asked: set[str] = set()  # others, which may have any values
        self.roots: set[str] = set()
        self.single: set[str] = set()
        places: dict[Place, None] = {}
        for name in sorted(self._names):
            mark, path, condition = attribute_of(name)
            place = self.top.at(path)
            places[place] = None
            if mark == ELEMENTS:
                place.conditions[condition] = name
            else:
                place.names[mark] = name
            looks = len(path) > 1 or mark == ELEMENTS
            of = self.roots if looks else self._asked if mark == NULL else self.single
            of.add(str(path[0]))
            if len(path) > 1 and all(isinstance(part, str) and "." not in part for part in path):
                self.dotted[".".join(map(str, path))] = place
        self.every = self.top.inside.pop(EVERY, Place(limits))  # a name that any event may have
        # Of several errors of an event, the same is told however it was read.
        self.listed = [place for place in [*places, self.every] if place.conditions]
        self.reads_every = bool(self.every.names or self.every.conditions)
        self.roots.discard(EVERY)
        self.single.discard(EVERY)

    def __bool__(self) -> bool:
        return bool(self._names)

    @property
    def looks_inside(self) -> bool:
        """Whether it reads objects or lists."""
        return bool(self.roots) or self.reads_every

    def read_at_top(self, known: Collection[str]) -> list[str]:
        """All attributes that are read, at the top of events of which some are known."""
        plain = (name for name in self._all if not attribute_of(name).mark)
        dotted = {name: place.path[0] for name, place in self.dotted.items() if name in known}
        flat = set(dotted.values())
        roots = (root for root in sorted(self.roots) if root in known or root not in flat)
        others = known if self.reads_every else ()
        asked = sorted(self.single | self._asked)
        return list(dict.fromkeys([*plain, *asked, *roots, *dotted, *others]))

    def columns(self) -> dict[str, str]:
        """The attribute of each derived one, where none is inside of another."""
        return {name: str(attribute_of(name).path[0]) for name in self._names}

    def derived(
        self, events: Iterable[dict[str, Any]], errors: dict[int, EventError]
    ) -> list[dict[str, Any]]:
        """Events with the attributes that are derived; ``errors`` gets those of others."""
        found: list[dict[str, Any]] = []
        elements: _Listed = {}
        for number, event in enumerate(events):
            own = {name: value for name, value in event.items() if name not in self._names}
            reader = _Reader(self._limits, own, elements, number)
            try:
                reader.look(self.top, event)
                for dotted in event:
                    place = self.dotted.get(dotted)
                    if place is not None and not isinstance(event.get(str(place.path[0])), Mapping):
                        reader.read(place, event[dotted])
                if self.reads_every:
                    reader.read_every(self.every, values_in(event, self._limits))
            except EventError as error:
                errors.setdefault(number, error)
                own = {}
            found.append(own)
        for place in self.listed:
            if place in elements:
                self._match_elements(place, elements[place], found, errors)
        for number in errors:
            found[number] = {}
        return found

    def _match_elements(
        self,
        place: Place,
        listed: list[tuple[int, Any]],
        found: list[dict[str, Any]],
        errors: dict[int, EventError],
    ) -> None:
        batch = place.of_elements.encoder.plain_events(as_event(value) for _, value in listed)
        events = np.array([number for number, _ in listed], np.int64)
        owners, conditions = conditions_of(place, batch, events, errors)
        names = list(place.conditions.values())
        for event, condition in zip(owners.tolist(), conditions.tolist(), strict=True):
            found[event][names[condition]] = True


def conditions_of(
    place: Place, batch: EventBatch, events: Int64, errors: dict[int, EventError]
) -> tuple[Int64, Int64]:
    """Which conditions of a place hold: events, and the numbers of conditions, each pair once.

    Args:
        batch: elements, of the events of these numbers.
        errors: of events; gets those of elements.
    """
    for number, error in batch.errors.items():
        message = f"in an element of {print_name(path_name(place.path))}: {error.message}"
        errors.setdefault(int(events[number]), type(error)(message))
    matches = place.of_elements.program.match(batch, "subscription")
    sizes = np.diff(matches.set_starts)[matches.set_ids]
    members = ranges(matches.set_starts, matches.set_ids, matches.members)
    owners = np.repeat(np.repeat(events, np.diff(matches.document_starts)), sizes)
    count = len(place.conditions)
    pairs = distinct(owners * count + members)
    return pairs // count, pairs % count


class _Reader:
    """Reads what is asked of one event."""

    def __init__(
        self, limits: Limits, found: dict[str, Any], elements: _Listed, number: int
    ) -> None:
        self._limits, self._found, self._elements = limits, found, elements
        self._number = number

    def look(self, place: Place, value: Any) -> None:
        """Find what is asked of what is in a value."""
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if (
                    isinstance(name, str) and name in place.inside
                ):  # 0 is a position, and also False
                    self.visit(place.inside[name], inner)
        elif isinstance(value, list | tuple):
            for position, inner in place.inside.items():
                if isinstance(position, int) and position < len(value):
                    self.visit(inner, value[position])

    def visit(self, place: Place, value: Any) -> None:
        """Find what is asked of a value, and of what is in it."""
        value = value.value if isinstance(value, Enum) else value
        self.read(place, value)
        if place.inside:
            self.look(place, value)

    def read(self, place: Place, value: Any) -> None:
        """Find what is asked of a value."""
        for mark, name in place.names.items():
            if mark == NULL:
                self._found[name] = True if value is None else None
                continue
            own = plain_value(name, value, self._limits.event_string_bytes)
            self._found[name] = of_string(mark, own)
        if place.conditions:
            self.list_elements(place, value if isinstance(value, list | tuple) else [value])

    def read_every(self, place: Place, values: Sequence[Any]) -> None:
        """Find what is asked of all values of the event."""
        if place.conditions:
            asks_strings = place.asks_strings
            self.list_elements(
                place, (each for each in values if asks_strings or not isinstance(each, str))
            )
        if place.names:
            string_max = self._limits.event_string_bytes
            others = (value for value in values if not isinstance(value, int | float | np.number))
            plain = (plain_value(EVERY, value, string_max) for value in others)
            strings = [each.replace(SEPARATOR, INSTEAD) for each in plain if isinstance(each, str)]
            joined = SEPARATOR.join([*strings, ""]) if strings else None
            for mark, name in place.names.items():
                self._found[name] = of_string(mark, joined)

    def list_elements(self, place: Place, values: Iterable[Any]) -> None:
        """Have the conditions of a place asked of some values."""
        listed = self._elements.setdefault(place, [])
        listed += [(self._number, each) for each in values]


def of_string(mark: str, value: Any) -> Any:
    """What a mark makes of a plain value; of others than strings, there is no address."""
    if mark == FOLDED:
        return fold(value) if isinstance(value, str) else value
    if mark == ADDRESS:
        is_nested = isinstance(value, list | dict)
        return address_bits(value) if isinstance(value, str) else value if is_nested else None
    return value


def value_at(event: Mapping[str, Any], path: Path) -> tuple[Any, Path]:
    """What is at a path of an event, and the path as far as there is something."""
    value: Any = event
    for index, part in enumerate(path):
        inner = _MISSING
        if isinstance(part, str) and isinstance(value, Mapping):
            inner = value.get(part, _MISSING)
        elif isinstance(part, int) and isinstance(value, list | tuple) and part < len(value):
            inner = value[part]
        if inner is _MISSING:
            dotted = ".".join(map(str, path))
            if dotted in event and not isinstance(event.get(str(path[0])), Mapping):
                return event[dotted], path
            return value if index else None, path[:index]
        value = inner
    return value, path
