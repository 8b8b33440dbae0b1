"""Predicates at an element of a document, whose truth there is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from tamis.core.names import XML_NAMESPACE
from tamis.language.values import compare, xpath_number
from tamis_workload.draws import Draws
from tamis_workload.observed.trees import Element, Name, Tree

SEEN_CHARS = 200
"""So much of a string value is looked at; a longer one is known by its beginning and length."""

_LITERAL_CHARS = 80
_NUMBER_CHARS = 15  # longer ones would be rounded where they are compared
_SPACE = re.compile("[ \t\r\n]+")  # XPath's white space: str.split() knows more
_OPERATORS = ("=", "=", "!=", "<", "<=", ">", ">=")
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Comparisons:
    """Draws comparisons of a path with literals; ``holds`` asks for a true or a false one.

    Values are given by their first ``SEEN_CHARS`` characters and their length.

    Args:
        draws: decides.
        another: some other value, for what is to be false.
        one_line: no literal has a line break or a tab.
    """

    def __init__(self, draws: Draws, another: Callable[[], str], one_line: bool = False) -> None:
        self.draws = draws
        self.another = another
        # XPath's literals have no escapes: what cannot stand in one ends it.
        self.foreign = re.compile("[\t\n\r]" if one_line else "(?!)")

    # -- what a path selects: one node, some nodes, or many of which the first is known ----------

    def of_only(self, path: str, value: str, chars: int, holds: bool) -> str:
        """The path selects one node, which has this value."""
        if self.draws.chance(0.5):
            written = self.comparison(path, value, chars, holds)
            if written is not None:
                return written
        return self.of_first(path, value, chars, holds)

    def of_some(self, path: str, value: str, chars: int) -> str:
        """A true one: some of the nodes that the path selects has this value."""
        return self.comparison(path, value, chars, True) or f"{path}[{self.start('.', value)}]"

    def of_first(self, path: str, value: str, chars: int, holds: bool) -> str:
        """A string function: the first node that the path selects has this value."""
        kind = self.draws.random()
        whole = chars == len(value)
        if not whole and not holds and kind < 0.8:
            kind = 0.4 + kind / 2  # only the beginning is known: not what is absent
        if kind < 0.25:
            return self.contains(path, value, holds)
        if kind < 0.35 and (whole or holds):
            return self.contains(f"normalize-space({path})", self.normalized(value), holds)
        if kind < 0.55:
            start = self.start(path, value)
            return start if holds else self.not_start(path, value)
        if kind < 0.75:
            return self.number(f"string-length({path})", str(chars), holds)
        normalized = self.normalized(value)
        if not whole:
            start = self.start(f"normalize-space({path})", normalized)
            return start if holds else f"not({start})"
        if kind < 0.8:
            return self.number(
                f"string-length(normalize-space({path}))", str(len(normalized)), holds
            )
        written = self.string(f"normalize-space({path})", normalized, holds)
        return written or self.number(f"string-length({path})", str(chars), holds)

    # -- comparisons ---------------------------------------------------------------------------

    def comparison(self, path: str, value: str, chars: int, holds: bool) -> str | None:
        """``path operator literal``, or None where the value is too long, or no literal can be."""
        if chars <= _NUMBER_CHARS and xpath_number(value) == xpath_number(value):
            kind = self.draws.random()
            if kind < 0.6:
                return self.number(path, value.strip(" \t\r\n"), holds)
            if kind < 0.7:
                return self.number(path, value.strip(" \t\r\n"), holds, quote="'")
        return self.string(path, value, holds) if chars == len(value) else None

    def number(self, left: str, written: str, holds: bool, quote: str = "") -> str:
        """A comparison with a number near ``written``, which is the value of ``left``."""
        operator = self.draws.choice(_OPERATORS)
        literal = written
        change = self.draws.choice((0, 0, 0, 1, -1))
        if change:
            literal = format(Decimal(written) + change, "f")
        if quote and operator in ("=", "!="):
            operator = "<"  # of two strings these would compare the strings
        if compare(operator, xpath_number(written), xpath_number(literal)) != holds:
            operator = _OPPOSITE[operator]
        if self.draws.chance(0.05):
            return f"{quote}{literal}{quote} {_MIRRORED[operator]} {left}"
        return f"{left} {operator} {quote}{literal}{quote}"

    def string(self, left: str, value: str, holds: bool) -> str | None:
        """``=`` or ``!=`` with a string; None where no literal can be the value."""
        if len(value) > _LITERAL_CHARS or self.quotable(value) != value:
            return None
        equal = self.draws.chance(0.7)
        if equal != holds:
            # "= 'another'" is false, "!= 'another'" is true.
            other = self.quotable(self.another()[:_LITERAL_CHARS])
            value = other if other != value else value + "_"
        return f"{left} {'=' if equal else '!='} {self.literal(value)}"

    # -- functions -----------------------------------------------------------------------------

    def contains(self, path: str, value: str, holds: bool) -> str:
        """``contains``; where it is to be false ``value`` is whole."""
        start = self.draws.below(len(value))
        chars = 0 if self.draws.chance(0.03) else 1 + self.draws.below(11)
        part = self.quotable(value[start : start + chars])
        if holds:
            return f"contains({path}, {self.literal(part)})"
        other = self.quotable(self.another())
        start = self.draws.below(len(other))
        part = other[start : start + 2 + self.draws.below(10)]
        while part in value:
            part += "_"
        return f"contains({path}, {self.literal(part)})"

    def start(self, path: str, value: str) -> str:
        """A ``starts-with`` that is true."""
        chars = 0 if self.draws.chance(0.05) else 1 + self.draws.below(7)
        return f"starts-with({path}, {self.literal(self.quotable(value[:chars]))})"

    def not_start(self, path: str, value: str) -> str:
        """A ``starts-with`` that is false."""
        if self.draws.chance(0.3):
            return f"not({self.start(path, value)})"
        other = self.quotable(self.another()[: 1 + self.draws.below(6)])
        if value.startswith(other):  # the empty string is the start of all
            other += "_" if value[len(other) : len(other) + 1] != "_" else "-"
        return f"starts-with({path}, {self.literal(other)})"

    # -- literals ------------------------------------------------------------------------------

    def normalized(self, value: str) -> str:
        """What ``normalize-space`` makes of it; of a beginning, a beginning."""
        return _SPACE.sub(" ", value).strip(" ")

    def quotable(self, value: str) -> str:
        """As much of the value as one literal can hold: not both kinds of quotes."""
        foreign = self.foreign.search(value)
        if foreign is not None:
            value = value[: foreign.start()]
        single, double = value.find("'"), value.find('"')
        return value[: max(single, double)] if single >= 0 and double >= 0 else value

    def literal(self, value: str) -> str:
        """A literal, of a value that one can hold."""
        return f'"{value}"' if "'" in value else f"'{value}'"


_DEPTH = 2  # predicates inside each other


class Predicates:
    """Draws predicates; ``holds`` asks for what is true at an element, or for what is false there.

    Args:
        trees: the documents.
        prefixes: a prefix for each namespace that occurs.
        draws: decides.
        one_line: no literal has a line break or a tab.

    >>> from tamis_workload.observed.trees import read_trees
    >>> (tree,) = read_trees(["<shop><item id='7'>cup</item></shop>"])
    >>> predicates = Predicates([tree], {}, Draws(11, "example"), one_line=False)
    >>> for holds in (True, True, False):
    ...     print(predicates.predicate(tree.elements[0], _DEPTH, holds))
    local-name() != 'cup' and item[@id = '7']
    item = 'cup' and item and starts-with(., 'cup')
    */shop
    """

    def __init__(
        self, trees: Sequence[Tree], prefixes: Mapping[str, str], draws: Draws, one_line: bool
    ) -> None:
        self.trees = trees
        self.draws = draws
        self.prefixes = {**prefixes, XML_NAMESPACE: "xml"}
        self.compare = Comparisons(draws, self.some_value, one_line)
        names = {name: None for tree in trees for e in tree.elements for name, _ in e.attributes}
        self.attribute_names = [*names, ("", "id")]
        self.written: dict[Name, str] = {}

    # -- predicates ----------------------------------------------------------------------------

    def brackets(self, node: Element, position: int, holds: bool) -> str:
        """None, one or two, in brackets; where they do not hold one of them is false."""
        count = self.draws.choice((0, 0, 1, 1, 1, 2)) if holds else self.draws.choice((1, 1, 2))
        faulty = -1 if holds else self.draws.below(count)
        text = ""
        for index in range(count):
            # After another predicate only the first is known to be still in its place.
            known = position if index == 0 or position == 1 else 0
            text += f"[{self.predicate(node, _DEPTH, index != faulty, known)}]"
        return text

    def predicate(self, node: Element, depth: int, holds: bool, position: int = 0) -> str:
        """An expression that is true, or false, at ``node``.

        Args:
            depth: how many more may be inside each other; ``_DEPTH`` where it stands in brackets.
            position: the position of the node, 0 where none may be asked for.
        """
        kind = self.draws.random()
        if depth and kind < 0.24:
            is_and = kind < 0.12
            pair = self.draws.choice(((True, False), (False, True), (not is_and, not is_and)))
            first, second = (is_and, is_and) if is_and == holds else pair
            left = self.predicate(node, depth - 1, first)
            right = self.predicate(node, depth - 1, second)
            if is_and:
                return f"{left} and {right}"
            return f"{left} or {right}" if depth == _DEPTH else f"({left} or {right})"
        if depth and kind < 0.32:
            return f"not({self.predicate(node, depth - 1, not holds)})"
        if position and 0.32 <= kind < 0.4:
            return str(position if holds else position + 1)
        if kind < (0.61 if node.children or node.attributes else 0.4):
            return self.presence(node, depth) if holds else self.absence(node)
        if kind > 0.99:
            return "true()" if holds else "false()"
        return self.value(node, holds)

    def presence(self, node: Element, depth: int) -> str:
        """A relative path that is there."""
        below = node.end - node.index - 1
        if node.attributes and (not below or self.draws.chance(0.25)):
            if self.draws.chance(0.1):
                return "@*"
            return "@" + self.name(self.draws.choice(node.attributes)[0])
        if node.texts and (not below or self.draws.chance(0.05)):
            return "text()"
        if not below:
            return f"self::{self.name(node.name)}"
        target = node.tree.elements[node.index + 1 + self.draws.below(below)]
        path, position = self.path_down(node, target)
        if depth and self.draws.chance(0.3):
            path += f"[{self.predicate(target, depth - 1, True, position)}]"
        if depth and self.draws.chance(0.05):
            return f"{path} | {self.name(self.element().name)}"
        return path

    def path_down(self, node: Element, target: Element) -> tuple[str, int]:
        """A relative path, and the position that the target has in it (0: do not ask for it)."""
        name = self.name(target.name)
        if target.parent is node:
            return ("*", target.number) if self.draws.chance(0.05) else (name, target.position)
        kind = self.draws.random()
        if kind < 0.4:
            return f".//{name}", target.position
        if kind < 0.5:
            return f"descendant::{name}", 0
        between = target.parent
        steps = [name]
        while between is not None and between is not node:
            steps.append("*" if self.draws.chance(0.3) else self.name(between.name))
            between = between.parent
        if len(steps) > 4:
            return f"{steps[-1]}//{name}", target.position
        return "/".join(reversed(steps)), target.position

    def absence(self, node: Element) -> str:
        """A relative path that is not there."""
        if self.draws.chance(0.6):
            other = self.element()
            if not node.has_descendant(other.name):
                name = self.name(other.name)
                if self.draws.chance(0.2):
                    name += f"[{self.predicate(other, 0, True)}]"
                return self.draws.choice(("", "", ".//", "*/", "descendant::")) + name
        if not node.nodes and self.draws.chance(0.2):
            return "node()"
        absent = self.absent_attribute(node)
        return f"@{absent}" if absent else f"not(self::{self.name(node.name)})"

    def absent_attribute(self, node: Element) -> str:
        """An attribute that the node does not have, or ""."""
        if not node.attributes and self.draws.chance(0.1):
            return "*"
        name = self.draws.choice(self.attribute_names)
        return "" if any(name == present for present, _ in node.attributes) else self.name(name)

    # -- values --------------------------------------------------------------------------------

    def value(self, node: Element, holds: bool) -> str:
        """A comparison or function of a value at ``node``."""
        kind = self.draws.random()
        if kind < 0.3 and node.attributes:
            name, value = self.draws.choice(node.attributes)
            path = "@" + self.name(name)
            return self.compare.of_only(path, value[:SEEN_CHARS], len(value), holds)
        if kind < 0.6 and node.children:
            child = self.draws.choice(node.children)
            if kind < 0.5:
                return self.of_child(child, holds)
            path, count = self.draws.choice(
                (
                    (self.name(child.name), len(child.alike)),
                    (self.name(child.name), len(child.alike)),
                    ("*", len(node.children)),
                    ("node()", node.nodes),
                    ("@*", len(node.attributes)),
                )
            )
            return self.compare.number(f"count({path})", str(count), holds)
        if kind < 0.7 and node.texts:
            return self.of_text(node, holds)
        if kind < 0.8:
            if self.draws.chance(0.5):
                return self.of_name("name()", node.qualified_name, holds)
            return self.of_name("local-name()", node.name[1], holds)
        value = node.string(SEEN_CHARS)
        return self.compare.of_only(".", value, node.stop - node.start, holds)

    def of_name(self, function: str, name: str, holds: bool) -> str:
        """Mostly compared, as people do with names."""
        if self.draws.chance(0.7):
            return self.compare.string(function, name, holds) or f"{function} != ''"
        return self.compare.of_first(function, name[:SEEN_CHARS], len(name), holds)

    def of_child(self, child: Element, holds: bool) -> str:
        """Of the children of one name: of the only one, of some, or of the first."""
        path = self.name(child.name)
        value, chars = child.string(SEEN_CHARS), child.stop - child.start
        if len(child.alike) == 1:
            return self.compare.of_only(path, value, chars, holds)
        if holds and self.draws.chance(0.5):
            return self.compare.of_some(path, value, chars)
        return self.of_first(path, child.alike[0], holds)

    def of_first(self, path: str, first: Element, holds: bool) -> str:
        value = first.string(SEEN_CHARS)
        return self.compare.of_first(path, value, first.stop - first.start, holds)

    def of_text(self, node: Element, holds: bool) -> str:
        start, stop = node.texts[0]
        value = node.tree.text[start : min(stop, start + SEEN_CHARS)]
        of = self.compare.of_only if len(node.texts) == 1 else self.compare.of_first
        return of("text()", value, stop - start, holds)

    # -- names and elements --------------------------------------------------------------------

    def element(self) -> Element:
        """Any element: of each document as often, however long."""
        return self.draws.choice(self.draws.choice(self.trees).elements)

    def some_value(self) -> str:
        """Another value, for comparisons that are to be false."""
        element = self.element()
        if element.attributes and self.draws.chance(0.5):
            return self.draws.choice(element.attributes)[1][:SEEN_CHARS]
        return element.string(SEEN_CHARS)

    def name(self, name: Name) -> str:
        """A name with the prefix that is declared for its namespace."""
        written = self.written.get(name)
        if written is None:
            namespace, local = name
            written = f"{self.prefixes[namespace]}:{local}" if namespace else local
            self.written[name] = written
        return written
