"""``Groups``: what transformations found in a document, the format between matching and messages.

It is the groupSequence–listSequence format of Diao and Franklin (*Query Processing for High-Volume
XML Message Brokering*, VLDB 2003, section 2.2): for each transformation a sequence of groups, one
for each bound node; in a group a list for each of its paths; in a list the selected nodes, in
document order. It is the waist between the strategies, which all write it, and the factory, which
makes messages of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentLimitError


class Groups(NamedTuple):
    """The answers of a document: the transformations that have a message.

    Nodes are *places*, ``number << KIND_BITS | kind`` as in :mod:`tamis.documents.batch`. What
    answers have in common is there once: groups, and the lists of a path, of which all
    transformations that have this path read their own.

    Attributes:
        transformations: int32[a]; that of each answer, ascending.
        group_starts, group_ends: int64[a]; the groups of each answer, a range of ``bound``.
        bound: int64[g]; the start event of each group's bound element, in document order.
        path_starts: int64[a]; the paths of answer i are ``paths[path_starts[i]]`` and so on.
        paths: int32[]; numbers of paths.
        of_path: int64[p + 1]; the lists of path i are those from ``of_path[i]`` on, up to
            ``of_path[i + 1]``: one for each bound node for which it is not empty.
        list_bound: int64[l]; the bound node of each list, ascending for each path.
        list_starts, list_ends: int64[l]; ranges of ``nodes``.
        nodes: int64[]; places.
    """

    transformations: Int32
    group_starts: Int64
    group_ends: Int64
    bound: Int64
    path_starts: Int64
    paths: Int32
    of_path: Int64
    list_bound: Int64
    list_starts: Int64
    list_ends: Int64
    nodes: Int64


def too_many_nodes(nodes_max: int) -> DocumentLimitError:
    """The error of a document with more nodes in its lists than is allowed."""
    return DocumentLimitError(
        "more nodes are in the lists of transformations than the limit "
        f"transformed_nodes = {nodes_max:,}"
    )


class GroupReader:
    """Reads the groups of answers; the lists of a path are looked for once.

    Args:
        groups: of a document.
    """

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self._lists: dict[int, dict[int, int]] = {}
        self._single: dict[int, list[list[int] | None]] = {}

    def read(self, answer: int, paths: int) -> Iterator[tuple[int, list[list[int]]]]:
        """The groups of an answer: each bound event, with the places in its lists.

        Args:
            paths: how many lists each group has.
        """
        columns = [self.lists(path) for path in self.paths(answer, paths)]
        for bound in self.bound(answer):
            numbers = [column.get(bound) for column in columns]
            yield bound, [[] if number is None else self.places(number) for number in numbers]

    def bound(self, answer: int) -> list[int]:
        """The bound events of an answer's groups."""
        starts, ends, bound = self._ranges
        return bound[starts[answer] : ends[answer]]

    def paths(self, answer: int, count: int) -> list[int]:
        """The paths of an answer's lists, of which each group has so many."""
        start = int(self.groups.path_starts[answer])
        found: list[int] = self.groups.paths[start : start + count].tolist()
        return found

    def single(self, count: int) -> list[list[int] | None]:
        """Of each answer that has one group, if it has so many lists, their keys.

        Returns:
            For each list ``path << 32 | bound event``; None for an answer with more groups.
        """
        found = self._single.get(count)
        if found is None:
            groups = self.groups
            places = groups.path_starts[:, None] + np.arange(count)
            paths = groups.paths[np.minimum(places, len(groups.paths) - 1)].astype(np.int64)
            keys = paths << 32 | groups.bound[groups.group_starts][:, None]
            found = self._single[count] = keys.tolist()
            for answer in np.flatnonzero(groups.group_ends - groups.group_starts != 1).tolist():
                found[answer] = None
        return found

    def lists(self, path: int) -> dict[int, int]:
        """For each bound event the number of a path's list, unless it is empty."""
        found = self._lists.get(path)
        if found is None:
            first, last = self.groups.of_path[path : path + 2].tolist()
            bound = self.groups.list_bound[first:last].tolist()
            found = self._lists[path] = dict(zip(bound, range(first, last), strict=True))
        return found

    def places(self, number: int) -> list[int]:
        """The nodes of a list."""
        starts, ends, nodes = self._nodes
        return nodes[starts[number] : ends[number]]

    # Lists are read much faster than arrays, number by number.

    @cached_property
    def _ranges(self) -> tuple[list[int], list[int], list[int]]:
        groups = self.groups
        return groups.group_starts.tolist(), groups.group_ends.tolist(), groups.bound.tolist()

    @cached_property
    def _nodes(self) -> tuple[list[int], list[int], list[int]]:
        groups = self.groups
        return groups.list_starts.tolist(), groups.list_ends.tolist(), groups.nodes.tolist()
