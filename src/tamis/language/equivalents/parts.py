"""Parts of syntax trees: their types, and trees that are made of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeGuard

from tamis.language.grammar import (
    Call,
    FilterExpression,
    LocationPath,
    Negation,
    Number,
    Operation,
    StepSyntax,
    String,
    Syntax,
    Token,
    Variable,
    walk,
)
from tamis.language.values import xpath_number

COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">="))
_BOOLEANS = frozenset(("not", "true", "false", "boolean", "contains", "starts-with", "lang"))
_NUMBERS = frozenset(
    ("last", "position", "count", "string-length", "number", "sum", "floor", "ceiling", "round")
)
OF_CONTEXT = frozenset(("last", "position", "lang"))

SELF = StepSyntax(0, "self", "node()", -1, ())
DESCEND = replace(SELF, axis="descendant-or-self")
HERE = LocationPath(0, False, (SELF,))


def type_of(syntax: Syntax) -> Literal["nodes", "string", "number", "boolean"]:
    """The type of an expression; variables stand for nodes."""
    match syntax:
        case Number() | Negation():
            return "number"
        case String():
            return "string"
        case Operation(operators=(operator, *_)):
            if operator.text == "|":
                return "nodes"
            is_boolean = operator.text in ("and", "or") or operator.text in COMPARISONS
            return "boolean" if is_boolean else "number"
        case Call(name=name) if name != "id":
            return "boolean" if name in _BOOLEANS else "number" if name in _NUMBERS else "string"
    return "nodes"


def is_path(syntax: Syntax) -> TypeGuard[LocationPath | FilterExpression]:
    """Whether an expression is a path with steps, or one from a variable."""
    is_of_variable = isinstance(syntax, FilterExpression) and isinstance(syntax.primary, Variable)
    return is_of_variable or isinstance(syntax, LocationPath)


def is_positional(predicate: Syntax) -> bool:
    """Whether a predicate may depend on the position of a node."""
    calls = (part.name for part in walk(predicate) if isinstance(part, Call))
    return type_of(predicate) == "number" or not OF_CONTEXT.isdisjoint(calls)


def is_literal(syntax: Syntax) -> TypeGuard[Number | String]:
    """Whether an expression is a constant."""
    return isinstance(syntax, Number | String)


def is_union(syntax: Syntax) -> TypeGuard[Operation]:
    """Whether an expression is a union of paths."""
    return isinstance(syntax, Operation) and syntax.operators[0].text == "|"


def is_of_one_name(step: StepSyntax) -> bool:
    """Whether a step names what it leads to, without a ``*``."""
    return step.has_name and "*" not in step.test.rpartition("}")[2]


def is_countable(path: Syntax) -> bool:
    """Whether count() of a path is supported."""
    return isinstance(path, LocationPath) and all(
        step.axis in ("child", "attribute") for step in path.steps
    )


def as_text(syntax: Syntax) -> Syntax:
    """What may stand for ``string(…)`` where a string is needed."""
    match syntax:
        case Call(name="string", arguments=()):
            return HERE
        case Call(name="string", arguments=(argument,)) if type_of(argument) in ("nodes", "string"):
            return argument
    return syntax


def number_of(literal: Number | String) -> float:
    """number() of a constant."""
    return xpath_number(literal.value) if isinstance(literal, String) else literal.value


def computed(operators: Sequence[Token], numbers: Sequence[float]) -> float:
    """The result of a chain of arithmetic operators; NaN where it divides by 0."""
    result = numbers[0]
    for operator, number in zip(operators, numbers[1:], strict=True):
        match operator.text:
            case "+":
                result += number
            case "-":
                result -= number
            case "*":
                result *= number
            case "div":
                result = result / number if number else math.nan
            case _:
                is_defined = number and math.isfinite(result)
                result = math.fmod(result, number) if is_defined else math.nan
    return result


def conjuncts(syntax: Syntax) -> tuple[Syntax, ...]:
    """The operands of ``and``, or the expression alone."""
    if isinstance(syntax, Operation) and syntax.operators[0].text == "and":
        return syntax.operands
    return (syntax,)


def joined(conditions: Sequence[Syntax]) -> Syntax:
    """Conditions, with ``and`` between them."""
    return conditions[0] if len(conditions) == 1 else operation("and", *conditions)


def operation(operator: str, *operands: Syntax) -> Operation:
    """Operands, with an operator between them."""
    token = Token("symbol", operator, 0)
    return Operation(0, (token,) * (len(operands) - 1), operands)


def call(name: str, *arguments: Syntax) -> Call:
    """A call of a function."""
    return Call(0, name, arguments, 0)


def divided(
    predicates: tuple[Syntax, ...], taken: Callable[[Syntax], Syntax | None]
) -> tuple[list[Syntax], tuple[Syntax, ...]]:
    """Divide predicates and the operands of their ``and``: what ``taken`` gives, and the rest."""
    found: list[Syntax] = []
    kept: list[Syntax] = []
    for predicate in predicates:
        parts = conjuncts(predicate)
        results = [None if type_of(part) == "number" else taken(part) for part in parts]
        left = [part for part, result in zip(parts, results, strict=True) if result is None]
        if len(left) == len(parts) or (len(left) == 1 and type_of(left[0]) == "number"):
            kept.append(predicate)
            continue
        found += [result for result in results if result is not None]
        kept += [joined(left)] if left else []
    return found, tuple(kept)
