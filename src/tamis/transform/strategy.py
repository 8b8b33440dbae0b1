"""What a strategy is; ``Groups``, what it finds in a document; and the workspace of its kernels.

``Groups`` is the groupSequence–listSequence format of Diao and Franklin (*Query Processing for
High-Volume XML Message Brokering*, VLDB 2003, section 2.2). Each transformation has a sequence of
groups, one for each bound node. A group has a list for each path of the transformation. A list has
the selected nodes in document order. All strategies write this format; the factory reads it.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentLimitError
from tamis.core.kernel.state import State, zeros
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.language.values import xpath_number
from tamis.transform import layout as at
from tamis.transform.shapes import Shape

if TYPE_CHECKING:
    from tamis.matching.conformance import Schema


class Groups(NamedTuple):
    """The answers of a document: the transformations that have a message.

    A node reference is ``number << KIND_BITS | kind``, as in :mod:`tamis.documents.batch`. Answers
    share groups, and the lists of a path: all transformations that have a path read its lists.

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
        nodes: int64[]; node references.
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


class Searcher(Protocol):
    """The transformations of a strategy, at work; it belongs to one thread at a time."""

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""

    def remove(self, number: int) -> None:
        """Remove a transformation."""

    def find_groups(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Groups:
        """What the transformations find in a document, which is a batch of its own.

        Raises:
            DocumentLimitError: more nodes than is allowed.
        """


class Strategy(NamedTuple):
    """One algorithm. All strategies that take a transformation find the same groups.

    Attributes:
        name: what ``strategy=`` calls it.
        check: raises ``NoShapeError`` for a shape that it does not take.
        searcher: opens a searcher without transformations. Arguments: the labels of the shapes, the
            limit of nodes in the lists of a document, and a DTD or None.
        explain: how it answers a shape, with the same labels and DTD; "" if its name says all.
        takes_schema: whether it makes use of a DTD.
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
        """For each answer with a single group, the keys of its ``count`` lists.

        Returns:
            For each list ``path << 32 | bound event``; None for an answer with more groups.
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


BY_EVENT = ("ends", "parents", "attributes_from", "texts_from", "stack")
ROOM, _ROOM_MAX = 256, 1 << 20
_named_tuple: Any = namedtuple


class Workspace(State[Any]):
    """The state of a strategy, for one thread.

    Arrays keep nothing from document to document, so a kernel that finds one full begins again.

    Args:
        size: of the state.
        own: the fields of the strategy's own arrays that kernels fill, which begin at ``OWN``.
        arrays: these, each with room for ``ROOM`` things.
        together: see ``State``.
        nodes_max: in the lists of a document. Other arrays may have as many things, and always
            ``_ROOM_MAX``.
    """

    def __init__(
        self, size: int, own: Any, arrays: Any, together: Sequence[Sequence[str]], nodes_max: int
    ) -> None:
        every = _named_tuple("every", at.NODES._fields + own._fields)
        nodes = zeros(at.Nodes, ROOM, long_found=2 * ROOM)
        super().__init__(size, every(*at.NODES, *own), every(*nodes, *arrays), together)
        self._nodes_max = nodes_max
        things = max(nodes_max, _ROOM_MAX)
        self._lengths_max = {
            name: len(array) // ROOM * things for name, array in self.arrays._asdict().items()
        }

    def grow(self, name: str) -> None:
        """Double an array that is full.

        Raises:
            DocumentLimitError: it is long enough for all that is allowed.
        """
        if len(getattr(self.arrays, name)) >= self._lengths_max[name]:
            raise too_many_nodes(self._nodes_max)
        super().grow(name)

    def find(self, kernel: Callable[[Int64], int], read: at.Read, nodes_used: int) -> None:
        """Run a kernel over a document, again where it found numbers that it could not read.

        Args:
            nodes_used: the number in the state that says how many nodes are in lists.

        Raises:
            DocumentLimitError: there are more than is allowed, or more of what leads to them.
        """
        self.register(at.READ, read)
        self.words[at.LONG_KNOWN] = 0
        while self.run(kernel) == at.DONE and self.words[at.LONG_FOUND] > 0:
            self._read_long_numbers(read)
        if self.words[nodes_used] > self._nodes_max:
            raise too_many_nodes(self._nodes_max)

    def _read_long_numbers(self, read: at.Read) -> None:
        """Have Python read the numbers that kernels cannot, beside those that it has read."""
        found = self.arrays.long_found[: 2 * self.words[at.LONG_FOUND]].reshape(-1, 2)
        known = self.arrays.long_known[: 2 * self.words[at.LONG_KNOWN]].reshape(-1, 2)
        strings = np.unique(np.concatenate([found, known]), axis=0)
        buffers = read.text_values, read.attribute_values
        values = [
            xpath_number(bytes(buffers[key & 1][key >> 1 : end])) for key, end in strings.tolist()
        ]
        self.reserve(strings.size, "long_known")
        self.reserve(len(values), "long_values")
        self.arrays.long_known[: strings.size] = strings.reshape(-1)
        self.arrays.long_values[: len(values)] = values
        self.words[at.LONG_KNOWN] = len(values)
