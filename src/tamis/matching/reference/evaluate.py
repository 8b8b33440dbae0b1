"""Evaluation of queries on all documents of a batch at once, a set of nodes at a time.

A path is followed forwards, giving the nodes that each step reaches, and then backwards, giving
for each node where the path could start the *first* node in document order that it leads to.
Whether there is one is existence; its string is what ``contains()`` and its like read. Each step
costs a few array operations over the batch, so that a query of |Q| steps takes O(|Q| · nodes), the
bound of Gottlob, Koch and Pichler, "Efficient algorithms for processing XPath queries" (VLDB 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tamis.documents.batch import EventBatch
from tamis.documents.vocabulary import Vocabulary
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
    StartsWith,
    Step,
    StringLength,
    StringOf,
    Text,
)
from tamis.language.values import compare, compare_string, normalize_space, xpath_number
from tamis.matching.matchset import MatchSet, match_set
from tamis.matching.reference.compile import ReferenceProgram
from tamis.matching.reference.nodes import (
    ATTRIBUTE,
    DOCUMENT,
    ELEMENT,
    MISC,
    TEXT,
    NodeTable,
    build_nodes,
)
from tamis.matching.reference.sets import (
    Mask,
    Rows,
    children,
    descendants,
    first_child,
    first_descendant,
    nth_of_parent,
)


def match(program: ReferenceProgram, batch: EventBatch) -> MatchSet:
    """Which queries are true of which documents."""
    evaluator = Evaluator(batch, build_nodes(batch), program.vocabulary)
    nodes = evaluator.nodes
    truth = np.zeros((len(program.queries), len(nodes.documents)), dtype=bool)
    roots = nodes.mask(DOCUMENT)
    for number, query in enumerate(program.queries):
        truth[number] = evaluator.where(query.expression, roots)[nodes.documents]
    by_document = [np.zeros(0, dtype=np.int64)] * batch.documents
    for column, document in enumerate(nodes.numbers):
        by_document[document] = truth[:, column][program.distinct].nonzero()[0]
    return match_set(by_document, {})


class Evaluator:
    """The nodes of a batch, and what expressions and paths mean on them."""

    def __init__(self, batch: EventBatch, nodes: NodeTable, vocabulary: Vocabulary) -> None:
        self.batch = batch
        self.nodes = nodes
        self.vocabulary = vocabulary
        self.rows = np.arange(len(nodes.kind), dtype=np.int64)
        self.none = len(self.rows)  # the row that stands for "no node"
        self.is_attribute = nodes.mask(ATTRIBUTE)
        self.text_values = batch.text_values.tobytes()
        self.attribute_values = batch.attribute_values.tobytes()
        self.misc_values = batch.misc_values.tobytes()

    # -- booleans ------------------------------------------------------------------------------

    def where(self, expression: Expression, within: Mask) -> Mask:
        """Those of the context nodes ``within`` at which a boolean expression is true."""
        match expression:
            case Exists(paths):
                return self.where_any(paths, within)
            case Compare(operator, value, literal):
                return self.where_compares(operator, value, literal, within)
            case Contains(text, literal):
                wanted = literal.encode()
                return self.where_text(text, within, lambda value: wanted in value)
            case StartsWith(text, literal):
                wanted = literal.encode()
                return self.where_text(text, within, lambda value: value.startswith(wanted))
            case Constant(value):
                return within if value else np.zeros_like(within)
            case Not(operand):
                return within & ~self.where(operand, within)
            case And(operands):
                for operand in operands:
                    within = self.where(operand, within)
                return within
            case Or(operands):
                found = np.zeros_like(within)
                for operand in operands:
                    found |= self.where(operand, within & ~found)
                return found

    def where_any(
        self,
        paths: tuple[Path, ...],
        within: Mask,
        accepts: Callable[[int], bool] | None = None,
    ) -> Mask:
        """Contexts from which one of the paths selects a node (that is accepted)."""
        found = np.zeros_like(within)
        for path in paths:
            found |= self.first(path, within & ~found, accepts) < self.none
        return found

    def where_compares(
        self,
        operator: str,
        value: Nodes | Text | Count | StringLength,
        literal: str | float,
        within: Mask,
    ) -> Mask:
        wanted = literal.encode() if isinstance(literal, str) else literal
        number = xpath_number(literal) if isinstance(literal, str) else literal
        match value:
            case Nodes(paths):
                return self.where_any(
                    paths,
                    within,
                    lambda row: compare_string(operator, self.string_value(row), wanted),
                )
            case Count(path):
                counts = self.counts(path, within)
                rows = within.nonzero()[0].tolist()
                return self.mask(r for r in rows if compare(operator, float(counts[r]), number))
            case StringLength(text):
                return self.where_text(
                    text,
                    within,
                    lambda value: compare(operator, float(len(value.decode())), number),
                )
            case _:
                return self.where_text(
                    value, within, lambda text: compare_string(operator, text, wanted)
                )

    def where_text(self, text: Text, within: Mask, accepts: Callable[[bytes], bool]) -> Mask:
        """Contexts at which a string function's value is accepted."""
        rows = within.nonzero()[0].tolist()
        values = self.texts(text, within)
        return self.mask(row for row, value in zip(rows, values, strict=True) if accepts(value))

    # -- strings and numbers -------------------------------------------------------------------

    def texts(self, text: Text, within: Mask) -> Iterator[bytes]:
        """The value of a string function at each context node, in document order."""
        match text:
            case NormalizeSpace(inner):
                return map(normalize_space, self.texts(inner, within))
            case StringOf(path):
                value_of = self.string_value
            case NameOf(path, local):
                value_of = self.local_name if local else self.qualified_name
        first = self.first(path, within)[within]
        return (b"" if row == self.none else value_of(int(row)) for row in first)

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
        first, last = nodes.texts[row], nodes.texts[nodes.end[row]] - 1
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
        return self.vocabulary.text(prefix).encode() + b":" + local if prefix >= 0 else local

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

    def counts(self, path: Path, within: Mask) -> Rows:
        """For each row the number of nodes that a path of child and attribute steps selects."""
        reached = [within, *self.trace(path, within)]
        count = reached[-1].astype(np.int64)
        for contexts in reversed(reached[:-1]):
            rows = count.nonzero()[0]
            total = np.zeros_like(count)
            np.add.at(total, self.nodes.parent[rows], count[rows])
            count = np.where(contexts, total, 0)
        return count

    # -- paths ---------------------------------------------------------------------------------

    def trace(self, path: Path, within: Mask) -> list[Mask]:
        """The nodes reached after each step of a path from any of the context nodes."""
        reached = []
        for step in path.steps:
            *_, within = self.narrowed(step, within)
            reached.append(within)
        return reached

    def narrowed(self, step: Step, within: Mask) -> Iterator[Mask]:
        """The nodes reached by a step's axis and test, then those left by each predicate."""
        nodes = self.along(step.axis, within) & self.test(step)
        yield nodes
        for predicate in step.predicates:
            if isinstance(predicate, Position):
                nodes = nth_of_parent(self.nodes.parent, nodes, predicate.number)
            else:
                nodes = self.where(predicate, nodes)
            yield nodes

    def along(self, axis: Axis, within: Mask) -> Mask:
        """The nodes on an axis of any of the context nodes."""
        match axis:
            case Axis.CHILD:
                return children(self.nodes.parent, within) & ~self.is_attribute
            case Axis.ATTRIBUTE:
                return children(self.nodes.parent, within) & self.is_attribute
            case Axis.DESCENDANT:
                return descendants(self.nodes.end, within) & ~self.is_attribute
            case Axis.DESCENDANT_OR_SELF:
                return within | (descendants(self.nodes.end, within) & ~self.is_attribute)
            case Axis.SELF:
                return within

    def test(self, step: Step) -> Mask:
        """The nodes that pass a node test; names are of the axis's principal kind."""
        test: NodeTest = step.test
        if test is KindTest.NODE:
            return np.ones(len(self.rows), dtype=bool)
        if test is KindTest.TEXT:
            return self.nodes.mask(TEXT)
        assert isinstance(test, NameTest)
        principal = self.nodes.mask(ATTRIBUTE if step.axis is Axis.ATTRIBUTE else ELEMENT)
        if test.namespace is None:
            return principal
        if test.local is not None:
            name = self.vocabulary.name(test.namespace, test.local)
            return np.asarray(principal & (self.nodes.name == name))
        names = self.nodes.name[principal]
        expanded = self.vocabulary.expanded
        inside = np.zeros(len(self.rows), dtype=bool)
        inside[principal] = [expanded(name)[0] == test.namespace for name in names]
        return inside

    def first(self, path: Path, within: Mask, accepts: Callable[[int], bool] | None = None) -> Rows:
        """For each context node the first node, in document order, that a path selects.

        Only nodes that are accepted count. Rows outside ``within`` have ``none``.
        """
        reached = [within, *self.trace(path, within)]
        selected = reached[-1]
        if accepts is not None:
            selected = self.mask(row for row in selected.nonzero()[0].tolist() if accepts(row))
        value = np.where(selected, self.rows, self.none)
        for step, contexts in zip(reversed(path.steps), reversed(reached[:-1]), strict=True):
            value = np.where(contexts, self.back(step.axis, value), self.none)
        return value

    def back(self, axis: Axis, value: Rows) -> Rows:
        """For each row the least ``value`` on its axis."""
        nodes, none = self.nodes, self.none
        match axis:
            case Axis.CHILD | Axis.ATTRIBUTE:
                return first_child(nodes.parent, value, none)
            case Axis.DESCENDANT:
                return first_descendant(nodes.end, value, none)
            case Axis.DESCENDANT_OR_SELF:
                inside = np.where(self.is_attribute, none, value)
                return np.minimum(value, first_descendant(nodes.end, inside, none))
            case Axis.SELF:
                return value

    def mask(self, rows: Iterator[int]) -> Mask:
        """The set of some rows."""
        found = np.zeros(len(self.rows), dtype=bool)
        found[list(rows)] = True
        return found
