"""Queries from a DTD: random paths, as YFilter's generator draws them (Diao et al., TODS 2003).

A path walks from a root of the DTD from an element to one that may stand in it. Each step is
written with ``//`` instead of ``/`` with one probability, and ``*`` instead of its name with
another. A path that begins with ``//`` begins at any element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tamis.errors import UsageError
from tamis.schema.graph import SchemaGraph
from tamis.workload.draws import Draws
from tamis.workload.queries.predicates import Predicates
from tamis.workload.queries.terrain import Terrain
from tamis.workload.values import Values


@dataclass(frozen=True)
class QueryOdds:
    """How queries are drawn.

    Attributes:
        depth: steps of a path, from and to; each number is as likely, but a path ends where nothing
            may stand in its last element.
        wildcard: P(*), the probability that a step has ``*`` for its name.
        descendant: P(//), the probability that a step is written with ``//``.
        skew: how unevenly children are drawn (Zipf's exponent over their order in the DTD).
        predicates: value predicates of a query, each on a step drawn at random.
        nested: nested paths of a query, in brackets on a step drawn at random.
        nested_depth: steps of a nested path, at most.
        consistent: walk along the DTD; else each step names any of its elements.
        values: what documents have in texts and attributes.
        selectivity: of a value predicate, see :class:`Predicates`.
    """

    depth: tuple[int, int] = (1, 6)
    wildcard: float = 0.2
    descendant: float = 0.2
    skew: float = 0.0
    predicates: int = 0
    nested: int = 0
    nested_depth: int = 2
    consistent: bool = True
    values: Values = field(default_factory=Values)
    selectivity: float | None = None

    def __post_init__(self) -> None:
        low, high = self.depth
        if not 1 <= low <= high <= 1000:
            raise UsageError(f"the depth of queries is from and to, 1 to 1,000, not {low}..{high}")
        for name in ("wildcard", "descendant", "selectivity"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise UsageError(f"the probability {name} is 0 to 1, not {share}")
        for name in ("predicates", "nested"):
            if not 0 <= getattr(self, name) <= 100:
                raise UsageError(f"{name} of a query are 0 to 100, not {getattr(self, name)}")
        if not 1 <= self.nested_depth <= 100:
            raise UsageError(f"the depth of nested paths is 1 to 100, not {self.nested_depth}")


def queries_from_dtd(
    graph: SchemaGraph,
    count: int,
    *,
    odds: QueryOdds | None = None,
    distinct: bool = False,
    seed: int = 0,
) -> Iterator[str]:
    """Draw linear path queries, with predicates and nested paths if the odds have them.

    Args:
        graph: the DTD, with its roots.
        count: how many.
        odds: how they are drawn.
        distinct: no two alike.
        seed: another one draws others.

    Raises:
        UsageError: the DTD has nothing to draw from, or not so many distinct queries.

    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd(
    ...     "<!ELEMENT bib (book*)> <!ELEMENT book (title, year)>"
    ...     "<!ELEMENT title (#PCDATA)> <!ELEMENT year (#PCDATA)>"))
    >>> list(queries_from_dtd(graph, 3, odds=QueryOdds(predicates=1, depth=(2, 3))))
    ['/bib/book[title <= 4]', '/bib/*[title <= 3]', '/bib/book/*[text() > 3]']
    """
    walk = _Walk(Terrain(graph), odds or QueryOdds(), Draws(seed, "queries"))
    return repeated(walk.query, count, distinct)


def repeated(draw: Callable[[], str], count: int, distinct: bool) -> Iterator[str]:
    """So many draws; if distinct, without those that came before.

    Raises:
        UsageError: nothing new comes any more.
    """
    if not distinct:
        for _ in range(count):
            yield draw()
        return
    seen: set[str] = set()
    misses = 0
    while len(seen) < count:
        text = draw()
        if text not in seen:
            seen.add(text)
            misses = 0
            yield text
        elif (misses := misses + 1) > _MISSES_MAX:
            raise UsageError(
                f"only {len(seen):,} distinct queries were found, {misses:,} draws brought nothing "
                "new: ask for fewer, for more steps or predicates, or do not ask for distinct ones"
            )


_MISSES_MAX = 50_000


class _Walk:
    def __init__(self, terrain: Terrain, odds: QueryOdds, draws: Draws) -> None:
        self.terrain = terrain
        self.odds = odds
        self.draws = draws
        self.predicates = Predicates(terrain, odds.values, odds.selectivity)
        self.of_rank: dict[int, Values] = {}
        if odds.predicates and not any(map(self.predicates.sources, terrain.names)):
            raise UsageError("no element has attributes or texts that predicates could compare")

    def query(self) -> str:
        """One query."""
        odds, draws = self.odds, self.draws
        while True:
            low, high = odds.depth
            steps, elements = self.path(low + draws.below(high - low + 1))
            if odds.nested:
                self.add_nested(steps, elements)
            if not odds.predicates or self.add_predicates(steps, elements):
                return "".join(steps)

    def path(self, length: int) -> tuple[list[str], list[str]]:
        """The steps of an absolute path, and the elements that they stand for."""
        terrain, draws = self.terrain, self.draws
        if draws.chance(self.odds.descendant):
            axis, element = "//", draws.choice(terrain.names)
        else:
            axis, element = "/", draws.choice(terrain.roots)
        steps = [axis + self.test(element)]
        elements = [element]
        self.extend(steps, elements, length)
        return steps, elements

    def extend(self, steps: list[str], elements: list[str], length: int) -> None:
        """Add steps below the last element, until there are so many or nothing is below."""
        draws, descendant = self.draws, self.odds.descendant
        element = elements[-1]
        while len(steps) < length:
            below = self.terrain.children[element]
            if not self.odds.consistent:
                below = self.terrain.names
            elif not below:
                return
            element = below[self.index(len(below))]
            axis = "//" if draws.chance(descendant) else "/"
            steps.append(axis + self.test(element))
            elements.append(element)

    def test(self, element: str) -> str:
        return "*" if self.draws.chance(self.odds.wildcard) else element

    def index(self, count: int) -> int:
        """One of 0, …, count - 1, by the skew."""
        if self.odds.skew == 0:
            return self.draws.below(count)
        ranks = self.of_rank.get(count)
        if ranks is None:
            ranks = self.of_rank[count] = Values(count, self.odds.skew)
        return ranks.draw(self.draws) - 1

    def add_nested(self, steps: list[str], elements: list[str]) -> None:
        """Add nested paths to steps that have something below them."""
        below = [i for i, element in enumerate(elements) if self.terrain.children[element]]
        for _ in range(self.odds.nested if below else 0):
            index = self.draws.choice(below)
            inside: list[str] = [""]
            self.extend(inside, [elements[index]], 2 + self.draws.below(self.odds.nested_depth))
            steps[index] += f"[{relative(''.join(inside))}]"

    def add_predicates(self, steps: list[str], elements: list[str]) -> bool:
        """Add value predicates to steps; False where no step has a value."""
        with_values = [i for i, e in enumerate(elements) if self.predicates.sources(e)]
        for _ in range(self.odds.predicates if with_values else 0):
            index = self.draws.choice(with_values)
            steps[index] += self.predicates.draw(elements[index], self.draws)
        return bool(with_values)


def relative(path: str) -> str:
    """A path that begins with ``/`` or ``//``, as one that begins at the context node.

    >>> relative("/a//b"), relative("//a")
    ('a//b', './/a')
    """
    return "." + path if path.startswith("//") else path[1:]
