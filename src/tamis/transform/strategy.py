"""``Strategy``: an algorithm that finds ``Groups``, the nodes of messages, in a document."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentLimitError
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import Recorded
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.transform.layout import Groups
from tamis.transform.shapes import Shape

if TYPE_CHECKING:
    from tamis.matching.conformance import Schema


class FoundOne(NamedTuple):
    """What was found in one small document, where it lies: for kernels.

    Attributes:
        lent: the strategy's state, and the rows with which the message factory borrows ``Groups``.
        transformations: that of each answer.
        nodes: how many are in the lists.
    """

    lent: tuple[Int64, Int64]
    transformations: Int32
    nodes: int


class Searcher(Protocol):
    """The transformations of a strategy, at work; it belongs to one thread at a time."""

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""

    def find_groups(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Groups:
        """What the transformations find in a document, which is a batch of its own.

        Raises ``DocumentLimitError`` for more nodes than is allowed.
        """

    def find_one(self, recorded: Recorded, vocabulary: Vocabulary) -> FoundOne | None:
        """The same by kernels alone, in a document that was recorded; None where they cannot.

        It is to be used before anything else is found.
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

    def bound(self, answer: int) -> list[int]:
        """The bound events of an answer's groups."""
        starts, ends, bound = self._ranges
        return bound[starts[answer] : ends[answer]]

    def column(self, answer: int, index: int) -> list[list[int]]:
        """The nodes of one list in each group of an answer."""
        numbers = map(self._of_path(answer, index).get, self.bound(answer))
        return [[] if number is None else self.nodes(number) for number in numbers]

    def number(self, answer: int, index: int, group: int) -> int | None:
        """The number of a list of one group, or None where it is empty."""
        starts, _, bound = self._ranges
        return self._of_path(answer, index).get(bound[starts[answer] + group])

    def _of_path(self, answer: int, index: int) -> dict[int, int]:
        """For each bound event the number of a list, unless it is empty."""
        path_starts, paths = self._paths
        path = paths[path_starts[answer] + index]
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
    def _paths(self) -> tuple[list[int], list[int]]:
        groups = self.groups
        return groups.path_starts.tolist(), groups.paths.tolist()

    @cached_property
    def _nodes(self) -> tuple[list[int], list[int], list[int]]:
        groups = self.groups
        return groups.list_starts.tolist(), groups.list_ends.tolist(), groups.nodes.tolist()
