"""Random draws that are the same on every machine and with every version of Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """A stream of random draws, the same for the same seed and purpose.

    Of Python's generator only ``random()`` is used: its sequence is promised never to change, that
    of ``randrange``, ``choice`` and ``shuffle`` is not.

    Args:
        seed: the user's seed.
        purpose: what the draws are for, so that two generators with one seed draw apart.

    >>> draws = Draws(7, "example")
    >>> [draws.below(10) for _ in range(5)], draws.choice("abc"), draws.chance(0.5)
    ([8, 7, 1, 5, 1], 'b', False)
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self.random = random.Random(f"{seed} {purpose}").random

    def below(self, count: int) -> int:
        """One of 0, …, count - 1, each as likely as the others."""
        return int(self.random() * count)

    def choice(self, items: Sequence[T]) -> T:
        """One of the items, each as likely as the others."""
        return items[int(self.random() * len(items))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability
