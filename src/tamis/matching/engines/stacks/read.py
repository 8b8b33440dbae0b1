"""Queries → twigs: the only module of the engine that knows what a query looks like.

A *twig* is a tree of nodes. A node holds at an element that passes its test and for which its
children hold; a child that is ``negated`` must not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tamis.language import model as ast
from tamis.language import table as t
from tamis.language.queries import Queries
from tamis.language.table import QueryTable
from tamis.matching.engine import Refused, refusal
from tamis.matching.strings import Question, asked

CHILD, DESCENDANT, SELF, GROUP, FACT, NEVER = range(6)
"""Kinds of nodes. CHILD, DESCENDANT: about a child or a descendant of its parent's element; SELF:
about the same element. GROUP: its children are about the same element, or the document. FACT: a
fact is true of the element. NEVER: it never holds.
"""
NODES_MAX = 512
"""Nodes of a twig."""


class Fact(NamedTuple):
    """What is true of an element beside its name.

    Attributes:
        axis: ATTRIBUTE: it has an attribute; CHILD: a text node; SELF: a string value.
        test: of the attribute; or of the element itself.
        question: which that string passes; None: any.
    """

    axis: ast.Axis
    test: ast.NodeTest
    question: Question | None = None


class Node(NamedTuple):
    """A node of a twig.

    Attributes:
        parent: an earlier node; the first node stands for the document, and is its own parent.
        test: of the element's name, for CHILD, DESCENDANT and SELF.
        fact: for FACT.
    """

    parent: int
    kind: int
    negated: bool = False
    test: ast.NameTest | None = None
    fact: Fact | None = None


Twig = list[Node]
"""The nodes of a query, parents first."""
ANY_ELEMENT = ast.NameTest(None, None)
DOCUMENT = Node(0, GROUP)


def twigs_of(queries: Sequence[ast.Query]) -> Iterator[Twig | Refused]:
    """The twig of each query, or why there is none.

    >>> from tamis.language.xpath import parse
    >>> for node in next(twigs_of([parse("//a[b or not(@c)]")]))[1:]:
    ...     print(node.parent, node.kind, node.test and node.test.local, node.negated)
    0 1 a False
    1 3 None True
    2 0 b True
    2 4 None False
    """
    table = Queries.of(queries).table
    for number in range(len(table)):
        try:
            yield simplified(_of_words(table.words(number), table))
        except Refused as reason:
            yield reason


def checked_twigs(
    engine: str, queries: Sequence[ast.Query], check: Callable[[Twig], str | None] = lambda _: None
) -> list[Twig]:
    """The twig of each query, for an engine that may refuse more.

    Raises:
        EngineRefused: a query has none, or the engine refuses it.
    """
    twigs: list[Twig] = []
    for number, twig in enumerate(twigs_of(queries)):
        reason = str(twig) if isinstance(twig, Refused) else check(twig)
        if isinstance(twig, Refused) or reason is not None:
            raise refusal(engine, queries[number], reason or "")
        twigs.append(twig)
    return twigs


def _append(twig: Twig, node: Node) -> int:
    """Add a node; its number.

    Raises:
        Refused: there are too many.
    """
    if len(twig) > 4 * NODES_MAX:
        raise Refused(f"it has more than {4 * NODES_MAX} nodes and groups")
    twig.append(node)
    return len(twig) - 1


def simplified(twig: Twig) -> Twig:
    """The same with fewer nodes: a group stays only if it is negated and has several children.

    The children of another group become its parent's; a negated group negates its only child.

    Raises:
        Refused: there are still too many.
    """
    if len(twig) <= NODES_MAX and not any(each.kind in (GROUP, NEVER) for each in twig[1:]):
        return twig
    counts = [0] * len(twig)
    for each in twig[1:]:
        counts[each.parent] += 1
    result = [DOCUMENT]
    places = [0] * len(twig)  # of a removed node: its parent's
    negates = [False] * len(twig)  # whether a removed group negates its child
    for number, each in enumerate(twig[1:], start=1):
        negated = each.negated ^ negates[each.parent]
        if each.kind == GROUP and (not negated or counts[number] == 1):
            places[number], negates[number] = places[each.parent], negated
        elif each.kind != NEVER or not negated:
            places[number] = len(result)
            result.append(each._replace(parent=places[each.parent], negated=negated))
    if len(result) > NODES_MAX:
        raise Refused(f"it has more than {NODES_MAX} nodes")
    return result


# -- from words ------------------------------------------------------------------------------------


def _of_words(words: list[int], table: QueryTable) -> Twig:
    """The twig of a query."""
    twig = [DOCUMENT]
    open_nodes: list[tuple[int, bool]] = []
    parent, negated = 0, False
    place = 0
    while place < len(words):
        kind, payload = words[place] & t.KIND_MASK, words[place] >> t.KIND_BITS
        first = place
        place += 1
        if kind == t.END:
            parent, negated = open_nodes.pop()
        elif kind == t.COMPARE:
            _add_own(twig, parent, negated, asked(table, *words[first : place + 1]))
            place += 1
        elif kind == t.STEP:
            if payload & t.COUNTED:
                raise Refused("it calls count()")
            if payload & t.FIRST:
                raise Refused("the first of several nodes is asked for")
            leaf = table.tests[payload >> t.TEST_SHIFT]
            is_leaf = leaf[0] or (leaf[1] is ast.KindTest.TEXT and not payload & t.SELF)
            if is_leaf:
                place = _end_of(words, first)
                _add_leaf(twig, parent, words[first:place], table, negated)
            else:
                _check_step(payload, leaf[1], words[first:])
                open_nodes.append((parent, negated))
                parent, negated = _append(twig, _node_of(payload, leaf[1], parent, negated)), False
        elif kind == t.NTH:
            raise Refused(_POSITION)
        elif words[place] & t.KIND_MASK == t.END:  # an empty group: what is always true, or never
            if (kind == t.ALL) == negated:
                _append(twig, Node(parent, NEVER))
            place += 1
        else:  # "any": not all of them are negated
            open_nodes.append((parent, negated))
            parent = _append(twig, Node(parent, GROUP, negated ^ (kind != t.ALL)))
            negated = kind == t.ANY
    return twig


def _end_of(words: list[int], place: int) -> int:
    """Where the item ends that begins at a place."""
    depth = 0
    while True:
        kind = words[place] & t.KIND_MASK
        depth += kind in (t.STEP, t.ALL, t.ANY, t.NOT)
        depth -= kind == t.END
        place += 1
        if depth <= 0:
            return place


_POSITION = "it asks for a position, or for the first of several nodes"


def _check_step(flags: int, test: ast.NodeTest, rest: list[int]) -> None:
    """Refuse steps to elements that no node says; ``rest`` are the words from the step on."""
    if flags & t.SELF and flags & t.DESCENDANT:
        if any(word & t.KIND_MASK == t.NTH for word in rest):
            raise Refused(_POSITION)
        raise Refused("it has descendant-or-self:: that is not just //")
    if not isinstance(test, ast.NameTest) and not (flags & t.SELF and test is ast.KindTest.NODE):
        raise Refused("it has a step to node(), or self::text()")


def _node_of(flags: int, test: ast.NodeTest, parent: int, negated: bool) -> Node:
    """The node of a step to elements."""
    if not isinstance(test, ast.NameTest):
        return Node(parent, GROUP, negated)
    kind = SELF if flags & t.SELF else DESCENDANT if flags & t.DESCENDANT else CHILD
    return Node(parent, kind, negated, test)


def _add_leaf(twig: Twig, parent: int, words: list[int], table: QueryTable, negated: bool) -> None:
    """Add that an element, or with ``DESCENDANT`` one inside, has an attribute or a text node."""
    flags = words[0] >> t.KIND_BITS
    axis = ast.Axis.ATTRIBUTE if table.tests[flags >> t.TEST_SHIFT][0] else ast.Axis.CHILD
    test = table.tests[flags >> t.TEST_SHIFT][1]
    question = None
    kinds = [word & t.KIND_MASK for word in words]
    if t.NTH in kinds:
        raise Refused(_POSITION)
    if kinds == [t.STEP, t.COMPARE, t.LITERAL, t.END]:
        question = asked(table, *words[1:3])
    elif kinds not in ([t.STEP, t.END], [t.STEP, t.ANY, t.END, t.END]):
        if t.STEP in kinds[1:]:
            raise Refused("a step goes on from an attribute or a text node")
        raise Refused("an attribute or a text node has a predicate")
    never = t.ANY in kinds
    if flags & t.DESCENDANT:
        parent, negated = _append(twig, Node(parent, GROUP, not negated)), True
        below = _append(twig, Node(parent, DESCENDANT, True, ANY_ELEMENT))
        _add_fact(twig, below, Fact(axis, test, question), False, never)
    _add_fact(twig, parent, Fact(axis, test, question), negated, never)


def _add_fact(twig: Twig, parent: int, fact: Fact, negated: bool, never: bool) -> None:
    test = _test_of(twig, parent)
    if test is None or never:  # the document has neither
        _append(twig, Node(parent, NEVER, negated))
    else:
        own = fact if fact.axis is ast.Axis.ATTRIBUTE else fact._replace(test=test)
        _append(twig, Node(parent, FACT, negated, fact=own))


def _add_own(twig: Twig, parent: int, negated: bool, question: Question) -> None:
    """Add that the string value of a node's element passes a question."""
    test = _test_of(twig, parent)
    if test is None:  # the document has the string value of the one element in it
        parent, negated = _append(twig, Node(parent, CHILD, negated, ANY_ELEMENT)), False
        test = ANY_ELEMENT
    _append(twig, Node(parent, FACT, negated, fact=Fact(ast.Axis.SELF, test, question)))


def _test_of(twig: Twig, number: int) -> ast.NameTest | None:
    """What the element of a node passes; None: it is the document."""
    while number and twig[number].kind == GROUP:
        number = twig[number].parent
    return twig[number].test
