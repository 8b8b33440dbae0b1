"""What expressions read of documents, so that the parser can skip the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from tamis.documents.batch import Demand
from tamis.language.model import (
    And,
    Axis,
    Compare,
    Contains,
    Count,
    Exists,
    Expression,
    KindTest,
    NameOf,
    Nodes,
    NormalizeSpace,
    Not,
    Or,
    Path,
    Position,
    StartsWith,
    Step,
    StringLength,
    StringOf,
    Value,
)


def demand_of(expression: Expression) -> Demand:
    """What an expression reads beyond the tags.

    >>> from tamis.language.xpath import parse
    >>> demand_of(parse("//a[@b]//c").expression)
    Demand(attributes=True, text=False, misc=False, prefixes=False, lines=False)
    """
    match expression:
        case Exists(paths):
            return _union(_demand_of_path(path) for path in paths)
        case Compare(_, value, _):
            return _demand_of_value(value)
        case Contains(text, _) | StartsWith(text, _):
            return _demand_of_value(text)
        case Not(operand):
            return demand_of(operand)
        case And(operands) | Or(operands):
            return _union(demand_of(operand) for operand in operands)
    return Demand()


def _demand_of_value(value: Value) -> Demand:
    match value:
        case Nodes(paths):
            return _union(_demand_of_path(p) for p in paths) | Demand(text=True)
        case StringOf(path):
            return _demand_of_path(path) | Demand(text=True)
        case NameOf(path, local):
            return _demand_of_path(path) | Demand(prefixes=not local)
        case NormalizeSpace(text) | StringLength(text):
            return _demand_of_value(text)
        case Count(path):
            return _demand_of_path(path)


def _demand_of_path(path: Path) -> Demand:
    demand = Demand()
    for step, after in zip_longest(path.steps, path.steps[1:]):
        demand |= _demand_of_step(step, after)
    return demand


def _demand_of_step(step: Step, following: Step | None) -> Demand:
    demand = _union(demand_of(p) for p in step.predicates if not isinstance(p, Position))
    if step.axis is Axis.ATTRIBUTE:
        return demand | Demand(attributes=True)
    if step.test is KindTest.TEXT:
        return demand | Demand(text=True)
    if step.test is KindTest.NODE and step.axis is not Axis.SELF:
        # Only elements have children and attributes: "//b" need not see text and comments.
        leaves_matter = bool(step.predicates) or following is None
        leaves_matter |= following is not None and following.axis in (
            Axis.SELF,
            Axis.DESCENDANT_OR_SELF,
        )
        return demand | Demand(text=leaves_matter, misc=leaves_matter)
    return demand


def _union(demands: Iterator[Demand]) -> Demand:
    result = Demand()
    for demand in demands:
        result |= demand
    return result
