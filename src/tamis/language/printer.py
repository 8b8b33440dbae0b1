"""Query → XPath text that parses back to an equal query.

>>> from tamis.language.xpath import parse
>>> print_query(parse("child::a[ attribute::x='1' ]/descendant-or-self::node()/child::b"))
"a[@x = '1']//b"
"""

from __future__ import annotations

from decimal import Decimal

from tamis.language.model import (
    DESCEND,
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
    Predicate,
    Query,
    StartsWith,
    Step,
    StringLength,
    StringOf,
    Value,
)


def print_query(query: Query) -> str:
    """The query as XPath 1.0, in abbreviated syntax."""
    text = print_expression(query.expression)
    return f"boolean({text})" if query.is_truth else text


def print_expression(expression: Expression) -> str:
    """One boolean expression, without parentheses around the whole."""
    match expression:
        case Exists(paths):
            return print_paths(paths)
        case Compare(operator, value, literal):
            return f"{_value(value)} {operator} {_literal(literal)}"
        case Contains(text, literal):
            return f"contains({_value(text)}, {_literal(literal)})"
        case StartsWith(text, literal):
            return f"starts-with({_value(text)}, {_literal(literal)})"
        case Constant(value):
            return "true()" if value else "false()"
        case Not(operand):
            return f"not({print_expression(operand)})"
        case And(operands):
            return " and ".join(_operand(o, isinstance(o, Or)) for o in operands)
        case Or(operands):
            return " or ".join(_operand(o, False) for o in operands)


def _operand(expression: Expression, weaker: bool) -> str:
    text = print_expression(expression)
    # "/ and b" would be read as "/and b": a bare "/" needs parentheses too.
    return f"({text})" if weaker or text.endswith("/") else text


def print_paths(paths: tuple[Path, ...]) -> str:
    """A path, or a union of paths."""
    return " | ".join(print_path(path) for path in paths)


def print_path(path: Path) -> str:
    """One location path.

    ``//`` stands for ``/descendant-or-self::node()/`` wherever that is a whole step in the middle.
    """
    pieces = ["/"] if path.absolute else []
    last = len(path.steps) - 1
    abbreviated = False
    for index, step in enumerate(path.steps):
        in_the_middle = index < last and (index > 0 or path.absolute)
        abbreviated = in_the_middle and step == DESCEND and not abbreviated
        if abbreviated:
            pieces.append("/")  # with the separator before it this makes "//"
            continue
        pieces.append(print_step(step))
        if index < last:
            pieces.append("/")
    return "".join(pieces)


def print_step(step: Step) -> str:
    """One step with its predicates."""
    if step == Step(Axis.SELF, KindTest.NODE):
        return "."
    axis = {Axis.CHILD: "", Axis.ATTRIBUTE: "@"}.get(step.axis, f"{step.axis.value}::")
    predicates = "".join(print_predicate(predicate) for predicate in step.predicates)
    return f"{axis}{print_test(step.test)}{predicates}"


def print_predicate(predicate: Predicate) -> str:
    """A predicate in its brackets."""
    if isinstance(predicate, Position):
        return f"[{predicate.number}]"
    return f"[{print_expression(predicate)}]"


def print_test(test: NodeTest) -> str:
    """A node test as it was written."""
    if not isinstance(test, NameTest):
        return test.value
    local = "*" if test.local is None else test.local
    if test.namespace is None:
        return f"*:{local}" if test.local else "*"
    if test.prefix is None:  # it is in the default namespace, or in none
        return local
    return test.prefix + local if "{" in test.prefix else f"{test.prefix}:{local}"


def _value(value: Value) -> str:
    match value:
        case Nodes(paths):
            return print_paths(paths) if len(paths) == 1 else f"({print_paths(paths)})"
        case StringOf(path):
            return print_path(path)
        case NameOf(path, local):
            return f"{'local-name' if local else 'name'}({print_path(path)})"
        case NormalizeSpace(text):
            return f"normalize-space({_value(text)})"
        case Count(path):
            return f"count({print_path(path)})"
        case StringLength(text):
            return f"string-length({_value(text)})"


def _literal(literal: str | float) -> str:
    if isinstance(literal, str):
        return f'"{literal}"' if "'" in literal else f"'{literal}'"
    if literal in (float("inf"), float("-inf")):  # XPath has no exponent and no name for it
        return ("-" if literal < 0 else "") + "1" + "0" * 309
    text = format(Decimal(repr(literal)), "f")
    return text.removesuffix(".0")
