"""Small programs, and what the engine refuses."""

from __future__ import annotations

import numpy as np
import pytest

import tamis
from tamis.core.arrays import Int64
from tamis.documents.vocabulary import Names, Projection
from tamis.language.xpath import parse
from tamis.matching.engine import reason_of
from tamis.matching.engines.automaton import ENGINE, compile_queries
from tamis.matching.engines.automaton.compile.builder import Builder
from tamis.matching.engines.automaton.kernels import formulas as fm
from tamis.matching.engines.automaton.kernels.build import DEPTH_MAX, FALSE, TRUE
from tamis.matching.engines.automaton.program import (
    ACTION,
    AND,
    CONJUNCTION,
    DERIVES,
    GENERAL,
    NOT,
    OR,
    RULE_COLUMNS,
    TARGET,
)

WORDS = (
    "it takes more than 16384 words, where each step that is descendant-or-self, or // before a "
    "position, doubles what is in it"
)
FIRST = "the first of several nodes is asked for, and they are not just children"


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("//a", None),
        ("/", None),
        ("true()", None),
        ("//a[b][2]/@*", None),
        ("//a[count(b/@x) >= 4095]", None),
        ("//a[4096]", None),
        ("//a[4097]", "a position is over 4096"),
        ("//a[b[4097]]", "a position is over 4096"),
        ("//a[count(b) = 4096]", "a count is compared with 4096 or more"),
        ("//a[count(b[2]) = 1]", "nodes at a position are counted"),
        ("//a = 1", None),
        ("//a[. = 'x']", None),
        ("//a[not(b or contains(., 'x'))]", None),
        ("//a[starts-with(b[2]/c/@d, 'x')]", None),
        ("//a[contains(.//b, 'x')]", FIRST),
        ("//a[contains(@*, 'x')]", FIRST),
        ("//a[contains(node(), 'x')]", FIRST),
        ("//a[contains(b" + "/b" * 70 + ", 'x')]", None),
        ("//a[contains(b" + "/b" * 100 + ", 'x')]", FIRST),
        ("//a | //b[name() = 'a']", "it calls name()"),
        ("//a[string-length(b) = 0]", None),
        ("//a[contains(normalize-space(b), 'x')]", None),
        (f"//a[contains(b, '{256 * 'x'}')]", None),
        (f"//a[contains(b, '{257 * 'x'}')]", "a string of more than 256 bytes is searched for"),
        ("//a[not(local-name(b) = 'x')]", "it calls local-name()"),
        ("//a[2]" * 8, None),
        *(("//a[2]" * times, WORDS) for times in (9, 55, 58, 62, 64, 100, 330)),
        ("/x[" + "/".join("a" * 101) + "]", None),
        ("//a[count(b) > -3000000000]", None),
    ],
)
def test_refusals(expression: str, reason: str | None) -> None:
    assert reason_of(ENGINE, parse(expression)) == reason


def sizes(*expressions: str) -> tuple[int, int, int]:
    """How many nodes, rules and facts some subscriptions take."""
    arrays = compile_queries([parse(text) for text in expressions]).arrays
    rules = arrays.rules.reshape(-1, RULE_COLUMNS)
    facts = {*arrays.unconditional.tolist(), *rules[rules[:, ACTION] == DERIVES, TARGET].tolist()}
    return len(arrays.tests), len(rules) + len(arrays.unconditional), len(facts)


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ([], (1, 0, 0)),
        (["/"], (1, 0, 0)),
        (["/a/b", "/a/c"], (4, 0, 0)),
        (["/a/b", "/a[c]/b"], (4, 3, 2)),
        (["//a//b", "//a/b"], (4, 0, 0)),
        (["//a[b]", "//a/b", "//a[b][b]", "//a[b and b]"], (3, 3, 1)),
        (["//a[true()]", "//a", "//a[not(false())]"], (2, 0, 0)),
        (["//a[false()]"], (2, 0, 0)),
        (["/a/self::b"], (2, 0, 0)),
    ],
)
def test_what_is_equal_is_there_once(
    expressions: list[str], expected: tuple[int, int, int]
) -> None:
    assert sizes(*expressions) == expected


def test_projection_is_of_leaves_alone() -> None:
    projections = [
        compile_queries([parse(text)]).projection
        for text in ("//a[b]", "//a/@x", "//a[not(text())]")
    ]
    assert projections == [
        Projection(),
        Projection(attributes=Names([("", "x")])),
        Projection(text=Names([("", "a")])),
    ]


class Formulas:
    """Formulas of a program, as kernels make them."""

    def __init__(self) -> None:
        self.builder = Builder()

    def code(self, formula: int) -> tuple[int, ...]:
        start, end = self.builder["formula_starts"][formula : formula + 2].tolist()
        return tuple(self.builder["formula_code"][start:end].tolist())

    def fact(self, fact: int) -> int:
        return int(fm.add_holds(self.builder.state, fact))

    def all(self, formulas: list[int]) -> int:
        return int(fm.all_hold(self.wait(formulas), 0, len(formulas)))

    def any(self, formulas: list[int]) -> int:
        return int(fm.some_hold(self.wait(formulas), 0, len(formulas)))

    def negation(self, formula: int) -> int:
        return int(fm.negation(self.wait([]), formula))

    def wait(self, formulas: list[int]) -> Int64:
        self.builder.reserve(1, 0)
        self.builder["pending"][: len(formulas)] = formulas
        return self.builder.state


def test_formulas() -> None:
    formulas = Formulas()
    a, b, c = (formulas.fact(number) for number in range(3))
    assert formulas.any([a, TRUE]) == TRUE
    assert formulas.any([FALSE, FALSE]) == FALSE
    assert formulas.any([a, FALSE, a]) == a
    assert formulas.negation(FALSE) == TRUE
    assert formulas.any([a, b]) == formulas.any([b, a])
    both = formulas.all([formulas.negation(c), b, a])
    assert both == formulas.all([formulas.all([a, b]), formulas.negation(c)])
    assert formulas.builder["formula_kinds"][both] == GENERAL
    assert formulas.code(both) == (0, 1, AND, 2, NOT, AND)
    assert formulas.builder["formula_kinds"][formulas.all([a, b])] == CONJUNCTION


def test_nested_formulas_need_little_of_the_stack() -> None:
    formulas = Formulas()
    formula = formulas.fact(0)
    for number in range(1, 400, 2):
        formula = formulas.all([formulas.fact(number), formulas.negation(formula)])
        formula = formulas.any([formulas.fact(number + 1), formula])
        formula = formulas.all([formulas.any([formulas.fact(0), formulas.fact(9)]), formula])
    assert DEPTH_MAX // 2 <= depth_of(formulas.code(formula)) <= DEPTH_MAX // 2 + 4
    assert depth_of((0, 1, 2, OR, AND)) == 3
    assert depth_of((7, 8, NOT, AND)) == depth_of((7, 8, AND, 9, AND)) == 2


def depth_of(code: tuple[int, ...]) -> int:
    return int(fm.depth(np.array(code, np.int32), len(code)))


@pytest.mark.parametrize("levels", [5, 30, 32, 33, 60])
@pytest.mark.parametrize("name", ["a0", "b0", "a{}", "b{}", "z"])
def test_nested_formulas_are_answered(levels: int, name: str) -> None:
    """As deep as expressions may be: with the operands as they are written, 128 on the stack."""
    text = "@z"
    for number in range(levels):
        text = f"@a{number} or @b{number} and not({text})"
    document = f"<r {name.format(levels - 1)}='1'/>"
    found = [
        bool(tamis.compile({1: f"//r[{text}]"}, engine=engine).match(document))
        for engine in ("automaton", "reference")
    ]
    assert found[0] == found[1]
