"""Whether an event's value satisfies a constraint: one function, for processors and for GPUs.

It is made of those in ``tamis.events.kernels``, compiled for what it is to run on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, Int64
from tamis.events import kernels
from tamis.events.model import BOOLEAN, EQ, EXISTS, FLOAT, GE, IN, STRING
from tamis_papers.pcm.tables import KIND_SHIFT

_OPERATOR = (1 << KIND_SHIFT) - 1


def covers(name_bits: int, constraint_bits: int) -> bool:
    """Whether the names of an event have all bits that those of a constraint's filter have."""
    return constraint_bits & ~name_bits == 0


def sat_with(compiled: Callable[..., Any]) -> Callable[..., bool]:
    """The paper's function ``sat``, not compiled, which calls functions that are.

    Args:
        compiled: what compiles those.
    """
    order_of_numbers = compiled(kernels.order_of_numbers)
    order_of_strings = compiled(kernels.order_of_strings)
    has_part = compiled(kernels.has_part)
    satisfies = compiled(kernels.satisfies)

    def sat(
        code: int,
        constant: int,
        kind: int,
        value: int,
        start: int,
        end: int,
        strings: Bytes,
        list_starts: Int64,
        list_kinds: Bytes,
        list_values: Int64,
        constant_starts: Int64,
        constant_bytes: Bytes,
    ) -> bool:
        """Whether a constraint is satisfied.

        Args:
            code, constant: of ``constr_op``, ``constr_val``.
            kind, value: what the event has.
            start, end: where it is in ``strings``, if it is a string.
        """
        operator = code & _OPERATOR
        if operator == EXISTS:
            return True
        constant_kind = code >> KIND_SHIFT
        if kind <= FLOAT:
            if constant_kind > FLOAT:
                return False
        elif kind != constant_kind:
            return False
        if operator != IN:
            if kind <= FLOAT:
                return satisfies(operator, order_of_numbers(kind, value, constant_kind, constant))
            if kind == BOOLEAN:
                return satisfies(operator, value - constant)
            first, last = constant_starts[constant], constant_starts[constant + 1]
            if operator <= GE:
                order = order_of_strings(strings, start, end, constant_bytes, first, last)
                return satisfies(operator, order)
            return has_part(operator, strings, start, end, constant_bytes, first, last)
        for item in range(list_starts[constant], list_starts[constant + 1]):
            one = list_values[item]
            order = np.int64(1)
            if kind <= FLOAT:
                order = order_of_numbers(kind, value, np.int64(list_kinds[item]), one)
            elif kind == STRING:
                first, last = constant_starts[one], constant_starts[one + 1]
                order = order_of_strings(strings, start, end, constant_bytes, first, last)
            elif value == one:
                order = np.int64(0)
            if satisfies(EQ, order):
                return True
        return False

    return sat
