"""Conditions of predicates that are about the document alone."""

from __future__ import annotations

from dataclasses import replace

from tamis.language.equivalents.parts import COMPARISONS, OF_CONTEXT, divided, joined
from tamis.language.grammar import (
    Call,
    FilterExpression,
    LocationPath,
    Negation,
    Number,
    Operation,
    String,
    Syntax,
)


def closed_beside(syntax: Syntax) -> Syntax:
    """An expression that is as true: ``//a[/b]`` is true where ``//a and /b`` is."""
    match syntax:
        case Operation(operators=(operator, *_), operands=operands):
            if operator.text in ("and", "or"):
                return replace(syntax, operands=tuple(map(closed_beside, operands)))
        case Call(name="not" | "boolean", arguments=(argument,)):
            return replace(syntax, arguments=(closed_beside(argument),))
    rest, conditions = _without_closed(syntax)
    return joined([rest, *map(closed_beside, conditions)])


def _without_closed(syntax: Syntax) -> tuple[Syntax, list[Syntax]]:
    """What is left without the conditions of predicates that are about the document alone."""
    match syntax:
        case LocationPath(steps=steps):
            found: list[Syntax] = []

            def taken(condition: Syntax) -> Syntax | None:
                return condition if _is_closed(condition) else None

            kept_steps = []
            for step in steps:
                conditions, predicates = divided(step.predicates, taken)
                found += conditions
                inner = [_without_closed(each) for each in predicates]
                found += [condition for _, more in inner for condition in more]
                kept_steps.append(replace(step, predicates=tuple(rest for rest, _ in inner)))
            return replace(syntax, steps=tuple(kept_steps)), found
        case Operation(operators=(operator,), operands=(LocationPath() as path, literal)):
            if operator.text in COMPARISONS and isinstance(literal, Number | String):
                rest, found = _without_closed(path)
                return replace(syntax, operands=(rest, literal)), found
    return syntax, []


def _is_closed(syntax: Syntax) -> bool:
    """Whether an expression has the same value whatever its context node is."""
    match syntax:
        case Number() | String():
            return True
        case LocationPath(absolute=absolute):
            return absolute
        case FilterExpression(primary=inner) | Negation(operand=inner):
            return _is_closed(inner)
        case Operation(operands=parts):
            return all(map(_is_closed, parts))
        case Call(name=name, arguments=parts):
            is_of_context = name in OF_CONTEXT or (not parts and name not in ("true", "false"))
            return not is_of_context and all(map(_is_closed, parts))
    return False
