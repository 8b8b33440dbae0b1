"""Which queries the automaton can run, and of which it knows the nodes that they select."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tamis.language import model as m
from tamis.matching.engines.automaton import program as pr

COUNT_MAX = 4096
"""The largest position that this engine takes; counts are compared with less."""
PATH_MAX = 100
"""Steps of a path: they are compiled inside each other."""
STEPS_MAX = 4096
"""Steps of a query; those that lead to descendants or to where they begin, and are not just ``//``,
double what follows them."""
SEARCHED_MAX = 256
"""Characters of what contains() asks for: each of them is a node of a trie."""
Asked = m.Compare | m.StartsWith | m.Contains
"""What may be asked of a string."""
_KNOWN = (m.Axis.CHILD, m.Axis.DESCENDANT, m.Axis.ATTRIBUTE)


def refuses(query: m.Query) -> str | None:
    """Why the engine cannot run a query, or None where it can.

    >>> from tamis.language.xpath import parse
    >>> refuses(parse("//a[not(b)]")), refuses(parse("//a[name() = 'x']"))
    (None, 'it calls name()')
    """
    reason = next(_refusals(query.expression), None)
    if reason is not None:
        return reason
    steps, twofold = _size(query.expression)
    if steps << twofold > STEPS_MAX:
        return (
            f"more than {STEPS_MAX} steps, where each that is descendant-or-self, or // before a "
            "position, counts all again"
        )
    return None


def _refusals(expression: m.Expression) -> Iterator[str]:
    """Why the engine cannot run an expression: each reason."""
    match expression:
        case m.Exists(paths) | m.Compare(_, m.Nodes(paths), _):
            for path in paths:
                yield from _path_refusals(path)
        case m.Compare(_, m.Count(path), literal):
            assert isinstance(literal, float)
            if COUNT_MAX <= literal < math.inf:
                yield f"a count is compared with {COUNT_MAX} or more"
            yield from _count_refusals(path)
            yield from _path_refusals(path)
        case m.Not(operand):
            yield from _refusals(operand)
        case m.And(operands) | m.Or(operands):
            for operand in operands:
                yield from _refusals(operand)
        case m.Contains(_, literal) if len(literal) > SEARCHED_MAX:
            yield f"a string of more than {SEARCHED_MAX} characters is searched for"
        case m.Compare(_, value, _) | m.Contains(value, _) | m.StartsWith(value, _):
            yield from _string_refusals(value)


def _string_refusals(value: m.Value) -> Iterator[str]:
    match value:
        case m.StringLength(text) | m.NormalizeSpace(text):
            yield from _string_refusals(text)
        case m.StringOf(path):
            yield from _first_refusals(path)
            yield from _path_refusals(path)
        case m.NameOf(_, local):
            yield "it calls local-name()" if local else "it calls name()"
        case _:
            raise AssertionError(value)  # Nodes and Count have their own


def _first_refusals(path: m.Path) -> Iterator[str]:
    """Why the first of the nodes of a path cannot be found, if it cannot."""
    steps = m.without_here(path.steps)
    for index, step in enumerate(steps):
        if step.axis is m.Axis.ATTRIBUTE:
            test = step.test
            is_one = isinstance(test, m.NameTest) and None not in (test.namespace, test.local)
            leads = is_one and index + 1 == len(steps)
        else:
            leads = step.axis is m.Axis.CHILD and step.test is not m.KindTest.NODE
        if not leads:
            yield "the first of several nodes is asked for, and they are not just children"


def _path_refusals(path: m.Path) -> Iterator[str]:
    if len(path.steps) > PATH_MAX:
        yield f"a path has more than {PATH_MAX} steps"
    for step in path.steps:
        for predicate in step.predicates:
            if not isinstance(predicate, m.Position):
                yield from _refusals(predicate)
            elif predicate.number > COUNT_MAX:
                yield f"a position is over {COUNT_MAX}"


def _count_refusals(path: m.Path) -> Iterator[str]:
    if not path.steps:
        yield "the document is counted"
    for step in path.steps:
        if step.axis not in (m.Axis.CHILD, m.Axis.ATTRIBUTE):
            yield "nodes are counted on other steps than to children and attributes"
        if has_position(step):
            yield "nodes at a position are counted"


def _size(expression: m.Expression) -> tuple[int, int]:
    """How many steps there are, and how many of them stand for two ways to go on."""
    steps = twofold = 0
    copies = 1
    match expression:
        case m.Exists(paths) | m.Compare(_, m.Nodes(paths), _):
            pass
        case m.Compare(_, m.Count(path), _):
            paths = (path,)
        case m.Compare() | m.StartsWith() | m.Contains():
            _, path = function_of(expression)
            paths = (path,)
            copies = 2 + len(path.steps)  # each step asks for what follows it
        case m.Not(operand):
            return _size(operand)
        case m.And(operands) | m.Or(operands):
            sizes = [_size(operand) for operand in operands]
            return sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        case _:
            return 0, 0
    for path in paths:
        for index, step in enumerate(path.steps):
            steps += copies
            if step.axis is m.Axis.DESCENDANT_OR_SELF:
                twofold += not melts(step, path.steps[index + 1 :])
            for predicate in step.predicates:
                if not isinstance(predicate, m.Position):
                    inner = _size(predicate)
                    steps, twofold = steps + copies * inner[0], twofold + inner[1]
    return steps, twofold


def locates(query: m.Query) -> bool:
    """Whether a query is among the answers of a state wherever it selects what reaches the state.

    Those are paths without predicates: of twigs only their truth is known, and ``boolean()`` of a
    path selects nothing.

    >>> from tamis.language.xpath import parse
    >>> [locates(parse(text)) for text in ("//a/@b | /c//text()", "//a[b]", "boolean(//a)")]
    [True, False, False]
    """
    match query.expression:
        case m.Exists(paths) if query.selects:
            return all(_is_plain(step) for path in paths for step in path.steps)
    return False


def _is_plain(step: m.Step) -> bool:
    return step in (m.HERE, m.DESCEND) or (step.axis in _KNOWN and not step.predicates)


def function_of(asked: Asked) -> tuple[int, m.Path]:
    """The function of a string that is asked about, and the path whose first node has it."""
    function = 0
    value = asked.value if isinstance(asked, m.Compare) else asked.text
    while not isinstance(value, m.StringOf):
        assert isinstance(value, m.StringLength | m.NormalizeSpace)  # refuses() said so
        function |= pr.LENGTH if isinstance(value, m.StringLength) else pr.NORMALIZED
        value = value.text
    return function, value.path


def has_position(step: m.Step) -> bool:
    """Whether one of the predicates of a step is a position."""
    return any(isinstance(predicate, m.Position) for predicate in step.predicates)


def melts(step: m.Step, rest: tuple[m.Step, ...]) -> bool:
    """Whether a step is that of ``//``, and the next one can begin at a descendant instead."""
    return (
        step.axis is m.Axis.DESCENDANT_OR_SELF
        and step.test is m.KindTest.NODE
        and not step.predicates
        and bool(rest)
        and rest[0].axis is not m.Axis.SELF
        and not has_position(rest[0])
    )
