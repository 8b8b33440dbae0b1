"""Rules for comparisons with constants."""

from __future__ import annotations

import math
from dataclasses import replace

from tamis.language.equivalents.parts import (
    HERE,
    as_text,
    call,
    is_countable,
    is_of_one_name,
    number_of,
    operation,
    type_of,
)
from tamis.language.grammar import (
    Call,
    FilterExpression,
    LocationPath,
    Negation,
    Number,
    StepSyntax,
    String,
    Syntax,
    Variable,
)
from tamis.language.values import compare

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def comparison(operator: str, left: Syntax, right: Syntax) -> Syntax:
    """A comparison, or what is known to be equivalent to it."""
    if isinstance(left, Number | String):
        left, right, operator = right, left, _FLIPPED.get(operator, operator)
    if not isinstance(right, Number | String):
        return operation(operator, left, right)
    number = number_of(right)
    found: Syntax | None = None
    match left:
        case Number() | String():
            found = _of_literals(operator, left, right)
        case Negation(odd=odd, operand=operand) if not math.isnan(number):
            operator = _FLIPPED.get(operator, operator) if odd else operator
            found = _of_number(operator, operand, -number if odd else number)
        case Call(name="count", arguments=(path,)) if not is_countable(path):
            found = _of_count(operator, path, number)
        case Call(name="string", arguments=arguments):
            nodes = arguments[0] if arguments else HERE
            if isinstance(right, String) and operator in ("=", "!="):
                found = _of_text(operator, nodes, right)
            elif not math.isnan(number):
                found = _of_number(operator, nodes, number)
        case Call(name="number", arguments=arguments) if not math.isnan(number):
            found = _of_number(operator, arguments[0] if arguments else HERE, number)
        case Call(name="substring", arguments=(text, Number(value=1.0), Number(value=length))):
            if isinstance(right, String) and len(right.value) == length > 0:
                starts = call("starts-with", as_text(text), right)
                found = {"=": starts, "!=": call("not", starts)}.get(operator)
    return operation(operator, left, right) if found is None else found


def _of_literals(operator: str, left: Number | String, right: Number | String) -> Syntax:
    if isinstance(left, String) and isinstance(right, String) and operator in ("=", "!="):
        is_true = (left.value == right.value) == (operator == "=")
    else:
        is_true = compare(operator, number_of(left), number_of(right))
    return call("true" if is_true else "false")


def _of_count(operator: str, path: Syntax, number: float) -> Syntax | None:
    """``count(path) > 0`` is ``path``."""
    of_none, of_one, of_many = (compare(operator, n, number) for n in (0.0, 1.0, math.inf))
    if of_one != of_many or (number >= 1 and number.is_integer()):
        return None
    if of_none == of_one:
        return call("true" if of_none else "false")
    return path if of_one else call("not", path)


def _of_text(operator: str, nodes: Syntax, literal: String) -> Syntax | None:
    """``string(nodes)`` compared with a string."""
    if type_of(nodes) != "nodes":
        return None
    length = call("string-length", nodes)
    if not literal.value:
        return operation("=" if operator == "=" else ">", length, Number(0, 0.0))
    first = _first(nodes)
    if first is not None:
        found = operation("=", first, literal)
    else:
        starts = call("starts-with", nodes, literal)
        found = operation(
            "and", starts, operation("=", length, Number(0, float(len(literal.value))))
        )
    return found if operator == "=" else call("not", found)


def _of_number(operator: str, operand: Syntax, number: float) -> Syntax | None:
    """``number(operand)`` compared with a number: NaN, of no node too, is unequal to all."""
    literal = Number(0, number)
    operand = as_text(operand)
    if type_of(operand) == "string":
        return operation(operator, operand, literal)
    first = _first(operand)
    if first is None:
        return None
    if operator == "!=":
        return call("not", operation("=", first, literal))
    return operation(operator, first, literal)


def _first(nodes: Syntax) -> Syntax | None:
    """The path to the first node of a path, if that is one: ``a[b][1]/b[1]`` of ``a/b``."""
    match nodes:
        case Variable():
            return nodes
        case LocationPath(absolute=absolute, steps=steps):
            is_document = absolute
        case FilterExpression(primary=Variable(), steps=steps):
            is_document = False
        case _:
            return None
    found: list[StepSyntax] = []
    for index, given in enumerate(steps):
        step = given
        if step.axis == "child":
            rest = steps[index + 1 :]
            is_one = is_document and step.has_name  # a document has one element
            if not is_one and not (step.predicates and isinstance(step.predicates[-1], Number)):
                leads = (LocationPath(0, False, tuple(rest)),) if rest else ()
                step = replace(step, predicates=(*step.predicates, *leads, Number(0, 1.0)))
            is_document = False
        elif step.axis != "self" and not (step.axis == "attribute" and is_of_one_name(step)):
            return None
        found.append(step)
    return replace(nodes, steps=tuple(found))
