"""``Shape``: a task as kernels can run it: steps to elements, and tests of strings of their own.

A path is a *route* over elements, with *tests* at its steps, and at its *end* the element itself,
an attribute or its text nodes. A condition is a disjunction of conjunctions of *leaves*, each of
which asks whether some end has a string that compares so. What is more than that (positions,
functions, ``not``, paths in predicates of inner steps) has no shape, and is left to the reference
strategy.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from tamis.language.filters import Codes, Labels
from tamis.language.model import (
    DESCEND,
    And,
    Axis,
    Compare,
    Exists,
    Expression,
    KindTest,
    NameTest,
    Nodes,
    Or,
    Path,
    Step,
)
from tamis.transform.plan import Task

VALUE, ATTRIBUTE, TEXT = range(3)
"""What is at an end: the element, with its string value; an attribute; its text nodes."""

EXISTS = "exists"
CONJUNCTIONS_MAX = 64
"""Of one condition; with more, it has no shape."""


class Comparison(NamedTuple):
    """``operator literal`` of an element's value, of an attribute of it or of some text node.

    Attributes:
        name: of the attribute, namespace and local name; None for any, and for what is none.
        operator: ``= != < <= > >=``, or ``EXISTS``, which has no literal.
        literal: bytes to compare as strings, or a number.
    """

    kind: int
    name: tuple[str, str] | None
    operator: str
    literal: bytes | float | None


class Route(NamedTuple):
    """Steps to elements, from the document or from a bound node.

    Attributes:
        codes: see :mod:`tamis.language.filters`.
        tests: those of each step, the last one's first; behind them those of the bound node.
    """

    codes: Codes
    tests: tuple[tuple[Comparison, ...], ...]


class End(NamedTuple):
    """What a path selects: at the end of a route."""

    route: Route
    kind: int
    name: tuple[str, str] | None


class Leaf(NamedTuple):
    """Whether one of the nodes at an end compares so with a literal, or is there (``EXISTS``)."""

    end: End
    operator: str
    literal: bytes | float | None


Conjunction = tuple[Leaf, ...]


class Shape(NamedTuple):
    """A task.

    Attributes:
        conditions: a group is made where all leaves of one of these are true; ``((),)`` if always.
        ends: the lists of a group.
    """

    binding: Route
    conditions: tuple[Conjunction, ...]
    ends: tuple[End, ...]


class _NoShapeError(Exception):
    """The task is more than a shape can say."""


def shape_of(task: Task, labels: Labels) -> Shape | None:
    """The shape of a task, or None where it has none.

    >>> from tamis.language.flwr import parse_transformation
    >>> from tamis.transform.plan import task_of
    >>> text = "<r>{ for $b in //b where $b/@n > 1 or $b/c = 'x' return $b/c/text() }</r>"
    >>> shape = shape_of(task_of(parse_transformation(text)), Labels())
    >>> shape.binding.codes, [leaf.operator for (leaf,) in shape.conditions]
    ((3,), ['>', '='])
    """
    try:
        steps, condition = _with_last_predicates(task)
        return Shape(
            _route(steps, labels, is_relative=False),
            ((),) if condition is None else _disjunction(condition, labels),
            tuple(_end(path, labels) for path in task.paths),
        )
    except _NoShapeError:
        return None


def _with_last_predicates(task: Task) -> tuple[tuple[Step, ...], Expression | None]:
    """The steps of the binding without the last one's predicates, and these with the condition."""
    *inner, last = task.binding.steps
    operands: list[Expression] = []
    for predicate in last.predicates:
        if not isinstance(predicate, Expression):
            raise _NoShapeError
        operands.append(predicate)
    if task.where is not None:
        operands.append(task.where)
    condition = (
        None if not operands else operands[0] if len(operands) == 1 else And(tuple(operands))
    )
    return (*inner, Step(last.axis, last.test)), condition


def _disjunction(expression: Expression, labels: Labels) -> tuple[Conjunction, ...]:
    """An expression as a disjunction of conjunctions, each once."""
    found = dict.fromkeys(tuple(dict.fromkeys(each)) for each in _conjunctions(expression, labels))
    if len(found) > CONJUNCTIONS_MAX:
        raise _NoShapeError
    return tuple(found)


def _conjunctions(expression: Expression, labels: Labels) -> list[Conjunction]:
    match expression:
        case Compare(operator, Nodes(paths), literal):
            wanted = literal.encode() if isinstance(literal, str) else literal
            return [(Leaf(_end(path, labels), operator, wanted),) for path in paths]
        case Exists(paths):
            return [(Leaf(_end(path, labels), EXISTS, None),) for path in paths]
        case Or(operands):
            return [found for operand in operands for found in _conjunctions(operand, labels)]
        case And(operands):
            parts = [_conjunctions(operand, labels) for operand in operands]
            size = 1
            for part in parts:
                size *= len(part)
                if size > CONJUNCTIONS_MAX:
                    raise _NoShapeError
            return [sum(chosen, ()) for chosen in product(*parts)]
    raise _NoShapeError


def _end(path: Path, labels: Labels) -> End:
    """What a relative path selects."""
    steps = path.steps
    kind, name = VALUE, None
    if steps and steps[-1].axis is Axis.ATTRIBUTE:
        kind, name = ATTRIBUTE, _attribute(steps[-1])
    elif steps and steps[-1].test is KindTest.TEXT:
        kind = TEXT
        _check_text(steps[-1])
    if kind != VALUE:
        steps = steps[:-1]
        if steps and steps[-1] == DESCEND:
            raise _NoShapeError
    return End(_route(steps, labels, is_relative=True), kind, name)


def _attribute(step: Step) -> tuple[str, str] | None:
    test = step.test
    if step.predicates or not isinstance(test, NameTest):
        raise _NoShapeError
    if test.namespace is None:
        return None
    if test.local is None:
        raise _NoShapeError
    return test.namespace, test.local


def _check_text(step: Step) -> None:
    if step.axis is not Axis.CHILD or step.predicates:
        raise _NoShapeError


def _route(steps: tuple[Step, ...], labels: Labels, *, is_relative: bool) -> Route:
    tests: list[tuple[Comparison, ...]] = []
    own: tuple[Comparison, ...] = ()
    if is_relative and steps and steps[0].axis is Axis.SELF:
        if steps[0].test is not KindTest.NODE:
            raise _NoShapeError
        own = _tests(steps[0])
        steps = steps[1:]
    bare: list[Step] = []
    for step in steps:
        bare.append(Step(step.axis, step.test))
        if step != DESCEND:
            tests.append(_tests(step))
    codes = labels.codes(bare) if bare else ()
    if codes is None or len(codes) != len(tests):
        raise _NoShapeError
    return Route(codes, (*reversed(tests), own))


def _tests(step: Step) -> tuple[Comparison, ...]:
    found: list[Comparison] = []
    for predicate in step.predicates:
        if not isinstance(predicate, Expression):
            raise _NoShapeError
        found += _local_tests(predicate)
    return tuple(dict.fromkeys(found))


def _local_tests(expression: Expression) -> Iterator[Comparison]:
    """The tests that a predicate is a conjunction of."""
    match expression:
        case And(operands):
            for operand in operands:
                yield from _local_tests(operand)
        case Compare(operator, Nodes((path,)), literal):
            wanted = literal.encode() if isinstance(literal, str) else literal
            yield Comparison(*_local_end(path), operator, wanted)
        case Exists((path,)):
            yield Comparison(*_local_end(path), EXISTS, None)
        case _:
            raise _NoShapeError


def _local_end(path: Path) -> tuple[int, tuple[str, str] | None]:
    match [step for step in path.steps if step != Step(Axis.SELF, KindTest.NODE)]:
        case []:
            return VALUE, None
        case [step] if step.axis is Axis.ATTRIBUTE:
            return ATTRIBUTE, _attribute(step)
        case [step] if step.test is KindTest.TEXT:
            _check_text(step)
            return TEXT, None
    raise _NoShapeError
