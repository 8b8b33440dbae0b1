"""XPath 1.0's conversions and comparisons of values, on UTF-8 bytes as documents hold them."""

from __future__ import annotations

from math import isinf, isnan
from operator import eq, ge, gt, le, lt, ne

from tamis.core.lazy import lazy_pattern

# XPath 1.0, section 4.4: no exponent, no '+', no 'INF'; anything else is NaN.
_NUMBER = lazy_pattern(rb"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*\Z")
_NAN = float("nan")

COMPARISONS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
"""Operator → function."""
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Operator → the one that means the same with its operands exchanged, if that is another one."""


def xpath_number(value: bytes | str) -> float:
    """number() of a string: an IEEE double, NaN for what is not an XPath number.

    >>> xpath_number(" -1.5 "), xpath_number("1e3"), xpath_number("+5")
    (-1.5, nan, nan)
    """
    match = _NUMBER.match(value.encode() if isinstance(value, str) else value)
    return float(match[1]) if match else _NAN


def number_string(number: float) -> str:
    """string() of a number, which has no exponent.

    >>> [number_string(x) for x in (3.0, -0.0, -0.5, 1e21, 1e-7, float("nan"), float("-inf"))]
    ['3', '0', '-0.5', '1000000000000000000000', '0.0000001', 'NaN', '-Infinity']
    """
    if isnan(number):
        return "NaN"
    if isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number.is_integer():
        return str(int(number))
    from decimal import Decimal  # noqa: PLC0415 - few numbers are written

    return format(Decimal(repr(number)), "f")


def value_string(value: bool | float | str) -> str:
    """string() of a boolean, a number or a string.

    >>> value_string(True), value_string(2.0), value_string("x")
    ('true', '2', 'x')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else number_string(value)


def normalize_space(value: bytes) -> bytes:
    r"""normalize-space() of a string.

    >>> normalize_space(b"  a \n b ")
    b'a b'
    """
    # bytes.split() also splits at \\v and \\f, which no XML document contains.
    return b" ".join(value.split())


def compare(comparison: str, left: float, right: float) -> bool:
    """One of XPath's ``= != < <= > >=`` on numbers; NaN is unequal to everything.

    >>> compare("!=", float("nan"), 1.0)
    True
    """
    return bool(COMPARISONS[comparison](left, right))


def compare_string(comparison: str, value: bytes, literal: bytes | float) -> bool:
    """A string compared with a literal: as strings (= and != only), or as numbers.

    >>> compare_string("=", b"01", 1.0), compare_string("=", b"01", b"1")
    (True, False)
    """
    if isinstance(literal, bytes):
        return (value == literal) == (comparison == "=")
    return compare(comparison, xpath_number(value), literal)
