"""``Deriver``: the attributes of an event that are found in others: see ``language.attributes``."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from tamis.core.errors import EventError
from tamis.core.limits import Limits
from tamis.events.checks import plain_value
from tamis.language.attributes import (
    ELEMENTS,
    FOLDED,
    ITSELF,
    NULL,
    TEST,
    Path,
    attribute_of,
    path_name,
    print_name,
)
from tamis.language.constraints import fold
from tamis.language.patterns import Networks, Pattern

if TYPE_CHECKING:
    from tamis.events.matcher import CompiledEventMatcher

_MISSING = object()
_UNBOUNDED = 1 << 40
_LIKE, _CIDR = " like ", " cidr "
_PATTERNS_MIN = 4
"""Where there are more patterns, an automaton finds those whose characters are in a string."""


class _Place:
    """A place in events, and what is asked of it.

    Attributes:
        inside: what is asked of the values in an object, by name, or in a list, by position.
        names: of the attributes that have the value, by mark.
        conditions: on elements, each with the name of the attribute that says so.
        tests: of strings, likewise.
    """

    def __init__(self, limits: Limits, path: Path = ()) -> None:
        self.path = path
        self.inside: dict[str | int, _Place] = {}
        self.names: dict[str, str] = {}
        self.conditions: dict[str, str] = {}
        self.tests: dict[str, str] = {}
        self._limits = limits

    def at(self, path: Path) -> _Place:
        """The place that a path leads to from here."""
        place = self
        for part in path:
            inner = place.inside.get(part)
            if inner is None:
                inner = place.inside[part] = _Place(self._limits, (*place.path, part))
            place = inner
        return place

    @cached_property
    def patterns(self) -> list[tuple[Pattern, bool, str]]:
        """Patterns, each with whether case does not matter, and the name that says so."""
        found: list[tuple[Pattern, bool, str]] = []
        for condition, name in self.tests.items():
            if condition.startswith(_LIKE):
                written = condition.removeprefix(_LIKE)
                text = json.loads(written.removeprefix("i"))
                found.append((Pattern(text), written[0] == "i", name))
        return found

    @cached_property
    def networks(self) -> Networks:
        """Networks by the names that say that an address is in one."""
        tests = self.tests.items()
        asked = {name: condition for condition, name in tests if not condition.startswith(_LIKE)}
        return Networks({name: json.loads(asked[name].removeprefix(_CIDR)) for name in asked})

    @cached_property
    def candidates(self) -> CompiledEventMatcher:
        """Finds the patterns, by number, whose characters are in a string: few are looked at."""
        asked = []
        for pattern, is_folded, _ in self.patterns:
            case = "i" if is_folded else ""
            parts = [f". contains {case}{json.dumps(part)}" for part in pattern.literals()]
            asked.append(ITSELF + (" and ".join(parts) or ". exists"))
        return _compiled(tuple(asked), self._limits)

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


def _as_event(element: object) -> Mapping[str, Any]:
    """An element as an event: an object, or a value that is nameless; a list has no value."""
    if not isinstance(element, Mapping):
        return {} if isinstance(element, list | tuple) else {ITSELF: element}
    if ITSELF in element:  # nobody but this gives it
        return {name: value for name, value in element.items() if name != ITSELF}
    return element


_Listed = dict[int, tuple[_Place, list[tuple[int, Any]]]]
"""Places, by what tells them apart, with values there and the numbers of the events."""


def _patterns_of(place: _Place, text: str, numbers: Iterable[int]) -> Iterator[tuple[str, bool]]:
    """The names of those of some patterns that a string has."""
    folded = None
    for number in numbers:
        pattern, is_folded, name = place.patterns[number]
        if is_folded and folded is None:
            folded = fold(text)
        if pattern.matches(folded if is_folded and folded is not None else text):
            yield name, True


def _expression(condition: str) -> str:
    """The condition on an element, as an expression about it: ITSELF says so to the parser."""
    if condition.startswith(".("):
        return ITSELF + condition[2:-1]
    return ITSELF + (condition[1:] if condition.startswith(".") else f".{condition}")


class Deriver:
    """Adds derived attributes to events. Threads may share it.

    >>> from tamis.language.attributes import elements_name
    >>> names = [path_name(("a", "b")), elements_name(("a", "l"), " > 2")]
    >>> deriver = Deriver(names, Limits())
    >>> [event] = deriver.derived([{"a": {"b": 7, "l": [1, 3]}}], {})
    >>> [event[name] for name in names]
    [7, True]

    Attributes:
        roots: the attributes whose objects and lists are looked into.
        has_tests: whether it tests strings.
        single: others whose values it reads, which have to be plain.
    """

    def __init__(self, names: Sequence[str], limits: Limits) -> None:
        self._all = names
        self._names = {name for name in names if attribute_of(name).mark}
        self._limits = limits
        self._top = _Place(limits)
        self._dotted: dict[str, _Place] = {}  # paths by what they are as one name
        self._asked: set[str] = set()  # others, which may have any values
        self.has_tests = False
        self.roots: set[str] = set()
        self.single: set[str] = set()
        for name in sorted(self._names):
            mark, path, condition = attribute_of(name)
            place = self._top.at(path)
            if mark == ELEMENTS:
                place.conditions[condition] = name
            elif mark == TEST:
                place.tests[condition] = name
                self.has_tests = True
            else:
                place.names[mark] = name
            looks = len(path) > 1 or mark == ELEMENTS
            of = self.roots if looks else self.single if mark == FOLDED else self._asked
            of.add(str(path[0]))
            if len(path) > 1 and all(isinstance(part, str) and "." not in part for part in path):
                self._dotted[".".join(map(str, path))] = place

    def __bool__(self) -> bool:
        return bool(self._names)

    @property
    def looks_inside(self) -> bool:
        """Whether it reads objects or lists."""
        return bool(self.roots)

    def top_names(self) -> list[str]:
        """The attributes that it may read, at the top of events."""
        return [*self.roots, *self.single, *self._asked, *self._dotted]

    def read_at_top(self, known: Container[str]) -> list[str]:
        """All attributes that are read, at the top of events of which some are known."""
        plain = (name for name in self._all if not attribute_of(name).mark)
        dotted = {name: place.path[0] for name, place in self._dotted.items() if name in known}
        flat = set(dotted.values())
        roots = (root for root in sorted(self.roots) if root in known or root not in flat)
        return list(dict.fromkeys([*plain, *sorted(self.single | self._asked), *roots, *dotted]))

    def columns(self) -> dict[str, str]:
        """The attribute of each derived one, where none is inside of another."""
        return {name: str(attribute_of(name).path[0]) for name in self._names}

    def derived(
        self, events: Iterable[dict[str, Any]], errors: dict[int, EventError]
    ) -> list[dict[str, Any]]:
        """Events with the attributes that are derived; ``errors`` gets those of others."""
        found: list[dict[str, Any]] = []
        elements: _Listed = {}
        strings: _Listed = {}
        for number, event in enumerate(events):
            own = {name: value for name, value in event.items() if name not in self._names}
            reader = _Reader(self._limits, own, elements, strings, number)
            try:
                reader.look(self._top, event)
                for dotted in self._dotted.keys() & event.keys():
                    place = self._dotted[dotted]
                    if not isinstance(event.get(str(place.path[0])), Mapping):
                        reader.read(place, event[dotted])
            except EventError as error:
                errors.setdefault(number, error)
                own = {}
            found.append(own)
        for place, listed in strings.values():
            texts = [{ITSELF: value} for _, value in listed]
            several = len(texts) > 1  # of one, the matcher of one is faster
            matches = (
                place.candidates.match_many(texts)
                if several
                else map(place.candidates.match, texts)
            )
            for (number, value), match in zip(listed, matches, strict=True):
                if match.error is None and number not in errors:
                    found[number].update(_patterns_of(place, value, match.indices.tolist()))
        for place, listed in elements.values():
            self._match_elements(place, listed, found, errors)
        return found

    def _match_elements(
        self,
        place: _Place,
        listed: list[tuple[int, Any]],
        found: list[dict[str, Any]],
        errors: dict[int, EventError],
    ) -> None:
        each = (_as_event(value) for _, value in listed)
        names = list(place.conditions.values())
        for (number, _), match in zip(listed, place.of_elements.match_many(each), strict=True):
            if match.error is not None:
                message = f"in an element of {print_name(path_name(place.path))}: "
                error = type(match.error)(message + match.error.message)
                errors.setdefault(number, error)
                found[number] = {}
            elif number not in errors:
                found[number].update((names[index], True) for index in match.indices.tolist())


class _Reader:
    """Reads what is asked of one event."""

    def __init__(
        self,
        limits: Limits,
        found: dict[str, Any],
        elements: _Listed,
        strings: _Listed,
        number: int,
    ) -> None:
        self._limits, self._found, self._elements = limits, found, elements
        self._strings, self._number = strings, number

    def look(self, place: _Place, value: Any) -> None:
        """Find what is asked of what is in a value."""
        if isinstance(value, Mapping):
            for name in place.inside.keys() & value.keys():
                if isinstance(name, str):  # 0 is a position, and also False
                    self.visit(place.inside[name], value[name])
        elif isinstance(value, list | tuple):
            for position, inner in place.inside.items():
                if isinstance(position, int) and position < len(value):
                    self.visit(inner, value[position])

    def visit(self, place: _Place, value: Any) -> None:
        """Find what is asked of a value, and of what is in it."""
        self.read(place, value)
        if place.inside:
            self.look(place, value)

    def read(self, place: _Place, value: Any) -> None:
        """Find what is asked of a value."""
        for mark, name in place.names.items():
            if mark == NULL:
                self._found[name] = True if value is None else None
                continue
            own = plain_value(name, value, self._limits.event_string_bytes)
            self._found[name] = fold(own) if mark == FOLDED and isinstance(own, str) else own
        if place.tests and isinstance(value, str):
            name = next(iter(place.tests.values()))
            value = plain_value(name, value, self._limits.event_string_bytes)
            self._found.update(dict.fromkeys(place.networks.of(value), True))
            if len(place.patterns) > _PATTERNS_MIN:
                _, strings = self._strings.setdefault(id(place), (place, []))
                strings.append((self._number, value))
            else:
                self._found.update(_patterns_of(place, value, range(len(place.patterns))))
        if place.conditions:
            values = value if isinstance(value, list | tuple) else [value]
            _, listed = self._elements.setdefault(id(place), (place, []))
            listed += [(self._number, each) for each in values]


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
