"""Predicates on the values that generated documents have, with a chosen selectivity."""

from __future__ import annotations

from tamis.schema.dtd import AttributeType
from tamis.workload.draws import Draws
from tamis.workload.queries.terrain import Terrain, fixed_value
from tamis.workload.values import Values


class Predicates:
    """Draws predicates for elements of a DTD.

    Args:
        terrain: the elements.
        values: what documents have in texts and attributes; give their generator the same.
        selectivity: the share of those texts that a predicate is true of, as nearly as the values
            permit; None draws operator and constant freely, as YFilter's generator does.
    """

    def __init__(self, terrain: Terrain, values: Values, selectivity: float | None) -> None:
        self._terrain = terrain
        self._values = values
        self._selectivity = selectivity
        self._sources: dict[str, list[str | AttributeType]] = {}

    def sources(self, element: str) -> list[str | AttributeType]:
        """What can be compared in an element: its attributes, its text, that of its children."""
        found = self._sources.get(element)
        if found is None:
            found = [*self._terrain.attributes(element)]
            if self._terrain.has_text(element):
                found.append("text()")
            found += [c for c in self._terrain.children[element] if self._terrain.has_text(c)]
            self._sources[element] = found
        return found

    def draw(self, element: str, draws: Draws) -> str:
        """A predicate in brackets for an element that has something to compare."""
        source = draws.choice(self.sources(element))
        if isinstance(source, str):
            return f"[{source} {self._comparison(draws)}]"
        fixed = fixed_value(source)
        if fixed is not None:
            return f"[@{source.name} = {literal(fixed)}]"
        if source.values:
            return f"[@{source.name} = {literal(draws.choice(source.values))}]"
        return f"[@{source.name} {self._comparison(draws)}]"

    def _comparison(self, draws: Draws) -> str:
        values = self._values
        if values.kind == "words":
            return f"= {literal(values.text(values.draw(draws)))}"
        if self._selectivity is None:
            return f"{draws.choice(('=', '<', '>', '<=', '>=', '!='))} {values.draw(draws)}"
        return draws.choice(self._ranges(self._selectivity))

    def _ranges(self, selectivity: float) -> list[str]:
        """The likeliest values, or the others: what is nearest to the share, both if both are."""
        values = self._values
        first, rest = values.rank_for(selectivity), values.rank_for(1 - selectivity)
        off = {
            f"<= {first}": abs(values.share_to(first) - selectivity),
            f"> {rest}": abs(1 - values.share_to(rest) - selectivity),
        }
        return [text for text, error in off.items() if error <= min(off.values()) + _NEAR]


_NEAR = 0.01


def literal(text: str) -> str:
    """A string literal of XPath 1.0, which has no way to write both kinds of quotes."""
    quote = '"' if "'" in text else "'"
    return f"{quote}{text.replace(quote, '')}{quote}"
