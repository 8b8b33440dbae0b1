"""What to write instead of an expression that is refused: one that means the same.

Each rule keeps what an expression means in every document, so that a hint may say "write …". Where
no rule leads to something that is supported, there is no such hint. A test compares all of them
with lxml (``tests/language/test_hints.py``).

``string(b) = '1'`` asks for the *first* ``b``, and ``b = '1'`` for any. Along child steps the first
node is ``b[1]``; elsewhere ``starts-with()`` and ``string-length()``, which take the first node
too, compare the string.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tamis.core.errors import SubscriptionError
from tamis.language import grammar as tree
from tamis.language.equivalents import rules
from tamis.language.grammar import StepSyntax, Syntax
from tamis.language.printer import TooLongError, print_syntax
from tamis.language.values import COMPARISONS

_STRING_FUNCTIONS = ("contains", "starts-with", "string-length", "normalize-space")
PARTS_MAX = 10_000
"""Parts of expressions that are looked at: rules repeat some parts."""


class Equivalent(NamedTuple):
    """An expression of the same truth; with ``selects``, also of the same nodes, if it has any."""

    text: str
    selects: bool


def equivalent(
    syntax: Syntax, check: Callable[[Syntax], object], *, as_boolean: bool = True
) -> Equivalent | None:
    """A supported expression that means the same, if one is known.

    ``check`` raises a ``SubscriptionError`` for what is not supported. With ``as_boolean``, nothing
    matters but the truth of the expression, and the nodes of a path.

    >>> from tamis.language.grammar import parse_syntax
    >>> from tamis.language.analyzer import Analyzer
    >>> from tamis.core.limits import Limits
    >>> syntax = parse_syntax("//a[string(b) = '1'][/c]", Limits())
    >>> equivalent(syntax, Analyzer("", {}).query)
    Equivalent(text="//a[b[1] = '1'] and /c", selects=False)
    """
    selects = rules.type_of(syntax) == "nodes"
    rewriter = Rewriter()
    try:
        exact = rewriter.value(syntax) if selects or not as_boolean else rewriter.truth(syntax)
        for candidate in (exact, rules.closed_beside(exact)) if as_boolean else (exact,):
            text = print_syntax(candidate, PARTS_MAX)
            try:
                check(candidate)
            except SubscriptionError:
                continue
            return Equivalent(text, not selects or rules.type_of(candidate) == "nodes")
    except (TooLongError, RecursionError):
        pass
    return None


class Rewriter:
    """Applies the rules to all parts of an expression, the inner ones first."""

    def __init__(self) -> None:
        self.left = PARTS_MAX

    def value(self, syntax: Syntax) -> Syntax:
        """An expression of the same value: the same nodes, string, number or boolean."""
        self.look_at()
        match syntax:
            case tree.LocationPath(steps=steps):
                return rules.abbreviated(replace(syntax, steps=tuple(self.steps(steps, []))))
            case tree.FilterExpression():
                return self.measured(self.filtered(syntax))
            case tree.Call():
                return self.call(syntax)
            case tree.Operation():
                return self.measured(self.operation(syntax))
            case tree.Negation(position=position, odd=odd, operand=operand):
                inner = self.value(operand)
                if isinstance(inner, tree.Number | tree.String):
                    number = rules.number_of(inner)
                    return tree.Number(position, -number if odd else number)
                return replace(syntax, operand=inner)
        return syntax

    def measured(self, syntax: Syntax) -> Syntax:
        for _ in tree.walk(syntax):
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
            case tree.Call(name="string") if (text := rules.as_text(value)) is not value:
                return rules.operation(">", rules.call("string-length", text), tree.Number(0, 0.0))
            case tree.Call(name="count", arguments=(path,)) if not rules.is_countable(path):
                return path
        return value

    def call(self, syntax: tree.Call) -> Syntax:
        name = syntax.name
        if name in ("not", "boolean") and len(syntax.arguments) == 1:
            return replace(syntax, arguments=(self.truth(syntax.arguments[0]),))
        arguments = tuple(map(self.value, syntax.arguments))
        if name in _STRING_FUNCTIONS and arguments:
            arguments = (rules.as_text(arguments[0]), *arguments[1:])
        if name == "string" and len(arguments) == 1 and rules.type_of(arguments[0]) == "string":
            return arguments[0]
        return replace(syntax, arguments=arguments)

    def operation(self, syntax: tree.Operation) -> Syntax:
        operator = syntax.operators[0].text
        if operator in ("and", "or"):
            return replace(syntax, operands=tuple(map(self.truth, syntax.operands)))
        operands = tuple(map(self.value, syntax.operands))
        if operator in COMPARISONS:
            if len(operands) == 2:
                return rules.comparison(operator, *operands)
        elif operator != "|":
            numbers = [rules.number_of(each) for each in operands if rules.is_literal(each)]
            if len(numbers) == len(operands):
                result = rules.computed(syntax.operators, numbers)
                if math.isfinite(result):
                    return tree.Number(syntax.position, result)
        return replace(syntax, operands=operands)

    def filtered(self, syntax: tree.FilterExpression) -> Syntax:
        """``(a | b)[p]/c`` is ``a[p]/c | b[p]/c``, unless the predicate is a position."""
        primary = self.value(syntax.primary)
        predicates = tuple(map(self.predicate, syntax.predicates))
        paths = primary.operands if rules.is_union(primary) else (primary,)
        found: list[Syntax] = []
        for path in paths:
            if not rules.is_path(path) or any(map(rules.is_positional, predicates)):
                steps = tuple(self.steps(syntax.steps, []))
                return replace(syntax, primary=primary, predicates=predicates, steps=steps)
            done = list(path.steps)
            for predicate in predicates:
                rules.attach(done, predicate)
            steps = tuple(self.steps(syntax.steps, done))
            found.append(rules.abbreviated(replace(path, steps=steps)))
        return rules.operation("|", *found)

    def steps(self, steps: Sequence[StepSyntax], done: list[StepSyntax]) -> list[StepSyntax]:
        """Steps behind others: ``a/b/..`` is ``a[b]``, ``a/b[../c]`` is ``a[c]/b``."""
        for given in steps:
            predicates = tuple(map(self.predicate, given.predicates))
            if given.has_name and given.axis != "attribute":
                predicates = tuple(map(rules.of_namespaces, predicates))
            step = replace(given, predicates=predicates)
            if step.axis != "parent" or not done or not rules.turn_back(done):
                done.append(step)
                rules.hoist_to_parent(done)
            elif step.test != "node()" or step.predicates:
                rules.attach(done, rules.relative(replace(step, axis="self")))
        return done

    def predicate(self, syntax: Syntax) -> Syntax:
        if rules.type_of(syntax) == "number":
            return self.value(syntax)
        truth = self.truth(syntax)
        match truth:
            case tree.Operation(operands=(tree.Call(name="position"), tree.Number() as number)):
                return number if truth.operators[0].text == "=" else truth
        return truth
