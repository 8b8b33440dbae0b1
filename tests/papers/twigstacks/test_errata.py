"""The errata of the README: each rule as the paper prints it, and a case that it gets wrong."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

import pytest
from hypothesis import given, settings

from tamis.language.xpath import parse
from tamis.matching.engines.reference import ENGINE as REFERENCE
from tamis.matching.engines.stacks import read
from tests.papers.twigstacks.drawing import TREES, TWIGS, answers
from tests.support.trees import Tree as Drawn
from tests.support.trees import xml

CASES = [
    # rule, twig, document, what the rule answers
    ("line 19", "//a", "<x><a/></x>", False),
    ("line 23", "/a/b", "<a><b/></a>", False),
    ("line 23 from 1", "/a[b]/c", "<a><b/><c/></a>", False),
    ("0 otherwise", "/a[b]/c", "<a><b/><c/></a>", False),
    ("split", "/x//b[.//c]//d", "<x><y><b><c/></b><b><d/></b></y></x>", True),
    ("one bit", "//p[.//a]/x", "<p><a><p><x/></p></a></p>", True),
    ("level", "/a", "<a/>", False),
]


class Stacks:
    """The naive version: a row of cells for each level; one rule may be as printed."""

    def __init__(self, twig: str, rule: str) -> None:
        self.nodes = next(read.twigs_of([parse(twig)]))
        self.rule = rule
        self.children = [
            [c for c in range(1, len(self.nodes)) if self.nodes[c].parent == node]
            for node in range(len(self.nodes))
        ]
        zeros = [0] * len(self.nodes)
        # Matched from the root at this element; at it or above; what was reported; line 23's cell.
        self.matched = [[1, *zeros[1:]]]
        self.carried = [[1, *zeros[1:]]]
        self.reported = [zeros.copy()]
        self.latest = [[1] * len(self.nodes)]

    def passes(self, node: int, tag: str) -> bool:
        test = self.nodes[node].test
        return test is not None and test.local in (None, tag)

    def push(self, tag: str) -> None:
        matched, carried, above = [0] * len(self.nodes), [0] * len(self.nodes), self.carried[-1]
        for node in range(len(self.nodes)):
            each = self.nodes[node]
            descends = each.kind == read.DESCENDANT
            prefix = (above if descends else self.matched[-1])[each.parent]
            matched[node] = int(bool(prefix) and self.passes(node, tag))
            if self.rule == "one bit" and descends:
                matched[node] |= self.matched[-1][node]
            carried[node] = matched[node] | above[node]
        self.matched.append(matched)
        self.carried.append(carried)
        self.reported.append([0] * len(self.nodes))
        self.latest.append([1] * len(self.nodes))

    def pop(self, tag: str) -> None:
        matched, closed, latest = self.matched.pop(), self.reported.pop(), self.latest.pop()
        self.carried.pop()
        for node in range(1, len(self.nodes)):
            descends = self.nodes[node].kind == read.DESCENDANT
            below = self.children[node]
            held = all(closed[child] for child in below)
            if not below:
                held = bool(matched[node]) and not (self.rule == "line 19" and descends)
            elif self.rule == "line 23":
                held = False  # an AND into a cell that push has set to 0
            elif self.rule == "line 23 from 1":
                held = bool(latest[node])
            is_untested = self.rule == (
                "split" if len(below) > 1 else "one bit" if not below else 0
            )
            passes = self.passes(node, tag) or is_untested
            new = int((held and passes) or (descends and bool(closed[node])))
            is_kept = self.rule != "0 otherwise"
            self.reported[-1][node] = new | (self.reported[-1][node] if is_kept else 0)
        for node in range(1, len(self.nodes)):
            self.latest[-1][self.nodes[node].parent] &= self.reported[-1][node]

    def walk(self, element: Tree.Element) -> None:
        self.push(element.tag)
        for child in element:
            self.walk(child)
        if self.rule == "level" and len(self.reported) == 2:
            self.last = self.reported[1].copy()
        self.pop(element.tag)

    def answer(self, document: str) -> bool:
        self.walk(Tree.fromstring(document))
        level = self.last if self.rule == "level" else self.reported[0]
        return all(level[child] for child in self.children[0])


@pytest.mark.parametrize(("rule", "twig", "document", "printed"), CASES)
def test_as_printed(rule: str, twig: str, document: str, printed: bool) -> None:
    right = answers(REFERENCE, [twig], [document]) == [{twig}]
    assert Stacks(twig, rule).answer(document) is printed is not right
    assert Stacks(twig, "").answer(document) is right


@settings(max_examples=300, deadline=None)
@given(twig=TWIGS, tree=TREES)
def test_naive_version(twig: str, tree: Drawn) -> None:
    """With no rule as printed, the naive version is right."""
    found = answers(REFERENCE, [twig], [xml(tree)]) == [{twig}]
    assert Stacks(twig, "").answer(xml(tree)) is found
