"""Values with a chosen distribution, so that predicates on them have a chosen selectivity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tamis.core.errors import UsageError
from tamis_workload.draws import Draws
from tamis_workload.words import pseudo_word


@dataclass(frozen=True)
class Values:
    """The values that texts and attributes take: rank 1 is the likeliest.

    Args:
        count: how many there are (the papers' MaxValue).
        skew: 0 makes all as likely; s makes rank r as likely as ``r ** -s`` (Zipf). Taken as a
            multiple of 2**-20, and computed with square roots alone, which are the same everywhere.
        kind: ``numbers`` are 1, 2, …, the rank itself; ``words`` are made up, a word a rank.

    >>> values = Values(4, skew=1)
    >>> values.probabilities.round(2).tolist(), values.text(3)
    ([0.48, 0.24, 0.16, 0.12], '3')
    >>> values.rank_for(0.7)  # the values up to rank 2 have some 70 % of the probability
    2
    """

    count: int = 10
    skew: float = 0.0
    kind: Literal["numbers", "words"] = "numbers"
    given: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.count < 1 or self.count > 1_000_000:
            raise UsageError(f"the number of values is 1 to 1,000,000, not {self.count:,}")
        if not 0 <= self.skew <= 16:
            raise UsageError(f"the skew of values is 0 (all as likely) to 16, not {self.skew}")

    @classmethod
    def of(cls, texts: tuple[str, ...], skew: float = 0.0) -> Values:
        """These texts, the likeliest first; they are written as they are, markup and all."""
        return cls(len(texts), skew, "words", texts)

    def text(self, rank: int) -> str:
        """The value of a rank, from 1."""
        if self.given:
            return self.given[rank - 1]
        return str(rank) if self.kind == "numbers" else pseudo_word(rank - 1)

    def texts(self) -> Iterator[str]:
        """All values, the likeliest first."""
        return (self.text(rank) for rank in range(1, self.count + 1))

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Of each rank, in order."""
        ranks = np.arange(1, self.count + 1, dtype=np.float64)
        weights = 1 / _power(ranks, self.skew)
        total: np.float64 = np.cumsum(weights)[-1]  # it adds in order, unlike sum
        return weights / total

    @cached_property
    def _cumulated(self) -> NDArray[np.float64]:
        return np.cumsum(self.probabilities)

    def draw(self, draws: Draws) -> int:
        """A rank, by its probability."""
        if self.skew == 0:
            return draws.below(self.count) + 1
        rank = int(np.searchsorted(self._cumulated, draws.random(), side="right")) + 1
        return min(rank, self.count)

    def rank_for(self, share: float) -> int:
        """The rank up to which values have this share of the probability, as nearly as can be.

        It is 0 where no value at all comes nearer than the likeliest alone.
        """
        above = int(np.searchsorted(self._cumulated, share))
        near = [rank for rank in (above, above + 1) if rank <= self.count]
        return min(near, key=lambda rank: abs(self.share_to(rank) - share))

    def share_to(self, rank: int) -> float:
        """The probability of the values up to a rank, itself included; of rank 0 it is 0."""
        return float(self._cumulated[rank - 1]) if rank else 0.0

    def alias_table(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Walker's tables: rank r + 1 with its threshold's chance out of 2**32, else its alias."""
        count = self.count
        thresholds = np.full(count, 2**32 - 1, np.uint32)
        aliases = np.arange(count, dtype=np.int32)
        if self.skew > 0:
            _fill_alias(self.probabilities * count, thresholds, aliases)
        return thresholds, aliases


def _fill_alias(
    scaled: NDArray[np.float64], thresholds: NDArray[np.uint32], aliases: NDArray[np.int32]
) -> None:
    """Vose's algorithm: each too likely rank gives of its own to the ranks that are too rare."""
    weights = scaled.tolist()
    small = [i for i, weight in enumerate(weights) if weight < 1]
    large = [i for i, weight in enumerate(weights) if weight >= 1]
    while small and large:
        poor, rich = small.pop(), large[-1]
        thresholds[poor] = int(weights[poor] * (2**32 - 1))
        aliases[poor] = rich
        weights[rich] -= 1 - weights[poor]
        if weights[rich] < 1:
            small.append(large.pop())


def _power(bases: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """``bases ** exponent`` with operations that IEEE 754 defines to the last bit."""
    whole, fraction = divmod(round(exponent * 2**20), 2**20)
    result = np.ones_like(bases)
    for _ in range(whole):
        result = result * bases
    root = bases
    for bit in range(1, 21):
        root = np.sqrt(root)
        if fraction >> (20 - bit) & 1:
            result = result * root
    return result
