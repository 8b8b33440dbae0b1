"""Sets of subscriptions of events: ids and expressions, from Python and from files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from tamis.core.arguments import checked_limits, checked_path, id_problem
from tamis.core.arrays import Int64
from tamis.core.errors import (
    BadSubscriptions,
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    UsageError,
)
from tamis.core.index.columns import Ids, Texts
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.events.join import InterfaceNumbers, TableJoiner
from tamis.events.model import FilterTable, TableBuilder, checked_table
from tamis.language.attributes import ELEMENTS, KEYWORDS, attribute_of
from tamis.language.constraints import Filter
from tamis.language.entries import Entries, SubscriptionItems, bad_ids, given_entries
from tamis.language.events import parse_filters

_PLAIN = lazy_pattern(
    r"""([A-Za-z_](?:[A-Za-z0-9_.:-]*[A-Za-z0-9_])?)\ *
    (?:(?:=|!=|<=?|>=?)\ *-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?
    |(?:=|!=|<=?|>=?|\ prefix\ |\ suffix\ |\ contains\ )\ *"[^"\\\ud800-\udfff]*")""",
    re.VERBOSE,
)
"""A constraint that is read by itself between two ``and``. Others are read in their context."""
_MORE_FILTERS = 8
"""So many times as many filters a subscription may have for events without lists."""
_CACHED_MAX = 1 << 18
"""The texts of constraints that are cached, at most."""

Filters = Sequence[Filter]
"""A disjunction of filters, as they are parsed."""


class EventSubscription:
    """One subscription of events.

    Attributes:
        interface: the id of its interface, which is its own id where none was given.
        filters: as they were parsed; None where ``part_of`` has them.
        part_of: a set that it is in, and its number there; or None.
    """

    __slots__ = ("expression", "filters", "id", "interface", "part_of")

    def __init__(
        self,
        id: SubscriptionId,
        expression: str,
        interface: SubscriptionId,
        filters: Filters | None = None,
        part_of: tuple[EventSubscriptions, int] | None = None,
    ) -> None:
        self.id, self.expression, self.interface = id, expression, interface
        self.filters, self.part_of = filters, part_of

    def __repr__(self) -> str:
        return f"EventSubscription({self.id!r}, {self.expression!r})"


class EventSubscriptions:
    """A set of subscriptions of events, parsed; its order is the order of the results.

    An *interface* is what events are forwarded to: it has one or more subscriptions, and is
    reported where any of these is true.

    Args:
        items: id → expression, (id, expression) pairs, or the :class:`pathlib.Path` of a file, as
            for :meth:`from_file`; see :mod:`tamis.language.events`. Ids are str or int and
            keep their type.
        interfaces: the interface of each id; None makes an interface of each subscription.
        skip_bad: leave bad subscriptions out and keep their errors in ``errors``.
        limits: bounds on each expression.

    Attributes:
        errors: of the bad subscriptions that were left out.
        table: the filters.

    Raises:
        BadSubscriptions: some cannot be used; it lists all of them.
        UsageError: an id has no interface, or an interface is of an id that is not there.

    >>> subscriptions = EventSubscriptions({"hot": "temp > 30", "storm": "wind > 20 or gust > 30"})
    >>> len(subscriptions), subscriptions.table.filters, subscriptions.ids[1]
    (2, 3, 'storm')
    >>> EventSubscriptions({"odd": "temp >"})
    Traceback (most recent call last):
    tamis.core.errors.BadSubscriptions: 1 bad subscription
    subscription 'odd': expected a value, found the end
      temp >
            ^
    """

    ids: Ids
    interface_ids: Ids
    table: FilterTable
    _texts: Texts | None
    errors: tuple[SubscriptionError, ...]

    def __init__(
        self,
        items: SubscriptionItems,
        *,
        interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
        skip_bad: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        entries = given_entries(items)
        refused = [(error.line or 0, error) for error in entries.refused]
        bad = dict(bad_ids(entries))
        if entries.interfaces:
            if interfaces is not None:
                raise UsageError("the file has interfaces, and others are given: leave one out")
            bad |= _bad_interfaces(entries)
            every: Mapping[SubscriptionId, Any] = entries.interfaces
            interfaces = {id: given for id, given in every.items() if not id_problem(given)}
        names = None if interfaces is None else _given_interfaces(interfaces, entries, bad)
        numbers: dict[SubscriptionId, int] = {}  # of interfaces, in the order that they are met
        reader = _Reader(checked_limits(limits))
        accepted: list[int] = []
        for number, expression in enumerate(entries.expressions):
            try:
                if number in bad:
                    raise bad[number]
                codes = reader.read(expression)
            except SubscriptionError as error:
                line = None if entries.lines is None else int(entries.lines[number])
                position = number if line is None else line
                refused.append((position, error.located(entries.ids[number], line)))
                continue
            interface = len(accepted)
            if names is not None:
                interface = numbers.setdefault(names[number], len(numbers))
            reader.builder.add_codes(codes, interface)
            accepted.append(number)
        refused.sort(key=lambda pair: pair[0])
        self.errors = tuple(error for _, error in refused)
        if self.errors and not skip_bad:
            raise BadSubscriptions(self.errors)
        kept = np.array(accepted, np.int64)
        self.ids = entries.ids.part(kept).compact()
        self._texts = entries.expressions.part(kept).compact()
        self.interface_ids = self.ids if interfaces is None else Ids.of(numbers)
        self.table = reader.builder.freeze()

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
        skip_bad: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> EventSubscriptions:
        """Read ``id<TAB>expression`` lines, or ``{"id", "expression"}`` objects from ``*.ndjson``.

        If one object has an ``"interface"`` too, all must have one. In a text file ``#`` comments
        and blank lines are skipped, and a line without a tab is an expression whose id is its line
        number. Other arguments are as for the class.

        Raises:
            UsageError: the file cannot be read; and as for the class.
            BadSubscriptions: some lines cannot be used; it lists all of them, with their lines.
        """
        return cls(checked_path(path), interfaces=interfaces, skip_bad=skip_bad, limits=limits)

    @classmethod
    def of_columns(
        cls, ids: Ids, interface_ids: Ids, table: FilterTable, texts: Texts | None = None
    ) -> EventSubscriptions:
        """A set that was read before and written down, perhaps with its expressions."""
        result = cls.__new__(cls)
        result.ids, result.interface_ids, result.table = ids, interface_ids, table
        result.errors, result._texts = (), texts
        return result

    @classmethod
    def of_table(
        cls, table: FilterTable, ids: Sequence[SubscriptionId] | None = None
    ) -> EventSubscriptions:
        """A set of filters that are arrays already.

        Args:
            ids: of its subscriptions; None numbers them, and interfaces, from 0.

        Raises:
            UsageError: the arrays are no table, or there are not as many ids.
        """
        table = checked_table(table)
        count = len(table.interfaces)
        own = Ids.of(range(count) if ids is None else ids)
        if len(own) != count:
            raise UsageError(f"there are {len(own):,} ids for {count:,} subscriptions")
        return cls.of_columns(own, Ids.of(range(table.interface_count)), table)

    @classmethod
    def joined(
        cls,
        parts: Sequence[tuple[EventSubscriptions, Int64]],
        new: Iterable[EventSubscription] = (),
    ) -> EventSubscriptions:
        """Some subscriptions of several sets, by their numbers, which ascend; and then others."""
        every = list(parts)
        for _, run in groupby(new, lambda each: each.part_of and id(each.part_of[0])):
            entries = list(run)
            if (first := entries[0].part_of) is not None:
                own = [each.part_of[1] for each in entries if each.part_of is not None]
                every.append((first[0], np.array(own, np.int64)))
            else:
                every.append((cls._of_parsed(entries), np.arange(len(entries))))
        if len(every) == 1 and len(every[0][0]) == len(every[0][1]):
            return every[0][0]
        joiner, interfaces = TableJoiner(), InterfaceNumbers()
        has_interfaces = any(one.interface_ids is not one.ids for one, _ in every)
        before = 0
        for one, kept in every:
            numbers = np.arange(before, before + len(kept))
            if has_interfaces:
                numbers = interfaces.of(one.interface_ids.take(one.table.interfaces[kept]))
            joiner.add(one.table, kept, numbers)
            before += len(kept)
        ids = Ids.joined([one.ids.part(kept) for one, kept in every])
        interface_ids = interfaces.ids() if has_interfaces else ids
        result = cls.of_columns(ids, interface_ids, joiner.table())
        texts = [one._texts.part(kept) for one, kept in every if one._texts is not None]
        result._texts = Texts.joined(texts) if len(texts) == len(every) else None
        return result

    @classmethod
    def _of_parsed(cls, entries: Sequence[EventSubscription]) -> EventSubscriptions:
        builder, interfaces = TableBuilder(), InterfaceNumbers()
        for entry, number in zip(
            entries, interfaces.of([e.interface for e in entries]), strict=True
        ):
            builder.add(entry.filters or (), int(number))
        ids = Ids.of(entry.id for entry in entries)
        is_own = all(entry.interface is entry.id for entry in entries)
        result = cls.of_columns(ids, ids if is_own else interfaces.ids(), builder.freeze())
        result._texts = Texts.of(entry.expression for entry in entries)
        return result

    def expression(self, number: int) -> str:
        """The expression of a subscription as it was given; of a table, as it may be written."""
        if self._texts is not None:
            return self._texts[number]
        from tamis.events.explain import written  # noqa: PLC0415 - few ask

        return written(self.table, number)

    def subscription(self, number: int) -> EventSubscription:
        """The subscription of a number."""
        id, interface = self.ids[number], self.interface_ids[self.table.interfaces[number]]
        return EventSubscription(id, self.expression(number), interface, None, (self, number))

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: object) -> bool:
        return id in self.ids

    def __iter__(self) -> Iterator[SubscriptionId]:
        return iter(self.ids)

    def __repr__(self) -> str:
        return f"<EventSubscriptions: {len(self):,}>"


def singular_subscriptions(
    subscriptions: EventSubscriptions, limits: Limits
) -> EventSubscriptions | None:
    """The same for events without lists where ``[]`` asks for them, if that makes them others.

    See :mod:`tamis.language.singular`.
    """
    table = subscriptions.table
    names = {name for name in table.names if attribute_of(name).mark == ELEMENTS}
    if not names:
        return None
    reader = _Reader(limits)
    counts = np.bincount(table.subscriptions, minlength=len(subscriptions))
    try:
        for number, interface in enumerate(table.interfaces.tolist()):
            most = _MORE_FILTERS * int(counts[number])
            codes = reader.read_singular(subscriptions.expression(number), most)
            reader.builder.add_codes(codes, interface)
    except SubscriptionError:  # it was read with other limits
        return None
    found = reader.builder.freeze()._replace(interface_count=table.interface_count)
    if names <= set(found.names):
        return None
    return EventSubscriptions.of_columns(subscriptions.ids, subscriptions.interface_ids, found)


def _given_interfaces(
    interfaces: object, entries: Entries, bad: Mapping[int, SubscriptionIdError]
) -> list[SubscriptionId]:
    """The interface of each entry; ``UsageError`` where a good one has none."""
    if not isinstance(interfaces, Mapping):
        raise UsageError(
            "interfaces are a mapping, of ids of subscriptions to those of their interfaces, "
            f"not {type(interfaces).__name__}"
        )
    for id, interface in interfaces.items():
        if id_problem(interface):
            raise UsageError(f"the interface of {id!r:.80} is no id: {interface!r:.80}")
    ids = list(entries.ids)
    without = [id for number, id in enumerate(ids) if number not in bad and id not in interfaces]
    if without:
        raise UsageError(f"{_some(without)} of the subscriptions have no interface: give each one")
    known = {*ids, *(error.id for error in entries.refused)}
    unknown = [id for id in interfaces if id not in known]
    if unknown:
        raise UsageError(f"{_some(unknown)} have an interface, but are no subscriptions")
    return [interfaces.get(id, id) for id in ids]


def _bad_interfaces(entries: Entries) -> dict[int, SubscriptionIdError]:
    """The entries of a file that have no interface, though others do, or one that is no id."""
    found: dict[int, SubscriptionIdError] = {}
    for number, id in enumerate(entries.ids):
        if id not in entries.interfaces:
            found[number] = SubscriptionIdError('there is no "interface", and other lines have one')
        elif id_problem(entries.interfaces[id]):
            shown = f"{entries.interfaces[id]!r:.80}"
            found[number] = SubscriptionIdError(f"the interface is no id: {shown}")
    return found


def _some(ids: Sequence[SubscriptionId]) -> str:
    shown = ", ".join(f"{id!r:.40}" for id in ids[:3])
    return shown if len(ids) <= 3 else f"{shown} and {len(ids) - 3:,} more"


def _is_plain(part: str) -> bool:
    plain = _PLAIN.fullmatch(part.removeprefix("not "))
    return plain is not None and plain[1] not in KEYWORDS


class _Reader:
    """Adds expressions to a table; plain conjunctions, constraint by constraint, by their texts."""

    def __init__(self, limits: Limits) -> None:
        self.builder = TableBuilder()
        self._limits = limits
        self._codes: dict[str, int] = {}

    def read(self, expression: str) -> list[list[int]]:
        """The filters of a subscription, as codes of the builder; or a ``SubscriptionError``."""
        parts = expression.split(" and ")
        codes = list(map(self._codes.get, parts))
        if None in codes and all(map(_is_plain, parts)):
            with suppress(SubscriptionError):  # the whole expression says better where
                codes = list(map(self._code, parts))
        limits = self._limits
        is_small = (
            len(parts) <= limits.subscription_predicates
            and len(expression) <= limits.subscription_chars
            and limits.subscription_filters > 0
        )
        if is_small and None not in codes:
            return [list(dict.fromkeys(code for code in codes if code is not None))]
        return self._coded(parse_filters(expression, limits))

    def read_singular(self, expression: str, most: int) -> list[list[int]]:
        """The same for events without lists, if that comes to no more filters than so many."""
        if "[" in expression:
            with suppress(SubscriptionError):  # there may be too many
                found = parse_filters(expression, self._limits, is_singular=True)
                if len(found) <= most:
                    return self._coded(found)
        return self.read(expression)

    def _coded(self, filters: Filters) -> list[list[int]]:
        return [list(map(self.builder.code, filter)) for filter in filters]

    def _code(self, part: str) -> int:
        code = self._codes.get(part)
        if code is None:
            ((constraint,),) = parse_filters(part, self._limits)
            if len(self._codes) == _CACHED_MAX:
                self._codes.clear()
            code = self._codes[part] = self.builder.code(constraint)
        return code
