"""Twigs from a DTD: tree patterns of a chosen size and shape, as in the GPU paper's experiments.

Absalyamov et al. (section 5) draw twigs of 5, 10 and 15 nodes with 1, 3 and 6 split nodes of at
most 4 children. A shape is drawn first, and then an element of the DTD for each of its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tamis.core.errors import UsageError
from tamis.schema.graph import SchemaGraph
from tamis_workload.draws import Draws, Values
from tamis_workload.names import QueryNames
from tamis_workload.queries.queries import Queries, ValuePredicates, check_number, check_share, take


@dataclass(frozen=True)
class TwigOptions:
    """How twigs are drawn.

    Attributes:
        nodes: steps of a twig, all together.
        splits: nodes with more than one child.
        children: of a split node, at most.
        wildcard: P(*), the probability that a node has ``*`` for its name.
        descendant: P(//), the probability that a node is below its parent instead of in it.
        predicates: value predicates of a twig, each on a node drawn at random.
        values: what documents have in texts and attributes.
        selectivity: of a value predicate, see :class:`ValuePredicates`.
    """

    nodes: int = 15
    splits: int = 6
    children: int = 4
    wildcard: float = 0.1
    descendant: float = 0.1
    predicates: int = 0
    values: Values = field(default_factory=Values)
    selectivity: float | None = None

    def __post_init__(self) -> None:
        if self.splits < 0 or self.children < 2 or self.nodes < max(1, 2 * self.splits + 1):
            raise UsageError(
                f"{self.splits} split nodes with 2 to {self.children} children need "
                f"{2 * self.splits + 1} nodes at least, not {self.nodes}"
            )
        check_number(nodes=(self.nodes, 1, 400), predicates=(self.predicates, 0, 100))
        check_share(
            wildcard=self.wildcard, descendant=self.descendant, selectivity=self.selectivity
        )


def twigs_from_dtd(
    graph: SchemaGraph,
    count: int,
    *,
    options: TwigOptions | None = None,
    distinct: bool = False,
    seed: int = 0,
) -> Queries:
    """Draw twigs, each a part of some tree that the DTD's graph permits.

    The graph knows no order and no choice: some twigs ask for elements that exclude each other. So
    may value predicates, which are drawn one by one.

    Args:
        graph: the DTD, with its roots.
        count: how many.
        options: how they are drawn.
        distinct: no two alike.
        seed: another one draws others.

    Raises:
        UsageError: the DTD has no room for such twigs, or not so many distinct ones.

    >>> from tamis.schema.reader import parse_dtd
    >>> dtd = parse_dtd("<!ELEMENT a (b | c)*> <!ELEMENT b (a*)> <!ELEMENT c (a*)>")
    >>> list(twigs_from_dtd(SchemaGraph.of(dtd), 2, options=TwigOptions(nodes=6, splits=2)))
    ['/a[c]/b/a[c]/b', '/a[b[a][a]/a]/*']
    """
    names = QueryNames(graph)
    generator = _TwigGenerator(names, options or TwigOptions(), Draws(seed, "twigs"))
    return Queries(take(generator.twig, count, distinct), names.namespaces)


class _Shape(NamedTuple):
    """A tree of nodes 0, 1, …, each after the one that it is below.

    Attributes:
        children: of each node, those below it.
        heights: of each node, the levels from it down, itself included.
    """

    children: list[range]
    heights: list[int]


class _TwigGenerator:
    def __init__(self, names: QueryNames, options: TwigOptions, draws: Draws) -> None:
        self.names = names
        self.options = options
        self.draws = draws
        self.predicates = ValuePredicates(names, options.values, options.selectivity)
        self._tall: dict[tuple[str, int], tuple[str, ...]] = {}

    def twig(self) -> str:
        """One twig."""
        options = self.options
        for _ in range(_ATTEMPTS):
            shape = self.shape()
            is_below = self.draws.chance(options.descendant)
            elements = self.plant(shape, self.names.elements if is_below else (self.names.root,))
            predicates = self.values(elements) if elements else None
            if predicates is not None:
                text = self.text(0, shape, elements, predicates)
                return ("//" if is_below else "/") + text
        raise UsageError(
            f"the DTD has no room for twigs of {options.nodes} nodes with {options.splits} splits"
            f"{' and values to compare' if options.predicates else ''}: {_ATTEMPTS:,} shapes were "
            "tried; ask for fewer nodes"
        )

    def shape(self) -> _Shape:
        """A random tree with the numbers of nodes and splits that were asked for."""
        options, random = self.options, self.draws.random
        numbers = [2] * options.splits
        left_over = options.nodes - 2 * options.splits - 1  # they make chains or branches
        for _ in range(left_over):
            index = int(random() * (options.splits + 1))
            if index < options.splits and numbers[index] < options.children:
                numbers[index] += 1
            else:
                numbers.append(1)
        children = [_NONE] * options.nodes
        slots = [0]  # nodes that were given no children yet
        next_node = 1
        for left in range(len(numbers), 0, -1):
            node = _taken(slots, int(random() * len(slots)))
            number = _taken(numbers, int(random() * left))
            children[node] = range(next_node, next_node + number)
            slots += children[node]
            next_node += number
        heights = [1] * options.nodes
        for node in range(options.nodes - 1, -1, -1):
            for child in children[node]:
                if heights[child] >= heights[node]:
                    heights[node] = heights[child] + 1
        return _Shape(children, heights)

    def plant(self, shape: _Shape, starts: tuple[str, ...]) -> list[str]:
        """An element for each node; none where the shape is too tall for the DTD."""
        levels, random = self.names.levels, self.draws.random
        children, heights = shape
        tall: Sequence[str] = [name for name in starts if levels[name] >= heights[0]]
        if not tall:
            return []
        elements = [tall[int(random() * len(tall))]] * len(children)
        for node, below in enumerate(children):
            for child in below:
                tall = self.tall_below(elements[node], heights[child])
                if not tall:
                    return []
                if child > below.start:
                    # Two equal branches say no more than one, so they are only the last resort.
                    used = elements[below.start : child]
                    tall = [name for name in tall if name not in used] or tall
                elements[child] = tall[int(random() * len(tall))]
        return elements

    def tall_below(self, element: str, height: int) -> tuple[str, ...]:
        """The elements in an element that have so many levels, themselves included."""
        found = self._tall.get((element, height))
        if found is None:
            levels = self.names.levels
            below = self.names.children[element]
            found = tuple(name for name in below if levels[name] >= height)
            self._tall[element, height] = found
        return found

    def values(self, elements: list[str]) -> dict[int, str] | None:
        """The value predicates of nodes; None where no node has a value to compare."""
        if not self.options.predicates:
            return {}
        with_values = [n for n, element in enumerate(elements) if self.predicates.sources(element)]
        if not with_values:
            return None
        found: dict[int, str] = {}
        for _ in range(self.options.predicates):
            node = self.draws.choice(with_values)
            predicate = self.predicates.draw(elements[node], self.draws)
            found[node] = found.get(node, "") + predicate
        return found

    def text(
        self, node: int, shape: _Shape, elements: list[str], predicates: dict[int, str]
    ) -> str:
        """A node and what is below it: its last child goes on, the others are in brackets."""
        options, random = self.options, self.draws.random
        text = "*" if random() < options.wildcard else elements[node]
        if predicates:
            text += predicates.get(node, "")
        children = shape.children[node]
        last = children.stop - 1
        for child in children:
            is_below = random() < options.descendant
            path = self.text(child, shape, elements, predicates)
            if child == last:
                text += f"//{path}" if is_below else f"/{path}"
            else:
                text += f"[.//{path}]" if is_below else f"[{path}]"
        return text


def _taken(items: list[int], index: int) -> int:
    """Take an item out of a list whose order does not matter."""
    item = items[index]
    items[index] = items[-1]
    items.pop()
    return item


_NONE = range(0)
_ATTEMPTS = 10_000
