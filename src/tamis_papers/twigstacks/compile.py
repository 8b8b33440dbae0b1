"""Queries → twigs → personalities, packed into blocks of columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tamis.core.arrays import freeze, starts_of
from tamis.core.errors import EngineRefused
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.matching.engine import Refused
from tamis.matching.engines.stacks import read
from tamis.matching.engines.stacks.read import Node, Twig
from tamis_papers.twigstacks import layout as at
from tamis_papers.twigstacks.program import TwigArrays, TwigOptions, TwigProgram

DEFAULT_OPTIONS = TwigOptions()
_NOT_A_TWIG = {
    read.SELF: "it has a self:: step",
    read.GROUP: "it has or, not() or a union",
    read.FACT: "it asks for attributes or text",
    read.NEVER: "it has a part that is never true",
}


def refuses(queries: Queries) -> dict[int, str]:
    """Which queries are no twigs of the paper's grammar (Figure 1), and why.

    >>> from tamis.language.xpath import parse
    >>> refuses(Queries.of([parse("//a[b//*]/c"), parse("//a[not(b)]"), parse("/a[@b]")]))
    {1: 'it has or, not() or a union', 2: 'it asks for attributes or text'}
    """
    refused: dict[int, str] = {}
    for number, twig in enumerate(read.twigs_of(queries)):
        reason = str(twig) if isinstance(twig, Refused) else _refuses_twig(twig)
        if reason is not None:
            refused[number] = reason
    return refused


def _refuses_twig(twig: Twig) -> str | None:
    for node in twig[1:]:
        if node.negated or node.kind not in (read.CHILD, read.DESCENDANT):
            return _NOT_A_TWIG.get(node.kind, _NOT_A_TWIG[read.GROUP])
        test = node.test
        if test is None or (test.local is None) != (test.namespace is None):
            return "it has a * in a namespace, or for any namespace"
    if len(twig) >= 1 << at.PREFIX_BITS:
        return "it has too many nodes"
    return None


def compile_queries(
    queries: Sequence[Query], options: TwigOptions = DEFAULT_OPTIONS
) -> TwigProgram:
    """Make personalities of queries.

    Raises:
        EngineRefused: a query is no twig.

    >>> from tamis.language.xpath import parse
    >>> program = compile_queries([parse("//a[b]/c"), parse("/b//a")])
    >>> program.names, program.arrays.child_starts
    ((('', 'a'), ('', 'b'), ('', 'c')), array([2, 3, 4, 6, 7, 7, 7, 7], dtype=int32))
    """
    return program_of(read.checked_twigs("twigstacks", queries, _refuses_twig), options)


def program_of(twigs: Sequence[Twig], options: TwigOptions = DEFAULT_OPTIONS) -> TwigProgram:
    """The program of some twigs; query i is twig i."""
    tags: dict[tuple[str, str], int] = {}
    personalities: list[int] = []
    child_starts: list[int] = []
    blocks = packed([len(twig) for twig in twigs], options.block)
    sizes = []
    for numbers in blocks:
        before = len(personalities)
        _add_block([twigs[number] for number in numbers], tags, personalities, child_starts)
        sizes.append(len(personalities) - before)
    if len(tags) >= at.ROOT:
        raise EngineRefused(f"twigstacks takes fewer than {at.ROOT} names")
    arrays = TwigArrays(
        block_starts=starts_of(sizes),
        twig_starts=starts_of(list(map(len, blocks))),
        personalities=np.array(personalities, np.int64),
        child_starts=np.array(child_starts, np.int32),
    )
    queries = np.array([number for numbers in blocks for number in numbers], np.int32)
    freeze(*arrays, queries)
    return TwigProgram(arrays, queries, tuple(tags), options)


def packed(sizes: Sequence[int], block: int) -> list[list[int]]:
    """Which twigs share a block: the largest first, each where the least room is left for it.

    >>> packed([3, 6, 2, 4, 5], 8)
    [[1, 2], [4, 0], [3]]
    """
    blocks: list[list[int]] = []
    by_room: defaultdict[int, list[int]] = defaultdict(list)
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        size = sizes[number]
        room = next((room for room in range(size, block) if by_room.get(room)), None)
        if room is None:
            by_room[block - size].append(len(blocks))
            blocks.append([number])
        else:
            found = by_room[room].pop()
            by_room[room - size].append(found)
            blocks[found].append(number)
    return blocks


def _add_block(
    twigs: Sequence[Twig],
    tags: dict[tuple[str, str], int],
    personalities: list[int],
    child_starts: list[int],
) -> None:
    """Add the columns of a block, level by level; names get tags as they are met."""
    children = [_children_of(twig) for twig in twigs]
    order = [(number, 0) for number in range(len(twigs))]
    prefixes = list(range(len(twigs)))  # a root is its own
    for column, (number, node) in enumerate(order):  # which grows meanwhile
        child_starts.append(len(order))
        for child in children[number][node]:
            order.append((number, child))
            prefixes.append(column)
    child_starts.append(len(order))
    for (number, node), prefix in zip(order, prefixes, strict=True):
        below = [twigs[number][child].kind for child in children[number][node]]
        personalities.append(_personality(twigs[number][node], prefix, below, tags))


def _children_of(twig: Twig) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in twig]
    for number, node in enumerate(twig[1:], start=1):
        children[node.parent].append(number)
    return children


def _personality(
    node: Node, prefix: int, below: Sequence[int], tags: dict[tuple[str, str], int]
) -> int:
    """Table 2, see :mod:`.layout`.

    Args:
        below: the kinds of the node's children.
    """
    tag = at.ANY
    if node.kind == read.GROUP:
        tag = at.ROOT
    elif node.test is not None and node.test.local is not None:
        tag = tags.setdefault((node.test.namespace or "", node.test.local), len(tags) + 1)
    return (
        tag
        | prefix << at.PREFIX_SHIFT
        | (read.DESCENDANT in below) << at.HAS_DESCENDANTS_SHIFT
        | (read.CHILD in below) << at.HAS_CHILDREN_SHIFT
        | (node.kind == read.DESCENDANT) << at.DESCENDS_SHIFT
        | (not below) << at.LEAF_SHIFT
    )
