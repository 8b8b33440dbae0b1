"""Conditions on some element of a list, of events in which there is no list where one is asked for.

What is no list counts as a list of it, so there is one element, and a condition on it is one on the
attribute: ``a[].(b[] = 1 and c[] = 2)`` is ``a.b = 1 and a.c = 2``. That is so where

* each step has ``[]``: else a list, or an object, is an error of the event; and
* the condition is false of nothing, as ``a[].(not b[] = 1)`` is not: without ``a`` there is no
  element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tamis.language.attributes import ELEMENTS, EVERY, ITSELF, Path, attribute_of, path_name
from tamis.language.conjunctions import All, Formula, Not, Some
from tamis.language.constraints import Constraint, Field

Condition = tuple[Formula, Sequence[Constraint]]
"""A formula, and the constraints that it numbers."""


def singular(name: str, conditions: Mapping[str, Condition]) -> Condition | None:
    """What the attribute of a condition on elements stands for, or None where there is no such.

    Args:
        conditions: by the names of their attributes.
    """
    constraints: list[Constraint] = []
    formula = _inlined(name, (), conditions, constraints)
    return None if formula is None else (formula, constraints)


def _inlined(
    name: str, around: Path, conditions: Mapping[str, Condition], constraints: list[Constraint]
) -> Formula | None:
    formula, own = conditions[name]
    path = attribute_of(name).path
    if len(path) > 1 or path == (EVERY,) or _holds_of_nothing(formula):
        return None
    parts: list[Formula] = []
    for each in own:
        mark, inner, _ = attribute_of(each.name)
        if mark == ELEMENTS:
            part = _inlined(each.name, (*around, *path), conditions, constraints)
            if part is None:
                return None
            parts.append(part)
        elif inner == (ITSELF,):
            parts.append(len(constraints))
            constraints.append(_at(each, path_name((*around, *path))))
        else:
            return None
    return renumbered(formula, parts)


def _at(constraint: Constraint, name: str) -> Constraint:
    """What is asked of an element, asked of the attribute of a name."""
    own, operator, constant = constraint
    if isinstance(constant, Field):
        constant = Field(constant.name[:-1] + name)
    return Constraint(own[:-1] + name, operator, constant)


def _holds_of_nothing(formula: Formula) -> bool:
    """Whether a formula is true where no constraint is satisfied."""
    match formula:
        case int():
            return False
        case Not(part):
            return not _holds_of_nothing(part)
        case All(parts):
            return all(map(_holds_of_nothing, parts))
        case Some(parts):
            return any(map(_holds_of_nothing, parts))


def renumbered(formula: Formula, parts: Sequence[Formula]) -> Formula:
    """A formula with others instead of the constraints that it numbers."""
    match formula:
        case int():
            return parts[formula]
        case Not(part):
            return Not(renumbered(part, parts))
        case All(own):
            return All(tuple(renumbered(each, parts) for each in own))
        case Some(own):
            return Some(tuple(renumbered(each, parts) for each in own))
