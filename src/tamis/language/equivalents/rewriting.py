"""Applies the rules to a whole expression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tamis.language.equivalents.comparisons import comparison
from tamis.language.equivalents.parts import (
    COMPARISONS,
    as_text,
    call,
    computed,
    is_countable,
    is_literal,
    is_path,
    is_positional,
    is_union,
    number_of,
    operation,
    type_of,
)
from tamis.language.equivalents.paths import (
    abbreviated,
    attach,
    hoist_to_parent,
    of_namespaces,
    turn_back,
)
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
    walk,
)
from tamis.language.printer import TooLongError

_STRING_FUNCTIONS = ("contains", "starts-with", "string-length", "normalize-space")
PARTS_MAX = 10_000
"""Parts of expressions that are looked at: rules repeat some parts."""


class Rewriter:
    """Applies the rules to all parts of an expression, the inner ones first."""

    def __init__(self) -> None:
        self.left = PARTS_MAX

    def value(self, syntax: Syntax) -> Syntax:
        """An expression of the same value: the same nodes, string, number or boolean."""
        self.look_at()
        match syntax:
            case LocationPath(steps=steps):
                return abbreviated(replace(syntax, steps=tuple(self.steps(steps, []))))
            case FilterExpression():
                return self.measured(self.filtered(syntax))
            case Call():
                return self.call(syntax)
            case Operation():
                return self.measured(self.operation(syntax))
            case Negation(position=position, odd=odd, operand=operand):
                inner = self.value(operand)
                if isinstance(inner, Number | String):
                    return Number(position, -number_of(inner) if odd else number_of(inner))
                return replace(syntax, operand=inner)
        return syntax

    def measured(self, syntax: Syntax) -> Syntax:
        for _ in walk(syntax):
            self.look_at()
        return syntax

    def look_at(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooLongError

    def truth(self, syntax: Syntax) -> Syntax:
        """An expression that is the same as a boolean."""
        value = self.value(syntax)
        match value:
            case Call(name="string") if (text := as_text(value)) is not value:
                return operation(">", call("string-length", text), Number(0, 0.0))
            case Call(name="count", arguments=(path,)) if not is_countable(path):
                return path
        return value

    # -- functions and operators -------------------------------------------------------------------

    def call(self, syntax: Call) -> Syntax:
        name = syntax.name
        if name in ("not", "boolean") and len(syntax.arguments) == 1:
            return replace(syntax, arguments=(self.truth(syntax.arguments[0]),))
        arguments = tuple(map(self.value, syntax.arguments))
        if name in _STRING_FUNCTIONS and arguments:
            arguments = (as_text(arguments[0]), *arguments[1:])
        if name == "string" and len(arguments) == 1 and type_of(arguments[0]) == "string":
            return arguments[0]
        return replace(syntax, arguments=arguments)

    def operation(self, syntax: Operation) -> Syntax:
        operator = syntax.operators[0].text
        if operator in ("and", "or"):
            return replace(syntax, operands=tuple(map(self.truth, syntax.operands)))
        operands = tuple(map(self.value, syntax.operands))
        if operator in COMPARISONS:
            if len(operands) == 2:
                return comparison(operator, *operands)
        elif operator != "|":
            numbers = [number_of(each) for each in operands if is_literal(each)]
            if len(numbers) == len(operands):
                result = computed(syntax.operators, numbers)
                if math.isfinite(result):
                    return Number(syntax.position, result)
        return replace(syntax, operands=operands)

    # -- paths -------------------------------------------------------------------------------------

    def filtered(self, syntax: FilterExpression) -> Syntax:
        """``(a | b)[p]/c`` is ``a[p]/c | b[p]/c``, unless the predicate is a position."""
        primary = self.value(syntax.primary)
        predicates = tuple(map(self.predicate, syntax.predicates))
        paths = primary.operands if is_union(primary) else (primary,)
        found: list[Syntax] = []
        for path in paths:
            if not is_path(path) or any(map(is_positional, predicates)):
                steps = tuple(self.steps(syntax.steps, []))
                return replace(syntax, primary=primary, predicates=predicates, steps=steps)
            done = list(path.steps)
            for predicate in predicates:
                attach(done, predicate)
            steps = tuple(self.steps(syntax.steps, done))
            found.append(abbreviated(replace(path, steps=steps)))
        return found[0] if len(found) == 1 else operation("|", *found)

    def steps(self, steps: Sequence[StepSyntax], done: list[StepSyntax]) -> list[StepSyntax]:
        """Steps behind others: ``a/b/..`` is ``a[b]``, ``a/b[../c]`` is ``a[c]/b``."""
        for given in steps:
            predicates = tuple(map(self.predicate, given.predicates))
            if given.has_name and given.axis != "attribute":
                predicates = tuple(map(of_namespaces, predicates))
            step = replace(given, predicates=predicates)
            if step.axis != "parent" or not done or not turn_back(done):
                done.append(step)
                hoist_to_parent(done)
            elif step.test != "node()" or step.predicates:
                attach(done, LocationPath(0, False, (replace(step, axis="self"),)))
        return done

    def predicate(self, syntax: Syntax) -> Syntax:
        if type_of(syntax) == "number":
            return self.value(syntax)
        truth = self.truth(syntax)
        match truth:
            case Operation(operands=(Call(name="position"), Number() as number)):
                return number if truth.operators[0].text == "=" else truth
        return truth
