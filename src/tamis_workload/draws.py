"""Random draws that are the same everywhere: numbers, words, and values with a distribution."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.core.errors import UsageError

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


_ONSETS = "b c d f g h j k l m n p r s t v w z br ch cl cr dr fl gl gr pl pr sh sk sl sp st th tr"
_VOWELS = "a e i o u ai ea io ou"
_SYLLABLES = tuple(onset + vowel for vowel in _VOWELS.split() for onset in _ONSETS.split())


def pseudo_word(number: int) -> str:
    """A word for each number from 0, no two alike; the first are the shortest.

    >>> [pseudo_word(number) for number in (0, 1, 314, 315, 100_000)]
    ['ba', 'ca', 'trou', 'baba', 'bacahu']
    """
    syllables = []
    while True:
        number, syllable = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[syllable])
        if number == 0:
            return "".join(reversed(syllables))
        number -= 1


FIRST_NAMES = tuple(
    """Wei James Maria Jun Michael Anna Yang David Li Thomas Ahmed Elena Hiroshi Peter Ana Sanjay
    Christian Min Robert Fatima Jürgen José Ling Daniel Sofia Xin Andreas Priya Carlos Olga
    Kenji Martin Leila Paul Yan Stefan Ingrid Rajeev Laura Tao Mark Zoë François Nadia Hao Simon
    Ayşe Luca Mei Alexander Julia Kai Richard Samira Bo Antonio Eva Satoshi Björn Chen Marta
    Eric""".split()
)

LAST_NAMES = tuple(
    """Wang Müller Smith Garcia Zhang Kumar Johnson Li Tanaka Rossi Chen Silva Kim Schmidt Nguyen
    Brown Liu Singh Novák Fernández Jones Yang Sato Weber Petrov Huang Lee Dubois Kowalski Patel
    Zhao Miller Santos Fischer Suzuki Wu Ivanova Davis Martínez Zhou Jansen Wilson Hansen Xu Rao
    Meyer Sun Taylor Nakamura Costa Ma Olsen Anderson Gupta Zhu Wagner López Hu Moore Bianchi
    Guo Becker Popescu He Thompson Park Lin Hoffmann Gao Eriksson Martin Luo White Sharma
    Horváth Zheng Schäfer Clark Romero Liang Lewis Koch Xie Papadopoulos Tang Robinson Richter
    Walker Yamamoto Klein Deng Young Wolf Feng Haddad King Neumann Cao Wright Peng Schwarz Zeng
    Scott Torres Zimmermann Xiao Green Braun Tian Baker Krüger Dong Adams Hofmann Pan Nelson
    Hartmann Yuan Hill Lange Cai""".split()
)

TITLE_WORDS = tuple(
    """Data Systems Learning Networks Analysis Model Efficient Distributed Query Processing
    Parallel Algorithms Adaptive Design Dynamic Streaming Optimization Evaluation Web Semantic
    Framework Approach Information Neural Mining Detection Performance Automatic Control
    Software Graph Time Multiple Wireless Management Images Search Deep Structured Scalable
    Knowledge Language Computing Hardware Databases Recognition Real-Time Clustering
    Classification Secure Retrieval Robust Mobile Logic Filtering Documents Modeling
    Architecture Protocol Sensor Large Verification Interactive Programs Fast Sequential
    Estimation Patterns Memory Linear Matching Tracking Storage Complexity Services Approximate
    Transactions Video Schema Reasoning Cloud Visual Planning Discovery Trees Scheduling Routing
    Environments Integration Incremental Compression Recursive Publish-Subscribe Indexing
    Simulation Reliable Testing XML Event Constraints Fuzzy Bounds Prediction Cache Channels
    Synthesis Energy Agents Spatial Tolerance Temporal Privacy Embedded Automata Games
    Consistency Replication Markov Ontologies Extraction Requirements Segmentation Genetic
    Concurrent Proofs Decision Random Summarization Joins Views Semantics Objects Compilers
    Recovery Sampling Circuits Encryption Numerical Geometric Monitoring Broadcast Provenance
    Speculative Lattices Twigs""".split()
)

JOINING_WORDS = (
    " for ",
    " of ",
    " and ",
    " in ",
    " with ",
    " on ",
    ": ",
    " from ",
    " &amp; ",
    ", ",
)

_VENUES = (
    "CoRR|corr;IEEE Trans. Knowl. Data Eng.|tkde;Proc. VLDB Endow.|pvldb;SIGMOD|sigmod;"
    "ACM Trans. Database Syst.|tods;ICDE|icde;Theor. Comput. Sci.|tcs;Inf. Process. Lett.|ipl;"
    "Commun. ACM|cacm;VLDB J.|vldb;EDBT|edbt;J. ACM|jacm;WWW|www;Inf. Syst.|is;SIGIR|sigir;"
    "CIKM|cikm;IEEE Access|access;ICML|icml;Acta Inf.|acta;SIAM J. Comput.|siamcomp;DEBS|debs;"
    "KDD|kdd;Data Knowl. Eng.|dke;Softw. Pract. Exp.|spe;OSDI|osdi;PODS|pods;Comput. J.|cj;"
    "NSDI|nsdi;FPL|fpl;J. Syst. Archit.|jsa;Middleware|middleware;ISCA|isca;World Wide Web|w3;"
    "DATE|date;IEEE Micro|micro;PLDI|pldi;Sensors|sensors;SIGMOD Rec.|sigmodr;FCCM|fccm"
)
VENUES = tuple(tuple(venue.split("|")) for venue in _VENUES.split(";"))
"""The name of each, and the short one in keys."""


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
