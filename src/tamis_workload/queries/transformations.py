"""Transformations from a DTD: FLWR expressions with the parameters of the broker paper.

Diao and Franklin (*Query Processing for High-Volume XML Message Brokering*, VLDB 2003, Table 1)
name the depth D1 of binding paths, D2 of predicate and return paths, how many there are of these
(PP, RP) and the probability of ``//`` (DSProb); constants are of MaxValue values. Paths walk down
the DTD.

What they do not say is decided here: a binding path has D1 steps, the last one to an element that
may have others inside, and begins at the root of the DTD; predicates compare with ``=``; lengths of
the other paths are drawn evenly from 1 to D2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.core.errors import UsageError
from tamis.schema.graph import SchemaGraph
from tamis_workload.draws import Draws, Values
from tamis_workload.names import QueryNames
from tamis_workload.queries.queries import Queries, check_number, check_share, take


@dataclass(frozen=True)
class TransformationOptions:
    """How transformations are drawn.

    Attributes:
        binding_depth: D1, the steps of a binding path.
        depth: D2, the steps of a predicate or return path, at most.
        predicates: PP.
        returns: RP, distinct return paths.
        descendant: DSProb, the probability that a step is written with ``//``.
        values: what documents have in texts and attributes (MaxValue of them).
    """

    binding_depth: int = 2
    depth: int = 2
    predicates: int = 1
    returns: int = 2
    descendant: float = 0.2
    values: Values = field(default_factory=Values)

    def __post_init__(self) -> None:
        check_share(descendant=self.descendant)
        check_number(
            binding_depth=(self.binding_depth, 1, 100),
            depth=(self.depth, 1, 100),
            predicates=(self.predicates, 0, 100),
            returns=(self.returns, 1, 100),
        )


def transformations_from_dtd(
    graph: SchemaGraph,
    count: int,
    *,
    options: TransformationOptions | None = None,
    distinct: bool = False,
    seed: int = 0,
) -> Queries:
    """Draw transformations, for :class:`tamis.Transformer`.

    Args:
        graph: the DTD, with its root.
        count: how many.
        options: how they are drawn.
        distinct: no two alike; the predicates, and the return paths, of each are sorted.
        seed: another one draws others.

    Raises:
        UsageError: the DTD has nothing to draw from, or not so many distinct ones.

    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd(
    ...     "<!ELEMENT bib (book*)> <!ELEMENT book (title, year)>"
    ...     "<!ELEMENT title (#PCDATA)> <!ELEMENT year (#PCDATA)>"))
    >>> (found,) = transformations_from_dtd(graph, 1)
    >>> found.partition(" return ")[0]
    '<result>{ for $b in //bib/book where $b/title = "10"'
    """
    names = QueryNames(graph)
    generator = _Generator(
        names, options or TransformationOptions(), Draws(seed, "transformations")
    )
    return Queries(take(generator.transformation, count, distinct), names.namespaces)


_ATTEMPTS = 10_000


class _Generator:
    def __init__(self, names: QueryNames, options: TransformationOptions, draws: Draws) -> None:
        self.names = names
        self.options = options
        self.draws = draws

    def transformation(self) -> str:
        """One transformation."""
        options = self.options
        for _ in range(_ATTEMPTS):
            binding, element = self.walk(("", self.names.root), options.binding_depth - 1)
            if binding.count("/") == 0 or not self.names.children[element]:
                continue
            predicates = sorted({self.predicate(element) for _ in range(options.predicates)})
            returns = sorted({self.path(element) for _ in range(options.returns)})
            if len(predicates) < options.predicates or len(returns) < options.returns:
                continue
            if not all(predicates):
                continue
            where = " and ".join(f"$b{predicate}" for predicate in predicates)
            where = f"where {where} " if where else ""
            items = "".join(f"{{ $b{path} }}" for path in returns)
            return f"<result>{{ for $b in {binding} {where}return <item>{items}</item> }}</result>"
        raise UsageError(
            f"no path of {options.binding_depth} steps has so many predicates and return paths, or "
            f"hardly any: {_ATTEMPTS:,} were drawn"
        )

    def step(self, element: str) -> str:
        return f"{'//' if self.draws.chance(self.options.descendant) else '/'}{element}"

    def walk(self, start: tuple[str, str], steps: int) -> tuple[str, str]:
        """A path of the root and so many steps more, and its last element; or an empty one."""
        _, element = start
        path = self.step(element)
        for _ in range(steps):
            below = self.names.children[element]
            if not below:
                return "", element
            element = self.draws.choice(below)
            path += self.step(element)
        return path, element

    def below(self, element: str) -> tuple[str, str]:
        """A relative path, and its last element; it ends early where nothing is below."""
        path = ""
        for _ in range(1 + self.draws.below(self.options.depth)):
            below = self.names.children[element]
            if not below:
                break
            element = self.draws.choice(below)
            path += self.step(element)
        return path, element

    def path(self, element: str) -> str:
        return self.below(element)[0]

    def predicate(self, element: str) -> str:
        """A comparison of the text, or of an attribute, at the end of a relative path."""
        for _ in range(_ATTEMPTS):
            path, last = self.below(element)
            sources = [f"/@{attribute.name}" for attribute in self.names.attributes(last)]
            if self.names.has_text(last):
                sources.append("")
            if sources:
                values = self.options.values
                value = values.text(values.draw(self.draws))
                return f'{path}{self.draws.choice(sources)} = "{value}"'
        return ""
