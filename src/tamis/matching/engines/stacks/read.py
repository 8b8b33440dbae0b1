"""Queries → twigs: the only module of the engine that knows what a query looks like.

A *twig* is a tree of nodes. A node holds at an element that passes its test and for which its
children hold; a child that is ``negated`` must not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tamis.language import model as ast
from tamis.language import plain
from tamis.language.queries import Queries
from tamis.matching.strings import Question, Strings, question_of

CHILD, BELOW, SELF, GROUP, FACT, NEVER = range(6)
"""Kinds of nodes. CHILD, BELOW: about a child or a descendant of its parent's element; SELF: about
the same element. GROUP: its children are about the same element, or the document. FACT: a fact is
true of the element. NEVER: it never holds.
"""
NODES_MAX = 512
"""Nodes of a twig."""


class Refused(Exception):  # noqa: N818 - becomes a reason
    """What the engine cannot say."""


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
        test: of the element's name, for CHILD, BELOW and SELF.
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


def twigs_of(queries: Sequence[ast.Query]) -> Iterator[Twig]:
    """The twig of each query.

    Raises:
        Refused: one cannot be said.

    >>> from tamis.language.xpath import parse
    >>> for node in next(twigs_of([parse("//a[b or not(@c)]")]))[1:]:
    ...     print(node.parent, node.kind, node.test and node.test.local, node.negated)
    0 1 a False
    1 3 None True
    2 0 b True
    2 4 None False
    """
    if isinstance(queries, Queries):
        yield from (simplified(twig) for twig in _of_plain(queries.plain))
        queries = queries.others
    yield from map(twig_of, queries)


def twig_of(query: ast.Query) -> Twig:
    """The twig of a query.

    Raises:
        Refused: it cannot be said.
    """
    twig = [DOCUMENT]
    _add(twig, 0, query.expression)
    return simplified(twig)


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


# -- from the syntax tree --------------------------------------------------------------------------


def _add(twig: Twig, parent: int, expression: ast.Expression, negated: bool = False) -> None:
    """Add what an expression says of the element of a node."""
    match expression:
        case ast.Exists(paths):
            _add_paths(twig, parent, paths, negated, None)
        case ast.Compare(operator, ast.Nodes(paths) as value, literal):
            _, question = question_of(value, operator, literal)
            _add_paths(twig, parent, paths, negated, question)
        case ast.Or(operands):
            group = _append(twig, Node(parent, GROUP, not negated))
            for operand in operands:
                _add(twig, group, operand, negated=True)
        case ast.And(operands):
            group = _append(twig, Node(parent, GROUP, negated))
            for operand in operands:
                _add(twig, group, operand)
        case ast.Not(operand):
            _add(twig, parent, operand, not negated)
        case ast.Constant(value):
            if value == negated:
                _append(twig, Node(parent, NEVER))
        case ast.Compare(operator, value, literal):
            _add_first(twig, parent, *question_of(value, operator, literal), negated)
        case ast.Contains(text, literal) | ast.StartsWith(text, literal):
            operator = "contains" if isinstance(expression, ast.Contains) else "starts-with"
            _add_first(twig, parent, *question_of(text, operator, literal), negated)


_DOWN = (ast.Axis.CHILD, ast.Axis.DESCENDANT)


def _add_paths(
    twig: Twig, parent: int, paths: Sequence[ast.Path], negated: bool, question: Question | None
) -> None:
    group = _append(twig, Node(parent, GROUP, not negated))
    for path in paths:
        _add_path(twig, group, ast.without_here(path.steps), question)


def _add_path(
    twig: Twig, parent: int, steps: Sequence[ast.Step], question: Question | None
) -> None:
    """Add, negated, that a path leads from the element of a node to one that passes a question."""
    descends, negated = False, True
    for number, step in enumerate(steps):
        if step == ast.DESCEND:
            descends = True
            continue
        descends |= step.axis is ast.Axis.DESCENDANT
        is_text = step.test is ast.KindTest.TEXT and step.axis in _DOWN
        if step.axis is ast.Axis.ATTRIBUTE or is_text:
            if number < len(steps) - 1:
                raise Refused("a step goes on from an attribute or a text node")
            _add_leaf(twig, parent, step, descends, negated, question)
            return
        parent, negated = _add_step(twig, parent, step, descends, negated), False
        descends = False
    if descends:
        raise Refused("a // leads to nodes of any kind")
    if question is not None:
        _add_own(twig, parent, negated, question)
    elif negated:  # the path is "."
        _append(twig, Node(parent, NEVER))


def _add_step(twig: Twig, parent: int, step: ast.Step, descends: bool, negated: bool) -> int:
    """Add a step to elements, with its predicates; its node."""
    if step.axis is ast.Axis.DESCENDANT_OR_SELF:
        raise Refused("it has a descendant-or-self:: that is not written //")
    is_self = step.axis is ast.Axis.SELF
    if is_self and descends:
        raise Refused("a // leads to self::")
    if is_self and step.test is ast.KindTest.NODE:
        new = Node(parent, GROUP, negated)
    elif isinstance(step.test, ast.NameTest):
        new = Node(parent, SELF if is_self else BELOW if descends else CHILD, negated, step.test)
    else:
        raise Refused("it has a step to node(), or self::text()")
    added = _append(twig, new)
    for predicate in step.predicates:
        if isinstance(predicate, ast.Position):
            raise Refused("it asks for a position")
        _add(twig, added, predicate)
    return added


def _add_leaf(
    twig: Twig,
    parent: int,
    step: ast.Step,
    descends: bool,
    negated: bool,
    question: Question | None,
) -> None:
    """Add that an element, or with ``descends`` one inside too, has an attribute or a text node."""
    if step.predicates not in ((), (ast.Constant(False),)):
        raise Refused("an attribute or a text node has a predicate")
    if descends:
        parent, negated = _append(twig, Node(parent, GROUP, not negated)), True
        below = _append(twig, Node(parent, BELOW, True, ANY_ELEMENT))
        _add_fact(twig, below, step, False, question)
    _add_fact(twig, parent, step, negated, question)


def _add_fact(
    twig: Twig, parent: int, step: ast.Step, negated: bool, question: Question | None
) -> None:
    fact = Fact(ast.Axis.ATTRIBUTE, step.test, question)
    test = _test_of(twig, parent)
    if step.axis is not ast.Axis.ATTRIBUTE and test is not None:
        fact = Fact(ast.Axis.CHILD, test, question)
    if test is None or step.predicates:  # the document has neither
        _append(twig, Node(parent, NEVER, negated))
    else:
        _append(twig, Node(parent, FACT, negated, fact=fact))


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


def _add_first(
    twig: Twig, parent: int, value: ast.Value, question: Question, negated: bool
) -> None:
    """Add that the first string of a value passes a question."""
    if isinstance(value, ast.Count):
        raise Refused("it calls count()")
    if not isinstance(value, ast.StringOf):
        raise Refused("it calls name() or local-name()")
    steps = ast.without_here(value.path.steps)
    if not steps:
        _add_own(twig, parent, negated, question)
    elif len(steps) > 1:
        raise Refused("the first of several nodes is asked for")
    else:
        _add_only(twig, parent, steps[0], question, negated)


def _add_only(twig: Twig, parent: int, step: ast.Step, question: Question, negated: bool) -> None:
    """Add that the string of an attribute passes a question, or "" where there is none."""
    test = step.test
    is_name = isinstance(test, ast.NameTest) and None not in (test.namespace, test.local)
    if step.axis is not ast.Axis.ATTRIBUTE or not is_name:
        raise Refused("the first of several nodes is asked for")
    if len(Strings([b""]).find(question)):
        parent, negated = _append(twig, Node(parent, GROUP, not negated)), True
        _add_leaf(twig, parent, step, False, False, None)
    _add_leaf(twig, parent, step, False, negated, question)


# -- from words ------------------------------------------------------------------------------------


def _of_plain(queries: plain.PlainQueries) -> Iterator[Twig]:
    words = queries.code.tolist()
    starts = queries.starts.tolist()
    for number in range(len(queries)):
        yield _of_words(words[starts[number] : starts[number + 1]], queries)


_STEP_SHIFT = plain.KIND_BITS + plain.TEST_SHIFT
_BELOW, _FIRST = (flag << plain.KIND_BITS for flag in (plain.BELOW, plain.FIRST))
_KIND = (1 << plain.KIND_BITS) - 1


def _of_words(words: list[int], queries: plain.PlainQueries) -> Twig:
    """The twig of a plain query."""
    twig = [DOCUMENT]
    open_nodes: list[tuple[int, bool]] = []
    parent, negated = 0, False
    place = 0
    while place < len(words):
        word = words[place]
        kind = word & _KIND
        place += 1
        if kind == plain.END:
            if open_nodes:  # the steps before the anchor have no end
                parent, negated = open_nodes.pop()
        elif kind == plain.ASKS:
            _add_own(twig, parent, negated, _question(word, words[place], queries))
            place += 1
        elif kind == plain.STEP:
            is_attribute, test = queries.tests[word >> _STEP_SHIFT]
            descends = bool(word & _BELOW)
            if not word & _FIRST and not is_attribute and isinstance(test, ast.NameTest):
                open_nodes.append((parent, negated))
                node = Node(parent, BELOW if descends else CHILD, negated, test)
                parent, negated = _append(twig, node), False
                continue
            step = ast.Step(ast.Axis.ATTRIBUTE if is_attribute else ast.Axis.CHILD, test)
            asked = None
            if words[place] & _KIND == plain.ASKS:
                asked = _question(words[place], words[place + 1], queries)
            if word & _FIRST:
                assert asked is not None
                _add_only(twig, parent, step, asked, negated)
            elif is_attribute or test is ast.KindTest.TEXT:
                _add_leaf(twig, parent, step, descends, negated, asked)
            else:
                raise Refused("it has a step to node()")
            place += 1 if asked is None else 3  # its end is its only item, or a question
        else:  # "any": not all of them are negated
            open_nodes.append((parent, negated))
            parent = _append(twig, Node(parent, GROUP, negated ^ (kind != plain.ALL)))
            negated = kind == plain.ANY
    return twig


def _question(word: int, literal: int, queries: plain.PlainQueries) -> Question:
    operator = plain.OPERATORS[word >> plain.KIND_BITS]
    if literal < 0:
        return Question((), operator, float(queries.numbers[-1 - literal]))
    begin, end = queries.string_starts[literal : literal + 2]
    return Question((), operator, queries.string_bytes[begin:end].tobytes())
