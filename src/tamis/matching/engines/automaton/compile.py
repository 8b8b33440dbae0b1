"""Queries → the automaton's program: one trie of steps, and rules at its nodes.

All paths of all queries, those inside predicates included, are one trie: a step is the same node
wherever the steps before it are the same, whatever the predicates say. Predicates become rules at
the nodes: their formulas ask for facts, and equal parts of queries are equal facts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tamis.documents.vocabulary import Projections
from tamis.language.model import (
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
    NodeTest,
    NormalizeSpace,
    Not,
    Or,
    Path,
    Position,
    Predicate,
    Query,
    StartsWith,
    Step,
    StringLength,
    StringOf,
    Value,
    without_here,
)
from tamis.language.queries import Queries
from tamis.language.values import compare, compare_string
from tamis.matching.engines.automaton.builder import Builder
from tamis.matching.engines.automaton.building import FALSE, TRUE
from tamis.matching.engines.automaton.freezing import freeze_program
from tamis.matching.engines.automaton.program import LENGTH, NORMALIZED, AutomatonProgram
from tamis.matching.engines.automaton.pruned import pruned_plain
from tamis.matching.projection import projection_of
from tamis.schema.prune import Pruner

COUNT_MAX = 4096
"""The largest position that this engine takes; counts are compared with less."""
PATH_MAX = 100
"""Steps of a path: they are compiled inside each other."""
STEPS_MAX = 4096
"""Steps of a query; those that lead to descendants or to where they begin, and are not just ``//``,
double what follows them."""
SEARCHED_MAX = 256
"""Characters of what contains() asks for: each of them is a node of a trie."""
_SELF = Path(False, ())
Asked = Compare | StartsWith | Contains
"""What may be asked of a string."""


def refuses(query: Query) -> str | None:
    """Why the engine cannot run a query, or None where it can.

    >>> from tamis.language.xpath import parse
    >>> refuses(parse("//a[not(b)]")), refuses(parse("//a[name() = 'x']"))
    (None, 'it calls name()')
    """
    reason = _refusal(query.expression)
    if reason is not None:
        return reason
    steps, twofold = _size(query.expression)
    if steps << twofold > STEPS_MAX:
        return (
            f"more than {STEPS_MAX} steps, where each that is descendant-or-self, or // before a "
            "position, counts all again"
        )
    return None


def _refusal(expression: Expression) -> str | None:
    match expression:
        case Exists(paths):
            reasons = (_path_refusal(path) for path in paths)
        case Compare(_, Nodes(paths), _):
            reasons = (_path_refusal(path) for path in paths)
        case Compare(_, Count(path), literal):
            assert isinstance(literal, float)
            if COUNT_MAX <= literal < math.inf:
                return f"a count is compared with {COUNT_MAX} or more"
            return _count_refusal(path) or _path_refusal(path)
        case Not(operand):
            return _refusal(operand)
        case And(operands) | Or(operands):
            reasons = (_refusal(operand) for operand in operands)
        case Constant():
            return None
        case Compare(_, value, _):
            return _string_refusal(value)
        case Contains(_, literal) if len(literal) > SEARCHED_MAX:
            return f"a string of more than {SEARCHED_MAX} characters is searched for"
        case Contains(text, _) | StartsWith(text, _):
            return _string_refusal(text)
    return next((reason for reason in reasons if reason is not None), None)


def _string_refusal(value: Value) -> str | None:
    match value:
        case StringLength(text) | NormalizeSpace(text):
            return _string_refusal(text)
        case StringOf(path):
            return _first_refusal(path) or _path_refusal(path)
        case NameOf(_, local):
            return "it calls local-name()" if local else "it calls name()"
    raise AssertionError(value)  # Nodes and Count have their own


def _first_refusal(path: Path) -> str | None:
    """Why the first of the nodes of a path cannot be found, if it cannot."""
    steps = without_here(path.steps)
    for index, step in enumerate(steps):
        if step.axis is Axis.ATTRIBUTE:
            test = step.test
            is_one = isinstance(test, NameTest) and None not in (test.namespace, test.local)
            if is_one and index + 1 == len(steps):
                continue
        elif step.axis is Axis.CHILD and step.test is not KindTest.NODE:
            continue
        return "the first of several nodes is asked for, and they are not just children"
    return None


def _path_refusal(path: Path) -> str | None:
    if len(path.steps) > PATH_MAX:
        return f"a path has more than {PATH_MAX} steps"
    for step in path.steps:
        for predicate in step.predicates:
            if isinstance(predicate, Position):
                if predicate.number > COUNT_MAX:
                    return f"a position is over {COUNT_MAX}"
            elif (reason := _refusal(predicate)) is not None:
                return reason
    return None


def _count_refusal(path: Path) -> str | None:
    if not path.steps:
        return "the document is counted"
    for step in path.steps:
        if step.axis not in (Axis.CHILD, Axis.ATTRIBUTE):
            return "nodes are counted on other steps than to children and attributes"
        if any(isinstance(predicate, Position) for predicate in step.predicates):
            return "nodes at a position are counted"
    return None


def _size(expression: Expression) -> tuple[int, int]:
    """How many steps there are, and how many of them stand for two ways to go on."""
    steps = twofold = 0
    copies = 1
    match expression:
        case Exists(paths) | Compare(_, Nodes(paths), _):
            pass
        case Compare(_, Count(path), _):
            paths = (path,)
        case Compare() | StartsWith() | Contains():
            _, path = _function_of(expression)
            paths = (path,)
            copies = 2 + len(path.steps)  # each step asks for what follows it
        case Not(operand):
            return _size(operand)
        case And(operands) | Or(operands):
            sizes = [_size(operand) for operand in operands]
            return sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        case _:
            return 0, 0
    for path in paths:
        for index, step in enumerate(path.steps):
            steps += copies
            if step.axis is Axis.DESCENDANT_OR_SELF:
                twofold += not _melts(step, path.steps[index + 1 :])
            for predicate in step.predicates:
                if not isinstance(predicate, Position):
                    inner = _size(predicate)
                    steps, twofold = steps + copies * inner[0], twofold + inner[1]
    return steps, twofold


def compile_queries(queries: Sequence[Query], pruner: Pruner | None = None) -> AutomatonProgram:
    """Compile queries, none of which the engine refuses; their numbers are their places.

    Args:
        queries: the queries.
        pruner: prunes those that are linear filters: then fewer states are reached together.

    >>> from tamis.language.xpath import parse
    >>> queries = [parse("/a/b"), parse("/a/b[c]"), parse("/a/*")]
    >>> len(compile_queries(queries).arrays.tests)  # the document, a, b, c and *
    5
    """
    compiler = Compiler()
    others: Iterator[tuple[int, Query]] = enumerate(queries)
    if pruner is not None:
        plain, answered, left = pruned_plain(queries, pruner)
        compiler.builder.add_plain(plain, answered)
        others = iter(left.items())
    elif isinstance(queries, Queries):
        others = enumerate(queries.others, start=len(queries.plain))
        if len(queries.plain):  # small sets need not wait for its kernels to be compiled
            compiler.builder.add_plain(queries.plain)
    projections = Projections()
    for number, query in others:
        compiler.add(number, query.expression)
        if compiler.reads_leaves:
            projections.add(projection_of(query.expression))
            compiler.reads_leaves = False
    return freeze_program(compiler.builder, len(queries), projections.total)


class Compiler:
    """Adds queries to a trie and to rules at its nodes, one after the other.

    Attributes:
        reads_leaves: whether a step led to something else than elements.
    """

    def __init__(self) -> None:
        self.builder = Builder()
        self.reads_leaves = False

    def add(self, number: int, expression: Expression) -> None:
        """Add the query of a number."""
        match expression:
            case Exists(paths):
                for path in paths:
                    self._accept(path.steps, 0, number)
            case Or(operands):
                for operand in operands:
                    self.add(number, operand)
            case _:
                self.builder.accept(0, self._formula(expression, 0), number)

    # -- what is on the way to the first predicate -----------------------------------------------

    def _accept(self, steps: tuple[Step, ...], node: int, number: int) -> None:
        """Accept a query where steps lead from a node to something."""
        builder = self.builder
        steps = without_here(steps)
        for index, step in enumerate(steps):
            rest = steps[index + 1 :]
            axis = step.axis
            if axis is Axis.DESCENDANT_OR_SELF:
                if _melts(step, rest):
                    continue
                self._accept(_itself(step, rest), node, number)
                self._accept(_below(step, rest), node, number)
                return
            if axis is Axis.SELF or _has_position(step):
                builder.accept(node, self._exists(steps[index:], node), number)
                return
            melted = index > 0 and _melts(steps[index - 1], steps[index:])
            is_below = melted or axis is Axis.DESCENDANT
            node = builder.edge(node, is_below, self._test(step))
            if step.predicates and not rest and (onward := _onward(step.predicates)):
                self._accept(onward, node, number)
                return
            if step.predicates:
                inner = self._predicates(step, node)
                holds = builder.formulas.all([*inner, self._exists(rest, node)])
                builder.accept(node, holds, number)
                return
        builder.accept(node, TRUE, number)

    # -- predicates ------------------------------------------------------------------------------

    def _predicates(self, step: Step, node: int) -> list[int]:
        """The formulas of a step's predicates, none of which is a position."""
        return [
            self._formula(predicate, node)
            for predicate in step.predicates
            if not isinstance(predicate, Position)
        ]

    def _formula(self, expression: Expression, node: int) -> int:
        """The formula of an expression whose context is what a node stands for."""
        formulas = self.builder.formulas
        match expression:
            case Exists(paths):
                return formulas.any([self._exists(path.steps, node) for path in paths])
            case Not(operand):
                return formulas.negation(self._formula(operand, node))
            case And(operands):
                return formulas.all([self._formula(operand, node) for operand in operands])
            case Or(operands):
                return formulas.any([self._formula(operand, node) for operand in operands])
            case Constant(value):
                return TRUE if value else FALSE
            case Compare(operator, Count(path), literal):
                assert isinstance(literal, float)
                return self._compares_count(operator, path, literal, node)
            case Compare(_, Nodes(paths), _):
                return formulas.any([self._some(path, expression, node) for path in paths])
            case Compare() | StartsWith() | Contains():
                return self._of_first(expression, node)
        raise AssertionError(expression)  # refuses() said so

    def _some(self, path: Path, asked: Compare, node: int) -> int:
        """The formula of: the string value of some node of a path compares as asked."""
        if steps := without_here(path.steps):
            return self._exists(_asking(steps, replace(asked, value=Nodes((_SELF,)))), node)
        return self._of_itself(asked, 0, node)

    def _of_first(self, asked: Asked, node: int) -> int:
        """The formula of: a string of the first node of a path, or else of "", is as asked."""
        function, path = _function_of(asked)
        steps = without_here(path.steps)
        if not steps:
            return self._of_itself(asked, function, node)
        formulas = self.builder.formulas
        holds = self._exists(_asking(_to_the_first(steps), _about_here(asked)), node)
        if _holds_of_nothing(asked):
            return formulas.any([holds, formulas.negation(self._exists(steps, node))])
        return holds

    def _of_itself(self, asked: Asked, function: int, node: int) -> int:
        """The formula of: a string of what a node stands for is as asked."""
        self.reads_leaves = True
        value, literal = self.builder.value, asked.literal
        if isinstance(asked, Compare):
            if asked.operator == "!=" and isinstance(literal, str):
                return self.builder.formulas.negation(value(node, function, "=", literal))
            if isinstance(literal, float) and not function & LENGTH:
                function = 0  # white space around a number does not matter
            return value(node, function, asked.operator, literal)
        if not literal:
            return TRUE
        operator = "starts-with" if isinstance(asked, StartsWith) else "contains"
        return value(node, function, operator, literal)

    def _exists(self, steps: tuple[Step, ...], node: int) -> int:
        """The formula of: steps lead from a node to something."""
        if not steps:
            return TRUE
        formulas = self.builder.formulas
        step, rest = steps[0], steps[1:]
        if step.axis is Axis.SELF:
            here = self.builder.is_itself(node, step.test)
            if here == FALSE:
                return FALSE
            inner = self._predicates(step, node)
            return formulas.all([here, *inner, self._exists(rest, node)])
        is_below = step.axis is Axis.DESCENDANT
        if step.axis is Axis.DESCENDANT_OR_SELF:
            if not _melts(step, rest):
                itself = self._exists(_itself(step, rest), node)
                return formulas.any([itself, self._exists(_below(step, rest), node)])
            step, rest = rest[0], rest[1:]
            if step.axis is Axis.DESCENDANT_OR_SELF:
                return self._exists((step, *rest), node)
            is_below = True
        if not self.builder.has_children(node):
            return FALSE
        if _has_position(step):
            return self._exists_at_position(step, rest, node)
        child = self.builder.edge(node, is_below, self._test(step))
        inner = self._predicates(step, child)
        holds = formulas.all([*inner, self._exists(rest, child)])
        return self.builder.told(child, is_below, holds)

    def _exists_at_position(self, step: Step, rest: tuple[Step, ...], node: int) -> int:
        """``a[p][2][q]/rest``: the second of the children that are ``a[p]`` is ``[q]/rest``."""
        builder = self.builder
        child = builder.edge(node, False, self._test(step))
        stages: list[tuple[int, int]] = []
        inner: list[int] = []
        for predicate in step.predicates:
            if isinstance(predicate, Position):
                stages.append((builder.formulas.all(inner), predicate.number))
                inner = []
            else:
                inner.append(self._formula(predicate, child))
        last = builder.formulas.all([*inner, self._exists(rest, child)])
        return builder.chain(child, stages, last)

    def _compares_count(self, operator: str, path: Path, literal: float, node: int) -> int:
        formulas = self.builder.formulas
        lowest, highest = 0, COUNT_MAX + 1
        match operator:
            case "=" | "!=":
                lowest = highest = int(literal) if literal.is_integer() else -1
            case "<":
                highest = math.ceil(literal) - 1 if literal < math.inf else highest
            case "<=":
                highest = math.floor(literal) if literal < math.inf else highest
            case ">":
                lowest = math.floor(literal) + 1 if abs(literal) < math.inf else lowest
            case ">=":
                lowest = math.ceil(literal) if abs(literal) < math.inf else lowest
        if operator in (">", ">=") and literal == math.inf:
            return FALSE
        if literal == -math.inf:
            highest = -1 if operator in ("<", "<=") else highest
        limit = int(max(literal, 0)) + 1 if literal < math.inf else 1
        lowest = max(lowest, 0)
        if lowest > highest:
            formula = FALSE
        elif lowest == 0 and highest >= limit:
            formula = TRUE  # and nothing has to be counted
        else:
            formula = formulas.between(self._counter(path.steps, node, limit), lowest, highest)
        return formulas.negation(formula) if operator == "!=" else formula

    def _counter(self, steps: tuple[Step, ...], node: int, limit: int) -> int:
        """A counter, at a node, of what steps lead to; -1 where that is nothing."""
        if not self.builder.has_children(node):
            return -1
        step, rest = steps[0], steps[1:]
        child = self.builder.edge(node, False, self._test(step))
        holds = self.builder.formulas.all(self._predicates(step, child))
        inner = self._counter(rest, child, limit) if rest else None
        if holds == FALSE or inner == -1:
            return -1
        return self.builder.counter(child, holds, inner, limit)

    def _test(self, step: Step) -> int:
        """The number of a step's node test."""
        is_attribute = step.axis is Axis.ATTRIBUTE
        if is_attribute or step.test in (KindTest.TEXT, KindTest.NODE):
            self.reads_leaves = True
        return self.builder.test(step.test, is_attribute)


def _onward(predicates: tuple[Predicate, ...]) -> tuple[Step, ...]:
    """The steps that are all that predicates ask for, or none: ``a[b]`` is true as ``a/b`` is."""
    match predicates:
        case (Exists((Path(False, steps),)),):
            return without_here(steps)
        case (Compare(_, Nodes((Path(False, steps),))) as asked,) if without_here(steps):
            return _asking(without_here(steps), replace(asked, value=Nodes((_SELF,))))
    return ()


def _to_the_first(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Steps to the first node, in the order of the document, that steps to children lead to.

    ``a[p]/b`` has ``a[p][b][1]/b[1]``.
    """
    step, rest = steps[0], steps[1:]
    if step.axis is Axis.ATTRIBUTE:
        return steps
    leads = (Exists((Path(False, rest),)),) if rest else ()
    here = Step(step.axis, step.test, (*step.predicates, *leads, Position(1)))
    return (here, *(_to_the_first(rest) if rest else ()))


def _asking(steps: tuple[Step, ...], predicate: Expression) -> tuple[Step, ...]:
    """Steps of which the last has one more predicate."""
    *before, last = steps
    return (*before, Step(last.axis, last.test, (*last.predicates, predicate)))


def _function_of(asked: Asked) -> tuple[int, Path]:
    """The function of a string that is asked about, and the path whose first node has it."""
    function = 0
    value = asked.value if isinstance(asked, Compare) else asked.text
    while not isinstance(value, StringOf):
        assert isinstance(value, StringLength | NormalizeSpace)  # refuses() said so
        function |= LENGTH if isinstance(value, StringLength) else NORMALIZED
        value = value.text
    return function, value.path


def _about_here(asked: Asked) -> Asked:
    """The same about the context node."""

    def here(value: Value) -> Any:
        if isinstance(value, StringLength | NormalizeSpace):
            return replace(value, text=here(value.text))
        return StringOf(_SELF)

    if isinstance(asked, Compare):
        return replace(asked, value=here(asked.value))
    return replace(asked, text=here(asked.text))


def _holds_of_nothing(asked: Asked) -> bool:
    """Whether what is asked is so of the empty string."""
    if not isinstance(asked, Compare):
        return not asked.literal
    if isinstance(asked.value, StringLength):
        assert isinstance(asked.literal, float)
        return compare(asked.operator, 0, asked.literal)
    literal = asked.literal.encode() if isinstance(asked.literal, str) else asked.literal
    return compare_string(asked.operator, b"", literal)


def _has_position(step: Step) -> bool:
    return any(isinstance(predicate, Position) for predicate in step.predicates)


def _melts(step: Step, rest: tuple[Step, ...]) -> bool:
    """Whether a step is that of ``//``, and the next one can begin at a descendant instead."""
    return (
        step.axis is Axis.DESCENDANT_OR_SELF
        and step.test is KindTest.NODE
        and not step.predicates
        and bool(rest)
        and rest[0].axis is not Axis.SELF
        and not _has_position(rest[0])
    )


def _itself(step: Step, rest: tuple[Step, ...]) -> tuple[Step, ...]:
    return (Step(Axis.SELF, step.test, step.predicates), *rest)


def _below(step: Step, rest: tuple[Step, ...]) -> tuple[Step, ...]:
    test: NodeTest = step.test
    if test is KindTest.NODE and rest and rest[0].axis not in (Axis.SELF, Axis.DESCENDANT_OR_SELF):
        test = NameTest(None, None)  # only elements have children
    return (Step(Axis.DESCENDANT, test, step.predicates), *rest)
