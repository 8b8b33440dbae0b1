"""What the generators of queries give, and what they are asked in the same words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tamis.core.errors import UsageError

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
    """So many draws; if distinct, without those that came before.

    Raises:
        UsageError: nothing new comes any more.
    """
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
