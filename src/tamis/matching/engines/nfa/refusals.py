"""What the engine does not run, and why."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.language.filters import Labels, has_label
from tamis.language.model import (
    DESCEND,
    And,
    Axis,
    Compare,
    Constant,
    Contains,
    Count,
    Exists,
    Expression,
    KindTest,
    NameOf,
    NameTest,
    Nodes,
    NormalizeSpace,
    Not,
    Or,
    Path,
    Position,
    Query,
    StartsWith,
    Step,
    StringLength,
    StringOf,
    Value,
    without_here,
)

_FIRST_AXES = (Axis.CHILD, Axis.ATTRIBUTE)
STEPS_MAX = 120
"""Steps of a query that is more than filters: they are evaluated inside each other."""


def refuses(query: Query) -> str | None:
    """Why the engine cannot run a query, or None where it can.

    >>> from tamis.language.xpath import parse
    >>> refuses(parse("//a[not(b)]")), refuses(parse("//a[2]"))
    (None, 'it asks for a position')
    """
    if Labels().filters(query) is not None:
        return None
    reason = next(_of_expression(query.expression), None)
    if reason is None and _steps(query.expression) > STEPS_MAX:
        return f"it has more than {STEPS_MAX} steps, with predicates"
    return reason


def _of_expression(expression: Expression) -> Iterator[str]:
    match expression:
        case Exists(paths) | Compare(_, Nodes(paths), _):
            for path in paths:
                yield from _of_path(path)
        case Compare(_, value, _):
            yield from _of_string(value)
        case Contains(text, _) | StartsWith(text, _):
            yield from _of_string(text)
        case Not(operand):
            yield from _of_expression(operand)
        case And(operands) | Or(operands):
            for operand in operands:
                yield from _of_expression(operand)
        case Constant():
            pass


def _of_string(value: Value) -> Iterator[str]:
    match value:
        case StringLength(text) | NormalizeSpace(text):
            yield from _of_string(text)
        case StringOf(path):
            if any(step.axis not in _FIRST_AXES for step in without_here(path.steps)):
                yield "the first of several nodes is asked for, and they are not just children"
            yield from _of_path(path)
        case NameOf(_, local):
            yield "it calls local-name()" if local else "it calls name()"
        case Count():
            yield "it calls count()"


def _of_path(path: Path) -> Iterator[str]:
    descends = is_leaf = False
    for step in without_here(path.steps):
        if is_leaf:
            yield "a step goes on from an attribute or a text node"
        if step == DESCEND:
            descends = True
            continue
        is_leaf = step.axis is Axis.ATTRIBUTE or step.test is KindTest.TEXT
        yield from _of_step(step, descends, is_leaf)
        descends = False
    if descends:
        yield "a // leads to nodes of any kind"


def _of_step(step: Step, descends: bool, is_leaf: bool) -> Iterator[str]:
    if step.axis is Axis.DESCENDANT_OR_SELF:
        yield "it has a descendant-or-self:: that is not written //"
    elif step.axis is Axis.SELF and step.test is not KindTest.NODE:
        yield "it has a self:: with a name"
    elif not is_leaf and isinstance(step.test, NameTest) and not has_label(step.test):
        yield "it asks for a name in any namespace, or for all names in none"
    elif step.axis is Axis.SELF and descends:
        yield "a // leads to ."
    elif step.test is KindTest.NODE and step.axis not in (Axis.SELF, Axis.ATTRIBUTE):
        yield "it has a step to node()"
    if is_leaf and step.predicates:
        yield "an attribute or a text node has a predicate"
    for predicate in step.predicates:
        if isinstance(predicate, Position):
            yield "it asks for a position"
        else:
            yield from _of_expression(predicate)


def _steps(expression: Expression) -> int:
    """How many steps all paths have together."""
    match expression:
        case Exists(paths) | Compare(_, Nodes(paths), _):
            steps = [step for path in paths for step in path.steps]
            return len(steps) + sum(
                _steps(predicate)
                for step in steps
                for predicate in step.predicates
                if not isinstance(predicate, Position)
            )
        case Not(operand):
            return _steps(operand)
        case And(operands) | Or(operands):
            return sum(map(_steps, operands))
        case Compare(_, value, _) | Contains(value, _) | StartsWith(value, _):
            while isinstance(value, StringLength | NormalizeSpace):
                value = value.text
            assert not isinstance(value, Nodes)
            return _steps(Exists((value.path,)))
        case Constant():
            return 0
