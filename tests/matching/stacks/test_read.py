"""Queries become twigs: the fewest nodes that say the same; what no twig says is refused."""

from __future__ import annotations

import pytest

from tamis.language.queries import Queries
from tamis.language.subscriptions import Subscriptions
from tamis.language.xpath import parse
from tamis.matching.engine import reason_of
from tamis.matching.engines.stacks import ENGINE, read
from tests.support.bulk import read_in_bulk

KINDS = {read.CHILD: "/", read.DESCENDANT: "//", read.SELF: "self::", read.GROUP: "()"}


def written(twig: read.Twig) -> str:
    """A twig as text: a node, and in brackets its children."""

    def node(number: int) -> str:
        each = twig[number]
        name = (each.test.local or "*") if each.test is not None else ""
        if each.fact is not None:
            axis, test, question = each.fact
            name = f"{axis.value} {getattr(test, 'local', test) or '*'}"
            name += f" {question.operator} {question.literal!r}" if question else ""
        children = [node(child) for child in range(1, len(twig)) if twig[child].parent == number]
        kind = {read.FACT: "fact ", read.NEVER: "never", **KINDS}[each.kind]
        inside = f"[{', '.join(children)}]" if children else ""
        return f"{'!' if each.negated else ''}{kind}{name}{inside}"

    return node(0)[2:]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("/a//b", "[/a[//b]]"),
        ("//a[b][.//c]/d", "[//a[/b, //c, /d]]"),
        ("//a[b and (c and .)]", "[//a[/b, /c]]"),
        ("//a[b or c]", "[//a[!()[!/b, !/c]]]"),
        ("//a[not(b)]", "[//a[!/b]]"),
        ("//a[not(not(b))]", "[//a[/b]]"),
        ("//a[not(b or c)]", "[//a[!/b, !/c]]"),
        ("//a[not(b and c)]", "[//a[!()[/b, /c]]]"),
        ("//a[not(b[not(c)])]", "[//a[!/b[!/c]]]"),
        ("//a | //b", "[!()[!//a, !//b]]"),
        ("not(//a)", "[!//a]"),
        ("//*[self::a]", "[//*[self::a]]"),
        ("//a[true()]", "[//a]"),
        ("//a[false()]", "[//a[never]]"),
        ("//a[@b]", "[//a[fact attribute b]]"),
        ("//a[.//@b]", "[//a[!()[!//*[fact attribute b], !fact attribute b]]]"),
        ("//a[text()]", "[//a[fact child a]]"),
        ("//a[b = 'x']", "[//a[/b[fact self b = b'x']]]"),
        ("//a[@b > 1]", "[//a[fact attribute b > 1.0]]"),
        ("//a[@b[. > 1]]", "[//a[fact attribute b > 1.0]]"),
        ("//a[starts-with(@b, 'x')]", "[//a[fact attribute b starts-with b'x']]"),
        ("//a[starts-with(@b, '')]", "[//a]"),
        ("contains(/, 'x')", "[/*[fact self * contains b'x']]"),
    ],
)
def test_twigs(expression: str, expected: str) -> None:
    assert written(*read.twigs_of([parse(expression)])) == expected


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("//a[2]", "a position"),
        ("//a[count(b) > 1]", "count"),
        ("//a[name() = 'x']", "name"),
        ("//a[contains(b, 'x')]", "for the first of several nodes"),
        ("//a[contains(@*, 'x')]", "the first of several nodes"),
        ("//node()", "node()"),
        ("//a/descendant-or-self::b", "descendant-or-self"),
        ("//a[@b[. > 1][. < 3]]", "has a predicate"),
        ("//a" + "[b]" * read.NODES_MAX, "more than 512 nodes"),
    ],
)
def test_refused(expression: str, reason: str) -> None:
    assert reason in (reason_of(ENGINE, parse(expression)) or "")


def test_words_say_what_the_syntax_tree_says() -> None:
    """What is read in bulk becomes the same twigs as what Python's parser reads."""
    parts = [
        "b",
        "not(b)",
        "b or c",
        "@b",
        "not(@b or c)",
        "b = 'x'",
        "@b < 3",
        "text()",
        ". = 'x'",
    ]
    parts += [".//@b", ".//b[not(c and @d)]", "starts-with(@b, '')", "contains(., 'x')", "b/c[d]/e"]
    expressions = [f"//a[{one}][{other}]/e" for one in parts for other in parts] * 2
    subscriptions = Subscriptions(dict(enumerate(expressions)))
    queries = subscriptions.queries
    assert isinstance(queries, Queries)
    assert read_in_bulk(queries) > 150
    for number, twig in enumerate(read.twigs_of(queries)):
        assert written(twig) == written(*read.twigs_of([queries[number]]))
