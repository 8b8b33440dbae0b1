"""``asked_of``: what filters ask of events, as the tree that kernels walk along lines of JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Int32
from tamis.core.kernel.table import copy_pairs, pair_table, slots_for
from tamis.events.derive import Deriver, Place
from tamis.events.kernels import reading as to
from tamis.events.kernels.reading import enter_keys
from tamis.events.model import packed
from tamis.language.attributes import (
    ADDRESS,
    EVERY,
    FOLDED,
    ITSELF,
    NULL,
    PATH,
    attribute_of,
    folded_name,
    path_name,
)
from tamis.language.characters import fold_table

_COLUMNS = {PATH: to.AS_IT_IS, FOLDED: to.FOLDED, ADDRESS: to.ADDRESS, NULL: to.NULL}
"""The column of nodes for the attribute that has a mark."""
_POSITION_MAX = 1 << 31
"""A list of so many items is longer than any line."""


_ESCAPED_MAX = 6
"""The bytes that are written for one of a name: of a letter, by its number."""

_Node = tuple[int, str | int, Place | None]
"""The number of the node around it, its name or position there, its place if it has one."""


class Asked(NamedTuple):
    """What filters ask of events.

    Attributes:
        itself: the node of an element that is no object, or -1.
        every: the number of the list of all values, or -1; and whether strings are in it.
        joined: the attribute that has all strings, and the one that has them folded; or -1.
        conditions: the place of each list, and the numbers of the attributes for its conditions.
        key_bytes: a name that is written in more bytes is no name of the tree.
        flat: how many names with dots stand for paths.
        is_singular: whether some places have no list.
    """

    tree: to.Tree
    itself: int
    every: tuple[int, bool]
    joined: list[int]
    conditions: dict[Place, Int32]
    key_bytes: int
    flat: int
    is_singular: bool


def asked_of(names: Sequence[str], deriver: Deriver, singular: Collection[str] = ()) -> Asked:
    """The tree of some names, of which ``deriver`` has those that are derived.

    Args:
        singular: names of conditions on elements, and of the attributes that stand for them where
            there is no list: see ``Encoder.singular``. No list may be at these, nor inside.

    >>> from tamis.core.limits import Limits
    >>> from tamis.language.attributes import path_name
    >>> names = ["a", path_name(("b", 0, "c"))]
    >>> tree = asked_of(names, Deriver(names, Limits())).tree
    >>> tree.parents, tree.key_bytes.tobytes(), tree.nodes.reshape(-1, to.COLUMNS)[:, to.AS_IT_IS]
    (array([0, 0, 4], dtype=int32), b'abc', array([-1,  0, -1,  1, -1], dtype=int32))
    """
    numbers = {name: number for number, name in enumerate(names)}
    plain = {name: numbers[name] for name in names if not attribute_of(name).mark}
    nodes = _nodes_of(plain, deriver)
    rows = np.full((len(nodes) + len(deriver.dotted), to.COLUMNS), -1, np.int32)
    rows[:, to.INSIDE] = 0
    conditions: dict[Place, Int32] = {}

    def enter_conditions(place: Place) -> int:
        own = [numbers[name] for name in place.conditions.values()]
        conditions[place] = np.array(own, np.int32)
        return len(conditions) - 1

    parents = np.array([parent for parent, _, _ in nodes[1:]], np.int64)
    is_key = np.array([isinstance(part, str) for _, part, _ in nodes[1:]], np.bool_)
    rows[parents[is_key], to.INSIDE] |= to.KEYS
    rows[parents[~is_key], to.INSIDE] |= to.POSITIONS
    top = {str(part): number for number, (parent, part, _) in enumerate(nodes) if parent == 0}
    rows[list(top.values()), to.AS_IT_IS] = [plain.get(name, -1) for name in top]
    of_places = {place: number for number, (_, _, place) in enumerate(nodes) if place is not None}
    for place, number in of_places.items():
        for mark, name in place.names.items():
            rows[number, _COLUMNS[mark]] = numbers[name]
        if place.conditions:
            rows[number, to.LIST] = enter_conditions(place)
    asked_at = slice(to.LIST + 1)  # but nothing inside
    for number, (name, place) in enumerate(deriver.dotted.items(), len(nodes)):
        rows[number, asked_at] = rows[of_places[place], asked_at]
        rows[top[name], to.FLAT_OF], rows[top[name], to.ROOT] = number, top[str(place.path[0])]
    for number in _inside(nodes, {attribute_of(name).path[0] for name in singular}):
        own = rows[number, : to.NULL]
        if all(names[each] in singular for each in own[own >= 0]):
            rows[number, to.INSIDE] |= to.SINGULAR
    every = deriver.every
    listed = enter_conditions(every) if every.conditions else -1, every.asks_strings
    joined = [numbers.get(path_name((EVERY,)), -1), numbers.get(folded_name(EVERY), -1)]
    is_folded = joined[1] >= 0 or bool((rows[:, to.FOLDED] >= 0).any())
    tree, itself, flat = _tree(nodes, rows, is_folded), top.get(ITSELF, -1), len(deriver.dotted)
    key_bytes = _ESCAPED_MAX * int(np.diff(tree.key_starts).max(initial=0))
    return Asked(tree, itself, listed, joined, conditions, key_bytes, flat, bool(singular))


def _nodes_of(plain: Iterable[str], deriver: Deriver) -> list[_Node]:
    """The nodes by their numbers: the event, names inside of objects, positions."""
    top = deriver.top
    found: list[_Node] = [(-1, "", top)]
    names = dict.fromkeys([*plain, *top.inside, *deriver.dotted])
    found += [(0, name, top.inside.get(name)) for name in names]
    for number, (parent, _, place) in enumerate(found):  # which grows meanwhile
        if parent >= 0 and place is not None:
            found += [(number, part, inner) for part, inner in place.inside.items()]
    order = sorted(range(1, len(found)), key=lambda number: isinstance(found[number][1], int))
    numbers = dict(zip([0, *order], range(len(found)), strict=True))
    others = (
        (numbers[parent], part, place) for parent, part, place in map(found.__getitem__, order)
    )
    return [found[0], *others]


def _inside(nodes: Sequence[_Node], roots: Collection[str | int]) -> Iterator[int]:
    """The nodes of some names of events, and those inside of these."""
    for number, (parent, part, place) in enumerate(nodes):
        root = place.path[0] if parent and place is not None and place.path else part
        if root in roots:
            yield number


def _tree(nodes: Sequence[_Node], rows: Int32, is_folded: bool) -> to.Tree:
    keys = [
        (parent, part.encode("utf-8", "surrogatepass"))
        for parent, part, _ in nodes[1:]
        if isinstance(part, str)
    ]
    parents = np.array([parent for parent, _ in keys], np.int32)
    starts, written = packed(key for _, key in keys)
    slots, filters = slots_for(len(keys)), np.zeros(len(rows), np.int64)
    enter_keys(parents, starts, written, slots, filters)
    pairs = [
        (parent + 1 << 32 | part, number)
        for number, (parent, part, _) in enumerate(nodes)
        if isinstance(part, int) and part < _POSITION_MAX
    ]
    positions = pair_table(len(pairs))
    copy_pairs(np.array(pairs, np.int64).reshape(-1), positions)
    own_folds = fold_table() if is_folded else np.zeros(0, np.int32)
    return to.Tree(rows.reshape(-1), parents, starts, written, slots, filters, positions, own_folds)
