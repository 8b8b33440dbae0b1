"""The operators of Diao and Franklin's plans (VLDB 2003, sections 3 and 5), as values.

A plan is a tree of these, over the streams of path-tuples that the path matching engine gives. A
path-tuple has a field for each step of its path; steps are counted in ``levels`` from its last
field back. Equal operators on equal inputs are equal values, which is how plans come to be shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tamis.language.filters import Codes
from tamis.transform.shapes import Comparison, Route

SCAN, MERGE, HASH = "scan", "merge", "hash"
"""How an operator finds what belongs together: it relies on an order, or on none."""

Tests = tuple[tuple[Comparison, ...], ...]
"""Of steps, the last one's first."""


@dataclass(frozen=True, slots=True)
class PathTuples:
    """The stream of a path, from the path matching engine; its last field never descends."""

    codes: Codes


@dataclass(frozen=True, slots=True)
class Selection:
    """The tuples whose nodes pass tests."""

    source: Operator
    tests: Tests


@dataclass(frozen=True, slots=True)
class DupElim:
    """One tuple of those with the same last node, and, unless ``levels`` is 0, bound node."""

    source: Operator
    levels: int
    mode: str


@dataclass(frozen=True, slots=True)
class WhereFilter:
    """The tuples below whose bound node a tree search finds all of some nodes."""

    source: Operator
    searches: tuple[Search, ...]


class Search(NamedTuple):
    """What is looked for in the tree: the end of a route; it may have to pass a comparison."""

    route: Route
    comparison: Comparison | None


@dataclass(frozen=True, slots=True)
class ReturnSelect:
    """A group for each tuple, its lists filled by tree searches."""

    source: Operator
    searches: tuple[Search, ...]


@dataclass(frozen=True, slots=True)
class Semijoin:
    """The tuples of the left that have one of the right with the same bound node."""

    left: Operator
    right: Operator
    levels: int
    mode: str


class Joined(NamedTuple):
    """A stream of return paths' tuples: what a list is made of; the bound node is above."""

    stream: Operator
    levels: int


@dataclass(frozen=True, slots=True)
class OuterJoinSelect:
    """A group for each tuple of the left; in it a list for each stream, of what it joins with."""

    left: Operator
    lists: tuple[Joined, ...]
    mode: str


@dataclass(frozen=True, slots=True)
class GroupBy:
    """The tuples of a return path by bound node, without duplicates, for all joins with them."""

    source: Operator
    binding: PathTuples
    levels: int
    mode: str


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of tuples with the same bound node, in the order of the left."""

    left: Operator
    right: Operator
    levels: int
    mode: str


class Attributed(NamedTuple):
    """What a shared selection compares: strings of the node so many levels above the last."""

    levels: int
    kind: int
    name: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class SharedSelection:
    """All selections with the same signature, indexed by their constants.

    Attributes:
        source: a join, or the stream of a binding path.
        left: of the binding's tuples, if anything is asked of them.
        right: of the predicate path's tuples; its levels are 0.
    """

    source: Operator
    left: Attributed | None
    right: Attributed | None


@dataclass(frozen=True, slots=True)
class Selected:
    """One output of a shared selection: the bound tuples for one pair of constants, each once."""

    selection: SharedSelection
    left: Comparison | None
    right: Comparison | None


Operator = (
    PathTuples
    | Selection
    | DupElim
    | WhereFilter
    | ReturnSelect
    | Semijoin
    | OuterJoinSelect
    | GroupBy
    | Join
    | SharedSelection
    | Selected
)
