"""Random subscriptions drawn from the structure of given documents.

About half are true of the document that they were drawn from: a path to a real node, with
predicates that are true there; the other half has one thing changed (a name, a value, an order).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from lxml import etree

Element = etree._Element


class Draw:
    """Draws subscriptions from parsed documents; the same seed gives the same subscriptions."""

    def __init__(self, trees: Sequence[etree._ElementTree], seed: int) -> None:
        self.random = random.Random(seed)
        self.documents = [
            [node for node in tree.getroot().iter() if isinstance(node.tag, str)] for tree in trees
        ]
        self.namespaces: dict[str, str] = {}
        for elements in self.documents:
            for element in elements:
                self.learn(element.tag)
                for name in element.attrib:
                    self.learn(name)
        self.prefixes = {uri: prefix for prefix, uri in self.namespaces.items()}

    def learn(self, tag: str) -> None:
        uri = etree.QName(tag).namespace
        if uri and uri not in self.namespaces.values():
            self.namespaces[f"n{len(self.namespaces)}"] = uri

    def subscriptions(self, count: int) -> list[str]:
        return [self.subscription() for _ in range(count)]

    # -- whole expressions ---------------------------------------------------------------------

    def subscription(self) -> str:
        """One expression: mostly a path, sometimes several joined by operators."""
        kind = self.random.random()
        if kind < 0.75:
            return self.path()
        if kind < 0.85:
            operator = self.random.choice([" and ", " or ", " | "])
            return self.path() + operator + self.path()
        if kind < 0.92:
            return f"not({self.path()})"
        return self.comparison_at_root()

    def path(self) -> str:
        """A path to a real element, loosened, with predicates; half of them with a fault."""
        element = self.element()
        steps = [element, *element.iterancestors()][::-1]
        text = ""
        skipped = False
        fault = self.random.choice([None, "name", "predicate"])
        faulty = self.random.randrange(len(steps))
        for index, node in enumerate(steps):
            last = index == len(steps) - 1
            if not last and self.random.random() < 0.3:
                skipped = True
                continue
            axis = "//" if skipped else "/"
            if self.random.random() < 0.05:
                axis += self.random.choice(["descendant-or-self::", "descendant::"])
            skipped = False
            name = self.name(node)
            if fault == "name" and index == faulty:
                name = self.name(self.element())
            elif self.random.random() < 0.15:
                name = "*"
            text += axis + name
            if last or self.random.random() < 0.25:
                depth = 1 if axis.endswith("::") else 2  # positions stand on child steps only
                text += self.predicates(node, fault == "predicate" and index == faulty, depth)
        return text + self.tail(element)

    def tail(self, element: Element) -> str:
        """Sometimes a last step to an attribute or text."""
        kind = self.random.random()
        if kind < 0.1:
            return f"/@{self.attribute_name(element)}"
        if kind < 0.15:
            return "/text()"
        if kind < 0.18:
            return "/node()"
        if kind < 0.2:
            return "/."
        return ""

    def comparison_at_root(self) -> str:
        element = self.element()
        path = "//" + self.name(element)
        return self.comparison_of(path, self.string(element))

    # -- predicates ----------------------------------------------------------------------------

    def predicates(self, node: Element, fault: bool, depth: int) -> str:
        count = self.random.choice([0, 0, 1, 1, 1, 2]) if not fault else 1
        source = self.element() if fault else node
        return "".join(f"[{self.predicate(source, depth)}]" for _ in range(count))

    def predicate(self, node: Element, depth: int) -> str:
        """An expression that is true at ``node``, or nearly."""
        kind = self.random.random()
        if depth and kind < 0.12:
            return f"{self.predicate(node, depth - 1)} and {self.predicate(node, depth - 1)}"
        if depth and kind < 0.24:
            other = self.predicate(self.element(), depth - 1)
            return f"({self.predicate(node, depth - 1)} or {other})"
        if depth and kind < 0.32:
            return f"not({self.predicate(self.element(), depth - 1)})"
        if kind < 0.4:
            return self.position(node) if depth == 2 else self.existence(node, depth)
        if kind < 0.6:
            return self.existence(node, depth)
        return self.value(node)

    def position(self, node: Element) -> str:
        same = list(node.itersiblings(tag=node.tag, preceding=True))
        return str(len(same) + self.random.choice([1, 1, 1, 2]))

    def existence(self, node: Element, depth: int) -> str:
        below = [n for n in node.iterdescendants() if isinstance(n.tag, str)][:200]
        kind = self.random.random()
        if kind < 0.25 or not below:
            return f"@{self.attribute_name(node)}"
        target = self.random.choice(below)
        if target.getparent() is node:
            path = self.name(target)
        elif self.random.random() < 0.5:
            path = ".//" + self.name(target)
        else:
            path = f"*/{self.name(target)}"
        if depth and self.random.random() < 0.3:
            path += f"[{self.predicate(target, depth - 1)}]"
        return path

    def value(self, node: Element) -> str:
        """A comparison or function of a value near ``node``."""
        kind = self.random.random()
        children = [n for n in node if isinstance(n.tag, str)]
        if kind < 0.3 and node.attrib:
            name = self.random.choice(list(node.attrib))
            return self.comparison_of("@" + self.qname(name), str(node.attrib[name]))
        if kind < 0.5 and children:
            child = self.random.choice(children)
            return self.comparison_of(self.name(child), self.string(child))
        if kind < 0.6 and children:
            tag = self.random.choice(children).tag
            count = sum(1 for child in children if child.tag == tag)
            operator = self.random.choice(["=", ">", "<=", "!="])
            return f"count({self.qname(tag)}) {operator} {self.random.choice([count, count - 1])}"
        if kind < 0.7:
            return f"text() = {self.literal((node.text or '')[:60])}"
        if kind < 0.8:
            function = self.random.choice(["name()", "local-name()"])
            return f"{function} = {self.literal(etree.QName(node).localname)}"
        return self.comparison_of(".", self.string(node))

    def comparison_of(self, path: str, value: str) -> str:
        """A comparison or string function of a path whose first node has this string value."""
        kind = self.random.random()
        if kind < 0.35:
            operator = self.random.choice(["=", "=", "!=", "<", ">="])
            return f"{path} {operator} {self.number_or_literal(value)}"
        if kind < 0.5:
            start = self.random.randrange(len(value) + 1)
            part = value[start : start + self.random.randrange(1, 12)]
            return f"contains({path}, {self.literal(part)})"
        if kind < 0.65:
            return f"starts-with({path}, {self.literal(value[: self.random.randrange(6)])})"
        if kind < 0.8:
            operator = self.random.choice(["=", "<", ">", ">="])
            return f"string-length({path}) {operator} {len(value) + self.random.choice([0, 0, 1])}"
        normalized = " ".join(value.split())
        return f"normalize-space({path}) = {self.literal(normalized[:80])}"

    # -- names and literals --------------------------------------------------------------------

    def element(self) -> Element:
        return self.random.choice(self.random.choice(self.documents))

    def name(self, element: Element) -> str:
        return self.qname(element.tag)

    def qname(self, tag: str) -> str:
        name = etree.QName(tag)
        if not name.namespace:
            return name.localname
        if name.namespace == "http://www.w3.org/XML/1998/namespace":
            return f"xml:{name.localname}"
        local = "*" if self.random.random() < 0.05 else name.localname
        return f"{self.prefixes[name.namespace]}:{local}"

    def attribute_name(self, element: Element) -> str:
        if not element.attrib or self.random.random() < 0.1:
            return "*"
        return self.qname(self.random.choice(list(element.attrib)))

    def string(self, element: Element) -> str:
        return "".join(element.itertext(with_tail=False))[:200]

    def number_or_literal(self, value: str) -> str:
        try:
            number = float(value)
        except ValueError:
            return self.literal(value[:80])
        if not abs(number) < 1e9 or self.random.random() < 0.3:
            return self.literal(value)
        return f"{number + self.random.choice([0, 0, 1, -1]):.4f}".rstrip("0").rstrip(".")

    def literal(self, value: str) -> str:
        if "'" in value and '"' in value:
            value = value[: value.index("'")]
        return f'"{value}"' if "'" in value else f"'{value}'"
