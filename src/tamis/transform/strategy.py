"""``Strategy``: an algorithm that finds ``Groups``, the nodes of messages, in a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentLimitError
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.transform.shapes import Shape

if TYPE_CHECKING:
    from tamis.matching.conformance import Schema


class Groups(NamedTuple):
    """The answers of a document: the transformations that have a message.

    This is the groupSequence–listSequence format of Diao and Franklin (*Query Processing for
    High-Volume XML Message Brokering*, VLDB 2003, section 2.2). Each transformation has a sequence
    of groups, one for each bound node. A group has a list for each path of the transformation. A
    list has the selected nodes in document order. All strategies write this format; the factory
    reads it. Answers share groups, and the lists of a path: all transformations that have a path
    read its lists.

    A node reference is ``number << KIND_BITS | kind``, as in :mod:`tamis.documents.batch`.
    """

    transformations: Int32  # [a]; that of each answer, ascending
    group_starts: Int64  # [a]; the groups of each answer, a range of ``bound``
    group_ends: Int64
    bound: Int64  # the start event of each group's bound element, in document order
    path_starts: Int64  # [a]; the paths of answer i are paths[path_starts[i]] and so on
    paths: Int32  # numbers of paths
    of_path: Int64  # [p + 1]; the lists of path i are those from of_path[i] to of_path[i + 1]
    list_bound: Int64  # [l]; the bound node of each list that is not empty, ascending for each path
    list_starts: Int64  # [l]; ranges of ``nodes``
    list_ends: Int64
    nodes: Int64  # node references


class Searcher(Protocol):
    """The transformations of a strategy, at work; it belongs to one thread at a time."""

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""

    def find_groups(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Groups:
        """What the transformations find in a document, which is a batch of its own.

        Raises ``DocumentLimitError`` for more nodes than is allowed.
        """


class Strategy(NamedTuple):
    """One algorithm. All strategies that take a transformation find the same groups.

    Attributes:
        check: raises ``NoShapeError`` for a shape that it does not take.
        searcher: opens a searcher without transformations. Arguments: the labels of the shapes, the
            limit of nodes in the lists of a document, and a DTD or None.
        explain: how it answers a shape, with the same labels and DTD; "" if its name says all.
    """

    name: str
    check: Callable[[Shape], None]
    searcher: Callable[[Labels, int, Schema | None], Searcher]
    explain: Callable[[Shape, Labels, Schema | None], str]
    takes_schema: bool


def too_many_nodes(nodes_max: int) -> DocumentLimitError:
    """The error of a document with more nodes in its lists than is allowed."""
    return DocumentLimitError(
        "more nodes are in the lists of transformations than the limit "
        f"transformed_nodes = {nodes_max:,}"
    )


class GroupReader:
    """Reads the groups of answers; the lists of a path are indexed once."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self._lists: dict[int, dict[int, int]] = {}
        self._single: dict[int, list[list[int] | None]] = {}

    def read(self, answer: int, paths: int) -> Iterator[tuple[int, list[list[int]]]]:
        """The groups of an answer: each bound event, with the nodes in its ``paths`` lists."""
        columns = [self.lists(path) for path in self.paths(answer, paths)]
        for bound in self.bound(answer):
            numbers = [column.get(bound) for column in columns]
            yield bound, [[] if number is None else self.nodes(number) for number in numbers]

    def bound(self, answer: int) -> list[int]:
        """The bound events of an answer's groups."""
        starts, ends, bound = self._ranges
        return bound[starts[answer] : ends[answer]]

    def paths(self, answer: int, count: int) -> list[int]:
        """The paths of an answer's lists, of which each group has ``count``."""
        start = int(self.groups.path_starts[answer])
        found: list[int] = self.groups.paths[start : start + count].tolist()
        return found

    def single(self, count: int) -> list[list[int] | None]:
        """For each answer with a single group, the keys of its ``count`` lists; None for others.

        A key is ``path << 32 | bound event``.
        """
        found = self._single.get(count)
        if found is None:
            groups = self.groups
            indices = groups.path_starts[:, None] + np.arange(count)
            paths = groups.paths[np.minimum(indices, len(groups.paths) - 1)].astype(np.int64)
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

    def nodes(self, number: int) -> list[int]:
        """The nodes of a list."""
        starts, ends, nodes = self._nodes
        return nodes[starts[number] : ends[number]]

    # Number by number, Python reads lists much faster than arrays.

    @cached_property
    def _ranges(self) -> tuple[list[int], list[int], list[int]]:
        groups = self.groups
        return groups.group_starts.tolist(), groups.group_ends.tolist(), groups.bound.tolist()

    @cached_property
    def _nodes(self) -> tuple[list[int], list[int], list[int]]:
        groups = self.groups
        return groups.list_starts.tolist(), groups.list_ends.tolist(), groups.nodes.tolist()
