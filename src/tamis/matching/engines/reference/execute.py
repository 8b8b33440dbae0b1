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
from typing import NamedTuple, TypeVar

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
from tamis.matching.engines.reference.nodes import Mask, Rows, build_nodes

_NO_ROWS = np.zeros(0, dtype=np.int64)

T = TypeVar("T")
Accepts = Callable[[T], bool]


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
        evaluator = Evaluator(batch, vocabulary)
        nodes, queries = evaluator.nodes, self.program.queries
        truth = np.zeros((len(queries), len(nodes.documents)), dtype=bool)
        for number, query in enumerate(queries):
            truth[number] = evaluator.where(query.expression, nodes.documents)
        by_document = [np.zeros(0, dtype=np.int64)] * batch.documents
        for column, document in enumerate(nodes.numbers):
            by_document[document] = truth[:, column].nonzero()[0]
        return match_set(by_document)

    def memory_usage(self) -> int:
        """0: nothing is kept."""
        return 0


class Evaluator:
    """The nodes of a batch, and what expressions and paths mean on them.

    Context nodes are given as sorted rows; what is returned for each of them has the same order.
    """

    def __init__(self, batch: DocumentBatch, vocabulary: Vocabulary) -> None:
        self.batch = batch
        self.nodes = build_nodes(batch)
        self.vocabulary = vocabulary
        self.none = len(self.nodes.kind)  # the row that stands for "no node"
        self._text_values = batch.text_values.tobytes()
        values, misc = batch.attribute_values.tobytes(), batch.misc_values.tobytes()
        # By kind: the bytes of all values, and where each begins and ends.
        self._leaves = {
            ATTRIBUTE: (values, batch.value_start, batch.value_end),
            TEXT: (self._text_values, batch.text_start, batch.text_end),
            MISC: (misc, batch.misc_start, batch.misc_end),
        }

    def value(self, operand: Operand, document: int) -> bool | float | str:
        """The string, number or boolean that an expression is, at the row of a document node."""
        contexts = np.array([document])
        match operand:
            case str() | float():
                return operand
            case ast.Count() | ast.StringLength():
                return float(next(self.numbers(operand, contexts)))
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
                return self._where_any(paths, contexts)
            case ast.Compare(operator, value, literal):
                return self._where_compares(operator, value, literal, contexts)
            case ast.Contains(text, literal):
                wanted = literal.encode()
                return self._where_text(text, contexts, lambda value: wanted in value)
            case ast.StartsWith(text, literal):
                wanted = literal.encode()
                return self._where_text(text, contexts, lambda value: value.startswith(wanted))
            case ast.Constant(value):
                return np.full(len(contexts), value)
            case ast.Not(operand):
                return ~self.where(operand, contexts)
            case ast.And(operands):
                return self._where_all([*operands], contexts)
            case ast.Or(operands):  # by De Morgan's law
                return ~self._where_all([ast.Not(operand) for operand in operands], contexts)

    def _where_all(self, operands: list[ast.Expression], contexts: Rows) -> Mask:
        """Where all operands are true; each is asked only where those before it are."""
        left = np.arange(len(contexts))
        for operand in operands:
            left = left[self.where(operand, contexts[left])]
        mask = np.zeros(len(contexts), dtype=bool)
        mask[left] = True
        return mask

    def _where_any(
        self, paths: tuple[ast.Path, ...], contexts: Rows, accepts: Accepts[int] | None = None
    ) -> Mask:
        """From which contexts one of the paths selects a node (that is accepted)."""
        found = np.zeros(len(contexts), dtype=bool)
        for path in paths:
            found |= self._first(path, contexts, accepts) < self.none
        return found

    def _where_compares(
        self, operator: str, value: ast.Value, literal: str | float, contexts: Rows
    ) -> Mask:
        """Where a value compares with a literal."""
        wanted = literal.encode() if isinstance(literal, str) else literal

        def accepts(text: bytes) -> bool:
            return compare_string(operator, text, wanted)

        match value:
            case ast.Nodes(paths):
                return self._where_any(paths, contexts, lambda row: accepts(self.string_value(row)))
            case ast.Count() | ast.StringLength():
                assert isinstance(literal, float)
                numbers = self.numbers(value, contexts)
                return np.array([compare(operator, n, literal) for n in numbers], dtype=bool)
            case _:
                return self._where_text(value, contexts, accepts)

    def _where_text(
        self, text: ast.StringFunction, contexts: Rows, accepts: Accepts[bytes]
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
                value_of = self._local_name if local else self._qualified_name
        first = self._first(path, contexts).tolist()
        return (b"" if row == self.none else value_of(row) for row in first)

    def numbers(self, value: ast.Count | ast.StringLength, contexts: Rows) -> Iterator[int]:
        """The number that a value is at each context node."""
        if isinstance(value, ast.Count):
            return iter(self._counts(value.path, contexts).tolist())
        return (len(text.decode()) for text in self.strings(value.text, contexts))

    def string_value(self, row: int) -> bytes:
        """XPath's string value of a node, in UTF-8."""
        batch, nodes = self.batch, self.nodes
        leaves = self._leaves.get(int(nodes.kind[row]))
        if leaves is not None:
            values, starts, ends = leaves
            return values[starts[nodes.source[row]] : ends[nodes.source[row]]]
        first, last = nodes.texts_before[row], nodes.texts_before[nodes.end[row]] - 1
        if first > last:
            return b""
        return self._text_values[batch.text_start[first] : batch.text_end[last]]

    def _local_name(self, row: int) -> bytes:
        name = self.nodes.name[row]
        return self.vocabulary.expanded(name)[1].encode() if name >= 0 else b""

    def _qualified_name(self, row: int) -> bytes:
        """name() of a node, with the prefix that the document wrote, where that was recorded."""
        batch, kind = self.batch, int(self.nodes.kind[row])
        prefixes = {ELEMENT: batch.prefixes, ATTRIBUTE: batch.attribute_prefixes}.get(kind, ())
        prefix = prefixes[self.nodes.source[row]] if len(prefixes) else -1
        local = self._local_name(row)
        return self.vocabulary.prefix(prefix).encode() + b":" + local if prefix >= 0 else local

    def line(self, row: int) -> int:
        """The line of a node's start; of text, comments and PIs that of the tag before them."""
        batch, event, kind = self.batch, self.nodes.source[row], int(self.nodes.kind[row])
        if kind == DOCUMENT:
            return 1
        if kind != ELEMENT:
            leaves = {ATTRIBUTE: batch.attribute_event, TEXT: batch.text_event}
            event = max(leaves.get(kind, batch.misc_event)[event], 0)
        return int(batch.lines[event])

    def _counts(self, path: ast.Path, contexts: Rows) -> Rows:
        """At each context the number of nodes that a path selects.

        Of paths with other steps than child and attribute steps, there must be one context.
        """
        if len(contexts) == 1:
            return np.array([len(self.selected((path,), contexts))])
        reached = self._trace(path, contexts)
        count = np.ones(len(reached[-1]), dtype=np.int64)
        for nodes, above in zip(reached[:0:-1], reached[-2::-1], strict=True):
            total = np.zeros(len(above), dtype=np.int64)
            np.add.at(total, np.searchsorted(above, self.nodes.parent[nodes]), count)
            count = total
        return count

    # -- paths ---------------------------------------------------------------------------------

    def selected(self, paths: tuple[ast.Path, ...], contexts: Rows) -> Rows:
        """The nodes that some paths select from any of the contexts."""
        return distinct(np.concatenate([self._trace(path, contexts)[-1] for path in paths]))

    def _trace(self, path: ast.Path, contexts: Rows) -> list[Rows]:
        """The contexts, and the nodes reached after each of the :func:`_fused` steps."""
        reached = [contexts]
        for step in _fused(path):
            if len(contexts):  # what leads nowhere stays there, at no cost
                *_, contexts = self.narrowed(step, contexts)
            reached.append(contexts)
        return reached

    def narrowed(self, step: ast.Step, contexts: Rows) -> Iterator[Rows]:
        """The nodes reached by a step's axis and test, then those left by each predicate."""
        nodes = self._along(step, contexts)
        yield nodes
        for predicate in step.predicates:
            if not len(nodes):
                pass
            elif isinstance(predicate, ast.Position):
                nodes = axes.nth_of_parent(self.nodes.parent, nodes, predicate.number)
            else:
                nodes = nodes[self.where(predicate, nodes)]
            yield nodes

    def _along(self, step: ast.Step, contexts: Rows) -> Rows:
        """The nodes on a step's axis, from any of the contexts, that pass its node test."""
        if step.axis is ast.Axis.SELF:
            return contexts[self._passes(step, contexts)]
        if step.axis is ast.Axis.DESCENDANT_OR_SELF:
            inside = self._along(ast.Step(ast.Axis.DESCENDANT, step.test), contexts)
            return np.union1d(inside, contexts[self._passes(step, contexts)])
        candidates = self._candidates(step)
        if not len(candidates):
            return candidates
        if step.axis is ast.Axis.DESCENDANT:
            return candidates[axes.have_ancestor_in(self.nodes.end, candidates, contexts)]
        return candidates[axes.have_parent_in(self.nodes.parent, candidates, contexts)]

    def _candidates(self, step: ast.Step) -> Rows:
        """All nodes that pass the test of a child, descendant or attribute step."""
        test = step.test
        kind = ATTRIBUTE if step.axis is ast.Axis.ATTRIBUTE else ELEMENT
        if isinstance(test, ast.NameTest) and test.namespace is not None and test.local is not None:
            name = self.vocabulary.find(test.namespace, test.local)
            named = self._attributes_by_name if kind == ATTRIBUTE else self._elements_by_name
            return named.get(name, _NO_ROWS)
        if kind == ELEMENT and test is ast.KindTest.TEXT:
            return self._rows_of[TEXT]
        if kind == ELEMENT and test is ast.KindTest.NODE:
            return self._inner_nodes
        rows = self._rows_of[kind]
        return rows[self._passes(step, rows)]

    def _passes(self, step: ast.Step, rows: Rows) -> Mask:
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
            wanted = self.vocabulary.find(test.namespace, test.local)
            return np.asarray(principal & (names == wanted))
        known = distinct(names[principal])
        passing = [n for n in known.tolist() if test.passes(*self.vocabulary.expanded(n))]
        return principal & np.isin(names, passing)

    @cached_property
    def _rows_of(self) -> list[Rows]:
        """The rows of each kind."""
        return [(self.nodes.kind == kind).nonzero()[0] for kind in range(MISC + 1)]

    @cached_property
    def _inner_nodes(self) -> Rows:
        """What ``node()`` is on the child and descendant axes."""
        kind = self.nodes.kind
        return np.asarray(((kind != DOCUMENT) & (kind != ATTRIBUTE)).nonzero()[0])

    @cached_property
    def _elements_by_name(self) -> dict[int, Rows]:
        return _grouped(self._rows_of[ELEMENT], self.nodes.name)

    @cached_property
    def _attributes_by_name(self) -> dict[int, Rows]:
        return _grouped(self._rows_of[ATTRIBUTE], self.nodes.name)

    def _first(self, path: ast.Path, contexts: Rows, accepts: Accepts[int] | None = None) -> Rows:
        """For each context the first (accepted) node that a path selects, or ``none``."""
        reached = self._trace(path, contexts)
        value = reached[-1]
        if not len(value):
            return np.full(len(contexts), self.none)
        if accepts is not None:
            accepted = np.array([accepts(row) for row in value.tolist()], dtype=bool)
            value = np.where(accepted, value, self.none)
        steps = zip(_fused(path)[::-1], reached[:0:-1], reached[-2::-1], strict=True)
        for step, nodes, above in steps:
            value = self._back(step.axis, above, nodes, value)
        return value

    def _back(self, axis: ast.Axis, contexts: Rows, nodes: Rows, value: Rows) -> Rows:
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
            inside = self._back(ast.Axis.DESCENDANT, contexts, nodes[inner], value[inner])
            found = np.minimum(found, inside)
        return found


def _fused(path: ast.Path) -> list[ast.Step]:
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
    # Of no rows, split() makes a part too.
    return dict(zip(names.tolist(), np.split(by_name, starts[1:]), strict=False))
