"""Constraints of events, what filters have of them, and how they are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from tamis.language.attributes import ADDRESS, ELEMENTS, FOLDED, NULL, attribute_of, print_name
from tamis.language.networks import print_network

Constant = str | int | float | bool
"""What a constraint compares with."""


@dataclass(frozen=True)
class Field:
    """The value of another attribute, to compare with."""

    name: str


class Constraint(NamedTuple):
    """``name operator constant``, of one attribute.

    Names are those of :mod:`tamis.language.attributes`.

    The operator is one of ``= != < <= > >= prefix suffix contains in exists like matches``. The
    constant of ``in`` is a tuple of strings, of numbers, or of booleans; that of ``exists`` is
    None. Those before ``in`` may compare with another attribute.
    """

    name: str
    operator: str
    constant: Constant | tuple[Constant, ...] | Field | None = None


class Literal(NamedTuple):
    """Some constraints hold together; or, negated, not all of them do."""

    constraints: tuple[Constraint, ...]
    is_negated: bool


class Clause(NamedTuple):
    """One of the literals is true."""

    literals: tuple[Literal, ...]


Filter = tuple[Constraint | Clause, ...]
"""A conjunction: its constraints, and behind them its clauses."""


@cache
def _folded_character(character: str) -> str:
    found = (character.casefold(), character.lower(), character)
    return next(each for each in found if len(each) == 1)


def fold(text: str) -> str:
    """A string without case: Unicode's simple case folding, which keeps the number of characters.

    >>> fold("Straße, İ")
    'straße, İ'
    """
    return text.lower() if text.isascii() else "".join(map(_folded_character, text))


def constraints_in(filter: Filter) -> Iterator[Constraint]:
    """All constraints of a filter, those of clauses too."""
    for part in filter:
        if isinstance(part, Constraint):
            yield part
        else:
            for literal in part.literals:
                yield from literal.constraints


def constraint_key(constraint: Constraint) -> tuple[object, ...]:
    """What is the same of equal constraints alone: to Python, True is 1."""
    constant = constraint.constant
    first = constant[0] if isinstance(constant, tuple) else constant
    return isinstance(first, bool), constraint


def print_filters(filters: Sequence[Sequence[Constraint | Clause]]) -> str:
    r"""An expression that means these filters, none of which is empty.

    >>> from tamis.language.events import parse_filters
    >>> print_filters(parse_filters("a='it' and (`b c` in (1, 2.5) or d exists)"))
    'a = "it" and `b c` in (1, 2.5) or a = "it" and d exists'
    >>> print_filters(parse_filters("a = 1 and not (b = 2 and c = null)"))
    'a = 1 and not (b = 2 and c = null)'
    """
    return " or ".join(" and ".join(map(_printed, filter)) for filter in filters)


def print_clause(literals: Sequence[tuple[Sequence[str], bool]]) -> str:
    """A clause, with its constraints written already; and whether each literal is negated."""
    written = []
    for constraints, is_negated in literals:
        text = " and ".join(constraints)
        is_apart = len(constraints) > 1 and (is_negated or len(literals) > 1)
        text = f"({text})" if is_apart else text
        # Of elements, "absent" would be about some element.
        if is_negated and not is_apart and text.endswith(" exists") and "[]" not in text:
            written.append(text.removesuffix("exists") + "absent")
        else:
            written.append(f"not {text}" if is_negated else text)
    return f"({' or '.join(written)})" if len(written) > 1 else written[0]


def _printed(part: Constraint | Clause) -> str:
    if isinstance(part, Clause):
        return print_clause([(list(map(_printed, own)), negated) for own, negated in part.literals])
    return print_constraint(*part)


def print_constraint(
    name: str, operator: str, constant: Any, cut: Callable[[str], str] = str
) -> str:
    """A constraint as it is written, its constants cut."""
    mark = attribute_of(name).mark
    if operator == "exists":
        behind = {NULL: " = null", ELEMENTS: ""}.get(mark, " exists")
        return print_name(name) + behind
    if mark == ADDRESS:
        return f'{print_name(name)} cidr "{print_network(constant)}"'
    written = partial(print_constant, name)
    if isinstance(constant, tuple | list):
        return f"{print_name(name)} in ({', '.join(cut(written(item)) for item in constant)})"
    is_raw = operator == "matches" and _is_raw(constant)
    text = f'{_case(name)}r"{constant}"' if is_raw else written(constant)
    return f"{print_name(name)} {operator} {cut(text)}"


def print_constant(name: str, constant: Constant | Field | None) -> str:
    """A constant as it is written for a name."""
    if isinstance(constant, Field):
        return f"{_case(name)}{' ' * (name[:1] == FOLDED)}field({print_name(constant.name)})"
    return _case(name) + json.dumps(constant, ensure_ascii=False)


def _case(name: str) -> str:
    return "i" if name[:1] == FOLDED else ""


def _is_raw(text: str) -> bool:
    """Whether a string is easier to read where a backslash stays as it is."""
    ends = len(text) - len(text.rstrip("\\"))
    return "\\" in text and '"' not in text and text.isprintable() and ends % 2 == 0
