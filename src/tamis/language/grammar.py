"""The whole grammar of XPath 1.0: text → syntax tree, with the position of everything in it.

All of XPath is read here, so that what Tamis does not support is told apart from what is not XPath
at all; :mod:`tamis.language.xpath` gives the tree its meaning or refuses it. Chains of operators of
one precedence are flat (``a or b or c`` is one node), so only real nesting costs recursion.

Source: XML Path Language 1.0, W3C Recommendation 16 November 1999, sections 2 and 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, NoReturn

from tamis.core.errors import SubscriptionLimitError, SubscriptionSyntaxError
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.core.names import NOT_XML, ONLY_NCNAME

# The tokens' names: exact in ASCII, with all other characters. Others are checked one by one, since
# compiling the exact classes into the tokens would take longer than importing all the rest; and
# classes that name what is not in them compile 40 times as fast as those that reach to U+10FFFF.
_NAME = r"[^\x00-@\[-^`{-\x7f][^\x00-,/:-@\[-^`{-\x7f]*"

_TOKEN = lazy_pattern(
    rf"""[ \t\r\n]*(?:
      (?P<name>Q\{{[^{{}}]*\}}(?:{_NAME}|\*)|{_NAME}(?::(?!:)(?:{_NAME}|\*))?|\*:(?!:){_NAME})
    | (?P<symbol>::|//|\.\.|!=|<=|>=|\.(?![0-9])|[()\[\]@,/|+\-=<>*$])
    | (?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    | (?P<string>"[^"]*"|'[^']*')
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)

_CLARK_NAME = lazy_pattern(rf"\{{[^{{}}]*\}}(?:{_NAME}|\*)")  # as ElementTree writes names

AXES = frozenset(
    "ancestor ancestor-or-self attribute child descendant descendant-or-self following "
    "following-sibling namespace parent preceding preceding-sibling self".split()
)
NODE_TYPES = frozenset(("comment", "text", "processing-instruction", "node"))

# Binary operators by precedence, weakest first (XPath 1.0, section 3.5); level 7 is the unary -.
_LEVELS = ("or", "and", "= !=", "< <= > >=", "+ -", "* div mod", "", "|")
PRECEDENCE = {
    operator: level
    for level, operators in enumerate(_LEVELS, start=1)
    for operator in operators.split()
}
UNION = PRECEDENCE["|"]
_COMPARISONS = (PRECEDENCE["="], PRECEDENCE["<"])


class Token(NamedTuple):
    """A token; strings keep their quotes, so that ``text`` alone tells a symbol from a string."""

    kind: str
    text: str
    position: int

    @property
    def end(self) -> int:
        return self.position + len(self.text)


@dataclass(frozen=True, slots=True)
class Number:
    """A number literal."""

    position: int
    value: float


@dataclass(frozen=True, slots=True)
class String:
    """A string literal, without its quotes."""

    position: int
    value: str


@dataclass(frozen=True, slots=True)
class Variable:
    """``$name``."""

    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """``name(arguments)``; ``close`` is the position of the closing parenthesis."""

    position: int
    name: str
    arguments: tuple[Syntax, ...]
    close: int


@dataclass(frozen=True, slots=True)
class Negation:
    """One or more ``-`` before an operand; an even number of them (``odd`` is false) cancels."""

    position: int
    odd: bool
    operand: Syntax


@dataclass(frozen=True, slots=True)
class Operation:
    """A chain of operators of one precedence: ``operands[0] operators[0] operands[1]`` …."""

    position: int
    operators: tuple[Token, ...]
    operands: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True)
class StepSyntax:
    """``axis::test[predicate]…``.

    ``test`` is a QName, ``*``, ``p:*`` or ``type()``; or of XPath 3 ``*:name`` or ``Q{URI}name``.
    ``test_position`` is -1 where the test is not written.
    """

    position: int
    axis: str
    test: str
    test_position: int
    predicates: tuple[Syntax, ...]

    @property
    def has_name(self) -> bool:
        return not self.test.endswith("()")


@dataclass(frozen=True, slots=True)
class LocationPath:
    """A path from the context node, or from the document node where it is absolute."""

    position: int
    absolute: bool
    steps: tuple[StepSyntax, ...]


@dataclass(frozen=True, slots=True)
class FilterExpression:
    """``primary[predicate]…/steps``: a call or something in parentheses, continued as a path."""

    position: int
    primary: Syntax
    predicates: tuple[Syntax, ...]
    steps: tuple[StepSyntax, ...]


Syntax = Number | String | Variable | Call | Negation | Operation | LocationPath | FilterExpression


def parse_syntax(text: str, limits: Limits) -> Syntax:
    """Read one XPath 1.0 expression; raises a SubscriptionSyntaxError or SubscriptionLimitError."""
    check_text(text, limits)
    tokens = [read_token(text, 0)]
    while tokens[-1].kind != "end":
        tokens.append(read_token(text, tokens[-1].end))
    parser = Parser(text, limits, tokens)
    with bounded_recursion():
        return parser.whole()


def check_text(text: str, limits: Limits) -> None:
    """Refuse a text that is too long, or has characters that are in no XML document."""
    if len(text) > limits.subscription_chars:
        raise SubscriptionLimitError(
            f"an expression of {len(text):,} characters is longer than the limit "
            f"subscription_chars = {limits.subscription_chars:,}"
        )
    foreign = NOT_XML.search(text)
    if foreign is not None:
        message = f"the character {foreign[0]!a} is in no XML document"
        raise SubscriptionSyntaxError(message, text, foreign.start())


@contextmanager
def bounded_recursion() -> Iterator[None]:
    """Make a ``RecursionError`` in the body an error of the subscription."""
    try:
        yield
    except RecursionError:
        raise SubscriptionLimitError(
            "the expression is nested deeper than Python's recursion limit permits"
        ) from None


class Parser:
    """Recursive descent with one token of look-ahead (and one more for names).

    The last token is of kind ``end``; its text is empty, or what stands there that is not XPath.
    """

    def __init__(self, text: str, limits: Limits, tokens: Sequence[Token]) -> None:
        self.text = text
        self.limits = limits
        self.tokens = tokens
        self.index = self.nesting = 0
        self.predicate_count = self.step_count = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def next_text(self) -> str:
        return self.tokens[self.index + 1].text

    def whole(self) -> Syntax:
        if self.token.kind == "end":
            raise SubscriptionSyntaxError("the expression is empty", self.text, 0)
        result = self.expression()
        if self.token.kind != "end":
            self.fail("expected an operator or the end of the expression")
        return result

    def expression(self, weakest: int = 1) -> Syntax:
        """Operators of precedence ``weakest`` and stronger (precedence climbing)."""
        left = self.unary()
        while (level := self.operator_level()) >= weakest:
            left = self.chain(left, level, partial(self.expression, level + 1))
        return left

    def chain(self, left: Syntax, level: int, operand: Callable[[], Syntax]) -> Syntax:
        """An operand, and behind it all operators of one precedence with their right operands."""
        operators, operands = [], [left]
        while self.operator_level() == level:
            if level in _COMPARISONS:
                self.count_predicate()
            operators.append(self.token)
            self.index += 1
            operands.append(operand())
        if not operators:
            return left
        return Operation(operators[0].position, tuple(operators), tuple(operands))

    def operator_level(self) -> int:
        return PRECEDENCE.get(self.token.text, 0)

    def unary(self) -> Syntax:
        start = self.index
        while self.token.text == "-":
            self.index += 1
        signs = self.index - start
        operand = self.union()
        position = self.tokens[start].position
        return Negation(position, signs % 2 == 1, operand) if signs else operand

    def union(self) -> Syntax:
        return self.chain(self.path(), UNION, self.path)

    def path(self) -> Syntax:
        kind, text, position = self.token
        if kind in ("number", "string") or text in ("(", "$") or self.at_call():
            primary = self.primary()
            predicates = self.predicates()
            steps = self.steps()
            is_bare = not (predicates or steps)
            return primary if is_bare else FilterExpression(position, primary, predicates, steps)
        if text == "/":
            self.index += 1
            steps = self.steps(self.step()) if self.at_step() else ()
            return LocationPath(position, True, steps)
        if text == "//":
            return LocationPath(position, True, self.steps())
        if not self.at_step():
            self.fail("expected a path, a literal or a function")
        return LocationPath(position, False, self.steps(self.step()))

    def steps(self, *first: StepSyntax) -> tuple[StepSyntax, ...]:
        steps = list(first)
        while (symbol := self.token).text in ("/", "//"):
            if symbol.text == "//":
                self.count_step()
                steps.append(StepSyntax(symbol.position, "descendant-or-self", "node()", -1, ()))
            self.index += 1
            if not self.at_step():
                self.fail("expected a step")
            steps.append(self.step())
        return tuple(steps)

    def at_step(self) -> bool:
        return self.token.kind == "name" or self.token.text in ("*", "@", ".", "..")

    def at_call(self) -> bool:
        kind, text, _ = self.token
        return kind == "name" and self.next_text == "(" and text not in NODE_TYPES

    def step(self) -> StepSyntax:
        self.count_step()
        kind, text, position = self.token
        if text in (".", ".."):
            self.index += 1
            axis = "self" if text == "." else "parent"
            if self.token.text == "[":
                self.fail(f"'{text}' takes no predicate", hint=f"write {axis}::node()[…]")
            return StepSyntax(position, axis, "node()", -1, ())
        axis = "child"
        if text == "@":
            axis = "attribute"
            self.index += 1
        elif kind == "name" and self.next_text == "::":
            axis = text
            if axis not in AXES:
                self.fail(f"there is no axis '{axis}'")
            self.index += 2
        test_position = self.token.position
        return StepSyntax(position, axis, self.node_test(), test_position, self.predicates())

    def count_step(self) -> None:
        self.step_count += 1
        self.check_limit(self.step_count, "more steps", "subscription_steps")

    def node_test(self) -> str:
        kind, text, _ = self.token
        if kind != "name" and text != "*":
            self.fail("expected a name, '*' or a node type such as text()")
        if kind == "name" and self.next_text == "(":
            if text not in NODE_TYPES:
                self.fail(f"a function cannot be a step: '{text}('")
            self.index += 2
            if text == "processing-instruction" and self.token.kind == "string":
                self.index += 1
            self.expect(")")
            return text + "()"
        self.index += 1
        return text

    def predicates(self) -> tuple[Syntax, ...]:
        found: list[Syntax] = []
        while self.token.text == "[":
            self.count_predicate()
            found.append(self.enclosed("[", "]"))
        return tuple(found)

    def count_predicate(self) -> None:
        self.predicate_count += 1
        what = "more predicates, comparisons and calls"
        self.check_limit(self.predicate_count, what, "subscription_predicates")

    def enclosed(self, opening: str, closing: str) -> Syntax:
        self.enter(opening)
        inner = self.expression()
        self.leave(closing)
        return inner

    def enter(self, opening: str) -> None:
        self.nesting += 1
        self.check_limit(self.nesting, "nested deeper", "subscription_nesting")
        self.expect(opening)

    def leave(self, closing: str) -> None:
        self.expect(closing)
        self.nesting -= 1

    def check_limit(self, count: int, what: str, limit: str) -> None:
        bound: int = getattr(self.limits, limit)
        if count > bound:
            message = f"{what} than the limit {limit} = {bound:,}"
            raise SubscriptionLimitError(message, self.text, self.token.position)

    def primary(self) -> Syntax:
        kind, text, position = self.token
        if kind == "number":
            self.index += 1
            return Number(position, float(text))
        if kind == "string":
            self.index += 1
            return String(position, text[1:-1])
        if text == "(":
            return self.enclosed("(", ")")
        if text == "$":
            self.index += 1
            name = self.token
            if name.kind != "name":
                self.fail("expected the name of a variable")
            self.index += 1
            return Variable(position, name.text)
        return self.call()

    def call(self) -> Call:
        _, name, position = self.token
        self.count_predicate()
        self.index += 1
        self.enter("(")
        arguments: list[Syntax] = []
        if self.token.text != ")":
            arguments.append(self.expression())
            while self.token.text == ",":
                self.index += 1
                arguments.append(self.expression())
        close = self.token.position
        self.leave(")")
        return Call(position, name, tuple(arguments), close)

    def expect(self, symbol: str) -> None:
        if self.token.text != symbol:
            self.fail(f"expected '{symbol}'")
        self.index += 1

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        token = self.token
        if message.startswith("expected"):
            found = " ".join(token.text.split())
            found = found if len(found) <= 40 else found[:39] + "…"
            message = f"{message}, found " + (f"'{found}'" if found else "the end")
        raise SubscriptionSyntaxError(message, self.text, token.position, hint)


def read_token(text: str, position: int) -> Token:
    """The token that begins at a position, or behind white space there.

    >>> read_token("a >= 1", 1)
    Token(kind='symbol', text='>=', position=2)
    """
    match = _TOKEN.match(text, position)
    if match is None:
        position += len(text[position:]) - len(text[position:].lstrip(" \t\r\n"))
        character = text[position]
        if character in "\"'":
            raise SubscriptionSyntaxError("the string is not closed", text, position)
        clark = _CLARK_NAME.match(text, position)
        message = f"{character!r} cannot stand in an XPath expression"
        hint = f"write Q{clark[0]}" if clark else None
        raise SubscriptionSyntaxError(message, text, position, hint)
    kind = match.lastgroup or ""
    token = Token(kind, match[kind], match.start(kind))
    if kind == "name" and not token.text.isascii():
        _check_name(token, text)
    return token


def _check_name(token: Token, text: str) -> None:
    uri, brace, name = token.text.rpartition("}")
    position = token.position + len(uri) + len(brace)
    for part in name.split(":"):
        good = ONLY_NCNAME.match(part)
        size = good.end() if good else 0
        if part != "*" and size < len(part):
            message = f"{part[size]!r} cannot stand in a name"
            raise SubscriptionSyntaxError(message, text, position + size)
        position += len(part) + 1


def walk(syntax: Syntax) -> Iterator[Syntax | StepSyntax]:
    """Every node of a syntax tree, steps included, in no order."""
    pending: list[Syntax | StepSyntax] = [syntax]
    while pending:
        node = pending.pop()
        yield node
        match node:
            case FilterExpression(primary=primary, predicates=predicates, steps=steps):
                pending += [primary, *predicates, *steps]
            case Negation(operand=operand):
                pending.append(operand)
            case (
                LocationPath(steps=parts)
                | StepSyntax(predicates=parts)
                | Call(arguments=parts)
                | Operation(operands=parts)
            ):
                pending += parts
