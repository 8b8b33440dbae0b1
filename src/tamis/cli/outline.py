"""A query as a tree of its parts, each with what it means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tamis.language.model import (
    And,
    Compare,
    Constant,
    Contains,
    Count,
    Exists,
    Expression,
    NameOf,
    Nodes,
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
)
from tamis.language.printer import print_expression, print_path, print_test
from tamis.matching.planner import reason_of
from tamis.matching.projection import projection_of

_WIDTH = 60  # longer expressions are cut, but for the first line


class _Part(NamedTuple):
    """A part of a query: its text, what it means, and its own parts."""

    text: str
    meaning: str
    parts: tuple[_Part, ...] = ()


def outline(query: Query) -> Iterator[str]:
    r"""The query in its canonical spelling, the tree of its parts, what it reads, and its engine.

    >>> from tamis.language.xpath import parse
    >>> print("\n".join(outline(parse("//order[total>100]/item[2]"))))
    //order[total > 100]/item[2]
    some node is selected:
    ├─ descendant-or-self::node()
    ├─ child::order
    │  └─ total > 100: true of some node, as a number
    │     └─ child::total
    └─ child::item
       └─ 2: the position, counted for each parent
    reads: elements, text
    engine: automaton
    """
    whole = _of_expression(query.expression)
    yield whole.text
    if whole.meaning:
        yield f"{whole.meaning}:"
    yield from _branches(whole.parts, "")
    for prefix, uri in query.namespaces:
        yield f"{prefix or 'default namespace'}: {uri}"
    yield f"reads: {', '.join(_read(query))}"
    yield f"engine: {reason_of(query)}"


def _branches(parts: tuple[_Part, ...], indent: str) -> Iterator[str]:
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        text = part.text if len(part.text) <= _WIDTH else part.text[: _WIDTH - 1] + "…"
        yield f"{indent}{'└─' if is_last else '├─'} {text}{_after_colon(part.meaning)}"
        yield from _branches(part.parts, indent + ("   " if is_last else "│  "))


def _after_colon(meaning: str) -> str:
    return f": {meaning}" if meaning else ""


def _read(query: Query) -> Iterator[str]:
    projection = projection_of(query.expression)
    yield "elements"
    if projection.attributes:
        yield "attributes"
    if projection.text:
        yield "text"
    if projection.misc:
        yield "comments and processing instructions"
    if projection.prefixes:
        yield "the prefixes of names"


def _of_expression(expression: Expression) -> _Part:
    text = print_expression(expression)
    match expression:
        case Exists(paths):
            return _Part(text, "some node is selected", _of_paths(paths))
        case Compare(operator, value, literal):
            as_strings = isinstance(literal, str) and operator in ("=", "!=")
            kind = "string" if as_strings else "number"
            if isinstance(value, Nodes):
                return _Part(text, f"true of some node, as a {kind}", _of_paths(value.paths))
            return _Part(text, f"compared as {kind}s", _of_value(value))
        case Contains(value, _) | StartsWith(value, _):
            return _Part(text, "", _of_value(value))
        case Not(operand):
            return _Part(text, "this is false", (_of_expression(operand),))
        case And(operands):
            return _Part(text, "all of these are true", _of_all(operands))
        case Or(operands):
            return _Part(text, "some of these is true", _of_all(operands))
        case Constant():
            return _Part(text, "")


def _of_all(expressions: Iterable[Expression]) -> tuple[_Part, ...]:
    return tuple(map(_of_expression, expressions))


def _of_value(value: Value) -> tuple[_Part, ...]:
    match value:
        case Nodes(paths):
            return _of_paths(paths)
        case StringOf(path):
            return (_Part("the string value of the first node", "", _of_path(path)),)
        case NameOf(path, local):
            name = "local name" if local else "name, as it is written,"
            return (_Part(f"the {name} of the first node", "", _of_path(path)),)
        case NormalizeSpace(text):
            return (_Part("with single spaces, and none at the ends", "", _of_value(text)),)
        case StringLength(text):
            return (_Part("the number of characters", "", _of_value(text)),)
        case Count(path):
            return (_Part("the number of nodes", "", _of_path(path)),)


def _of_paths(paths: tuple[Path, ...]) -> tuple[_Part, ...]:
    if len(paths) == 1:
        return _of_path(paths[0])
    return tuple(_Part(print_path(path), "a path", _of_path(path)) for path in paths)


def _of_path(path: Path) -> tuple[_Part, ...]:
    return tuple(_of_step(step) for step in path.steps) or (_Part("/", "the document node"),)


def _of_step(step: Step) -> _Part:
    text = f"{step.axis.value}::{print_test(step.test)}"
    return _Part(text, "", tuple(map(_of_predicate, step.predicates)))


def _of_predicate(predicate: Predicate) -> _Part:
    if isinstance(predicate, Position):
        return _Part(str(predicate.number), "the position, counted for each parent")
    return _of_expression(predicate)
