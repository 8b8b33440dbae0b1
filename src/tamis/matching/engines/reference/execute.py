"""Evaluation of queries on all documents of a batch at once, a set of nodes at a time.

A path is followed forwards, giving the nodes that each step reaches, and then backwards, giving
for each context node the *first* node in document order that the path leads to. Whether there is
one is existence; its string is what ``contains()`` and its like read. Each step costs a few array
operations on sets of nodes: O(|Q| · n log n) for a query of |Q| steps on n nodes, near the bound of
Gottlob, Koch and Pichler, "Efficient algorithms for processing XPath queries" (VLDB 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Int32, distinct
from tamis.core.index.matchset import MatchSet, Which, match_set
from tamis.documents.batch import ATTRIBUTE, DOCUMENT, ELEMENT, MISC, TEXT, DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language import model as ast
from tamis.language.values import compare, compare_string, normalize_space
from tamis.language.xpath import Operand
from tamis.matching.engine import Sources
from tamis.matching.engines.reference import ReferenceProgram
from tamis.matching.engines.reference import nodes as axes
from tamis.matching.engines.reference.nodes import Mask, NodeTable, Rows, build_nodes


class ReferenceSearcher(NamedTuple):
    """A program at work; it has no cache."""

    program: ReferenceProgram

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        _nodes: Which | None = None,
        _sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents."""
        return match(self.program, batch, vocabulary)

    def memory_usage(self) -> int:
        """0: nothing is kept."""
        return 0


def match(program: ReferenceProgram, batch: DocumentBatch, vocabulary: Vocabulary) -> MatchSet:
    """Which queries are true of which documents."""
    nodes = build_nodes(batch)
    evaluator = Evaluator(batch, nodes, vocabulary)
    truth = np.zeros((len(program.queries), len(nodes.documents)), dtype=bool)
    for number, query in enumerate(program.queries):
        truth[number] = evaluator.where(query.expression, nodes.documents)
    by_document = [np.zeros(0, dtype=np.int64)] * batch.documents
    for column, document in enumerate(nodes.numbers):
        by_document[document] = truth[:, column].nonzero()[0]
    return match_set(by_document, {})


class Evaluator:
    """The nodes of a batch, and what expressions and paths mean on them.

    Context nodes are given as sorted rows; what is returned for each of them has the same order.
    """

    def __init__(self, batch: DocumentBatch, nodes: NodeTable, vocabulary: Vocabulary) -> None:
        self.batch = batch
        self.nodes = nodes
        self.vocabulary = vocabulary
        self.none = len(nodes.kind)  # the row that stands for "no node"
        self.text_values = batch.text_values.tobytes()
        self.attribute_values = batch.attribute_values.tobytes()
        self.misc_values = batch.misc_values.tobytes()

    def value(self, operand: Operand, document: int) -> bool | float | str:
        """The string, number or boolean that an expression is, at the row of a document node."""
        contexts = np.array([document])
        match operand:
            case str() | float():
                return operand
            case ast.Count(path):
                return float(self.counts(path, contexts)[0])
            case ast.StringLength(text):
                return float(len(next(self.strings(text, contexts)).decode()))
            case ast.StringOf() | ast.NameOf() | ast.NormalizeSpace():
                return next(self.strings(operand, contexts)).decode()
            case ast.Nodes():
                raise AssertionError("nodes have values, each its own")
        return bool(self.where(operand, contexts)[0])

    # -- booleans ------------------------------------------------------------------------------

    def where(self, expression: ast.Expression, contexts: Rows) -> Mask:
        """At which of the context nodes a boolean expression is true."""
        match expression:
            case ast.Exists(paths):
                return self.where_any(paths, contexts)
            case ast.Compare(operator, value, literal):
                return self.where_compares(operator, value, literal, contexts)
            case ast.Contains(text, literal):
                wanted = literal.encode()
                return self.where_text(text, contexts, lambda value: wanted in value)
            case ast.StartsWith(text, literal):
                wanted = literal.encode()
                return self.where_text(text, contexts, lambda value: value.startswith(wanted))
            case ast.Constant(value):
                return np.full(len(contexts), value)
            case ast.Not(operand):
                return ~self.where(operand, contexts)
            case ast.And(operands):
                return self.where_all([*operands], contexts)
            case ast.Or(operands):  # by De Morgan's law
                return ~self.where_all([ast.Not(operand) for operand in operands], contexts)

    def where_all(self, operands: list[ast.Expression], contexts: Rows) -> Mask:
        """Where all operands are true; each is asked only where those before it are."""
        left = np.arange(len(contexts))
        for operand in operands:
            left = left[self.where(operand, contexts[left])]
        mask = np.zeros(len(contexts), dtype=bool)
        mask[left] = True
        return mask

    def where_any(
        self,
        paths: tuple[ast.Path, ...],
        contexts: Rows,
        accepts: Callable[[int], bool] | None = None,
    ) -> Mask:
        """From which contexts one of the paths selects a node (that is accepted)."""
        found = np.zeros(len(contexts), dtype=bool)
        for path in paths:
            found |= self.first(path, contexts, accepts) < self.none
        return found

    def where_compares(
        self,
        operator: str,
        value: ast.Nodes | ast.StringFunction | ast.Count | ast.StringLength,
        literal: str | float,
        contexts: Rows,
    ) -> Mask:
        """Where a value compares with a literal."""
        wanted = literal.encode() if isinstance(literal, str) else literal
        match value:
            case ast.Nodes(paths):
                return self.where_any(
                    paths,
                    contexts,
                    lambda row: compare_string(operator, self.string_value(row), wanted),
                )
            case ast.Count(path):
                assert isinstance(literal, float)
                counts = self.counts(path, contexts).tolist()
                return np.array([compare(operator, n, literal) for n in counts], dtype=bool)
            case ast.StringLength(text):
                assert isinstance(literal, float)
                return self.where_text(
                    text, contexts, lambda value: compare(operator, len(value.decode()), literal)
                )
            case _:
                return self.where_text(
                    value, contexts, lambda text: compare_string(operator, text, wanted)
                )

    def where_text(
        self, text: ast.StringFunction, contexts: Rows, accepts: Callable[[bytes], bool]
    ) -> Mask:
        """Where a string function's value is accepted."""
        return np.array([accepts(value) for value in self.strings(text, contexts)], dtype=bool)

    # -- strings and numbers -------------------------------------------------------------------

    def strings(self, text: ast.StringFunction, contexts: Rows) -> Iterator[bytes]:
        """The value of a string function at each context node."""
        match text:
            case ast.NormalizeSpace(inner):
                return map(normalize_space, self.strings(inner, contexts))
            case ast.StringOf(path):
                value_of = self.string_value
            case ast.NameOf(path, local):
                value_of = self.local_name if local else self.qualified_name
        first = self.first(path, contexts).tolist()
        return (b"" if row == self.none else value_of(row) for row in first)

    def string_value(self, row: int) -> bytes:
        """XPath's string value of a node, in UTF-8."""
        batch, nodes = self.batch, self.nodes
        source = nodes.source[row]
        kind = nodes.kind[row]
        if kind == ATTRIBUTE:
            return self.attribute_values[batch.value_start[source] : batch.value_end[source]]
        if kind == TEXT:
            return self.text_values[batch.text_start[source] : batch.text_end[source]]
        if kind == MISC:
            return self.misc_values[batch.misc_start[source] : batch.misc_end[source]]
        first, last = nodes.texts_before[row], nodes.texts_before[nodes.end[row]] - 1
        if first > last:
            return b""
        return self.text_values[batch.text_start[first] : batch.text_end[last]]

    def local_name(self, row: int) -> bytes:
        """local-name() of a node."""
        name = self.nodes.name[row]
        return self.vocabulary.expanded(name)[1].encode() if name >= 0 else b""

    def qualified_name(self, row: int) -> bytes:
        """name() of a node, with the prefix that the document wrote."""
        source = self.nodes.source[row]
        prefix = -1
        if self.nodes.kind[row] == ELEMENT:
            prefix = self.batch.prefixes[source]
        elif self.nodes.kind[row] == ATTRIBUTE:
            prefix = self.batch.attribute_prefixes[source]
        local = self.local_name(row)
        return self.vocabulary.prefix(prefix).encode() + b":" + local if prefix >= 0 else local

    def line(self, row: int) -> int:
        """The line of a node's start; of text, comments and PIs that of the tag before them."""
        batch, source = self.batch, self.nodes.source[row]
        kind = self.nodes.kind[row]
        if kind == DOCUMENT:
            return 1
        if kind == ATTRIBUTE:
            source = batch.attribute_event[source]
        elif kind == TEXT:
            source = batch.text_event[source]
        elif kind == MISC:
            source = max(batch.misc_event[source], 0)
        return int(batch.lines[source])

    def counts(self, path: ast.Path, contexts: Rows) -> Rows:
        """At each context the number of nodes that a path selects.

        Of paths with other steps than child and attribute steps, there must be one context.
        """
        if len(contexts) == 1:
            return np.array([len(self.selected((path,), contexts))])
        reached = [contexts, *self.trace(path, contexts)]
        count = np.ones(len(reached[-1]), dtype=np.int64)
        for nodes, above in zip(reached[:0:-1], reached[-2::-1], strict=True):
            total = np.zeros(len(above), dtype=np.int64)
            np.add.at(total, np.searchsorted(above, self.nodes.parent[nodes]), count)
            count = total
        return count

    # -- paths ---------------------------------------------------------------------------------

    def selected(self, paths: tuple[ast.Path, ...], contexts: Rows) -> Rows:
        """The nodes that some paths select from any of the contexts."""
        ends = [[contexts, *self.trace(path, contexts)][-1] for path in paths]
        return distinct(np.concatenate(ends))

    def trace(self, path: ast.Path, contexts: Rows) -> list[Rows]:
        """The nodes reached after each of the :func:`fused` steps from any of the contexts."""
        reached = []
        for step in fused(path):
            if len(contexts):  # what leads nowhere stays there, at no cost
                *_, contexts = self.narrowed(step, contexts)
            reached.append(contexts)
        return reached

    def narrowed(self, step: ast.Step, contexts: Rows) -> Iterator[Rows]:
        """The nodes reached by a step's axis and test, then those left by each predicate."""
        nodes = self.along(step, contexts)
        yield nodes
        for predicate in step.predicates:
            if not len(nodes):
                pass
            elif isinstance(predicate, ast.Position):
                nodes = axes.nth_of_parent(self.nodes.parent, nodes, predicate.number)
            else:
                nodes = nodes[self.where(predicate, nodes)]
            yield nodes

    def along(self, step: ast.Step, contexts: Rows) -> Rows:
        """The nodes on a step's axis, from any of the contexts, that pass its node test."""
        if step.axis is ast.Axis.SELF:
            return contexts[self.passes(step, contexts)]
        if step.axis is ast.Axis.DESCENDANT_OR_SELF:
            inside = self.along(ast.Step(ast.Axis.DESCENDANT, step.test), contexts)
            return np.union1d(inside, contexts[self.passes(step, contexts)])
        candidates = self.candidates(step)
        if not len(candidates):
            return candidates
        if step.axis is ast.Axis.DESCENDANT:
            return candidates[axes.have_ancestor_in(self.nodes.end, candidates, contexts)]
        return candidates[axes.have_parent_in(self.nodes.parent, candidates, contexts)]

    def candidates(self, step: ast.Step) -> Rows:
        """All nodes that pass the test of a child, descendant or attribute step."""
        test = step.test
        if isinstance(test, ast.NameTest) and test.namespace is not None and test.local is not None:
            name = self.vocabulary.find(test.namespace, test.local)
            named = (
                self.attributes_by_name
                if step.axis is ast.Axis.ATTRIBUTE
                else self.elements_by_name
            )
            return named.get(name, _NO_ROWS)
        if step.axis is ast.Axis.ATTRIBUTE:
            rows = self.rows_of[ATTRIBUTE]
        elif test is ast.KindTest.TEXT:
            return self.rows_of[TEXT]
        elif test is ast.KindTest.NODE:
            return self.inner_nodes
        else:
            rows = self.rows_of[ELEMENT]
        return rows[self.passes(step, rows)]

    def passes(self, step: ast.Step, rows: Rows) -> Mask:
        """Which rows pass a step's node test; names are of the axis's principal kind."""
        test = step.test
        kind = self.nodes.kind[rows]
        if test is ast.KindTest.NODE:
            return np.ones(len(rows), dtype=bool)
        if test is ast.KindTest.TEXT:
            return np.asarray(kind == TEXT)
        assert isinstance(test, ast.NameTest)
        principal = np.asarray(kind == (ATTRIBUTE if step.axis is ast.Axis.ATTRIBUTE else ELEMENT))
        if test.namespace is None and test.local is None:
            return principal
        names = self.nodes.name[rows]
        if test.namespace is not None and test.local is not None:
            return np.asarray(
                principal & (names == self.vocabulary.find(test.namespace, test.local))
            )
        known = distinct(names[principal])
        wanted = [n for n in known.tolist() if test.passes(*self.vocabulary.expanded(n))]
        return principal & np.isin(names, wanted)

    @cached_property
    def rows_of(self) -> list[Rows]:
        """The rows of each kind."""
        return [(self.nodes.kind == kind).nonzero()[0] for kind in range(MISC + 1)]

    @cached_property
    def inner_nodes(self) -> Rows:
        """What ``node()`` is on the child and descendant axes."""
        kind = self.nodes.kind
        return np.asarray(((kind != DOCUMENT) & (kind != ATTRIBUTE)).nonzero()[0])

    @cached_property
    def elements_by_name(self) -> dict[int, Rows]:
        """The elements of each name."""
        return _grouped(self.rows_of[ELEMENT], self.nodes.name)

    @cached_property
    def attributes_by_name(self) -> dict[int, Rows]:
        """The attributes of each name."""
        return _grouped(self.rows_of[ATTRIBUTE], self.nodes.name)

    def first(
        self, path: ast.Path, contexts: Rows, accepts: Callable[[int], bool] | None = None
    ) -> Rows:
        """For each context the first node, in document order, that a path selects (or ``none``).

        Where ``accepts`` is given, only nodes that it accepts count.
        """
        reached = [contexts, *self.trace(path, contexts)]
        value = reached[-1]
        if not len(value):
            return np.full(len(contexts), self.none)
        if accepts is not None:
            accepted = np.array([accepts(row) for row in value.tolist()], dtype=bool)
            value = np.where(accepted, value, self.none)
        steps = zip(fused(path)[::-1], reached[:0:-1], reached[-2::-1], strict=True)
        for step, nodes, above in steps:
            value = self.back(step.axis, above, nodes, value)
        return value

    def back(self, axis: ast.Axis, contexts: Rows, nodes: Rows, value: Rows) -> Rows:
        """For each context the least ``value`` of those of ``nodes`` that are on its axis."""
        none = self.none
        match axis:
            case ast.Axis.CHILD | ast.Axis.ATTRIBUTE:
                return axes.first_child(self.nodes.parent, contexts, nodes, value, none)
            case ast.Axis.DESCENDANT:
                return axes.first_descendant(self.nodes.end, contexts, nodes, value, none)
        found = np.full(len(contexts), none, dtype=np.int64)
        own = np.isin(nodes, contexts)
        found[np.searchsorted(contexts, nodes[own])] = value[own]
        if axis is ast.Axis.DESCENDANT_OR_SELF:
            inner = self.nodes.kind[nodes] != ATTRIBUTE
            inside = self.back(ast.Axis.DESCENDANT, contexts, nodes[inner], value[inner])
            found = np.minimum(found, inside)
        return found


_NO_ROWS = np.zeros(0, dtype=np.int64)


def fused(path: ast.Path) -> list[ast.Step]:
    """The steps of a path, with ``descendant-or-self::node()/child::x`` as ``descendant::x``.

    Positions stay per parent, as on a child step: a descendant step reaches all siblings of what it
    reaches, and positions on a descendant step of the subscription itself are refused.
    """
    steps: list[ast.Step] = []
    for step in path.steps:
        if steps and steps[-1] == ast.DESCEND and step.axis is ast.Axis.CHILD:
            steps[-1] = ast.Step(ast.Axis.DESCENDANT, step.test, step.predicates)
        else:
            steps.append(step)
    return steps


def _grouped(rows: Rows, name: Int32) -> dict[int, Rows]:
    by_name = rows[np.argsort(name[rows], kind="stable")]
    names, starts = np.unique(name[by_name], return_index=True)
    return (
        dict(zip(names.tolist(), np.split(by_name, starts[1:]), strict=True)) if len(rows) else {}
    )
