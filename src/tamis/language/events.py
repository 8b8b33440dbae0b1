r"""What a subscription of events may say, and what it means: a disjunction of filters.

::

    disjunction = conjunction ("or" conjunction)*
    conjunction = term ("and" term)*
    term        = "not" term | "(" disjunction ")" | constraint
    constraint  = path ("=" | "!=" | "<" | "<=" | ">" | ">=") value
                | path ("prefix" | "suffix" | "contains") string
                | path "in" "(" value ("," value)* ")"
                | path "between" value "and" value
                | path ("=" | "!=") "null"
                | path ("exists" | "absent")
                | path "[]" ("." (constraint | "(" disjunction ")") | what follows a path)
    path        = name (("." name) | "[" position "]")*
    name        = letters, digits and _, with : - inside (no digit first); or any text in `…`
    value       = string | number | "true" | "false"
    string      = JSON's; or the same in single quotes; with i before it, case does not matter
    number      = JSON's: an integer within 64 bits, or a float

A *filter* is a conjunction of constraints, and of *clauses* for what is negated, or would multiply;
any expression is a disjunction of filters, which is what :func:`parse_filters` makes of it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from functools import partial
from typing import NoReturn

from tamis.core.errors import SubscriptionError, SubscriptionLimitError, SubscriptionSyntaxError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.attributes import (
    ITSELF,
    KEYWORDS,
    MARKS,
    Path,
    elements_name,
    folded_name,
    null_name,
    path_name,
)
from tamis.language.conjunctions import All, Conjunction, Formula, Not, Some, conjunctions
from tamis.language.constraints import (
    Clause,
    Constant,
    Constraint,
    Filter,
    Literal,
    constraint_key,
    constraints_in,
    fold,
    print_filters,
)
from tamis.language.eventwords import (
    APART,
    COMPARED_NAME,
    HINTS,
    INT64,
    JOINS,
    ODD_NAME,
    OPERATORS,
    ORDER,
    PARTS,
    SAME,
    TOKEN,
    cut,
    double_quoted,
)
from tamis.language.grammar import Token


def parse_filters(expression: str, limits: Limits = DEFAULT_LIMITS) -> tuple[Filter, ...]:
    """The filters that an expression is a disjunction of, each once; so with their constraints.

    ``in`` with values of several kinds becomes one for each kind. Errors are a
    ``SubscriptionSyntaxError``, with the place, or a ``SubscriptionLimitError``.

    >>> for filter in parse_filters('area = "a1" and (temp > 30 or wind > 20.5)'):
    ...     print(filter[0], filter[1][1:])
    Constraint(name='area', operator='=', constant='a1') ('>', 30)
    Constraint(name='area', operator='=', constant='a1') ('>', 20.5)
    """
    if len(expression) > limits.subscription_chars:
        has = f"the expression has {len(expression):,} characters"
        limit = f"the limit is {limits.subscription_chars:,} (subscription_chars)"
        raise SubscriptionLimitError(f"{has}: {limit}")
    return _Parser(expression, limits).parse()


def is_filter(expression: str, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether an expression is one about events.

    >>> is_filter("area prefix 'x'"), is_filter("temp > 30"), is_filter("/area")
    (True, True, False)
    """
    try:
        parse_filters(expression, limits)
    except SubscriptionError:
        return False
    return True


def reads_as_xpath(expression: str, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether a valid XPath expression was most likely meant for events.

    It compares names with constants, and has no step: as XPath it is about root elements.

    >>> reads_as_xpath("a = 1 and b > 2"), reads_as_xpath("a = 1 and @b > 2")
    (True, False)
    """
    if COMPARED_NAME.match(expression) is None or not is_filter(expression, limits):
        return False
    found = parse_filters(expression, limits)
    names = {each.name for filter in found for each in constraints_in(filter)}
    return not any(":" in name for name in names)


def is_folded(token: Token) -> bool:
    """Whether a string is written with an i before it."""
    return token.kind == "string" and token.text[0] == "i"


_EACH = -1


class _Parser:
    """Reads one expression; each part of it becomes its filters."""

    def __init__(self, expression: str, limits: Limits) -> None:
        self.text = expression
        self.limits = limits
        self.count = 0  # of constraints, as they are written
        self.elements = 0  # how many [] are around
        self.codes: dict[tuple[object, ...], int] = {}
        self.constraints: list[Constraint] = []
        self.token = Token("end", "", 0)
        self._position = 0
        self._next()

    def parse(self) -> tuple[Filter, ...]:
        start = self.token.position
        try:
            formula = self._disjunction(0)
            if self.token.kind != "end":
                self._expected("and, or, or the end")
            return self._filters(formula, start)
        except RecursionError:
            self._reached("parentheses are nested deeper than Python can follow")

    def _filters(self, formula: Formula, start: int) -> tuple[Filter, ...]:
        most, refuse = self.limits.subscription_filters, partial(self._has_too_many, start)
        return tuple(map(self._filter, conjunctions(formula, most, refuse)))

    def _filter(self, found: Conjunction) -> Filter:
        clauses = (
            Clause(tuple(Literal(self._constraints(own), negated) for own, negated in clause))
            for clause in found.clauses
        )
        return *self._constraints(found.constraints), *clauses

    def _constraints(self, codes: Iterable[int]) -> tuple[Constraint, ...]:
        return tuple(self.constraints[code] for code in codes)

    def _disjunction(self, depth: int) -> Formula:
        found = [self._conjunction(depth)]
        while self._takes("or"):
            found.append(self._conjunction(depth))
        return Some(tuple(found)) if len(found) > 1 else found[0]

    def _conjunction(self, depth: int) -> Formula:
        found = [self._term(depth)]
        while self._takes("and"):
            found.append(self._term(depth))
        return All(tuple(found)) if len(found) > 1 else found[0]

    def _term(self, depth: int) -> Formula:
        start, negated = self.token.position, False
        while self.token.kind == "word" and self._takes("not"):
            negated = not negated
        if self._takes("("):
            if depth == self.limits.subscription_nesting:
                message = f"parentheses are nested deeper than {depth:,} (subscription_nesting)"
                self._reached(message, start)
            found = self._disjunction(depth + 1)
            if not self._takes(")"):
                self._expected("and, or, or )")
        else:
            found = self._constraint()
        return Not(found) if negated else found

    def _code(self, constraint: Constraint) -> int:
        code = self.codes.setdefault(constraint_key(constraint), len(self.codes))
        if code == len(self.constraints):
            self.constraints.append(constraint)
        return code

    def _constraint(self) -> Formula:
        self.count += 1
        if self.count > (most := self.limits.subscription_predicates):
            self._reached(f"there are more than {most:,} constraints (subscription_predicates)")
        path = self._path()
        if path[-1] == _EACH:
            return self._elements(path[:-1])
        return self._about(path_name(path))

    def _about(self, name: str) -> Formula:
        """What is asked of an attribute."""
        token = self.token
        operator = token.text
        if operator in (*SAME, *ORDER, *PARTS):
            self._next()
            if operator in SAME and self._takes("null"):
                own = name if operator == "!=" else null_name(name)
                return self._code(Constraint(own, "exists"))
            return self._code(self._compared(name, operator))
        if self._takes("exists"):
            return self._code(Constraint(name, "exists"))
        if self._takes("absent"):
            return Not(self._code(Constraint(name, "exists")))
        if self._takes("between"):
            return self._between(name)
        if self._takes("in"):
            return self._lists(name)
        hint = "of a boolean, write = true" if token.kind == "end" or token.text in JOINS else None
        self._expected(f"an operator ({OPERATORS})", hint)

    def _compared(self, name: str, operator: str) -> Constraint:
        """A constraint with one value, which comes next."""
        value, at = self._value("a string" if operator in PARTS else "a value")
        if operator in ORDER and isinstance(value, bool):
            self._fail("booleans have no order", at, "write = or !=")
        if is_folded(at) and operator in ORDER:
            self._fail("strings without case have no order", at, "leave out the i")
        if operator in PARTS and not isinstance(value, str):
            message = f"{operator} asks for a part of a string, not {cut(at.text)}"
            self._fail(message, at, 'write "…"')
        return Constraint(folded_name(name) if is_folded(at) else name, operator, value)

    def _between(self, name: str) -> Formula:
        """The two constraints of ``between``; both values belong to it."""
        low, at = self._value("a value")
        if not self._takes("and"):
            self._expected("and, and the greatest value", "write between 1 and 2")
        high, behind = self._value("a value")
        for value, token in ((low, at), (high, behind)):
            if isinstance(value, bool) or is_folded(token):
                self._fail(
                    "between asks for an order: of numbers, or of strings as they are", token
                )
        if isinstance(low, str) != isinstance(high, str):
            self._fail("both values of between are numbers, or both are strings", behind)
        bounds = Constraint(name, ">=", low), Constraint(name, "<=", high)
        return All(tuple(map(self._code, bounds)))

    def _lists(self, name: str) -> Formula:
        """The list behind ``in``, which is one for each kind of its values."""
        if not self._takes("("):
            self._expected("( and values")
        kinds: dict[tuple[type, str], dict[Constant, None]] = {}
        found: list[Formula] = []
        while True:
            if self._takes("null"):
                found.append(self._code(Constraint(null_name(name), "exists")))
            else:
                value, at = self._value("a value")
                kind = float if type(value) is int else type(value)
                own = folded_name(name) if is_folded(at) else name
                kinds.setdefault((kind, own), {})[value] = None
            if self._takes(")"):
                break
            if not self._takes(","):
                self._expected(", or )")
        lists = (Constraint(own, "in", (*items,)) for (_, own), items in kinds.items())
        found += map(self._code, lists)
        return Some(tuple(found)) if len(found) > 1 else found[0]

    def _elements(self, path: Path) -> Formula:
        """A condition on some element of a list, which is a formula of its own."""
        outer = self.codes, self.constraints
        self.codes, self.constraints = {}, []
        self.elements += 1
        if self.elements > self.limits.subscription_nesting:
            self._reached(f"more than {self.elements - 1:,} [] inside each other")
        start, is_named = self.token.position, self._takes(".")
        if is_named and self._takes("("):
            formula = self._disjunction(1)
            if not self._takes(")"):
                self._expected("and, or, or )")
        elif is_named:
            formula = self._constraint()
        else:
            formula = self._about(ITSELF)
        filters = self._filters(formula, start)
        is_one = len(filters) == len(filters[0]) == 1 and isinstance(filters[0][0], Constraint)
        text = print_filters(filters)
        itself = f"`{ITSELF}`"
        if is_one and text.startswith(itself):
            text = text.removeprefix(itself)
        else:
            text = f".{text}" if is_one else f".({text})"
        self.elements -= 1
        self.codes, self.constraints = outer
        return self._code(Constraint(elements_name(path, text), "exists"))

    def _path(self) -> Path:
        """The path of an attribute; its last part is ``_EACH`` where [] is behind it."""
        path: list[str | int] = [*self._name()]
        while True:
            if self._takes("["):
                position = self.token
                if position.kind == "number":
                    if not position.text.isdecimal():
                        self._fail("a position is a whole number from 0 on", position)
                    self._next()
                    path.append(int(position.text[:18]))
                if not self._takes("]"):
                    self._expected("a position, or ]")
                if position.kind != "number":
                    return (*path, _EACH)
            elif self._takes("."):
                path += self._name(is_first=False)
            else:
                return tuple(path)

    def _name(self, is_first: bool = True) -> list[str]:
        """A name in backquotes, or names with dots between them."""
        token = self.token
        if token.kind == "quoted":
            self._next()
            if len(token.text) == 2:
                self._fail("the name is empty", token)
            name = self._encodable(token.text[1:-1].replace("``", "`"), token)
            if name != ITSELF and any(mark in name for mark in MARKS):
                self._fail("there are no such control characters in names", token)
            return [name]
        if token.kind != "word":
            hint = "a name is written without quotes, or in backquotes"
            self._expected("the name of an attribute", hint if token.kind == "string" else None)
        if is_first and token.text in KEYWORDS:
            hint = HINTS.get(token.text, f"as a name it is written in backquotes: `{token.text}`")
            if token.text in ("exists", "in", *PARTS):
                hint = f"the name comes first: temp {token.text} …; {hint}"
            message = f"expected the name of an attribute, found {cut(token.text)!r}"
            self._fail(message, token, hint)
        names = token.text.split(".")
        if not all(names):
            hint = f"a name with dots is written in backquotes: `{cut(token.text)}`"
            self._fail("there is no name between two dots", token, hint)
        self._next()
        return names

    def _value(self, expected: str) -> tuple[Constant, Token]:
        token = self.token
        value: Constant
        match token.kind, token.text:
            case "string", _:
                value = self._string(token)
            case "number", _:
                value = self._number(token)
            case "word", "true" | "false" as word:
                value = word == "true"
            case "word", word if word not in HINTS:
                hint = f'a string is written in quotes: "{cut(word)}"; attributes are not '
                self._expected(expected, hint + "compared with each other")
            case _:
                self._expected(expected)
        self._next()
        return value, token

    def _string(self, token: Token) -> str:
        inner = token.text.removeprefix("i")[1:-1]
        if token.text[-1] == "'":  # as JSON has it
            inner = re.sub(r"\\.|\"", double_quoted, inner, flags=re.DOTALL)
        try:
            value: str = json.loads(f'"{inner}"', strict=False)
        except ValueError:
            hint = r"write \\ for a backslash itself, \" for a quote, \n, \t, \u00e9"
            self._fail("a backslash in a string begins one of JSON's escapes", token, hint)
        value = self._encodable(value, token)
        return fold(value) if is_folded(token) else value

    def _encodable(self, text: str, token: Token) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            self._fail("half of a surrogate pair is no character", token)
        return text

    def _number(self, token: Token) -> int | float:
        if any(character in token.text for character in ".eE"):
            value = float(token.text)
            if math.isinf(value):
                self._fail("the number is beyond what a 64-bit float can be", token)
            return value
        if len(token.text) > 20 or int(token.text) not in INT64:
            hint = "as a float it is less precise: 1e19"
            self._fail("the integer is beyond 64 bits", token, hint)
        return int(token.text)

    def _takes(self, text: str) -> bool:
        """Whether the next token is this one, which is passed over then; strings keep quotes."""
        found = self.token.text == text
        if found:
            self._next()
        return found

    def _next(self) -> None:
        match = TOKEN.match(self.text, self._position)
        if match is None:
            self._fail_at_character()
        kind = match.lastgroup or "end"
        self.token = Token(kind, match[kind], match.start(kind))
        self._position = match.end()

    def _fail_at_character(self) -> NoReturn:
        start = self._position
        while self.text[start] in " \t\r\n":
            start += 1
        found = Token("character", self.text[start], start)
        if found.text in "\"'`":
            self._fail(f"there is no {found.text} at the end of this", found)
        first = start
        while first and self.text[first - 1] not in APART:
            first -= 1
        is_value = self.token.text in (*SAME, *ORDER, *PARTS)
        name = None if is_value else ODD_NAME.match(self.text, first)
        word = re.compile(r"[\w.+-]+").match(self.text, start)
        if not name and word and (found.text.isdecimal() or found.text in "+-."):
            example = "as in 5, -5, 0.5 and 5e3; a string is written in quotes"
            self._fail(f"{cut(word[0])!r} is no number", found, example)
        hint = None if name and first < start else HINTS.get(found.text)
        if name and hint is None:
            hint = f"a name with {name[1]} is written in backquotes: `{cut(name[0])}`"
        self._fail(f"{found.text!r} has no meaning here", found, hint)

    def _expected(self, what: str, hint: str | None = None) -> NoReturn:
        token = self.token
        found = "the end" if token.kind == "end" else repr(cut(token.text))
        lower = token.text.lower()
        if hint is None and token.kind in ("word", "symbol"):
            hint = HINTS.get(token.text)
            if hint is None and token.text != lower and lower in KEYWORDS:
                hint = f"write {lower}"
        self._fail(f"expected {what}, found {found}", token, hint)

    def _fail(self, message: str, token: Token, hint: str | None = None) -> NoReturn:
        raise SubscriptionSyntaxError(message, self.text, token.position, hint)

    def _has_too_many(self, start: int, count: int) -> NoReturn:
        most = self.limits.subscription_filters
        has = f"as a disjunction of conjunctions it has {count:,} filters"
        self._reached(f"{has}: the limit is {most:,} (subscription_filters)", start)

    def _reached(self, message: str, start: int | None = None) -> NoReturn:
        at = self.token.position if start is None else start
        raise SubscriptionLimitError(message, self.text, at)
