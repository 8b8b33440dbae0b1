"""What expressions read of documents, so that the parser can skip the rest.

Each step of a path is followed by its *cover*: names of elements such that whatever the path has
reached is one of them, or lies in one. Text is demanded of the cover of what is read: of the last
element that a path names, or of all elements where none has been named yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from tamis.documents.demand import ALL_NAMES, NO_NAMES, Demand, Names
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
    NameTest,
    Nodes,
    NodeTest,
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
from tamis.language.xpath import Operand


def demand_of(expression: Expression, cover: Names = ALL_NAMES) -> Demand:
    """What an expression reads beyond the tags.

    Args:
        cover: of the context node; that of the document node is everything.

    >>> from tamis.language.xpath import parse
    >>> demand_of(parse("//a[b > 1]//*[@c]").expression)[:2]
    (Names([('', 'c')]), Names([('', 'b')]))
    """
    match expression:
        case Exists(paths):
            return _union(_demand_of_path(path, cover) for path in paths)
        case Compare(_, value, _):
            return _demand_of_value(value, cover)
        case Contains(text, _) | StartsWith(text, _):
            return _demand_of_value(text, cover)
        case Not(operand):
            return demand_of(operand, cover)
        case And(operands) | Or(operands):
            return _union(demand_of(operand, cover) for operand in operands)
    return Demand()


def demand_of_operand(operand: Operand) -> Demand:
    """What evaluating an expression reads beyond the tags, in whole documents."""
    match operand:
        case str() | float():
            return Demand()
        case Nodes() | StringOf() | NameOf() | NormalizeSpace() | Count() | StringLength():
            return _demand_of_value(operand, ALL_NAMES)
    return demand_of(operand)


def _demand_of_value(value: Value, cover: Names) -> Demand:
    match value:
        case Nodes(paths):
            return _union(_demand_of_string(path, cover) for path in paths)
        case StringOf(path):
            return _demand_of_string(path, cover)
        case NameOf(path, local):
            return _demand_of_path(path, cover) | Demand(prefixes=not local)
        case NormalizeSpace(text) | StringLength(text):
            return _demand_of_value(text, cover)
        case Count(path):
            return _demand_of_path(path, cover)


def _demand_of_string(path: Path, cover: Names) -> Demand:
    """What the string values of a path's nodes are made of."""
    return _demand_of_path(path, cover) | Demand(text=_covers(path, cover)[-1])


def _demand_of_path(path: Path, cover: Names) -> Demand:
    demand = Demand()
    covers = _covers(path, cover)
    for index, step in enumerate(path.steps):
        before, reached = covers[index : index + 2]
        following = path.steps[index + 1] if index + 1 < len(path.steps) else None
        for predicate in step.predicates:
            if not isinstance(predicate, Position):
                demand |= demand_of(predicate, reached)
        demand |= _demand_of_step(step, following, before)
    return demand


def _demand_of_step(step: Step, following: Step | None, cover: Names) -> Demand:
    """What finding a step's nodes takes, where ``cover`` is that of its contexts."""
    if step.axis is Axis.ATTRIBUTE:
        return Demand(attributes=_names(step.test))
    if step.test is KindTest.TEXT:
        return Demand(text=cover)
    if step.test is KindTest.NODE and step.axis is not Axis.SELF:
        # Only elements have children and attributes: "//b" need not see text and comments.
        leaves_matter = bool(step.predicates) or following is None
        leaves_matter |= following is not None and following.axis in (
            Axis.SELF,
            Axis.DESCENDANT_OR_SELF,
        )
        return Demand(text=cover, misc=True) if leaves_matter else Demand()
    return Demand()


def _covers(path: Path, cover: Names) -> list[Names]:
    """The cover of a path's context nodes, and that of what each of its steps reaches."""
    covers = [ALL_NAMES if path.absolute else cover]
    for step in path.steps:
        if step.axis is Axis.ATTRIBUTE:
            covers.append(NO_NAMES)  # the value of an attribute is not made of text
        else:
            named = _names(step.test)
            covers.append(covers[-1] if named == ALL_NAMES else named)
    return covers


def _names(test: NodeTest) -> Names:
    """The names that pass a test: one, or any that there are."""
    if isinstance(test, NameTest) and test.namespace is not None and test.local is not None:
        return Names([(test.namespace, test.local)])
    return ALL_NAMES


def _union(demands: Iterator[Demand]) -> Demand:
    result = Demand()
    for demand in demands:
        result |= demand
    return result
