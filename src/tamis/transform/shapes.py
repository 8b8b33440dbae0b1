"""``Task`` and ``Shape``: what a transformation asks of a document, and how kernels can run it.

A *task* is a transformation's paths and condition. A *shape* is a task in terms that kernels know.
A path is a *route* over elements, with *tests* at its steps. At its *end* are the element itself,
an attribute or its text nodes. A condition is a disjunction of conjunctions of *leaves*. A leaf
asks whether an end has a string that compares with a constant. Tasks with positions, functions,
``not`` or paths in predicates of inner steps have no shape: the reference strategy answers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple, cast

from tamis.documents.vocabulary import Projection
from tamis.language.filters import Codes, Labels
from tamis.language.flwr.model import Transformation
from tamis.language.lower import Lowering
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
    Query,
    Step,
)
from tamis.matching.projection import expression_reading, projection_of


class Task(NamedTuple):
    """The paths and the condition of a transformation: all but what is made of its nodes."""

    binding: Path  # absolute; the groups
    where: Expression | None  # true of the bound nodes that have a group
    paths: tuple[Path, ...]  # relative to the bound node; the lists of a group
    are_read: tuple[bool, ...]  # for each of these, whether the strings of its nodes are read


def task_of(transformation: Transformation) -> Task:
    """The task of a transformation.

    >>> from tamis.language.flwr import parse_transformation
    >>> text = "<r>{ for $b in //b order by $b/k return <x>{ $b/t, count($b/t) }</x> }</r>"
    >>> task_of(parse_transformation(text)).are_read
    (False, True)
    """
    flwr = transformation.flwr
    return Task(flwr.binding, flwr.where, flwr.paths, flwr.are_read)


def projection_of_tasks(tasks: Sequence[Task]) -> Projection:
    """What tasks read of documents, and what the messages of their nodes read.

    >>> from tamis.language.flwr import parse_transformation
    >>> text = "<r>{ for $b in //b where $b/@n > 1 or $b/c = 'x' return $b/c/text() }</r>"
    >>> projection_of_tasks([task_of(parse_transformation(text))])[:2]
    (Names([('', 'n')]), Names([('', 'c')]))
    """
    lowering = Lowering()
    for binding, where, paths, are_read in tasks:
        asked = [] if where is None else [where]
        for path, is_read in zip(paths, are_read, strict=True):
            asked.append(expression_reading(Nodes((path,))) if is_read else Exists((path,)))
        *before, last = binding.steps
        last = replace(last, predicates=(*last.predicates, *asked))
        lowering.add(Query(Exists((Path(True, (*before, last)),))))
    found = projection_of(lowering.table())
    # Attributes may be copied, as they are written.
    ends = (path.steps[-1] for task in tasks for path in task.paths if path.steps)
    has_attributes = any(step.axis is Axis.ATTRIBUTE for step in ends)
    return found._replace(offsets=True, prefixes=found.prefixes or has_attributes)


# -- shapes ----------------------------------------------------------------------------------------

VALUE, ATTRIBUTE, TEXT = range(3)
"""What is at an end: the element, with its string value; an attribute; its text nodes."""

EXISTS = "exists"
CONJUNCTIONS_MAX = 64
"""Of one condition; with more, it has no shape."""


Name = tuple[str, str] | None
"""Of an attribute, namespace and local name; None for any, and for what is no attribute."""
Literal = bytes | float | None
"""Bytes to compare as strings, or a number; None for ``EXISTS``."""


class Comparison(NamedTuple):
    """``operator literal``, of an element's value, an attribute or some text node."""

    kind: int
    name: Name
    operator: str  # = != < <= > >=, or EXISTS
    literal: Literal


class Route(NamedTuple):
    """Steps to elements, from the document or from a bound node.

    Attributes:
        tests: those of each step, the last one's first; behind them those of the bound node.
    """

    codes: Codes
    tests: tuple[tuple[Comparison, ...], ...]


class End(NamedTuple):
    """What a path selects: at the end of a route."""

    route: Route
    kind: int
    name: Name


class Leaf(NamedTuple):
    """Whether one of the nodes at an end compares so with a literal, or is there (``EXISTS``)."""

    end: End
    operator: str
    literal: Literal


Conjunction = tuple[Leaf, ...]


class Shape(NamedTuple):
    """A task, as kernels can run it."""

    binding: Route
    conditions: tuple[Conjunction, ...]  # all leaves of one are true of a group; ((),) if always
    ends: tuple[End, ...]  # the lists of a group


class NoShapeError(Exception):
    """The task has no shape: the message names the part that kernels do not take."""


class Shapes:
    """Makes shapes of tasks.

    The reader gives the same path object for the same text, so results are cached by object.

    >>> from tamis.language.flwr import parse_transformation
    >>> text = "<r>{ for $b in //b where $b/@n > 1 or $b/c = 'x' return $b/c/text() }</r>"
    >>> shape = Shapes(Labels()).of(task_of(parse_transformation(text)))
    >>> shape.binding.codes, [leaf.operator for (leaf,) in shape.conditions]
    ((3,), ['>', '='])

    Attributes:
        labels: what steps test for.
    """

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self._ends: dict[int, tuple[Path, End]] = {}
        self._bindings: dict[int, tuple[Path, Route, Expression | None]] = {}

    def of(self, task: Task) -> Shape:
        """The shape of a task, or ``NoShapeError``."""
        binding, condition = self._binding(task)
        conditions = ((),) if condition is None else self._disjunction(condition)
        return Shape(binding, conditions, tuple(map(self._end, task.paths)))

    def _binding(self, task: Task) -> tuple[Route, Expression | None]:
        """The binding without the predicates of its last step, and these with the condition."""
        known = self._bindings.get(id(task.binding))
        if known is None:
            *inner, last = task.binding.steps
            if not all(isinstance(predicate, Expression) for predicate in last.predicates):
                raise NoShapeError(_POSITION)
            route = self._route((*inner, Step(last.axis, last.test)), is_relative=False)
            known = task.binding, route, _joined(cast(tuple[Expression, ...], last.predicates))
            self._bindings[id(task.binding)] = known
        _, route, own = known
        return route, _joined(tuple(one for one in (own, task.where) if one is not None))

    # -- conditions --------------------------------------------------------------------------------

    def _disjunction(self, expression: Expression) -> tuple[Conjunction, ...]:
        """An expression as a disjunction of conjunctions, each once."""
        found = self._conjunctions(expression)
        unique = dict.fromkeys(tuple(dict.fromkeys(each)) for each in found)
        if len(unique) > CONJUNCTIONS_MAX:
            raise NoShapeError(_ALTERNATIVES)
        return tuple(unique)

    def _conjunctions(self, expression: Expression) -> list[Conjunction]:
        match expression:
            case Compare(operator, Nodes(paths), literal):
                constant = _encoded(literal)
                return [(Leaf(self._end(path), operator, constant),) for path in paths]
            case Exists(paths):
                return [(Leaf(self._end(path), EXISTS, None),) for path in paths]
            case Or(operands):
                return [found for operand in operands for found in self._conjunctions(operand)]
            case And(operands):
                parts = [self._conjunctions(operand) for operand in operands]
                size = 1
                for part in parts:
                    size *= len(part)
                    if size > CONJUNCTIONS_MAX:
                        raise NoShapeError(_ALTERNATIVES)
                return [sum(chosen, ()) for chosen in product(*parts)]
        raise NoShapeError(_CONDITION)

    # -- paths -------------------------------------------------------------------------------------

    def _end(self, path: Path) -> End:
        known = self._ends.get(id(path))
        if known is None:
            known = self._ends[id(path)] = path, self._read_end(path)
        return known[1]

    def _read_end(self, path: Path) -> End:
        kind, name = _last_step(path.steps)
        steps = path.steps if kind == VALUE else path.steps[:-1]
        if kind != VALUE and steps and steps[-1] == DESCEND:
            raise NoShapeError("a path that ends with //@… or //text()")
        return End(self._route(steps, is_relative=True), kind, name)

    def _route(self, steps: tuple[Step, ...], *, is_relative: bool) -> Route:
        own: tuple[Comparison, ...] = ()
        if is_relative and steps and steps[0].axis is Axis.SELF:
            if steps[0].test is not KindTest.NODE:
                raise NoShapeError("a self:: step")
            own = _tests(steps[0])
            steps = steps[1:]
        bare = [Step(step.axis, step.test) for step in steps]
        tests = [_tests(step) for step in steps if step != DESCEND]
        codes = self.labels.codes(bare) if bare else ()
        if codes is None or len(codes) != len(tests):
            raise NoShapeError("a step to something else than an element by its name or *")
        return Route(codes, (*reversed(tests), own))


def _encoded(literal: str | float) -> bytes | float:
    return literal.encode() if isinstance(literal, str) else literal


def _joined(expressions: tuple[Expression, ...]) -> Expression | None:
    if len(expressions) < 2:
        return expressions[0] if expressions else None
    return And(expressions)


def _last_step(steps: Sequence[Step]) -> tuple[int, Name]:
    """What is at the end of a path: its kind, and the name of an attribute."""
    if not steps:
        return VALUE, None
    axis, test, predicates = steps[-1].axis, steps[-1].test, steps[-1].predicates
    if axis is Axis.ATTRIBUTE:
        if predicates or not isinstance(test, NameTest):
            raise NoShapeError("a step to attributes with a predicate or node()")
        if test.namespace is not None and test.local is not None:
            return ATTRIBUTE, (test.namespace, test.local)
        if test.namespace is not None or test.local is not None:
            raise NoShapeError(
                "a step to the attributes of a namespace, or of a name in any namespace"
            )
        return ATTRIBUTE, None
    if test is KindTest.TEXT:
        if axis is not Axis.CHILD or predicates:
            raise NoShapeError("a step to text() with a predicate or another axis")
        return TEXT, None
    return VALUE, None


def _tests(step: Step) -> tuple[Comparison, ...]:
    found: list[Comparison] = []
    for predicate in step.predicates:
        if not isinstance(predicate, Expression):
            raise NoShapeError(_POSITION)
        found += _local_tests(predicate)
    return tuple(dict.fromkeys(found))


def _local_tests(expression: Expression) -> Iterator[Comparison]:
    """The tests that a predicate is a conjunction of."""
    match expression:
        case And(operands):
            for operand in operands:
                yield from _local_tests(operand)
        case Compare(operator, Nodes((path,)), literal):
            yield Comparison(*_local_end(path), operator, _encoded(literal))
        case Exists((path,)):
            yield Comparison(*_local_end(path), EXISTS, None)
        case _:
            raise NoShapeError(_PREDICATE)


def _local_end(path: Path) -> tuple[int, Name]:
    steps = [step for step in path.steps if step != Step(Axis.SELF, KindTest.NODE)]
    found = _last_step(steps) if len(steps) < 2 else (VALUE, None)
    if steps and found[0] == VALUE:
        raise NoShapeError(_PREDICATE)
    return found


_POSITION = "a position in a predicate"
_CONDITION = "a condition that is no comparison of a path with a constant (not(), contains(), …)"
_ALTERNATIVES = f"a condition of more than {CONJUNCTIONS_MAX} alternatives"
_PREDICATE = "a predicate within a path that asks for more than comparisons of the step's own text"
