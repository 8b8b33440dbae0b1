"""Queries → the automaton's program: one trie of steps, and rules at its nodes.

All paths of all queries, those inside predicates included, are one trie: a step is the same node
wherever the steps before it are the same, whatever the predicates say. Predicates become rules at
the nodes: their formulas ask for facts, and equal parts of queries are equal facts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from tamis.core.arrays import Int32, freeze
from tamis.documents.vocabulary import Projections
from tamis.language import model as m
from tamis.language import table as words
from tamis.language.queries import Queries
from tamis.language.table import NO_QUERIES, QueryTable
from tamis.language.values import compare, compare_string
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile.builder import Builder
from tamis.matching.engines.automaton.compile.freeze import freeze_program
from tamis.matching.engines.automaton.compile.refusals import (
    COUNT_MAX,
    Asked,
    function_of,
    has_position,
    melts,
)
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.program import AutomatonProgram
from tamis.matching.filters import Others
from tamis.matching.projection import projection_of
from tamis.schema.prune import Pruner

_SELF = m.Path(False, ())


def compile_queries(queries: Sequence[m.Query], pruner: Pruner | None = None) -> AutomatonProgram:
    """Compile queries, none of which the engine refuses; their numbers are their places.

    With a pruner, linear filters are pruned: then fewer states are reached together.

    >>> from tamis.language.xpath import parse
    >>> queries = [parse("/a/b"), parse("/a/b[c]"), parse("/a/*")]
    >>> len(compile_queries(queries).arrays.tests)  # the document, a, b, c and *
    5
    """
    compiler = Compiler()
    others: Iterator[tuple[int, m.Query]] = enumerate(queries)
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

    def add(self, number: int, expression: m.Expression) -> None:
        """Add the query of a number."""
        match expression:
            case m.Exists(paths):
                for path in paths:
                    self._accept(path.steps, 0, number)
            case m.Or(operands):
                for operand in operands:
                    self.add(number, operand)
            case _:
                self.builder.accept(0, self._formula(expression, 0), number)

    # -- what is on the way to the first predicate -----------------------------------------------

    def _accept(self, steps: tuple[m.Step, ...], node: int, number: int) -> None:
        """Accept a query where steps lead from a node to something."""
        builder = self.builder
        steps = m.without_here(steps)
        for index, step in enumerate(steps):
            rest = steps[index + 1 :]
            if step.axis is m.Axis.DESCENDANT_OR_SELF:
                if melts(step, rest):
                    continue
                self._accept(_itself(step, rest), node, number)
                self._accept(_below(step, rest), node, number)
                return
            if step.axis is m.Axis.SELF or has_position(step):
                builder.accept(node, self._exists(steps[index:], node), number)
                return
            melted = index > 0 and melts(steps[index - 1], steps[index:])
            is_below = melted or step.axis is m.Axis.DESCENDANT
            node = builder.edge(node, is_below, self._test(step))
            if step.predicates and not rest and (onward := _onward(step.predicates)):
                self._accept(onward, node, number)
                return
            if step.predicates:
                inner = self._predicates(step, node)
                holds = builder.formulas.all([*inner, self._exists(rest, node)])
                builder.accept(node, holds, number)
                return
        builder.accept(node, at.TRUE, number)

    # -- predicates ------------------------------------------------------------------------------

    def _predicates(self, step: m.Step, node: int) -> list[int]:
        """The formulas of a step's predicates, none of which is a position."""
        return [
            self._formula(predicate, node)
            for predicate in step.predicates
            if not isinstance(predicate, m.Position)
        ]

    def _formula(self, expression: m.Expression, node: int) -> int:
        """The formula of an expression whose context is what a node stands for."""
        formulas = self.builder.formulas
        match expression:
            case m.Exists(paths):
                return formulas.any([self._exists(path.steps, node) for path in paths])
            case m.Not(operand):
                return formulas.negation(self._formula(operand, node))
            case m.And(operands):
                return formulas.all([self._formula(operand, node) for operand in operands])
            case m.Or(operands):
                return formulas.any([self._formula(operand, node) for operand in operands])
            case m.Constant(value):
                return at.TRUE if value else at.FALSE
            case m.Compare(operator, m.Count(path), literal):
                assert isinstance(literal, float)
                return self._compares_count(operator, path, literal, node)
            case m.Compare(_, m.Nodes(paths), _):
                return formulas.any([self._some(path, expression, node) for path in paths])
            case m.Compare() | m.StartsWith() | m.Contains():
                return self._of_first(expression, node)
        raise AssertionError(expression)  # refuses() said so

    def _some(self, path: m.Path, asked: m.Compare, node: int) -> int:
        """The formula of: the string value of some node of a path compares as asked."""
        if steps := m.without_here(path.steps):
            return self._exists(_asking(steps, replace(asked, value=m.Nodes((_SELF,)))), node)
        return self._of_itself(asked, 0, node)

    def _of_first(self, asked: Asked, node: int) -> int:
        """The formula of: a string of the first node of a path, or else of "", is as asked."""
        function, path = function_of(asked)
        steps = m.without_here(path.steps)
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
        if isinstance(asked, m.Compare):
            if asked.operator == "!=" and isinstance(literal, str):
                return self.builder.formulas.negation(value(node, function, "=", literal))
            if isinstance(literal, float) and not function & pr.LENGTH:
                function = 0  # white space around a number does not matter
            return value(node, function, asked.operator, literal)
        if not literal:
            return at.TRUE
        operator = "starts-with" if isinstance(asked, m.StartsWith) else "contains"
        return value(node, function, operator, literal)

    def _exists(self, steps: tuple[m.Step, ...], node: int) -> int:
        """The formula of: steps lead from a node to something."""
        if not steps:
            return at.TRUE
        formulas = self.builder.formulas
        step, rest = steps[0], steps[1:]
        if step.axis is m.Axis.SELF:
            here = self.builder.is_itself(node, step.test)
            if here == at.FALSE:
                return at.FALSE
            inner = self._predicates(step, node)
            return formulas.all([here, *inner, self._exists(rest, node)])
        is_below = step.axis is m.Axis.DESCENDANT
        if step.axis is m.Axis.DESCENDANT_OR_SELF:
            if not melts(step, rest):
                itself = self._exists(_itself(step, rest), node)
                return formulas.any([itself, self._exists(_below(step, rest), node)])
            step, rest = rest[0], rest[1:]
            if step.axis is m.Axis.DESCENDANT_OR_SELF:
                return self._exists((step, *rest), node)
            is_below = True
        if not self.builder.has_children(node):
            return at.FALSE
        if has_position(step):
            return self._exists_at_position(step, rest, node)
        child = self.builder.edge(node, is_below, self._test(step))
        inner = self._predicates(step, child)
        holds = formulas.all([*inner, self._exists(rest, child)])
        return self.builder.derived(child, is_below, holds)

    def _exists_at_position(self, step: m.Step, rest: tuple[m.Step, ...], node: int) -> int:
        """``a[p][2][q]/rest``: the second of the children that are ``a[p]`` is ``[q]/rest``."""
        builder = self.builder
        child = builder.edge(node, False, self._test(step))
        stages: list[tuple[int, int]] = []
        inner: list[int] = []
        for predicate in step.predicates:
            if isinstance(predicate, m.Position):
                stages.append((builder.formulas.all(inner), predicate.number))
                inner = []
            else:
                inner.append(self._formula(predicate, child))
        last = builder.formulas.all([*inner, self._exists(rest, child)])
        return builder.chain(child, stages, last)

    def _compares_count(self, operator: str, path: m.Path, literal: float, node: int) -> int:
        if literal == math.inf:
            return at.TRUE if operator in ("<", "<=", "!=") else at.FALSE
        literal = max(literal, -1.0)  # all below count as this
        lowest, highest = 0, COUNT_MAX + 1
        match operator:
            case "=" | "!=":
                lowest = highest = int(literal) if literal.is_integer() else -1
            case "<":
                highest = math.ceil(literal) - 1
            case "<=":
                highest = math.floor(literal)
            case ">":
                lowest = math.floor(literal) + 1
            case ">=":
                lowest = math.ceil(literal)
        limit = int(max(literal, 0)) + 1
        lowest = max(lowest, 0)
        formulas = self.builder.formulas
        if lowest > highest:
            formula = at.FALSE
        elif lowest == 0 and highest >= limit:
            formula = at.TRUE  # and nothing has to be counted
        else:
            formula = formulas.between(self._counter(path.steps, node, limit), lowest, highest)
        return formulas.negation(formula) if operator == "!=" else formula

    def _counter(self, steps: tuple[m.Step, ...], node: int, limit: int) -> int:
        """A counter, at a node, of what steps lead to; -1 where that is nothing."""
        if not self.builder.has_children(node):
            return -1
        step, rest = steps[0], steps[1:]
        child = self.builder.edge(node, False, self._test(step))
        holds = self.builder.formulas.all(self._predicates(step, child))
        inner = self._counter(rest, child, limit) if rest else None
        if holds == at.FALSE or inner == -1:
            return -1
        return self.builder.counter(child, holds, inner, limit)

    def _test(self, step: m.Step) -> int:
        """The number of a step's node test."""
        is_attribute = step.axis is m.Axis.ATTRIBUTE
        if is_attribute or step.test in (m.KindTest.TEXT, m.KindTest.NODE):
            self.reads_leaves = True
        return self.builder.test(step.test, is_attribute)


def _onward(predicates: tuple[m.Predicate, ...]) -> tuple[m.Step, ...]:
    """The steps that are all that predicates ask for, or none: ``a[b]`` is true as ``a/b`` is."""
    match predicates:
        case (m.Exists((m.Path(False, steps),)),):
            return m.without_here(steps)
        case (m.Compare(_, m.Nodes((m.Path(False, steps),))) as asked,) if m.without_here(steps):
            return _asking(m.without_here(steps), replace(asked, value=m.Nodes((_SELF,))))
    return ()


def _to_the_first(steps: tuple[m.Step, ...]) -> tuple[m.Step, ...]:
    """Steps to the first node, in the order of the document, that steps to children lead to.

    ``a[p]/b`` has ``a[p][b][1]/b[1]``.
    """
    step, rest = steps[0], steps[1:]
    if step.axis is m.Axis.ATTRIBUTE:
        return steps
    leads = (m.Exists((m.Path(False, rest),)),) if rest else ()
    here = m.Step(step.axis, step.test, (*step.predicates, *leads, m.Position(1)))
    return (here, *(_to_the_first(rest) if rest else ()))


def _asking(steps: tuple[m.Step, ...], predicate: m.Expression) -> tuple[m.Step, ...]:
    """Steps of which the last has one more predicate."""
    *before, last = steps
    return (*before, m.Step(last.axis, last.test, (*last.predicates, predicate)))


def _about_here(asked: Asked) -> Asked:
    """The same about the context node."""

    def here(value: m.Value) -> Any:
        if isinstance(value, m.StringLength | m.NormalizeSpace):
            return replace(value, text=here(value.text))
        return m.StringOf(_SELF)

    if isinstance(asked, m.Compare):
        return replace(asked, value=here(asked.value))
    return replace(asked, text=here(asked.text))


def _holds_of_nothing(asked: Asked) -> bool:
    """Whether what is asked is so of the empty string."""
    if not isinstance(asked, m.Compare):
        return not asked.literal
    if isinstance(asked.value, m.StringLength):
        assert isinstance(asked.literal, float)
        return compare(asked.operator, 0, asked.literal)
    literal = asked.literal.encode() if isinstance(asked.literal, str) else asked.literal
    return compare_string(asked.operator, b"", literal)


def _itself(step: m.Step, rest: tuple[m.Step, ...]) -> tuple[m.Step, ...]:
    return (m.Step(m.Axis.SELF, step.test, step.predicates), *rest)


def _below(step: m.Step, rest: tuple[m.Step, ...]) -> tuple[m.Step, ...]:
    test: m.NodeTest = step.test
    goes_on = rest and rest[0].axis not in (m.Axis.SELF, m.Axis.DESCENDANT_OR_SELF)
    if test is m.KindTest.NODE and goes_on:
        test = m.NameTest(None, None)  # only elements have children
    return (m.Step(m.Axis.DESCENDANT, test, step.predicates), *rest)


def pruned_plain(queries: Sequence[m.Query], pruner: Pruner) -> tuple[QueryTable, Int32, Others]:
    """The queries as plain ones, linear filters pruned; which query each answers; and the others.

    >>> from tamis.language.xpath import parse
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT a (b, c)> <!ELEMENT b ANY> <!ELEMENT c ANY>"))
    >>> plain, numbers, others = pruned_plain([parse("//a[b]"), parse("/a/*")], Pruner(graph))
    >>> len(plain), numbers, list(others)
    (2, array([1, 1], dtype=int32), [0])
    """
    plain = queries.plain if isinstance(queries, Queries) else NO_QUERIES
    numbers_of_tests = {test: number for number, test in enumerate(plain.tests)}
    code: list[int] = []
    ends: list[int] = [0]
    numbers: list[int] = []
    others: Others = {}

    @cache
    def word(step: int) -> int:
        test = (False, pruner.labels.test(step >> 1))
        number = numbers_of_tests.setdefault(test, len(numbers_of_tests))
        flags = number << words.TEST_SHIFT | words.MAIN | (words.BELOW if step & 1 else 0)
        return words.STEP | flags << words.KIND_BITS

    for number, filters in enumerate(pruner.labels.each(queries)):
        if filters is not None:
            pruned = [pruner.prune(filter, existence_only=True) for filter in filters]
            for steps in dict.fromkeys(chain.from_iterable(pruned)):
                code += map(word, steps)
                code += [words.END] * len(steps)
                ends.append(len(code))
                numbers.append(number)
        elif number < len(plain):
            code += plain.code[plain.starts[number] : plain.starts[number + 1]].tolist()
            ends.append(len(code))
            numbers.append(number)
        else:
            others[number] = queries[number]
    result = QueryTable(
        np.array(ends, np.int64),
        np.array(code, np.int32),
        tuple(numbers_of_tests),
        plain.string_starts,
        plain.string_bytes,
        plain.numbers,
    )
    freeze(result.starts, result.code)
    return result, np.array(numbers, np.int32), others
