"""Twigs from a DTD: tree patterns of a chosen size and shape, as in the GPU paper's experiments.

Absalyamov et al. (section 5) draw twigs of 5, 10 and 15 nodes with 1, 3 and 6 split nodes of at
most 4 children. A shape is drawn first, and then an element of the DTD for each of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tamis.errors import UsageError
from tamis.schema.graph import SchemaGraph
from tamis.workload.draws import Draws
from tamis.workload.predicates import Predicates
from tamis.workload.queries import relative, repeated
from tamis.workload.terrain import Terrain
from tamis.workload.values import Values


@dataclass(frozen=True)
class TwigOdds:
    """How twigs are drawn.

    Attributes:
        nodes: steps of a twig, all together.
        splits: nodes with more than one child.
        children: of a split node, at most.
        wildcard: P(*), the probability that a node has ``*`` for its name.
        descendant: P(//), the probability that a node is below its parent instead of in it.
        predicates: value predicates of a twig, each on a node drawn at random.
        values: what documents have in texts and attributes.
        selectivity: of a value predicate, see :class:`Predicates`.
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
        if self.nodes > 400:
            raise UsageError(f"a twig has 400 nodes at most, not {self.nodes}")


def twigs_from_dtd(
    graph: SchemaGraph,
    count: int,
    *,
    odds: TwigOdds | None = None,
    distinct: bool = False,
    seed: int = 0,
) -> Iterator[str]:
    """Draw twigs, each with a match in some document that the DTD's graph permits.

    Args:
        graph: the DTD, with its roots.
        count: how many.
        odds: how they are drawn.
        distinct: no two alike.
        seed: another one draws others.

    Raises:
        UsageError: the DTD has no room for such twigs, or not so many distinct ones.

    >>> from tamis.schema.reader import parse_dtd
    >>> dtd = parse_dtd("<!ELEMENT a (b | c)*> <!ELEMENT b (a*)> <!ELEMENT c (a*)>")
    >>> list(twigs_from_dtd(SchemaGraph.of(dtd), 2, odds=TwigOdds(nodes=6, splits=2)))
    ['/b[a]/a[c]/b/a', '/a[b[a][a]/a]/*']
    """
    planter = _Planter(Terrain(graph), odds or TwigOdds(), Draws(seed, "twigs"))
    return repeated(planter.twig, count, distinct)


class _Node:
    """A node of a twig.

    Attributes:
        children: what is below it.
        height: levels from it down, itself included.
        element: what it stands for in the DTD.
        predicates: on its values, as they are written.
    """

    __slots__ = ("children", "element", "height", "predicates")

    def __init__(self) -> None:
        self.children: list[_Node] = []
        self.height = 1
        self.element = ""
        self.predicates = ""


class _Planter:
    def __init__(self, terrain: Terrain, odds: TwigOdds, draws: Draws) -> None:
        self.terrain = terrain
        self.odds = odds
        self.draws = draws
        self.predicates = Predicates(terrain, odds.values, odds.selectivity)
        self._tall: dict[tuple[str, int], tuple[str, ...]] = {}

    def twig(self) -> str:
        """One twig."""
        odds = self.odds
        for _ in range(_ATTEMPTS):
            nodes = self.shape()
            is_below = self.draws.chance(odds.descendant)
            starts = self.terrain.names if is_below else self.terrain.roots
            if self.plant(nodes, starts) and self.add_predicates(nodes):
                return ("//" if is_below else "/") + self.text(nodes[0])
        raise UsageError(
            f"the DTD has no room for twigs of {odds.nodes} nodes with {odds.splits} splits"
            f"{' and values to compare' if odds.predicates else ''}: {_ATTEMPTS:,} shapes were "
            "tried; ask for fewer nodes"
        )

    def shape(self) -> list[_Node]:
        """The nodes of a tree, each before what is below it, with heights."""
        odds, draws = self.odds, self.draws
        numbers = [2] * odds.splits
        for _ in range(odds.nodes - 2 * odds.splits - 1):  # nodes left over make chains or branches
            index = draws.below(odds.splits + 1)
            if index < odds.splits and numbers[index] < odds.children:
                numbers[index] += 1
            else:
                numbers.append(1)
        nodes = [_Node()]
        slots = [nodes[0]]  # nodes that nobody gave children yet
        while numbers:
            node = slots.pop(draws.below(len(slots)))
            node.children = [_Node() for _ in range(numbers.pop(draws.below(len(numbers))))]
            slots += node.children
        for node in nodes:
            nodes += node.children
        for node in reversed(nodes):
            node.height = 1 + max((child.height for child in node.children), default=0)
        return nodes

    def plant(self, nodes: list[_Node], starts: tuple[str, ...]) -> bool:
        """Find an element for each node; False where the shape is too tall for the DTD."""
        levels, draws = self.terrain.levels, self.draws
        tall = [name for name in starts if levels[name] >= nodes[0].height]
        if not tall:
            return False
        nodes[0].element = draws.choice(tall)
        for node in nodes:
            used: set[str] = set()
            for child in node.children:
                below = self.tall_below(node.element, child.height)
                # Two equal branches say no more than one, so they are only the last resort.
                fresh = [name for name in below if name not in used]
                if not below:
                    return False
                child.element = draws.choice(fresh or below)
                used.add(child.element)
        return True

    def tall_below(self, element: str, height: int) -> tuple[str, ...]:
        """The elements in an element that have so many levels, themselves included."""
        found = self._tall.get((element, height))
        if found is None:
            levels = self.terrain.levels
            below = self.terrain.children[element]
            found = tuple(name for name in below if levels[name] >= height)
            self._tall[element, height] = found
        return found

    def add_predicates(self, nodes: list[_Node]) -> bool:
        """Add value predicates to nodes; False where no node has a value."""
        if not self.odds.predicates:
            return True
        with_values = [node for node in nodes if self.predicates.sources(node.element)]
        for _ in range(self.odds.predicates if with_values else 0):
            node = self.draws.choice(with_values)
            node.predicates += self.predicates.draw(node.element, self.draws)
        return bool(with_values)

    def text(self, node: _Node) -> str:
        """A node and what is below it: its last child goes on, the others are in brackets."""
        draws, odds = self.draws, self.odds
        text = "*" if draws.chance(odds.wildcard) else node.element
        text += node.predicates
        for index, child in enumerate(node.children):
            path = ("//" if draws.chance(odds.descendant) else "/") + self.text(child)
            text += path if index == len(node.children) - 1 else f"[{relative(path)}]"
        return text


_ATTEMPTS = 10_000
