"""Expressions that are true of a given document, by construction, and near misses."""

from __future__ import annotations

from collections.abc import Sequence

from tamis_workload.observed.comparisons import SEEN_CHARS
from tamis_workload.observed.predicates import Predicates
from tamis_workload.observed.trees import Element

_WRITTEN_STEPS = 10  # of a deeper path, about so many are written


class Expressions:
    """Draws whole expressions; ``holds`` asks for what is true of a document, or for a near miss.

    What is asked to be true is true, but for ``not(path)``. A near miss is a path with one fault at
    the element that it leads to, and may be true elsewhere.
    """

    def __init__(self, predicates: Predicates) -> None:
        self.predicates = predicates
        self.compare = predicates.compare
        self.draws = predicates.draws
        self.name = predicates.name
        self.element = predicates.element

    # -- whole expressions ---------------------------------------------------------------------

    def expression(self, holds: bool) -> str:
        """A path mostly, sometimes several that operators join, a negation or a comparison."""
        kind = self.draws.random()
        if kind < 0.75:
            return self.path(self.element(), holds)
        if kind < 0.85:
            return self.joined(holds)
        if kind < 0.9:
            return f"not({self.path(self.element(), not holds)})"
        if kind < 0.92:
            return f"boolean({self.path(self.element(), holds)})"
        return self.comparison_at_root(self.element(), holds)

    def joined(self, holds: bool) -> str:
        """Two paths of one document, since both have to be true of one."""
        tree = self.draws.choice(self.predicates.trees)
        operator = self.draws.choice((" and ", " or ", " | "))
        if operator == " and ":
            truths = (True, True) if holds else (True, False)
        else:
            truths = (True, False) if holds else (False, False)
        if self.draws.chance(0.5):
            truths = truths[::-1]
        return operator.join(self.path(self.draws.choice(tree.elements), t) for t in truths)

    def comparison_at_root(self, element: Element, holds: bool) -> str:
        """A comparison or function of all elements of a name, or of the first of them."""
        path = "//" + self.name(element.name)
        tree = element.tree
        kind = self.draws.random()
        if kind < 0.2:
            child = self.draws.choice(tree.elements[0].children or tree.elements[:1])
            parents = "/" if child.parent is None else f"/{self.name(tree.elements[0].name)}/"
            count = f"count({parents}{self.name(child.name)})"
            return self.compare.number(count, str(len(child.alike)), holds)
        if holds and kind < 0.6:
            value = element.string(SEEN_CHARS)
            return self.compare.of_some(path, value, element.stop - element.start)
        first = tree.elements[tree.places[element.name][0]]
        return self.predicates.of_first(path, first, holds)

    # -- paths ---------------------------------------------------------------------------------

    def path(self, element: Element, holds: bool) -> str:
        """A path to the element, loosened, with predicates; not ``holds`` asks for one fault."""
        steps = element.path
        fault = "" if holds else self.draws.choice(("name", "predicate", "predicate", "tail"))
        tail = self.tail(element, fault != "tail")
        if fault == "tail" and not tail:
            fault = "name"
        skipping = max(0.3, 1 - _WRITTEN_STEPS / len(steps))
        last = len(steps) - 1
        faulty = self.draws.below(len(steps)) if fault in ("name", "predicate") else -1
        text = ""
        skipped = False
        for index, node in enumerate(steps):
            if index not in (last, faulty) and self.draws.chance(skipping):
                skipped = True
                continue
            text += "//" if skipped else "/"
            skipped = False
            is_faulty = index == faulty
            text += self.step(node, is_faulty and fault == "name", steps)
            if index == last or is_faulty or self.draws.chance(0.25):
                position = self.position_of(node, text)
                text += self.predicates.brackets(
                    node, position, not (is_faulty and fault == "predicate")
                )
        if self.draws.chance(0.03):  # the context of the whole is the document node
            text = "." + text if text.startswith("//") else text[1:]
        return text + tail

    def step(self, node: Element, fault: bool, path: Sequence[Element]) -> str:
        """Axis and node test; ``fault`` asks for another element's name, at times one nearby."""
        kind = self.draws.random()
        axis = ""
        if kind < 0.03:
            axis = "descendant-or-self::"
        elif kind < 0.06:
            axis = "descendant::"
        elif kind < 0.08:
            axis = "child::"
        if fault:
            other = self.draws.choice(path) if self.draws.chance(0.4) else self.element()
            # In documents of few names nothing better may be at hand than a name that none has.
            return axis + self.name(other.name) + ("_" if other.name == node.name else "")
        kind = self.draws.random()
        if kind < 0.15:
            return f"{axis}*"
        if kind < 0.17:
            return f"{axis}*/self::{self.name(node.name)}"
        if kind < 0.2 and node.name[0]:
            return f"{axis}{self.predicates.prefixes[node.name[0]]}:*"
        return axis + self.name(node.name)

    def position_of(self, node: Element, path: str) -> int:
        """The position that the node has at the end of this path, 0 where none may be asked for."""
        step = path[path.rfind("/") + 1 :].removeprefix("child::")
        if "::" in step or step.endswith(":*"):
            return 0
        return node.number if step == "*" else node.position

    def tail(self, element: Element, holds: bool) -> str:
        """Sometimes a last step to an attribute or text; "" where there is none to be had."""
        kind = self.draws.random()
        if holds:
            kind *= 4  # most paths end with their element
        if kind < 0.3:
            return self.attribute_tail(element, holds)
        if kind < 0.6:
            return self.text_tail(element, holds)
        if kind < 0.72:
            return "/node()" if (element.nodes > 0) == holds else ""
        if kind < 0.8 and holds:
            return self.draws.choice(("/.", "/self::node()", "/self::*", "//."))
        if kind < 0.9 and holds == (element.start < element.stop):
            return "//text()"
        return ""

    def attribute_tail(self, element: Element, holds: bool) -> str:
        if not holds:
            absent = self.predicates.absent_attribute(element)
            return f"/@{absent}" if absent else ""
        if not element.attributes:
            return ""
        name, value = self.draws.choice(element.attributes)
        if self.draws.chance(0.2):
            compared = self.compare.of_only(".", value[:SEEN_CHARS], len(value), True)
            return f"/@{self.name(name)}[{compared}]"
        if self.draws.chance(0.1):
            return "/@*"
        return self.draws.choice(("/@", "/@", "//@", "/attribute::")) + self.name(name)

    def text_tail(self, element: Element, holds: bool) -> str:
        if not holds:
            return f"/text()[{len(element.texts) + 1}]"
        if not element.texts:
            return ""
        place = self.draws.below(len(element.texts))
        start, stop = element.texts[place]
        kind = self.draws.random()
        if kind < 0.3:
            value = element.tree.text[start : min(stop, start + SEEN_CHARS)]
            return f"/text()[{self.compare.of_only('.', value, stop - start, True)}]"
        return f"/text()[{place + 1}]" if kind < 0.5 else "/text()"
