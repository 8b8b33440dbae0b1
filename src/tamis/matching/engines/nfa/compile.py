"""Queries → the NFA's program: linear paths, and conditions about the nodes that they lead to.

Each path inside a query, from the document to its last step, is in the NFA; it leads to a state
that is watched. The rest of the query becomes *conditions* about the nodes of states. Equal
conditions are stored once, under one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tamis.core.arrays import freeze
from tamis.documents.vocabulary import Projection, Projections
from tamis.language import model as ast
from tamis.language.filters import ANY, Labels
from tamis.matching.engine import refusal
from tamis.matching.engines.nfa import refuses
from tamis.matching.engines.nfa.states import Nfa
from tamis.matching.filters import filters_of
from tamis.matching.projection import projection_of
from tamis.matching.strings import Question, question_of
from tamis.schema.prune import Pruner
from tamis.schema.twigs import prune_query


@dataclass(frozen=True, slots=True)
class Combination:
    """All of some conditions hold ("and"), one of them does ("or"), or the one does not ("not").

    An empty "and" is always true, an empty "or" never.
    """

    operator: str
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Inside:
    """A condition holds for a child, or a descendant, which reached a state behind the node's."""

    state: int
    descends: bool
    condition: int


@dataclass(frozen=True, slots=True)
class Source:
    """The strings of a node: its own (SELF), its attributes' or its text nodes' (CHILD).

    Attributes:
        test: of attributes.
    """

    axis: ast.Axis
    test: ast.NodeTest


@dataclass(frozen=True, slots=True)
class ValueIs:
    """One of the strings of a source passes a question; or, without one, there is a string."""

    source: Source
    question: Question | None


@dataclass(frozen=True, slots=True)
class FirstIs:
    """The first of the strings of a source, or "" where there is none, passes a question.

    Attributes:
        through: the child steps that lead from the node to those that have the strings: for each
            the state behind it, and a condition of the nodes there.
    """

    source: Source
    question: Question
    through: tuple[tuple[int, int], ...]


Condition = Combination | Inside | ValueIs | FirstIs

Steps = tuple[ast.Step, ...]
OWN = Source(ast.Axis.SELF, ast.KindTest.NODE)
TEXTS = Source(ast.Axis.CHILD, ast.KindTest.TEXT)
DOCUMENT_STATE = 0
NEVER, ALWAYS = 0, 1
"""The numbers of the two empty combinations."""


class Conditions:
    """Conditions, each once, under numbers; their paths are put into the NFA.

    >>> from tamis.language.xpath import parse
    >>> conditions = Conditions(Nfa(), Labels())
    >>> number = conditions.add(parse("//a[b]").expression, DOCUMENT_STATE)
    >>> conditions[number]
    Inside(state=2, descends=True, condition=2)
    >>> conditions[2]
    Inside(state=3, descends=False, condition=1)
    >>> conditions.add(parse("//a[b][true()]").expression, DOCUMENT_STATE) == number
    True
    """

    def __init__(self, nfa: Nfa, labels: Labels) -> None:
        self._nfa, self._labels = nfa, labels
        self._rows: list[Condition] = [Combination("or", ()), Combination("and", ())]
        self._numbers: dict[Condition, int] = {row: n for n, row in enumerate(self._rows)}

    def __getitem__(self, number: int) -> Condition:
        return self._rows[number]

    def add(self, expression: ast.Expression, state: int) -> int:
        """The condition that an expression is true at the nodes of a state."""
        match expression:
            case ast.Exists(paths):
                return self._combined("or", (self._path(path, state, None) for path in paths))
            case ast.Compare(operator, ast.Nodes(paths) as value, literal):
                _, question = question_of(value, operator, literal)
                return self._combined("or", (self._path(path, state, question) for path in paths))
            case ast.Compare(operator, value, literal):
                return self._first(value, state, operator, literal)
            case ast.Contains(text, literal):
                return self._first(text, state, "contains", literal)
            case ast.StartsWith(text, literal):
                return self._first(text, state, "starts-with", literal)
            case ast.Constant(value):
                return ALWAYS if value else NEVER
            case ast.Not(operand):
                inner = self.add(operand, state)
                if inner in (NEVER, ALWAYS):
                    return ALWAYS + NEVER - inner
                return self._number(Combination("not", (inner,)))
            case ast.And(operands):
                return self._combined("and", (self.add(operand, state) for operand in operands))
            case ast.Or(operands):
                return self._combined("or", (self.add(operand, state) for operand in operands))

    def _number(self, row: Condition) -> int:
        found = self._numbers.get(row)
        if found is None:
            found = self._numbers[row] = len(self._rows)
            self._rows.append(row)
        return found

    def _combined(self, operator: str, operands: Iterable[int]) -> int:
        neutral, decisive = (ALWAYS, NEVER) if operator == "and" else (NEVER, ALWAYS)
        numbers = tuple(sorted(set(operands) - {neutral}))
        if decisive in numbers:
            return decisive
        return numbers[0] if len(numbers) == 1 else self._number(Combination(operator, numbers))

    # -- paths -------------------------------------------------------------------------------------

    def _path(self, path: ast.Path, state: int, question: Question | None) -> int:
        """The condition that a path leads from a node to one whose string passes a question."""
        assert not path.absolute or state == DOCUMENT_STATE, "the language has none in predicates"
        return self._steps(ast.without_here(path.steps), state, question)

    def _steps(self, steps: Steps, state: int, question: Question | None) -> int:
        descends = False
        while steps and steps[0] == ast.DESCEND:
            descends, steps = True, steps[1:]
        if not steps:
            return ALWAYS if question is None else self._number(ValueIs(OWN, question))
        step, behind = steps[0], steps[1:]
        descends |= step.axis is ast.Axis.DESCENDANT
        if step.axis is ast.Axis.SELF:
            return self._node(step, behind, state, question)
        if step.axis is ast.Axis.ATTRIBUTE or step.test is ast.KindTest.TEXT:
            is_attribute = step.axis is ast.Axis.ATTRIBUTE
            source = Source(step.axis, step.test) if is_attribute else TEXTS
            leaf = self._number(ValueIs(source, question))
            if not descends:
                return leaf
            return self._combined("or", [leaf, self._inside(self._step(state, ANY, True), leaf)])
        target = self._step(state, self._label(step), descends)
        return self._inside(target, self._node(step, behind, target, question))

    def _node(self, step: ast.Step, behind: Steps, state: int, question: Question | None) -> int:
        """The condition that a step's predicates hold at a node, and the steps behind it too."""
        predicates = (p for p in step.predicates if not isinstance(p, ast.Position))  # refused
        inner = [self.add(predicate, state) for predicate in predicates]
        return self._combined("and", [*inner, self._steps(behind, state, question)])

    def _inside(self, state: int, condition: int) -> int:
        """The condition that one holds for a node further down, which reached a state."""
        if condition == NEVER:
            return NEVER
        return self._number(Inside(state, self._nfa.descends(state), condition))

    def _step(self, state: int, label: int, descends: bool) -> int:
        """The state behind a step, which is watched from now on."""
        target = self._nfa.step(state, label << 1 | descends)
        self._nfa.watch([state, target])
        return target

    def _label(self, step: ast.Step) -> int:
        assert isinstance(step.test, ast.NameTest)
        return self._labels.of_test(step.test)

    def _first(self, value: ast.Value, state: int, operator: str, literal: str | float) -> int:
        """The condition that the first node of a path passes a question, after functions."""
        value, question = question_of(value, operator, literal)
        assert isinstance(value, ast.StringOf)
        source, through = OWN, []
        for step in ast.without_here(value.path.steps):
            if step.axis is ast.Axis.ATTRIBUTE:
                source = Source(ast.Axis.ATTRIBUTE, step.test)
            elif step.test is ast.KindTest.TEXT:
                source = TEXTS
            else:
                state = self._step(state, self._label(step), False)
                through.append((state, self._node(step, (), state, None)))
        if source == OWN and not through:
            return self._number(ValueIs(OWN, question))
        return self._number(FirstIs(source, question, tuple(through)))


# -- programs --------------------------------------------------------------------------------------


class NfaProgram:
    """The NFA of some queries, and the conditions about the nodes that reach its states.

    A set of queries is what one state answers: the queries of a filter. A *twig*, a query that is
    more than filters, is a set of its own, which no state answers.

    Raises:
        EngineRefused: the engine cannot run one of the queries.

    Attributes:
        nfa: all paths.
        labels: what steps test for.
        conditions: of twigs.
        twigs: for each its set, and the condition, of the document node.
        set_starts, members: the queries of each set; see ``MatchSet``.

    >>> from tamis.language.xpath import parse
    >>> program = NfaProgram([parse("/a/b"), parse("/a//c"), parse("/a[b]")])
    >>> len(program.nfa), program.twigs
    (5, [(2, 3)])
    """

    def __init__(self, queries: Sequence[ast.Query], pruner: Pruner | None = None) -> None:
        filters, others = filters_of(queries, pruner)
        self.nfa, self.labels = Nfa(), Labels()
        for name in filters.names:
            self.labels.of(name)
        self.conditions = Conditions(self.nfa, self.labels)
        self.twigs: list[tuple[int, int]] = []
        self._projections = Projections()
        self.nfa.accept(self.nfa.add_many(filters.starts, filters.codes))
        own_sets = [n for n, query in others.items() for _ in range(self._add(query, pruner))]
        starts = filters.query_starts
        self.set_starts = np.append(starts, starts[-1] + 1 + np.arange(len(own_sets)))
        self.members = np.append(filters.queries, np.array(own_sets, np.int32))
        freeze(self.set_starts, self.members)

    @property
    def projection(self) -> Projection:
        """What is read of documents."""
        return self._projections.total

    def memory_usage(self) -> int:
        """The bytes of its arrays; conditions are objects, and not counted."""
        return self.nfa.memory_usage() + self.set_starts.nbytes + self.members.nbytes

    def _add(self, query: ast.Query, pruner: Pruner | None) -> int:
        """Add a query that is more than filters; return how many sets it has become."""
        if (reason := refuses(query)) is not None:
            raise refusal("nfa", query, reason)
        # What was pruned away is read too: documents that violate the DTD need it.
        self._projections.add(projection_of(query.expression))
        if pruner is not None:
            pruned = prune_query(query, pruner)
            filters = self.labels.filters(pruned)
            if filters is not None:
                distinct = list(dict.fromkeys(filters))
                self.nfa.accept(self.nfa.add(distinct))
                return len(distinct)
            if refuses(pruned) is None:
                query = pruned
        if query.expression == ast.Constant(False):
            return 0
        self.nfa.watch([DOCUMENT_STATE])
        condition = self.conditions.add(query.expression, DOCUMENT_STATE)
        self.twigs.append((self.nfa.sets, condition))
        self.nfa.accept(np.full(1, -1, np.int32))
        return 1
