"""Aggregates of nodes, and how numbers are written in messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

from tamis.language.values import xpath_number


def aggregate(function: str, values: Iterable[bytes]) -> str | None:
    """``sum``, ``min``, ``max`` or ``avg`` of the numbers that strings are, or ``count``.

    Returns:
        None where it is nothing: of no values there is neither a least nor a mean one.

    >>> aggregate("sum", [b"65.95", b" 2 "]), aggregate("sum", []), aggregate("max", [])
    ('67.95', '0', None)
    >>> aggregate("count", [b"x"]), aggregate("avg", [b"x"])
    ('1', 'NaN')
    """
    if function == "count":
        return str(sum(1 for _ in values))
    numbers = [xpath_number(value) for value in values]
    if function == "sum":
        return number_text(_sum(numbers))
    if not numbers:
        return None
    if function == "avg":
        return number_text(_sum(numbers) / len(numbers))
    if any(map(math.isnan, numbers)):
        return "NaN"
    return number_text(min(numbers) if function == "min" else max(numbers))


def _sum(numbers: Sequence[float]) -> float:
    """The numbers added one after the other, as XQuery does (``sum()`` of Python rounds once)."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def number_text(number: float) -> str:
    """A number as XQuery 3.1 writes an ``xs:double`` (*Functions and Operators*, section 19.1.2.2).

    >>> [number_text(x) for x in (3.0, -0.5, 1e6, 1.5e-7, float("inf"), 0.1 + 0.2, -0.0)]
    ['3', '-0.5', '1.0E6', '1.5E-7', 'INF', '0.30000000000000004', '-0']
    """
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "INF" if number > 0 else "-INF"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    if 1e-6 <= abs(number) < 1e6:
        text = format(Decimal(repr(number)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).rstrip("0") or "0"
    scale = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{written[0]}.{written[1:] or '0'}E{scale}"
