"""``StacksProgram``: twigs side by side, a bit each, in blocks of 512.

A *group* is up to 512 twigs of like shapes. Their nodes are put into *slots*: slot s of a group is
a block of bits, a node of each twig. Parents have lower slots than their children. Which slot a
node's parent has differs from twig to twig, so a slot has several *edges*, each to a slot in which
some twigs of the group have a child. The blocks of all slots of all groups are a *row*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, Words, flat_indices, freeze, starts_of
from tamis.core.kernel.blocks import BLOCK, BLOCK_BITS, aligned
from tamis.documents.vocabulary import ALL_NAMES, Names, Projection, Projections
from tamis.language.model import Axis, NameTest
from tamis.matching.engines.stacks import read
from tamis.matching.engines.stacks.read import Fact, Twig


class ProgramArrays(NamedTuple):
    """What kernels read. Blocks are uint64[BLOCK * n], a bit for each twig of a group.

    Attributes:
        group_slots: int32[groups + 1]; the slots of group g are from ``group_slots[g]`` on.
        is_general: uint8[groups]; whether some twig of the group has nodes that are negated, or
            about their parent's element.
        edge_starts: int32[slots + groups + 1]; the edges of slot s of group g are
            ``edge_starts[s + g]`` up to ``edge_starts[s + g + 1]``; those of the documents of the
            group stand behind the last of its slots.
        edge_slots: int32[edges]; the slot of the children.
        unasked: blocks, by edge: the twigs that have no such child.
        negations: int32[edges]; the number of a block in ``negated``, or -1.
        negated: blocks: the twigs of an edge whose child must not hold.
        below: blocks, by slot: the twigs whose node is about any descendant.
        owns: int32[slots]; the number of a block in ``own``, or -1.
        own: blocks: the twigs whose node is about its parent's element.
        twigs: blocks, by group: the bits that stand for twigs.
        facts: see ``Bits``; by fact.
    """

    group_slots: Int32
    is_general: Bytes
    edge_starts: Int32
    edge_slots: Int32
    unasked: Words
    negations: Int32
    negated: Words
    below: Words
    owns: Int32
    own: Words
    twigs: Words
    fact_starts: Int64
    fact_words: Int64
    fact_bits: Words


_BLOCKS = ("unasked", "negated", "below", "own", "twigs")


class Bits(NamedTuple):
    """Bits of a row, for each of several things: the words that are not 0.

    Attributes:
        starts: int64[n + 1].
        words: int64[]; which words of the row they are.
        bits: uint64[].
    """

    starts: Int64
    words: Int64
    bits: Words


class StacksProgram(NamedTuple):
    """Compiled twigs.

    Attributes:
        arrays: for kernels.
        queries: int32[BLOCK_BITS * groups]; the query of each bit; -1 for none.
        tests: of names.
        test_bits: the nodes of each test.
        any_element: a row of the nodes that all elements pass.
        document: a row of those that the document passes.
        facts: what nodes ask of elements.
        projection: what is read of documents.
    """

    arrays: ProgramArrays
    queries: Int32
    tests: tuple[NameTest, ...]
    test_bits: Bits
    any_element: Words
    document: Words
    facts: tuple[Fact, ...]
    projection: Projection

    @property
    def row(self) -> int:
        """How many words a row has."""
        return len(self.any_element)

    @property
    def widest(self) -> int:
        """How many words of a row a group has, at most; at least one block."""
        return int(np.diff(self.arrays.group_slots).max(initial=1)) * BLOCK

    def memory_usage(self) -> int:
        """Bytes of the arrays."""
        arrays = (*self.arrays, *self.test_bits, self.queries, self.any_element, self.document)
        return sum(array.nbytes for array in arrays)


class _Nodes(NamedTuple):
    """The nodes of all twigs, but for those of documents, twig after twig, in the order of slots.

    Attributes:
        bit: of all groups: group * BLOCK_BITS + the twig in the group.
        slot, parent: counted over all groups; -1: the document.
        test, fact: numbers, or -1.
    """

    bit: Int64
    slot: Int64
    parent: Int64
    kind: Int64
    negated: Int64
    test: Int64
    fact: Int64


def program_of(twigs: Sequence[Twig]) -> StacksProgram:
    """The program of some twigs; query i is twig i.

    >>> from tamis.language.xpath import parse
    >>> queries = [parse("//a[b]"), parse("/a[b and c]"), parse("//a//b")]
    >>> program = program_of(list(read.twigs_of(queries)))
    >>> program.queries[:4], program.arrays.edge_slots
    (array([ 0,  2,  1, -1], dtype=int32), array([1, 2, 0], dtype=int32))
    """
    shapes = _Shapes()
    arranged = [shapes.arranged(twig) for twig in twigs]
    order = sorted(range(len(twigs)), key=lambda number: arranged[number][0])
    groups = -(-len(twigs) // BLOCK_BITS)
    queries = np.full(groups * BLOCK_BITS, -1, np.int32)
    queries[: len(order)] = order
    sizes = np.array([max(len(twigs[number]) - 1, 1) for number in order], np.int64)
    firsts = np.arange(0, len(sizes), BLOCK_BITS)
    widest = np.maximum.reduceat(sizes, firsts) if groups else sizes
    group_slots = starts_of(widest)
    tests: dict[NameTest, int] = {}
    facts: dict[Fact, int] = {}
    nodes = _nodes_of(
        [(twigs[number], arranged[number][1]) for number in order], group_slots, tests, facts
    )
    row = int(group_slots[-1]) * BLOCK
    twig_bits = np.packbits(queries >= 0, bitorder="little").view(np.uint64)
    arrays = _arrays_of(nodes, group_slots, twig_bits, _bits_of(nodes, nodes.fact, len(facts)))
    blocks: Any = {name: aligned(getattr(arrays, name)) for name in _BLOCKS}
    where = (nodes.test >= 0) & (nodes.test == tests.get(read.ANY_ELEMENT, -1))
    is_group = nodes.kind == read.GROUP
    result = StacksProgram(
        arrays=arrays._replace(**blocks),
        queries=queries,
        tests=tuple(tests),
        test_bits=_bits_of(nodes, np.where(where, -1, nodes.test), len(tests)),
        any_element=_row_of(nodes, where | is_group, row),
        document=_row_of(nodes, is_group, row),
        facts=tuple(facts),
        projection=_projection_of(facts),
    )
    freeze(*result.arrays, *result.test_bits, queries, result.any_element, result.document)
    return result


def _projection_of(facts: Iterable[Fact]) -> Projection:
    """What facts are read from: attributes, and the text of elements."""
    projection = Projections()
    for axis, test, _ in facts:
        names = ALL_NAMES
        if isinstance(test, NameTest) and test.namespace is not None and test.local is not None:
            names = Names([(test.namespace, test.local)])
        is_attribute = axis is Axis.ATTRIBUTE
        projection.add(Projection(attributes=names) if is_attribute else Projection(text=names))
    return projection.total


class _Shapes:
    """Orders of nodes in which twigs of like shapes have their parents in like slots."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        self._orders: dict[tuple[int, ...], tuple[tuple[int, ...], list[int]]] = {}

    def arranged(self, twig: Twig) -> tuple[tuple[bool, tuple[int, ...]], list[int]]:
        """What to sort a twig by, and its nodes, each before those below it, the largest first."""
        parents = tuple(each.parent for each in twig)
        if parents not in self._orders:
            self._orders[parents] = self._order(parents)
        shape, order = self._orders[parents]
        is_general = any(each.negated or each.kind in (read.SELF, read.GROUP) for each in twig[1:])
        return (is_general, shape), order

    def _order(self, parents: tuple[int, ...]) -> tuple[tuple[int, ...], list[int]]:
        children: list[list[int]] = [[] for _ in parents]
        for number, parent in enumerate(parents[1:], start=1):
            children[parent].append(number)
        sizes, shapes = [1] * len(parents), [0] * len(parents)
        for number in range(len(parents) - 1, -1, -1):
            children[number].sort(key=lambda child: (sizes[child], shapes[child]))  # largest last
            shape = tuple(shapes[child] for child in children[number])
            shapes[number] = self._numbers.setdefault(shape, len(self._numbers))
            sizes[number] += sum(sizes[child] for child in children[number])
        order, places, todo = [], [0] * len(parents), children[0].copy()
        while todo:
            number = todo.pop()
            order.append(number)
            places[number] = len(order)
            todo += children[number]
        return (len(order), *(places[parents[number]] for number in order)), order


def _nodes_of(
    twigs: Sequence[tuple[Twig, list[int]]],
    group_slots: Int64,
    tests: dict[NameTest, int],
    facts: dict[Fact, int],
) -> _Nodes:
    columns: list[int] = []
    for twig, order in twigs:
        slots = dict(zip(order, range(len(order)), strict=True))
        for number in order:
            each = twig[number]
            test = -1 if each.test is None else tests.setdefault(each.test, len(tests))
            fact = -1 if each.fact is None else facts.setdefault(each.fact, len(facts))
            columns += (slots.get(each.parent, -1), each.kind, each.negated, test, fact)
    parent, *others = np.array(columns, np.int64).reshape(-1, 5).T
    sizes = np.array([len(order) for _, order in twigs], np.int64)
    bit = np.repeat(np.arange(len(twigs)), sizes)
    first = group_slots[bit // BLOCK_BITS]
    slot = first + flat_indices(np.zeros_like(sizes), sizes)
    return _Nodes(bit, slot, np.where(parent < 0, -1, first + parent), *others)


def _arrays_of(nodes: _Nodes, group_slots: Int64, twigs: Words, facts: Bits) -> ProgramArrays:
    slots, groups = int(group_slots[-1]), len(group_slots) - 1
    group = nodes.bit // BLOCK_BITS
    # The edges of the document stand behind those of all slots of its group.
    parents = np.where(nodes.parent < 0, group_slots[group + 1], nodes.parent) + group
    edges, edge = np.unique(parents * slots + nodes.slot, return_inverse=True)
    starts = np.searchsorted(edges // max(slots, 1), np.arange(slots + groups + 1))
    asked = np.zeros(BLOCK * len(edges), np.uint64)
    _set_bits(asked, edge, nodes.bit)
    negations, negated = _some_blocks(edge, nodes.bit, nodes.negated > 0, len(edges))
    is_own = (nodes.kind == read.SELF) | (nodes.kind == read.GROUP)
    owns, own = _some_blocks(nodes.slot, nodes.bit, is_own, slots)
    is_general = np.zeros(groups, np.uint8)
    is_general[group[is_own | (nodes.negated > 0)]] = 1
    return ProgramArrays(
        group_slots=group_slots.astype(np.int32),
        is_general=is_general,
        edge_starts=starts.astype(np.int32),
        edge_slots=(edges % max(slots, 1)).astype(np.int32),
        unasked=~asked,
        negations=negations,
        negated=negated,
        below=_row_of(nodes, nodes.kind == read.DESCENDANT, BLOCK * slots),
        owns=owns,
        own=own,
        twigs=twigs,
        fact_starts=facts.starts,
        fact_words=facts.words,
        fact_bits=facts.bits,
    )


# -- bits ------------------------------------------------------------------------------------------


def _set_bits(blocks: Words, numbers: Int64, bits: Int64) -> None:
    """Set bits in blocks; a bit is counted over all groups."""
    within = bits % BLOCK_BITS
    values = np.uint64(1) << (within % 64).astype(np.uint64)
    np.bitwise_or.at(blocks, numbers * BLOCK + within // 64, values)


def _row_of(nodes: _Nodes, which: NDArray[np.bool_], row: int) -> Words:
    """A row with the bits of some nodes."""
    result = np.zeros(row, np.uint64)
    _set_bits(result, nodes.slot[which], nodes.bit[which])
    return result


def _some_blocks(
    numbers: Int64, bits: Int64, which: NDArray[np.bool_], count: int
) -> tuple[Int32, Words]:
    """Blocks with some bits set, without those that are 0; and by number the block, or -1."""
    used = np.unique(numbers[which])
    blocks = np.zeros(BLOCK * len(used), np.uint64)
    _set_bits(blocks, np.searchsorted(used, numbers[which]), bits[which])
    found = np.full(count, -1, np.int32)
    found[used] = np.arange(len(used))
    return found, blocks


def _bits_of(nodes: _Nodes, keys: Int64, count: int) -> Bits:
    """The bits of the nodes of each key; -1: of none."""
    which = keys >= 0
    within = nodes.bit[which] % BLOCK_BITS
    words = nodes.slot[which] * BLOCK + within // 64
    order = np.lexsort((words, keys[which]))
    keys, words, within = keys[which][order], words[order], within[order]
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = (keys[1:] != keys[:-1]) | (words[1:] != words[:-1])
    bits = np.zeros(int(is_first.sum()), np.uint64)
    values = np.uint64(1) << (within % 64).astype(np.uint64)
    np.bitwise_or.at(bits, np.cumsum(is_first) - 1, values)
    starts = np.searchsorted(keys[is_first], np.arange(count + 1))
    return Bits(starts.astype(np.int64), words[is_first], bits)
