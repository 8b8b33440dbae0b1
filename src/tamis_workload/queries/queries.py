"""What the generators of queries have in common: options, values to compare, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tamis.core.errors import UsageError
from tamis.schema.dtd import AttributeType, Presence
from tamis_workload.draws import Draws, Values
from tamis_workload.names import QueryNames

# Where so few of so many draws are new, the rest would take for ever.
_NEW_OF_DRAWS, _DRAWS = 100, 50_000


@dataclass(frozen=True)
class Queries:
    """Generated queries; iterating gives their texts.

    Attributes:
        expressions: the texts; they may be made while they are asked for, and then only once.
        namespaces: prefix → URI, to be given with them to :func:`tamis.compile`.
    """

    expressions: Iterable[str]
    namespaces: Mapping[str, str]

    def __iter__(self) -> Iterator[str]:
        return iter(self.expressions)


def take(draw: Callable[[], str], count: int, distinct: bool) -> Iterator[str]:
    """So many draws; if distinct, without those that came before."""
    if not distinct:
        for _ in range(count):
            yield draw()
        return
    seen: set[str] = set()
    while len(seen) < count:
        before = len(seen)
        for _ in range(_DRAWS):
            text = draw()
            if text not in seen:
                seen.add(text)
                yield text
                if len(seen) == count:
                    return
        if len(seen) - before < _NEW_OF_DRAWS:
            raise UsageError(
                f"only {len(seen):,} distinct queries were found, {len(seen) - before:,} of them "
                f"in the last {_DRAWS:,} draws: ask for fewer, for more steps or predicates, or do "
                "not ask for distinct ones"
            )


def check_share(**shares: float | None) -> None:
    """Raise UsageError for what is not a share from 0 to 1."""
    for name, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            raise UsageError(f"{name} is a share from 0 to 1, not {share}")


def check_number(**numbers: tuple[int, int, int]) -> None:
    """Raise UsageError for a number (first) that is not between the two others."""
    for name, (number, low, high) in numbers.items():
        if not low <= number <= high:
            raise UsageError(f"{name} is a number from {low:,} to {high:,}, not {number:,}")


_OPERATORS = ("=", "<", ">", "<=", ">=", "!=")
_NEAR = 0.01


class ValuePredicates:
    """Draws predicates for elements of a DTD.

    Args:
        names: the elements.
        values: what documents have in texts and attributes; give their generator the same.
        selectivity: the share of those texts that a predicate is true of, as nearly as the values
            permit; it is a comparison with a range of numbers, and never of an enumeration. None
            draws operator and constant freely.
    """

    def __init__(self, names: QueryNames, values: Values, selectivity: float | None) -> None:
        if selectivity is not None and values.kind != "numbers":
            raise UsageError("a selectivity needs values that are numbers: words have no ranges")
        self._names = names
        self._values = values
        self._selectivity = selectivity
        self._sources: dict[str, list[str | AttributeType]] = {}

    def sources(self, element: str) -> list[str | AttributeType]:
        """What can be compared in an element: its attributes, its text, that of its children."""
        found = self._sources.get(element)
        if found is None:
            found = [a for a in self._names.attributes(element) if self._can_compare(a)]
            if self._names.has_text(element):
                found.append("text()")
            found += [c for c in self._names.children[element] if self._names.has_text(c)]
            self._sources[element] = found
        return found

    def _can_compare(self, attribute: AttributeType) -> bool:
        if self._selectivity is not None:  # which others, with few values of their own, have not
            return not attribute.values and attribute.presence is not Presence.FIXED
        fixed = attribute.default or ""  # which must fit into a literal, on a line
        return not ("'" in fixed and '"' in fixed) and fixed.isprintable()

    def draw(self, element: str, draws: Draws) -> str:
        """A predicate in brackets for an element that has something to compare."""
        source = draws.choice(self.sources(element))
        if isinstance(source, str):
            return f"[{source} {self._comparison(draws)}]"
        if source.presence is Presence.FIXED:
            return f"[@{source.name} = {_literal(source.default or '')}]"
        if source.values:
            return f"[@{source.name} = {_literal(draws.choice(source.values))}]"
        return f"[@{source.name} {self._comparison(draws)}]"

    def _comparison(self, draws: Draws) -> str:
        values = self._values
        if values.kind == "words":
            return f"= {_literal(values.text(values.draw(draws)))}"
        if self._selectivity is not None:
            return draws.choice(self._ranges)
        return f"{draws.choice(_OPERATORS)} {values.draw(draws)}"

    @cached_property
    def _ranges(self) -> list[str]:
        """The likeliest values, or the others: what is nearest to the share, both if both are."""
        values, selectivity = self._values, self._selectivity or 0.0
        first, rest = values.rank_for(selectivity), values.rank_for(1 - selectivity)
        off = {
            f"<= {first}": abs(values.share_to(first) - selectivity),
            f"> {rest}": abs(1 - values.share_to(rest) - selectivity),
        }
        return [text for text, error in off.items() if error <= min(off.values()) + _NEAR]


def _literal(text: str) -> str:
    """A string literal of a text that has not both kinds of quotes."""
    return f'"{text}"' if "'" in text else f"'{text}'"
