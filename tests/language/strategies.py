"""Random queries as abstract syntax, and a speller that writes them in any of XPath's ways."""

from __future__ import annotations

from functools import cache
from random import Random

from hypothesis import strategies as st

from tamis.language.model import (
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
    NormalizeSpace,
    Not,
    Or,
    Path,
    Position,
    Predicate,
    Query,
    StartsWith,
    Step,
    StringFunction,
    StringLength,
    StringOf,
    Value,
)
from tamis.language.printer import print_test

NAMESPACES = {"p": "urn:p", "q": "urn:q"}

# Names that look like operators, axes, functions and node types are names where a step stands.
_LOCAL = st.sampled_from(
    "a b-c d.e _f é and or div mod self child text node comment count not true last".split()
)
_LITERALS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8
).filter(lambda text: not ("'" in text and '"' in text))
_NUMBERS = st.one_of(st.integers(-1000, 1000).map(float), st.floats(allow_nan=False))
_OPERATORS = st.sampled_from("= != < <= > >=".split())


def _name_tests() -> st.SearchStrategy[NameTest]:
    local = st.one_of(st.none(), _LOCAL)
    prefixed = st.sampled_from(sorted(NAMESPACES.items()))
    uris = st.sampled_from(["", *NAMESPACES.values()])
    return st.one_of(
        local.map(lambda name: NameTest(None if name is None else "", name)),
        st.builds(lambda name, pair: NameTest(pair[1], name, pair[0]), local, prefixed),
        st.builds(NameTest, st.none(), _LOCAL),
        st.builds(lambda name, uri: NameTest(uri, name, f"Q{{{uri}}}"), local, uris),
    )


_TESTS = st.one_of(_name_tests(), st.sampled_from(KindTest))
_ATTRIBUTE_TESTS = st.one_of(_name_tests(), st.just(KindTest.NODE))


@cache
@st.composite
def _steps(draw: st.DrawFn, depth: int, axes: tuple[Axis, ...] = tuple(Axis)) -> Step:
    axis = draw(st.sampled_from(axes))
    conditions: st.SearchStrategy[Predicate] = _expressions(depth - 1, False)
    if axis is Axis.CHILD:
        conditions = st.one_of(conditions, st.builds(Position, st.integers(1, 3)))
    predicates = draw(st.lists(conditions, max_size=2)) if depth > 0 else []
    tests = _ATTRIBUTE_TESTS if axis is Axis.ATTRIBUTE else _TESTS
    return Step(axis, draw(tests), tuple(predicates))


@cache
@st.composite
def _paths(draw: st.DrawFn, depth: int, top: bool, axes: tuple[Axis, ...] = tuple(Axis)) -> Path:
    absolute = top and draw(st.booleans())
    steps = draw(st.lists(_steps(depth, axes), min_size=0 if absolute else 1, max_size=3))
    return Path(absolute, tuple(steps))


@cache
def _unions(depth: int, top: bool) -> st.SearchStrategy[tuple[Path, ...]]:
    return st.lists(_paths(depth, top), min_size=1, max_size=3, unique=True).map(tuple)


@cache
def _texts(depth: int, top: bool) -> st.SearchStrategy[StringFunction]:
    paths = _paths(depth, top)
    simple = st.one_of(paths.map(StringOf), st.builds(NameOf, paths, st.booleans()))
    return st.one_of(simple, simple.map(NormalizeSpace))


@cache
def _strings(depth: int, top: bool) -> st.SearchStrategy[Value]:
    named = _texts(depth, top).filter(lambda text: not isinstance(text, StringOf))
    return st.one_of(_unions(depth, top).map(Nodes), named)


@cache
def _values(depth: int, top: bool) -> st.SearchStrategy[Value]:
    return st.one_of(
        _strings(depth, top),
        _texts(depth, top).map(StringLength),
        _paths(depth, top, (Axis.CHILD, Axis.ATTRIBUTE)).map(Count),
    )


@cache
def _expressions(depth: int, top: bool) -> st.SearchStrategy[Expression]:
    leaves = st.one_of(
        _unions(depth, top).map(Exists),
        st.builds(Compare, _OPERATORS, _values(depth, top), _NUMBERS),
        st.builds(Compare, st.sampled_from(["=", "!="]), _strings(depth, top), _LITERALS),
        st.builds(Contains, _texts(depth, top), _LITERALS),
        st.builds(StartsWith, _texts(depth, top), _LITERALS),
        st.builds(Constant, st.booleans()),
    )
    if depth <= 0:
        return leaves
    parts = st.lists(st.deferred(lambda: _expressions(depth - 1, top)), min_size=2, max_size=3)
    return st.one_of(
        leaves,
        st.deferred(lambda: _expressions(depth - 1, top)).map(Not),
        parts.map(lambda operands: And(tuple(_flat(And, operands)))),
        parts.map(lambda operands: Or(tuple(_flat(Or, operands)))),
    )


def _flat(kind: type, operands: list[Expression]) -> list[Expression]:
    return [p for o in operands for p in (o.operands if isinstance(o, kind) else (o,))]


QUERIES: st.SearchStrategy[Query] = _expressions(2, True).map(Query)
"""Any query that the parser can give, in its own form."""


class Speller:
    """Writes a query with random white space, parentheses, quotes and abbreviations."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def query(self, query: Query) -> str:
        return self.join([self.space(), *self.expression(query.expression), self.space()])

    def maybe(self) -> bool:
        return self.random.random() < 0.5

    def space(self) -> str:
        return self.random.choice(["", "", " ", "\n", "\t ", "\r\n"])

    def join(self, tokens: list[str]) -> str:
        """Tokens with white space where there must be some, and where there may be."""
        text = ""
        for token in tokens:
            words = text[-1:].isalnum() or text[-1:] in ("_", "-", ".")
            needs = words and (token[:1].isalnum() or token[:1] in ("_", "-", "."))
            text += (" " if needs else self.space()) + token
        return text

    def parenthesised(self, tokens: list[str], needed: bool) -> list[str]:
        return ["(", *tokens, ")"] if needed or self.random.random() < 0.2 else tokens

    def expression(self, expression: Expression) -> list[str]:
        match expression:
            case Exists(paths):
                return self.parenthesised(self.paths(paths), False)
            case Compare(operator, value, literal):
                return self.comparison(operator, self.value(value), self.literal(literal))
            case Contains(text, literal):
                return ["contains", "(", *self.value(text), ",", *self.literal(literal), ")"]
            case StartsWith(text, literal):
                return ["starts-with", "(", *self.value(text), ",", *self.literal(literal), ")"]
            case Constant(value):
                return ["true" if value else "false", "(", ")"]
            case Not(operand):
                return ["not", "(", *self.expression(operand), ")"]
            case And(operands) | Or(operands):
                word = "and" if isinstance(expression, And) else "or"
                tokens: list[str] = []
                for operand in operands:
                    inner = self.expression(operand)
                    # A bare "/" before an operator's name would take it for a step.
                    needed = isinstance(operand, Or) or inner[-1] == "/"
                    tokens += [word] * bool(tokens) + self.parenthesised(inner, needed)
                return tokens

    def comparison(self, operator: str, left: list[str], right: list[str]) -> list[str]:
        if self.maybe():
            mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
            return [*right, mirrored, *left]
        return [*left, operator, *right]

    def value(self, value: Value) -> list[str]:
        match value:
            case Nodes(paths):
                return self.parenthesised(self.paths(paths), False)
            case StringOf(path):
                return self.path(path)
            case NameOf(path, local):
                return ["local-name" if local else "name", "(", *self.argument(path), ")"]
            case NormalizeSpace(StringOf(path)):
                return ["normalize-space", "(", *self.argument(path), ")"]
            case NormalizeSpace(text):
                return ["normalize-space", "(", *self.value(text), ")"]
            case Count(path):
                return ["count", "(", *self.path(path), ")"]
            case StringLength(text):
                return ["string-length", "(", *self.value(text), ")"]

    def argument(self, path: Path) -> list[str]:
        here = Path(False, (Step(Axis.SELF, KindTest.NODE),))
        return [] if path == here and self.maybe() else self.path(path)

    def literal(self, literal: str | float) -> list[str]:
        if isinstance(literal, str):
            quotes = [quote for quote in "'\"" if quote not in literal]
            return [self.random.choice(quotes).join(["", literal, ""])]
        if literal in (float("inf"), float("-inf")):
            return ["-"] * (literal < 0) + ["9" * 400]
        digits = f"{abs(literal):.1100f}".rstrip("0")  # exact: no double has more digits
        negative = str(literal).startswith("-")
        return ["-"] * (negative + 2 * self.maybe()) + [digits]

    def paths(self, paths: tuple[Path, ...]) -> list[str]:
        tokens: list[str] = []
        for path in paths:
            tokens += ["|"] * bool(tokens) + self.parenthesised(self.path(path), False)
        return tokens

    def path(self, path: Path) -> list[str]:
        tokens = ["/"] if path.absolute else []
        separated = True  # whether a separator stands before the next step
        for index, step in enumerate(path.steps):
            last = index == len(path.steps) - 1
            first = index == 0 and not path.absolute
            anywhere = step == Step(Axis.DESCENDANT_OR_SELF, KindTest.NODE)
            if anywhere and separated and not first and not last and self.maybe():
                tokens[-1] = "//"
                separated = False  # "///" is nothing: the next one is written out
                continue
            tokens += [*self.step(step), *["/"] * (not last)]
            separated = True
        return tokens

    def step(self, step: Step) -> list[str]:
        if step == Step(Axis.SELF, KindTest.NODE) and self.maybe():
            return ["."]
        tokens = [step.axis.value, "::"]
        if step.axis is Axis.CHILD and self.maybe():
            tokens = []
        if step.axis is Axis.ATTRIBUTE and self.maybe():
            tokens = ["@"]
        tokens += self.test(step)
        for predicate in step.predicates:
            if isinstance(predicate, Position):
                inner = self.parenthesised([str(predicate.number)], False)
            else:
                inner = self.expression(predicate)
            tokens += ["[", *inner, "]"]
        return tokens

    def test(self, step: Step) -> list[str]:
        test = step.test
        if not isinstance(test, NameTest):
            return [test.value.removesuffix("()"), "(", ")"]
        return [print_test(test)]
