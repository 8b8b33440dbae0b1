"""Queries → the NFA's program: linear paths, and conditions about the nodes that they lead to.

Each path inside a query, from the document to its last step, is in the NFA; it leads to a state
that is watched. The rest of the query becomes *conditions* about the nodes of states. Equal
conditions are stored once, under one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tamis.core.arrays import freeze
from tamis.language import model as ast
from tamis.language import table as t
from tamis.language.filters import WILDCARD, Labels, has_label
from tamis.language.queries import Queries
from tamis.language.table import QueryTable
from tamis.matching.engine import Refused, refusal
from tamis.matching.engines.nfa.states import Nfa
from tamis.matching.filters import filters_of
from tamis.matching.projection import projection_of
from tamis.matching.strings import Question, asked
from tamis.schema.prune import Pruner
from tamis.schema.twigs import prune_queries


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
class NthInside:
    """A condition holds for the child that is the n-th of those that reached a state.

    Attributes:
        stages: one after the other, conditions of the children that are counted, and n.
    """

    state: int
    stages: tuple[tuple[int, int], ...]
    condition: int


@dataclass(frozen=True, slots=True)
class ValueIs:
    """One of the strings of a source passes a question; or, without one, there is a string.

    Attributes:
        nth: only the n-th string is asked, if it is not 0.
    """

    source: Source
    question: Question | None
    nth: int = 0


Condition = Combination | Inside | NthInside | ValueIs

OWN = Source(ast.Axis.SELF, ast.KindTest.NODE)
TEXTS = Source(ast.Axis.CHILD, ast.KindTest.TEXT)
DOCUMENT_STATE = 0
STEPS_MAX = 120
"""Steps of a query that is more than filters: they are evaluated inside each other."""
WORDS_MAX = 1 << 12
"""Words of such a query; each // before a position doubles what is behind."""
NEVER, ALWAYS = 0, 1
"""The numbers of the two empty combinations."""


class Conditions:
    """Conditions, each once, under numbers; their paths are put into the NFA.

    >>> from tamis.language.lower import lowered
    >>> from tamis.language.xpath import parse
    >>> table = lowered(map(parse, ["//a[b]", "//a[b][true()]"]))
    >>> conditions = Conditions(Nfa(), Labels(), table)
    >>> number = conditions.add(0)
    >>> conditions[number]
    Inside(state=2, descends=True, condition=2)
    >>> conditions[2]
    Inside(state=3, descends=False, condition=1)
    >>> conditions.add(1) == number
    True
    """

    def __init__(self, nfa: Nfa, labels: Labels, table: QueryTable = t.NO_QUERIES) -> None:
        self._nfa, self._labels, self.table = nfa, labels, table
        self._rows: list[Condition] = [Combination("or", ()), Combination("and", ())]
        self._numbers: dict[Condition, int] = {row: n for n, row in enumerate(self._rows)}
        self._words: list[int] = []

    def __getitem__(self, number: int) -> Condition:
        return self._rows[number]

    def add(self, query: int) -> int:
        """The condition, of the document, that a query of the table is true.

        Raises:
            Refused: the engine cannot run it.
        """
        self._words = self.table.words(query)
        steps = sum(word & t.KIND_MASK == t.STEP for word in self._words)
        if steps > STEPS_MAX:
            raise Refused(f"it has more than {STEPS_MAX} steps, with predicates")
        if self.table.part(np.array([query])).extents()[0][0] > WORDS_MAX:
            raise Refused("it has // before too many positions")
        stages, condition, _ = self._level(0, DOCUMENT_STATE)
        assert not stages, "a position is one of a step"
        return condition

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

    # -- words -------------------------------------------------------------------------------------

    def _kind(self, place: int) -> int:
        return self._words[place] & t.KIND_MASK if place < len(self._words) else t.END

    def _level(self, place: int, state: int) -> tuple[list[tuple[int, int]], int, int]:
        """What is asked of the nodes of a state by all items up to an END.

        Returns positions, each with a condition that is before it; the condition that is left; and
        the place behind the END.
        """
        stages: list[tuple[int, int]] = []
        found: list[int] = []
        while (kind := self._kind(place)) != t.END:
            if kind == t.NTH:
                stages.append((self._combined("and", found), self._words[place] >> t.KIND_BITS))
                found = []
                place += 1
            else:
                condition, place = self._item(place, state)
                found.append(condition)
        return stages, self._combined("and", found), place + 1

    def _item(self, place: int, state: int) -> tuple[int, int]:
        """The condition that an item holds at the nodes of a state, and the place behind it."""
        kind = self._kind(place)
        if kind == t.STEP:
            return self._step(place, state)
        if kind == t.COMPARE:
            question = asked(self.table, *self._words[place : place + 2])
            return self._number(ValueIs(OWN, question)), place + 2
        if kind != t.ANY:
            _, condition, place = self._level(place + 1, state)
            return self._negated(condition) if kind == t.NOT else condition, place
        found: list[int] = []
        place += 1
        while self._kind(place) != t.END:
            condition, place = self._item(place, state)
            found.append(condition)
        return self._combined("or", found), place + 1

    def _negated(self, condition: int) -> int:
        if condition in (NEVER, ALWAYS):
            return ALWAYS + NEVER - condition
        return self._number(Combination("not", (condition,)))

    # -- steps -------------------------------------------------------------------------------------

    def _step(self, place: int, state: int) -> tuple[int, int]:
        """The condition that a step leads from the nodes of a state to one as asked."""
        flags = self._words[place] >> t.KIND_BITS
        is_attribute, test = self.table.tests[flags >> t.TEST_SHIFT]
        if flags & t.COUNTED:
            raise Refused("it calls count()")
        if flags & t.FIRST:
            raise Refused("the first of several nodes is asked for, and they are not just children")
        if flags & t.SELF:
            return self._itself(place, state, flags, test)
        if is_attribute or test is ast.KindTest.TEXT:
            source = Source(ast.Axis.ATTRIBUTE, test) if is_attribute else TEXTS
            leaf, place = self._leaf(place + 1, source)
            if flags & t.DESCENDANT and leaf != NEVER:
                below = self._inside(self._target(state, WILDCARD, True), leaf)
                leaf = self._combined("or", [leaf, below])
            return leaf, place
        if not isinstance(test, ast.NameTest):
            raise Refused("it has a step to node()")
        if not has_label(test):
            raise Refused("it asks for a name in any namespace, or for all names in none")
        target = self._target(state, self._labels.of_test(test), bool(flags & t.DESCENDANT))
        stages, condition, place = self._level(place + 1, target)
        if not stages:
            return self._inside(target, condition), place
        if NEVER in (condition, *(inner for inner, _ in stages)):
            return NEVER, place
        return self._number(NthInside(target, tuple(stages), condition)), place

    def _itself(self, place: int, state: int, flags: int, test: ast.NodeTest) -> tuple[int, int]:
        """The condition of a step to where it begins, and perhaps to what is inside."""
        if test is not ast.KindTest.NODE:
            descends = flags & t.DESCENDANT
            raise Refused(f"it has a {'descendant-or-self' if descends else 'self'}:: with a name")
        _, here, behind = self._level(place + 1, state)
        if not flags & t.DESCENDANT:
            return here, behind
        # What a child step leads on from is an element.
        following = self._words[place + 1]
        is_step = following & t.KIND_MASK == t.STEP
        if not is_step or following >> t.KIND_BITS & t.SELF:
            raise Refused("a // leads to nodes of any kind")
        below = self._target(state, WILDCARD, True)
        _, inside, behind = self._level(place + 1, below)
        return self._combined("or", [here, self._inside(below, inside)]), behind

    def _leaf(self, place: int, source: Source) -> tuple[int, int]:
        """The condition that one of the strings of a source is as asked."""
        nth, question = 0, None
        if self._kind(place) == t.NTH:
            nth = self._words[place] >> t.KIND_BITS
            place += 1
        if self._kind(place) == t.COMPARE:
            question = asked(self.table, *self._words[place : place + 2])
            place += 2
        if self._kind(place) == t.END:
            return self._number(ValueIs(source, question, nth)), place + 1
        if [self._kind(place + i) for i in range(3)] == [t.ANY, t.END, t.END]:
            return NEVER, place + 3
        if self._kind(place) == t.STEP:
            raise Refused("a step goes on from an attribute or a text node")
        raise Refused("an attribute or a text node has a predicate")

    def _inside(self, state: int, condition: int) -> int:
        """The condition that one holds for a node further down, which reached a state."""
        if condition == NEVER:
            return NEVER
        return self._number(Inside(state, self._nfa.descends(state), condition))

    def _target(self, state: int, label: int, descends: bool) -> int:
        """The state behind a step, which is watched from now on."""
        target = self._nfa.step(state, label << 1 | descends)
        self._nfa.watch([state, target])
        return target


def reasons(table: QueryTable) -> dict[int, str]:
    """Which queries the engine cannot run, and why."""
    labels = Labels()
    refused: dict[int, str] = {}
    for number, filters in enumerate(labels.each(table)):
        if filters is None:
            try:
                Conditions(Nfa(), labels, table).add(number)
            except Refused as reason:
                refused[number] = str(reason)
    return refused


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
        projection: what is read of documents.

    >>> from tamis.language.xpath import parse
    >>> program = NfaProgram([parse("/a/b"), parse("/a//c"), parse("/a[b]/d")])
    >>> len(program.nfa), program.twigs
    (6, [(2, 5)])
    """

    def __init__(self, queries: Sequence[ast.Query], pruner: Pruner | None = None) -> None:
        given = Queries.of(queries)
        filters, others = filters_of(given.table, pruner)
        self.nfa, self.labels = Nfa(), Labels()
        for name in filters.names:
            self.labels.of(name)
        self.conditions = Conditions(self.nfa, self.labels)
        self.twigs: list[tuple[int, int]] = []
        self.nfa.accept(self.nfa.add_many(filters.starts, filters.codes))
        twigs = given.part(others)
        # What was pruned away is read too: documents that violate the DTD need it.
        self.projection = projection_of(twigs.table)
        own_sets = np.repeat(others, [*self._add(twigs, pruner)])
        starts = filters.query_starts
        self.set_starts = np.append(starts, starts[-1] + 1 + np.arange(len(own_sets)))
        self.members = np.append(filters.queries, own_sets.astype(np.int32))
        freeze(self.set_starts, self.members)

    def memory_usage(self) -> int:
        """The bytes of its arrays; conditions are objects, and not counted."""
        return self.nfa.memory_usage() + self.set_starts.nbytes + self.members.nbytes

    def _add(self, twigs: Queries, pruner: Pruner | None) -> Iterator[int]:
        """Add queries that are more than filters; of each, how many sets it has become."""
        table = pruned = twigs.table
        left: dict[int, str] = {}  # pruning has made them too large
        if pruner is not None:
            for number, reason in reasons(table).items():
                raise refusal("nfa", twigs[number], reason)
            pruned = prune_queries(table, pruner)
            left = reasons(pruned)
        for number, filters in enumerate(self.labels.each(pruned)):
            if filters is not None:
                self.nfa.accept(self.nfa.add(filters))
                yield len(filters)
                continue
            self.nfa.watch([DOCUMENT_STATE])
            self.conditions.table = table if number in left else pruned
            try:
                condition = self.conditions.add(number)
            except Refused as reason:
                raise refusal("nfa", twigs[number], str(reason)) from None
            if condition != NEVER:
                self.twigs.append((self.nfa.sets, condition))
                self.nfa.accept(np.full(1, -1, np.int32))
            yield condition != NEVER
