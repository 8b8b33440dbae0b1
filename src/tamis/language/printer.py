"""Query → XPath text that parses back to an equal query; syntax tree → XPath text.

>>> from tamis.language.xpath import parse
>>> print_query(parse("child::a[ attribute::x='1' ]/descendant-or-self::node()/child::b"))
"a[@x = '1']//b"
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.language import grammar as tree
from tamis.language import model
from tamis.language.grammar import PRECEDENCE, UNION, StepSyntax, Syntax
from tamis.language.model import Axis, Expression, Path, Step


def print_query(query: model.Query) -> str:
    """The query as XPath 1.0, in abbreviated syntax."""
    text = print_expression(query.expression)
    return f"boolean({text})" if query.is_truth else text


def print_expression(expression: Expression) -> str:
    """One boolean expression, without parentheses around the whole."""
    match expression:
        case model.Exists(paths):
            return print_paths(paths)
        case model.Compare(operator, value, literal):
            return f"{_value(value)} {operator} {_literal(literal)}"
        case model.Contains(text, literal):
            return f"contains({_value(text)}, {_literal(literal)})"
        case model.StartsWith(text, literal):
            return f"starts-with({_value(text)}, {_literal(literal)})"
        case model.Constant(value):
            return "true()" if value else "false()"
        case model.Not(operand):
            return f"not({print_expression(operand)})"
        case model.And(operands):
            return " and ".join(_operand(o, isinstance(o, model.Or)) for o in operands)
        case model.Or(operands):
            return " or ".join(_operand(o, False) for o in operands)


def _operand(expression: Expression, weaker: bool) -> str:
    text = print_expression(expression)
    # "/ and b" would be read as "/and b": a bare "/" needs parentheses too.
    return f"({text})" if weaker or text.endswith("/") else text


def print_paths(paths: tuple[Path, ...]) -> str:
    """A path, or a union of paths."""
    return " | ".join(print_path(path) for path in paths)


def print_path(path: Path) -> str:
    """One location path."""
    steps = [None if step == model.DESCEND else print_step(step) for step in path.steps]
    return "/" * path.absolute + _joined(steps, path.absolute)


def _joined(steps: Sequence[str | None], is_behind_slash: bool) -> str:
    """Printed steps with slashes between them; None is the step ``descendant-or-self::node()``.

    It is written as ``//`` wherever it is in the middle and does not follow another such ``//``.
    """
    pieces: list[str] = []
    for index, step in enumerate(steps):
        in_the_middle = index < len(steps) - 1 and (index > 0 or is_behind_slash)
        is_abbreviated = in_the_middle and step is None and pieces[-1:] != [""]
        pieces.append("" if is_abbreviated else step or "descendant-or-self::node()")
    return "/".join(pieces)


def print_step(step: Step) -> str:
    """One step with its predicates."""
    if step == model.HERE:
        return "."
    axis = {Axis.CHILD: "", Axis.ATTRIBUTE: "@"}.get(step.axis, f"{step.axis.value}::")
    predicates = "".join(map(print_predicate, step.predicates))
    return f"{axis}{print_test(step.test)}{predicates}"


def print_predicate(predicate: model.Predicate) -> str:
    """A predicate in its brackets."""
    if isinstance(predicate, model.Position):
        return f"[{predicate.number}]"
    return f"[{print_expression(predicate)}]"


def print_test(test: model.NodeTest) -> str:
    """A node test as it was written."""
    if not isinstance(test, model.NameTest):
        return test.value
    local = "*" if test.local is None else test.local
    if test.namespace is None:
        return f"*:{local}" if test.local else "*"
    if test.prefix is None:  # it is in the default namespace, or in none
        return local
    return test.prefix + local if "{" in test.prefix else f"{test.prefix}:{local}"


def _value(value: model.Value) -> str:
    match value:
        case model.Nodes(paths):
            return print_paths(paths) if len(paths) == 1 else f"({print_paths(paths)})"
        case model.StringOf(path):
            return print_path(path)
        case model.NameOf(path, local):
            return f"{'local-name' if local else 'name'}({print_path(path)})"
        case model.NormalizeSpace(text):
            return f"normalize-space({_value(text)})"
        case model.Count(path):
            return f"count({print_path(path)})"
        case model.StringLength(text):
            return f"string-length({_value(text)})"


def _literal(literal: str | float) -> str:
    if isinstance(literal, str):
        return f'"{literal}"' if "'" in literal else f"'{literal}'"
    if literal in (float("inf"), float("-inf")):  # XPath has no exponent and no name for it
        return ("-" if literal < 0 else "") + "1" + "0" * 309
    from decimal import Decimal  # noqa: PLC0415 - few print

    return format(Decimal(repr(literal)), "f").removesuffix(".0")


# -- syntax trees ----------------------------------------------------------------------------------


class TooLongError(Exception):
    """The text would have too many parts."""


def print_syntax(syntax: Syntax, parts_max: int) -> str:
    """Any XPath 1.0 expression, in abbreviated syntax.

    Trees may share parts: more than ``parts_max`` of them raise a ``TooLongError``.

    >>> from tamis.language.grammar import parse_syntax
    >>> from tamis.core.limits import Limits
    >>> print_syntax(parse_syntax("(child::a|b)[1]//text() = -1 or(c)", Limits()), 100)
    '(a | b)[1]//text() = -1 or c'
    """
    return _SyntaxPrinter(parts_max).text(syntax)


class _SyntaxPrinter:
    def __init__(self, parts_max: int) -> None:
        self.left = parts_max

    def text(self, syntax: Syntax, weakest: int = 0) -> str:
        """An expression as an operand of something that binds as strongly as ``weakest``."""
        self.left -= 1
        if self.left < 0:
            raise TooLongError
        match syntax:
            case tree.Number(value=value) | tree.String(value=value):
                return _literal(value)
            case tree.Variable(name=name):
                return f"${name}"
            case tree.Call(name=name, arguments=arguments):
                return f"{name}({', '.join(map(self.text, arguments))})"
            case tree.LocationPath(absolute=absolute, steps=steps):
                if not steps:  # "/ and b" would be read as "/and b"
                    return "(/)" if weakest else "/"
                return ("/" if absolute else "") + self.steps(steps, absolute)
            case tree.FilterExpression(primary=primary, predicates=predicates, steps=steps):
                start = self.text(primary)
                if not isinstance(primary, tree.Variable | tree.Call):
                    start = f"({start})"
                behind = "/" + self.steps(steps, True) if steps else ""
                return start + self.predicates(predicates) + behind
            case tree.Negation(odd=odd, operand=operand):
                level, text = UNION - 1, ("-" if odd else "--") + self.text(operand, UNION)
            case tree.Operation(operators=operators, operands=operands):
                level = PRECEDENCE.get(operators[0].text, UNION)
                text = self.text(operands[0], level + 1)
                for operator, operand in zip(operators, operands[1:], strict=True):
                    text += f" {operator.text} {self.text(operand, level + 1)}"
        return f"({text})" if level < weakest else text

    def steps(self, steps: Sequence[StepSyntax], is_behind_slash: bool) -> str:
        printed = [None if is_descend(step) else self.step(step) for step in steps]
        return _joined(printed, is_behind_slash)

    def step(self, step: StepSyntax) -> str:
        if step.test == "node()" and not step.predicates and step.axis in ("self", "parent"):
            return "." if step.axis == "self" else ".."
        axis = {"child": "", "attribute": "@"}.get(step.axis, f"{step.axis}::")
        return f"{axis}{step.test}{self.predicates(step.predicates)}"

    def predicates(self, predicates: Sequence[Syntax]) -> str:
        return "".join(f"[{self.text(predicate)}]" for predicate in predicates)


def is_descend(step: StepSyntax) -> bool:
    """Whether a step is that in the middle of ``//``."""
    return step.axis == "descendant-or-self" and step.test == "node()" and not step.predicates
