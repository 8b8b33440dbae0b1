"""Filters and events as in the PCM paper's experiments; and as text: subscriptions, NDJSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import freeze
from tamis.core.errors import UsageError
from tamis.events.model import OPERATORS, STRING, EventBatch, FilterTable, packed
from tamis_workload.draws import Draws, Values, pseudo_word

if TYPE_CHECKING:
    from tamis_workload.kernels import Drawn

NUMBER_OPERATORS = {"=": 0.25, "!=": 0.25, ">": 0.25, "<": 0.25}
STRING_OPERATORS = {"=": 0.25, "!=": 0.25, "prefix": 0.25, "contains": 0.25}

_OF_NUMBERS = ("=", "!=", "<", "<=", ">", ">=")
_OF_STRINGS = (*_OF_NUMBERS, "prefix", "suffix", "contains")
_FILTERS_MAX = 1 << 26
_SET_MAX = 1_000
_NAMES_MAX = 1_000_000


@dataclass(frozen=True)
class EventWorkload:
    """Subscriptions of one filter each, and events; as they are, the paper's default scenario.

    The paper says little more of how it draws than what is below. Decided here: the constraints of
    a filter are of distinct names, if there are as many; whether a name stands for numbers or for
    strings is its own property, in filters and events alike; numbers are 1, 2, …; a constant of
    ``prefix``, ``suffix`` or ``contains`` is half of a value.

    Args:
        interfaces: how many there are.
        filters: of each interface, at least and at most; as the next two.
        constraints: of each filter.
        attributes: of each event.
        names: how many attribute names there are.
        skew: of the names; 0 makes all as likely; s makes name r as likely as ``r ** -s`` (Zipf).
        values: how many values there are; all are as likely.
        strings: the share of the names that stand for strings, spread evenly among them.
        operators: of constraints with numbers, and the share of each.
        string_operators: of constraints with strings; the paper does not say.
        seed: another one makes another workload.

    Raises:
        UsageError: no workload is like that.

    >>> small = EventWorkload(interfaces=2, filters=(3, 5), seed=1)
    >>> table, events = small.table(), small.events(2)
    >>> table.interfaces, table.names[:3]
    (array([0, 0, 0, 0, 0, 1, 1, 1, 1], dtype=int32), ('a1', 'a2', 'a3'))
    >>> events.event_starts, events.names, events.values
    (array([0, 3, 6]), array([94, 36, 87, 75, 18, 95], dtype=int32), array([35, 72,  3,  5, 27, 38]))
    """  # noqa: E501 - as NumPy prints it

    interfaces: int = 10
    filters: tuple[int, int] = (22_500, 27_500)
    constraints: tuple[int, int] = (3, 5)
    attributes: tuple[int, int] = (3, 5)
    names: int = 100
    skew: float = 0.0
    values: int = 100
    strings: float = 0.0
    operators: Mapping[str, float] = field(default_factory=NUMBER_OPERATORS.copy)
    string_operators: Mapping[str, float] = field(default_factory=STRING_OPERATORS.copy)
    seed: int = 0

    def __post_init__(self) -> None:
        _check_range("filters of an interface", self.filters, 0, _FILTERS_MAX)
        _check_range("constraints of a filter", self.constraints, 1, _SET_MAX)
        _check_range("attributes of an event", self.attributes, 0, _SET_MAX)
        for what, number, most in (
            ("interfaces", self.interfaces, _FILTERS_MAX),
            ("names", self.names, _NAMES_MAX),
            ("values", self.values, _NAMES_MAX),
        ):
            if not 1 <= number <= most:
                raise UsageError(f"the number of {what} is 1 to {most:,}, not {number:,}")
        if self.attributes[1] > self.names:
            raise UsageError(
                f"an event of {self.attributes[1]:,} attributes needs as many names: there are "
                f"{self.names:,}"
            )
        if self.interfaces * self.filters[1] > _FILTERS_MAX:
            raise UsageError(
                f"there are {_FILTERS_MAX:,} filters at most, not "
                f"{self.interfaces * self.filters[1]:,}"
            )
        if not 0 <= self.skew <= 16:
            raise UsageError(f"the skew of names is 0 (all as likely) to 16, not {self.skew}")
        if not 0 <= self.strings <= 1:
            raise UsageError(f"the share of strings is 0 to 1, not {self.strings}")
        _check_shares("numbers", self.operators, _OF_NUMBERS)
        _check_shares("strings", self.string_operators, _OF_STRINGS)

    def table(self) -> FilterTable:
        """The filters: each is a subscription of its own, and those of an interface are together.

        A filter depends on its number and the options of filters, and on nothing else.
        """
        sizes = self._interface_sizes()
        drawn = self._draw("filters", self.constraints, 0, sum(sizes))
        texts, constants = self._constants()
        codes = self._operator_codes()
        is_string = (drawn.kinds == STRING).astype(np.uint8)
        operators = codes[is_string, drawn.operators]
        string_starts, string_bytes = packed(texts)
        values = drawn.ranks + 1
        if texts:
            values = np.where(is_string, constants[operators, drawn.ranks], values)
        table = FilterTable(
            names=tuple(f"a{number}" for number in range(1, self.names + 1)),
            starts=drawn.starts,
            constraint_names=drawn.names,
            operators=operators,
            kinds=drawn.kinds,
            values=values,
            list_starts=np.zeros(1, np.int64),
            list_kinds=np.empty(0, np.uint8),
            list_values=np.empty(0, np.int64),
            string_starts=string_starts,
            string_bytes=string_bytes,
            subscriptions=np.arange(sum(sizes), dtype=np.int32),
            interfaces=np.repeat(np.arange(self.interfaces, dtype=np.int32), sizes),
            interface_count=self.interfaces,
        )
        return table.frozen()

    def events(self, count: int, first: int = 0) -> EventBatch:
        """So many events, from the number ``first`` on; names are those of :meth:`table`.

        Each is the same whatever others are asked for.
        """
        if count < 0 or first < 0:
            raise UsageError("the number of events, and of the first one, is 0 or more")
        drawn = self._draw("events", self.attributes, first, count)
        is_string = drawn.kinds == STRING
        string_starts, string_bytes = packed(self._words() if self.strings else [])
        batch = EventBatch(
            drawn.starts,
            drawn.names,
            drawn.kinds,
            np.where(is_string, drawn.ranks, drawn.ranks + 1),
            string_starts,
            string_bytes,
            {},
        )
        freeze(*batch[:6])
        return batch

    def _interface_sizes(self) -> list[int]:
        draws = Draws(self.seed, "filters of interfaces")
        least, most = self.filters
        return [least + draws.below(most - least + 1) for _ in range(self.interfaces)]

    def _draw(self, purpose: str, sizes: tuple[int, int], first: int, count: int) -> Drawn:
        """Sets of names, kinds, operators and ranks of values."""
        from tamis_workload import kernels  # noqa: PLC0415 - imports kernels

        room = count * sizes[1]
        drawn = kernels.Drawn(
            np.zeros(count + 1, np.int64),
            np.empty(room, np.int32),
            np.empty(room, np.uint8),
            np.empty(room, np.uint8),
            np.empty(room, np.int64),
        )
        share = round(self.strings * kernels.SHARES)
        options = kernels.Options(*sizes, self.names, share, self.values)
        thresholds, aliases = Values(self.names, self.skew).alias_table()
        random = np.empty(kernels.RANDOM_SIZE, np.uint64)
        random[kernels.SEED] = _seed(self.seed, purpose)
        bounds = _bounds((self.operators, self.string_operators))
        kernels.draw_sets(options, thresholds, aliases, bounds, first, random, drawn)
        end = drawn.starts[-1]
        return kernels.Drawn(
            drawn.starts,
            drawn.names[:end].copy(),
            drawn.kinds[:end].copy(),
            drawn.operators[:end].copy(),
            drawn.ranks[:end].copy(),
        )

    def _operator_codes(self) -> NDArray[np.uint8]:
        """By kind (number, string) and place in the options: the place in ``OPERATORS``."""
        every = (self.operators, self.string_operators)
        codes = np.zeros((2, max(map(len, every))), np.uint8)
        for row, shares in enumerate(every):
            codes[row, : len(shares)] = [OPERATORS.index(operator) for operator in shares]
        return codes

    def _words(self) -> list[bytes]:
        """The values that are strings, by rank: words of three syllables."""
        return [
            pseudo_word(_WORDS_FROM + rank * _WORDS_APART % _WORDS).encode()
            for rank in range(self.values)
        ]

    def _constants(self) -> tuple[list[bytes], NDArray[np.int64]]:
        """All strings, and which of them an operator (as in ``OPERATORS``) has of a rank."""
        numbers = np.zeros((len(OPERATORS), self.values), np.int64)
        if not self.strings:
            return [], numbers
        words = self._words()
        places = {word: place for place, word in enumerate(words)}
        numbers[:] = np.arange(self.values)
        for operator in self.string_operators:
            if operator in _PARTS:
                cut = _PARTS[operator]
                numbers[OPERATORS.index(operator)] = [
                    places.setdefault(cut(word), len(places)) for word in words
                ]
        return list(places), numbers


# The words of three syllables, and a number that has no divisor in common with that of them.
_WORDS_FROM, _WORDS, _WORDS_APART = 315 + 315**2, 315**3, 19_316_869

_PARTS: Mapping[str, Any] = {
    "prefix": lambda word: word[: len(word) // 2],
    "suffix": lambda word: word[len(word) // 2 :],
    "contains": lambda word: word[len(word) // 4 :][: len(word) // 2],
}


def _check_range(what: str, sizes: tuple[int, int], lowest: int, highest: int) -> None:
    least, most = sizes
    if not lowest <= least <= most <= highest:
        raise UsageError(
            f"the {what} are {lowest:,} to {highest:,}, the least not above the most: not "
            f"{least:,} to {most:,}"
        )


def _check_shares(of: str, shares: Mapping[str, float], known: tuple[str, ...]) -> None:
    for operator, share in shares.items():
        if operator not in known:
            raise UsageError(
                f"{operator!r} is no operator of {of} that can be drawn: there are "
                f"{' '.join(known)}"
            )
        if not 0 <= share <= 1:
            raise UsageError(f"the share of {operator} is 0 to 1, not {share}")
    if not abs(sum(shares.values()) - 1) < 1e-6:
        raise UsageError(
            f"the shares of the operators of {of} are 1 together, not {sum(shares.values()):g}"
        )


def _bounds(every: tuple[Mapping[str, float], ...]) -> NDArray[np.int64]:
    """Up to which of 2**32 draws each operator is taken; the last of a row, of all that are left.

    Sums are taken in order, so they are the same everywhere.
    """
    bounds = np.full((len(every), max(map(len, every))), 1 << 32, np.int64)
    for row, shares in enumerate(every):
        total = 0.0
        for column, share in enumerate(list(shares.values())[:-1]):
            total += share
            bounds[row, column] = int(total * 2**32)
    return bounds


def _seed(seed: int, purpose: str) -> int:
    digest = hashlib.sha256(f"{seed} {purpose} of attributes".encode()).digest()
    return int.from_bytes(digest[:8], "little")


_LINES = 10_000  # at a time


def subscription_lines(table: FilterTable) -> Iterator[bytes]:
    r"""``id<TAB>expression`` of each filter, in pieces of many lines; ids are s1, s2, ….

    It is for tables as ``EventWorkload`` makes them: no lists, no floats, no filter without
    constraints, and strings and names without what would have to be escaped.

    >>> from tamis_workload import EventWorkload
    >>> workload = EventWorkload(interfaces=1, filters=(2, 2), constraints=(2, 2), strings=0.5)
    >>> list(subscription_lines(workload.table()))
    [b's1\ta48 prefix "tiof" and a53 > 32\ns2\ta49 = 97 and a8 != "luseajai"\n']
    """
    for first in range(0, table.filters, _LINES):
        starts = table.starts[first : first + _LINES + 1]
        begin, end = int(starts[0]), int(starts[-1])
        constraints = [
            f"{table.names[name]} {OPERATORS[operator]} {value}"
            for name, operator, value in zip(
                table.constraint_names[begin:end].tolist(),
                table.operators[begin:end].tolist(),
                _values(table, begin, end),
                strict=True,
            )
        ]
        places = (starts - begin).tolist()
        yield "".join(
            f"s{first + number}\t{' and '.join(constraints[start:end])}\n"
            for number, (start, end) in enumerate(pairwise(places), start=1)
        ).encode()


def interface_lines(table: FilterTable) -> Iterator[bytes]:
    r"""``id<TAB>interface`` of each filter, in pieces; interfaces are called i1, i2, ….

    >>> from tamis_workload import EventWorkload
    >>> list(interface_lines(EventWorkload(interfaces=2, filters=(1, 1)).table()))
    [b's1\ti1\ns2\ti2\n']
    """
    for first in range(0, table.filters, _LINES):
        yield "".join(
            f"s{first + number}\ti{interface + 1}\n"
            for number, interface in enumerate(
                table.interfaces[first : first + _LINES].tolist(), start=1
            )
        ).encode()


def event_lines(batch: EventBatch, names: Sequence[str]) -> Iterator[bytes]:
    r"""Each event as an object of JSON, a line each, in pieces of many lines.

    Args:
        names: those of the table.

    >>> from tamis_workload import EventWorkload
    >>> workload = EventWorkload(interfaces=1, filters=(1, 1), attributes=(2, 2), strings=0.5)
    >>> list(event_lines(workload.events(2), workload.table().names))
    [b'{"a70":"cibraitho","a20":"cutouclio"}\n{"a68":"hugrouci","a17":33}\n']
    """
    for first in range(0, batch.events, _LINES):
        starts = batch.event_starts[first : first + _LINES + 1]
        begin, end = int(starts[0]), int(starts[-1])
        attributes = [
            f'"{names[name]}":{value}'
            for name, value in zip(
                batch.names[begin:end].tolist(), _values(batch, begin, end), strict=True
            )
        ]
        places = (starts - begin).tolist()
        yield "".join(
            f"{{{','.join(attributes[start:end])}}}\n" for start, end in pairwise(places)
        ).encode()


def _values(of: FilterTable | EventBatch, begin: int, end: int) -> Iterator[str]:
    """Numbers as they are, strings in double quotes."""
    text = of.string_bytes.tobytes()
    starts = of.string_starts.tolist()
    quoted = [f'"{text[start:stop].decode()}"' for start, stop in pairwise(starts)]
    return (
        quoted[value] if kind == STRING else str(value)
        for kind, value in zip(
            of.kinds[begin:end].tolist(), of.values[begin:end].tolist(), strict=True
        )
    )
