"""What engines of events read: filters, and events, as flat arrays.

All arrays are C-contiguous and read-only. A value is a *kind* and 64 bits:

===========  ====================================================================================
``INTEGER``  the number, within int64
``FLOAT``    the bits of a double that no int64 is equal to (see :func:`number`); in events it may
             be NaN, in constraints not
``STRING``   the number of a string of the table or the batch that it is in; strings are UTF-8, and
             compared byte by byte, which is by code point
``BOOLEAN``  0 or 1
===========  ====================================================================================

Integers and floats are both numbers, compared exactly. Values of other kinds are never compared: a
constraint is not satisfied by a value of another kind than its own, whatever its operator, nor by
what is missing or null. NaN satisfies ``!=`` and ``exists`` alone.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, freeze
from tamis.core.errors import EventError

INTEGER, FLOAT, STRING, BOOLEAN = range(4)
"""Kinds of values."""

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "prefix", "suffix", "contains", "in", "exists")
EQ, NE, LT, LE, GT, GE, PREFIX, SUFFIX, CONTAINS, IN, EXISTS = range(len(OPERATORS))
"""Operators of constraints: their places in ``OPERATORS``. ``<`` and its like compare numbers and
strings, ``prefix`` and its like strings; the others all kinds.
"""

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

By = Literal["filter", "subscription", "interface"]
"""What is reported where a filter matches: itself, its subscription, or the interface of that."""


class FilterTable(NamedTuple):
    """Filters, conjunctions of constraints: what every engine compiles.

    A subscription is true of an event if one of its filters matches, and a filter matches if all of
    its constraints are satisfied; one without constraints matches every event.

    Attributes:
        names: attribute names, each once; they are called by their numbers.
        starts: int64[f + 1]; the constraints of filter i are those from ``starts[i]`` on, up to
            ``starts[i + 1]``.
        constraint_names: int32[c].
        operators: uint8[c].
        kinds: uint8[c]; of the constant. Of ``in``: of its first item (all are numbers, or all are
            strings, or booleans). Of ``exists``: 0.
        values: int64[c]; the constant. Of ``in``: the number of a list. Of ``exists``: 0.
        list_starts: int64[l + 1]; the items of list i are those from ``list_starts[i]`` on.
        list_kinds: uint8[]; list_values: int64[].
        string_starts: int64[s + 1]; string i is ``string_bytes[string_starts[i]:…]``.
        string_bytes: uint8[].
        subscriptions: int32[f]; the subscription that each filter is of; they ascend.
        interfaces: int32[subscriptions]; the interface of each subscription.
        interface_count: how many interfaces there are.
    """

    names: tuple[str, ...]
    starts: Int64
    constraint_names: Int32
    operators: Bytes
    kinds: Bytes
    values: Int64
    list_starts: Int64
    list_kinds: Bytes
    list_values: Int64
    string_starts: Int64
    string_bytes: Bytes
    subscriptions: Int32
    interfaces: Int32
    interface_count: int

    @property
    def filters(self) -> int:
        """How many filters there are."""
        return len(self.starts) - 1

    def frozen(self) -> FilterTable:
        """The same, its arrays made read-only."""
        freeze(*(field for field in self if isinstance(field, np.ndarray)))
        return self

    def owners(self, by: By) -> Owners:
        """What each filter stands for in results."""
        if by == "filter":
            return Owners(np.arange(self.filters, dtype=np.int32), self.filters, False)
        if by == "subscription":
            return Owners(self.subscriptions, len(self.interfaces), False)
        return Owners(self.interfaces[self.subscriptions], self.interface_count, True)


class Owners(NamedTuple):
    """What is reported of filters that match.

    Attributes:
        of: int32[f]; the number of each filter's owner.
        total: how many owners there are.
        are_interfaces: whether they are the interfaces of the table. Each of these is reported once
            an event, and no work need be done for those that were, nor for an event of which all
            were. Another owner may be reported several times.
    """

    of: Int32
    total: int
    are_interfaces: bool


class EventBatch(NamedTuple):
    """Events, sets of attributes, in the order that they came in.

    Attributes that no filter names are left out, and so are nulls. No event has two of a name.

    Attributes:
        event_starts: int64[n + 1]; the attributes of event i are those from ``event_starts[i]`` on,
            up to ``event_starts[i + 1]``. One in error has none.
        names: int32[a]; the attribute's name, by its number in the filter table.
        kinds: uint8[a]; values: int64[a].
        string_starts: int64[s + 1]; string i is ``string_bytes[string_starts[i]:…]``. Equal strings
            may have several numbers.
        string_bytes: uint8[].
        errors: by event number, why events cannot be answered. No filter matches these, not even
            one without constraints.
    """

    event_starts: Int64
    names: Int32
    kinds: Bytes
    values: Int64
    string_starts: Int64
    string_bytes: Bytes
    errors: Mapping[int, EventError]

    @property
    def events(self) -> int:
        """How many events there are, those in error included."""
        return len(self.event_starts) - 1


def number(value: int | float) -> tuple[int, int]:
    """The kind and the 64 bits of a number; equal numbers have the same.

    Raises:
        OverflowError: an integer is beyond int64.

    >>> number(3.0), number(-0.0), number(0.5) == (FLOAT, 0x3FE0000000000000)
    ((0, 3), (0, 0), True)
    """
    if isinstance(value, float):
        if not value.is_integer() or not INT64_MIN <= value <= INT64_MAX:
            bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
            return FLOAT, bits
        value = int(value)
    if not INT64_MIN <= value <= INT64_MAX:
        raise OverflowError(f"{value} is beyond 64 bits")
    return INTEGER, value


def numbers(values: NDArray[np.float64]) -> tuple[Bytes, Int64]:
    """The same of many floats.

    >>> numbers(np.array([3.0, -0.0, 2.0**63]))
    (array([0, 0, 1], dtype=uint8), array([                  3,                   0, 4890909195324358656]))
    """  # noqa: E501 - as NumPy prints it
    is_integer = (values == np.floor(values)) & (values >= -(2.0**63)) & (values < 2.0**63)
    bits = values.view(np.int64).copy()
    bits[is_integer] = values[is_integer].astype(np.int64)
    return np.where(is_integer, INTEGER, FLOAT).astype(np.uint8), bits
