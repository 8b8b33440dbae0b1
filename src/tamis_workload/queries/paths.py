"""Queries from a DTD: random paths with the parameters of YFilter's generator.

Diao and others (ACM Transactions on Database Systems 28(4), 2003) name the depth, P(*), P(//), the
predicates and nested paths of a query, and the skew. A path walks from the root of the DTD from an
element to one that may stand in it; each step is written with ``//`` instead of ``/`` with one
probability, and ``*`` instead of its name with another.

What they do not say is decided here: a path that begins with ``//`` begins at any element, each as
likely; lengths are drawn evenly, but a path ends early where nothing may stand in its last element,
so that of a shallow DTD short paths are the most.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.core.errors import UsageError
from tamis.schema.graph import SchemaGraph
from tamis_workload.draws import Draws, Values
from tamis_workload.names import QueryNames
from tamis_workload.queries.queries import Queries, ValuePredicates, check_number, check_share, take


@dataclass(frozen=True)
class QueryOptions:
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
        selectivity: of a value predicate, see :class:`ValuePredicates`.
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
        check_share(
            wildcard=self.wildcard, descendant=self.descendant, selectivity=self.selectivity
        )
        check_number(
            predicates=(self.predicates, 0, 100),
            nested=(self.nested, 0, 100),
            nested_depth=(self.nested_depth, 1, 100),
        )


def queries_from_dtd(
    graph: SchemaGraph,
    count: int,
    *,
    options: QueryOptions | None = None,
    distinct: bool = False,
    seed: int = 0,
) -> Queries:
    """Draw linear path queries, with predicates and nested paths if the options have them.

    Args:
        graph: the DTD, with its roots.
        count: how many.
        options: how they are drawn.
        distinct: no two alike.
        seed: another one draws others.

    Raises:
        UsageError: the DTD has nothing to draw from, or not so many distinct queries.

    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd(
    ...     "<!ELEMENT bib (book*)> <!ELEMENT book (title, year)>"
    ...     "<!ELEMENT title (#PCDATA)> <!ELEMENT year (#PCDATA)>"))
    >>> list(queries_from_dtd(graph, 3, options=QueryOptions(predicates=1, depth=(2, 3))))
    ['/bib/book[title > 6]', '/bib/book[title != 1]', '/bib/book/year[text() = 7]']
    """
    names = QueryNames(graph)
    generator = _PathGenerator(names, options or QueryOptions(), Draws(seed, "queries"))
    return Queries(take(generator.query, count, distinct), names.namespaces)


_ATTEMPTS = 10_000


class _PathGenerator:
    def __init__(self, names: QueryNames, options: QueryOptions, draws: Draws) -> None:
        self.names = names
        self.options = options
        self.draws = draws
        self.predicates = ValuePredicates(names, options.values, options.selectivity)
        self.of_rank: dict[int, Values] = {}
        if options.predicates and not any(map(self.predicates.sources, names.elements)):
            raise UsageError("no element has attributes or texts that predicates could compare")

    def query(self) -> str:
        """One query."""
        options, draws = self.options, self.draws
        low, high = options.depth
        for _ in range(_ATTEMPTS):
            steps, elements = self.path(low + draws.below(high - low + 1))
            if options.nested:
                self.add_nested(steps, elements)
            if not options.predicates or self.add_predicates(steps, elements):
                return "".join(steps)
        raise UsageError(
            f"no path of {low} to {high} steps has a value to compare, or hardly any: "
            f"{_ATTEMPTS:,} were drawn; ask for longer paths, or for no predicates"
        )

    def path(self, length: int) -> tuple[list[str], list[str]]:
        """The steps of an absolute path, and the elements that they stand for."""
        names, draws = self.names, self.draws
        if draws.chance(self.options.descendant):
            axis, element = "//", draws.choice(names.elements)
        else:
            axis, element = "/", names.root
        steps = [axis + self.test(element)]
        elements = [element]
        self.extend(steps, elements, length)
        return steps, elements

    def extend(self, steps: list[str], elements: list[str], length: int) -> None:
        """Add steps below the last element, until there are so many or nothing is below."""
        draws, descendant = self.draws, self.options.descendant
        element = elements[-1]
        while len(steps) < length:
            below = self.names.children[element]
            if not self.options.consistent:
                below = self.names.elements
            elif not below:
                return
            element = below[self.index(len(below))]
            axis = "//" if draws.chance(descendant) else "/"
            steps.append(axis + self.test(element))
            elements.append(element)

    def test(self, element: str) -> str:
        return "*" if self.draws.chance(self.options.wildcard) else element

    def index(self, count: int) -> int:
        """One of 0, …, count - 1, by the skew."""
        if self.options.skew == 0:
            return self.draws.below(count)
        ranks = self.of_rank.get(count)
        if ranks is None:
            ranks = self.of_rank[count] = Values(count, self.options.skew)
        return ranks.draw(self.draws) - 1

    def add_nested(self, steps: list[str], elements: list[str]) -> None:
        """Add nested paths to steps that have something below them."""
        below = [i for i, element in enumerate(elements) if self.names.children[element]]
        for _ in range(self.options.nested if below else 0):
            index = self.draws.choice(below)
            inside: list[str] = [""]
            self.extend(inside, [elements[index]], 2 + self.draws.below(self.options.nested_depth))
            steps[index] += f"[{relative(''.join(inside))}]"

    def add_predicates(self, steps: list[str], elements: list[str]) -> bool:
        """Add value predicates to steps; False where no step has a value."""
        with_values = [i for i, e in enumerate(elements) if self.predicates.sources(e)]
        for _ in range(self.options.predicates if with_values else 0):
            index = self.draws.choice(with_values)
            steps[index] += self.predicates.draw(elements[index], self.draws)
        return bool(with_values)


def relative(path: str) -> str:
    """A path that begins with ``/`` or ``//``, as one that begins at the context node.

    >>> relative("/a//b"), relative("//a")
    ('a//b', './/a')
    """
    return "." + path if path.startswith("//") else path[1:]
