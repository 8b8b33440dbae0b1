"""What is asked of the nodes that reach a state: queries, decomposed into linear paths.

Each path inside a query, from the document to its last step, is in the NFA; what it leads to is a
state that is watched. What is left of the query are *conditions*, about the nodes of states. Equal
ones are stored once, by number, whoever asks them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tamis.language import model as ast
from tamis.language.filters import ANY, Labels
from tamis.matching.engines.nfa.states import Nfa


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a string.

    Attributes:
        functions: what is taken of it first: "normalize-space" and then "string-length", or none.
        operator: of a comparison, or "contains" or "starts-with".
    """

    functions: tuple[str, ...]
    operator: str
    literal: bytes | float


@dataclass(frozen=True, slots=True)
class Constant:
    """True of all nodes, or of none."""

    value: bool


@dataclass(frozen=True, slots=True)
class Negation:
    """Another condition does not hold."""

    operand: int


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All of some conditions hold."""

    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """One of some conditions holds."""

    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Inside:
    """A condition holds for a child, or a descendant, which reached a state behind the node's."""

    state: int
    descends: bool
    condition: int


@dataclass(frozen=True, slots=True)
class Source:
    """Whose strings are asked: the node's own, its attributes' or those of text nodes in it.

    Attributes:
        axis: SELF, ATTRIBUTE, or CHILD for text nodes.
        test: of attributes.
    """

    axis: ast.Axis
    test: ast.NodeTest


@dataclass(frozen=True, slots=True)
class ValueIs:
    """One of the strings of a source is as asked; or, without ``asked``, there is one."""

    source: Source
    asked: Asked | None


@dataclass(frozen=True, slots=True)
class FirstIs:
    """The first of the strings of a source, or "" where there is none, is as asked.

    Attributes:
        through: the child steps that lead from the node to those that have the strings: for each
            the state behind it, and a condition of the nodes there.
    """

    source: Source
    asked: Asked
    through: tuple[tuple[int, int], ...]


Condition = Constant | Negation | Conjunction | Disjunction | Inside | ValueIs | FirstIs

Steps = tuple[ast.Step, ...]
OWN = Source(ast.Axis.SELF, ast.KindTest.NODE)
TEXTS = Source(ast.Axis.CHILD, ast.KindTest.TEXT)
DOCUMENT_STATE = 0
NEVER, ALWAYS = 0, 1
"""The numbers of the two constants."""


class Conditions:
    """Conditions, each once, and the states that they are about.

    >>> from tamis.language.xpath import parse
    >>> nfa, labels, conditions = Nfa(), Labels(), Conditions()
    >>> number = conditions.add(parse("//a[b]").expression, DOCUMENT_STATE, nfa, labels)
    >>> conditions[number]
    Inside(state=2, descends=True, condition=2)
    >>> conditions[2]
    Inside(state=3, descends=False, condition=1)
    >>> conditions.add(parse("//a[b][true()]").expression, DOCUMENT_STATE, nfa, labels) == number
    True
    """

    def __init__(self) -> None:
        self._rows: list[Condition] = [Constant(False), Constant(True)]
        self._numbers: dict[Condition, int] = {row: n for n, row in enumerate(self._rows)}

    def copy(self) -> Conditions:
        """The same conditions, which grow on their own."""
        other = Conditions()
        other._rows, other._numbers = self._rows.copy(), self._numbers.copy()
        return other

    def __getitem__(self, number: int) -> Condition:
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, expression: ast.Expression, state: int, nfa: Nfa, labels: Labels) -> int:
        """The number of: an expression is true at the nodes of a state."""
        return _Decomposition(self, nfa, labels).condition(expression, state)

    def number(self, row: Condition) -> int:
        """The number of a condition."""
        found = self._numbers.get(row)
        if found is None:
            found = self._numbers[row] = len(self._rows)
            self._rows.append(row)
        return found

    def all(self, operands: Iterable[int]) -> int:
        """The number of: all hold."""
        asked = tuple(sorted(set(operands) - {ALWAYS}))
        if NEVER in asked:
            return NEVER
        if len(asked) < 2:
            return asked[0] if asked else ALWAYS
        return self.number(Conjunction(asked))

    def any(self, operands: Iterable[int]) -> int:
        """The number of: one holds."""
        asked = tuple(sorted(set(operands) - {NEVER}))
        if ALWAYS in asked:
            return ALWAYS
        if len(asked) < 2:
            return asked[0] if asked else NEVER
        return self.number(Disjunction(asked))

    def negation(self, operand: int) -> int:
        """The number of: another one does not hold."""
        if operand in (NEVER, ALWAYS):
            return ALWAYS + NEVER - operand
        return self.number(Negation(operand))


class _Decomposition:
    """Walks an expression, and puts its paths into the NFA."""

    def __init__(self, conditions: Conditions, nfa: Nfa, labels: Labels) -> None:
        self.conditions = conditions
        self.nfa = nfa
        self.labels = labels

    def condition(self, expression: ast.Expression, state: int) -> int:
        """The number of: an expression is true at the nodes of a state."""
        conditions = self.conditions
        match expression:
            case ast.Exists(paths):
                return conditions.any(self.path(path, state, None) for path in paths)
            case ast.Compare(operator, ast.Nodes(paths), literal):
                asked = Asked((), operator, _literal(literal))
                return conditions.any(self.path(path, state, asked) for path in paths)
            case ast.Compare(operator, value, literal):
                return self.first(value, state, operator, literal)
            case ast.Contains(text, literal):
                return self.first(text, state, "contains", literal)
            case ast.StartsWith(text, literal):
                return self.first(text, state, "starts-with", literal)
            case ast.Constant(value):
                return ALWAYS if value else NEVER
            case ast.Not(operand):
                return conditions.negation(self.condition(operand, state))
            case ast.And(operands):
                return conditions.all(self.condition(operand, state) for operand in operands)
            case ast.Or(operands):
                return conditions.any(self.condition(operand, state) for operand in operands)
        raise AssertionError(expression)

    def path(self, path: ast.Path, state: int, asked: Asked | None) -> int:
        """The number of: a path leads from a node to one whose string is as asked, if it is."""
        assert not path.absolute or state == DOCUMENT_STATE, "the language has none in predicates"
        return self.steps(ast.without_here(path.steps), state, asked)

    def steps(self, steps: Steps, state: int, asked: Asked | None) -> int:
        """The same, of steps."""
        descends = False
        while steps and steps[0] == ast.DESCEND:
            descends, steps = True, steps[1:]
        if not steps:
            return ALWAYS if asked is None else self.conditions.number(ValueIs(OWN, asked))
        step, behind = steps[0], steps[1:]
        descends |= step.axis is ast.Axis.DESCENDANT
        if step.axis is ast.Axis.SELF:
            return self.node(step, behind, state, asked)
        if step.axis is ast.Axis.ATTRIBUTE or step.test is ast.KindTest.TEXT:
            is_attribute = step.axis is ast.Axis.ATTRIBUTE
            source = Source(step.axis, step.test) if is_attribute else TEXTS
            leaf = self.conditions.number(ValueIs(source, asked))
            if not descends:
                return leaf
            return self.conditions.any([leaf, self.inside(self.step(state, ANY, True), leaf)])
        assert isinstance(step.test, ast.NameTest)
        target = self.step(state, self.labels.of_test(step.test), descends)
        return self.inside(target, self.node(step, behind, target, asked))

    def node(self, step: ast.Step, behind: Steps, state: int, asked: Asked | None) -> int:
        """The number of: a step's predicates are true at a node, and what is behind it holds."""
        return self.conditions.all(
            [
                *(
                    self.condition(predicate, state)
                    for predicate in step.predicates
                    if not isinstance(predicate, ast.Position)  # refused
                ),
                self.steps(behind, state, asked),
            ]
        )

    def inside(self, state: int, condition: int) -> int:
        """The number of: a condition holds for a node further down, which reached a state."""
        if condition == NEVER:
            return NEVER
        return self.conditions.number(Inside(state, self.nfa.descends(state), condition))

    def step(self, state: int, label: int, descends: bool) -> int:
        """The state behind a step, which is watched from now on."""
        target = self.nfa.step(state, label << 1 | descends)
        self.nfa.watch([state, target])
        return target

    def first(self, value: ast.Value, state: int, operator: str, literal: str | float) -> int:
        """The number of: what a function makes of the first node of a path is as asked."""
        functions: list[str] = []
        while isinstance(value, ast.StringLength | ast.NormalizeSpace):
            is_length = isinstance(value, ast.StringLength)
            functions.insert(0, "string-length" if is_length else "normalize-space")
            value = value.text
        assert isinstance(value, ast.StringOf)
        asked = Asked(tuple(dict.fromkeys(functions)), operator, _literal(literal))
        source, through = OWN, []
        for step in ast.without_here(value.path.steps):
            if step.axis is ast.Axis.ATTRIBUTE:
                source = Source(ast.Axis.ATTRIBUTE, step.test)
            elif step.test is ast.KindTest.TEXT:
                source = TEXTS
            else:
                assert isinstance(step.test, ast.NameTest)
                state = self.step(state, self.labels.of_test(step.test), False)
                through.append((state, self.node(step, (), state, None)))
        if source == OWN and not through:
            return self.conditions.number(ValueIs(OWN, asked))
        return self.conditions.number(FirstIs(source, asked, tuple(through)))


def _literal(literal: str | float) -> bytes | float:
    return literal.encode() if isinstance(literal, str) else literal
