"""What a strategy is and finds in a document, and which strategy answers each transformation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.core.arguments import is_one_of
from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentLimitError, UnsupportedExpression, UsageError
from tamis.core.index import Choices
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.filters import Labels
from tamis.transform.shapes import NoShapeError, Shape, Shapes, Task, projection_of_task

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

    def remove(self, number: int) -> None:
        """Remove a transformation."""

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


# -- all transformations, by strategy --------------------------------------------------------------

STRATEGIES = Choices(
    "strategy",
    "tamis.strategies",
    {"relative": "tamis.transform.strategies.relative.execute:STRATEGY"},
    UsageError,
    others=("auto", "reference"),
)
"""The strategies that have kernels; the reference strategy answers what they do not take."""


class Plans:
    """All transformations, by strategy.

    ``nodes_max`` limits the lists of a document. ``UsageError`` is raised for a strategy that does
    not exist, or makes no use of the schema that is given.
    """

    def __init__(self, strategy: str, nodes_max: int, schema: Schema | None = None) -> None:
        self._strategy = strategy
        self._shaped_by: Strategy = STRATEGIES.named(
            "relative" if is_one_of(strategy, ("auto", "reference")) else strategy
        )
        if schema is not None and not self._shaped_by.takes_schema:
            others = [name for name in STRATEGIES.names() if STRATEGIES.named(name).takes_schema]
            raise UsageError(
                f"the strategy {strategy!r} needs no DTD: leave it out, "
                f"or choose from {', '.join(others)}"
            )
        self._nodes_max = nodes_max
        self._schema = schema
        self._tasks: dict[int, Task] = {}
        self._begin()

    def _begin(self) -> None:
        """Start without transformations."""
        labels = Labels()
        self._shaped = self._shaped_by.searcher(labels, self._nodes_max, self._schema)
        self._shapes = Shapes(labels)
        self._shaped_numbers: list[int] = []  # the transformation of each that has a shape
        self._numbers = _NO_NUMBERS  # the same, as far as an array was made of them
        self._own_numbers: dict[int, int] = {}  # the other way around
        self._left: dict[int, Task] = {}
        self._removed = 0

    def add(self, task: Task, number: int) -> None:
        """Add a transformation; numbers ascend.

        Raises ``UnsupportedExpression`` where the strategy that was named does not support it.
        """
        shape = self._shape(task)
        self._tasks[number] = task
        if shape is not None:
            self._shapes.add_projection(shape, task.are_read)
            self._own_numbers[number] = self._shaped.add(shape)
            self._shaped_numbers.append(number)
        else:
            self._left[number] = task
            self._shapes.projections.add(projection_of_task(task))

    def _shape(self, task: Task) -> Shape | None:
        """The shape that the strategy takes; None where the reference strategy answers."""
        if self._strategy == "reference":
            return None
        try:
            return self._taken(task)
        except NoShapeError as error:
            if self._strategy == "auto":
                return None
            raise UnsupportedExpression(
                f"the strategy {self._strategy!r} does not take {error}",
                hint="leave the strategy to Tamis: 'auto' answers it",
            ) from None

    def _taken(self, task: Task) -> Shape:
        """The shape that the strategy takes, or ``NoShapeError``."""
        shape = self._shapes.of(task)
        self._shaped_by.check(shape)
        return shape

    def explain(self, task: Task) -> str:
        """How a transformation that was added is answered: the strategy, and its plan if any."""
        if self._strategy == "reference":
            return "strategy: reference"
        try:
            shape = self._taken(task)
        except NoShapeError as error:
            return f"strategy: reference\nfaster strategies do not take {error}"
        plan = self._shaped_by.explain(shape, self._shapes.labels, self._schema)
        return f"strategy: {self._shaped_by.name}" + (f"\n{plan}" if plan else "")

    @property
    def projection(self) -> Projection:
        """What the transformations read of documents."""
        return self._shapes.projections.total

    def remove(self, number: int) -> None:
        """Forget a transformation. All begins anew when more were removed than are there."""
        del self._tasks[number]
        self._removed += 1
        if number in self._left:
            del self._left[number]
        else:
            self._shaped.remove(self._own_numbers.pop(number))
        if self._removed > max(len(self._tasks), _REMOVED):
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget what is left of those that were removed."""
        tasks = self._tasks
        self._begin()
        for number, task in tasks.items():
            self.add(task, number)

    def find_groups(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Answers:
        """What is found in a document, which is a batch of its own; or ``DocumentLimitError``."""
        left = sorted(self._left)
        found: list[Answers] = []
        if self._own_numbers:
            groups = self._find_shaped(batch, vocabulary)
            if len(self._numbers) < len(self._shaped_numbers):
                self._numbers = np.array(self._shaped_numbers, np.int32)
            found.append(_answers(groups, self._numbers))
        if left:
            from tamis.transform.strategies import reference  # noqa: PLC0415 - few are left to it

            tasks = [self._left[number] for number in left]
            groups = reference.find_groups(tasks, batch, vocabulary, self._nodes_max)
            found.append(_answers(groups, np.array(left, np.int32)))
        return found[0] if len(found) == 1 else _merged(found)

    def _find_shaped(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Groups:
        """What the strategy finds; those that were removed do not count towards the limit."""
        try:
            return self._shaped.find_groups(batch, vocabulary)
        except DocumentLimitError:
            if not self._removed:
                raise
            self._begin_anew()
            return self._shaped.find_groups(batch, vocabulary)


class Answers(NamedTuple):
    """What the strategies found in a document."""

    transformations: Int32  # [a]; those that have groups, ascending
    readers: tuple[GroupReader, ...]  # of the groups that each strategy found
    reader_of: NDArray[np.uint8]  # [a]; which of these reads the groups of each
    answers: Int64  # [a]; their numbers there


def _answers(groups: Groups, numbers: Int32) -> Answers:
    """What one strategy found; ``numbers`` are the transformations of its own."""
    transformations = numbers[groups.transformations]
    count = len(transformations)
    return Answers(
        transformations, (GroupReader(groups),), np.zeros(count, np.uint8), np.arange(count)
    )


def _merged(found: list[Answers]) -> Answers:
    """What several strategies found, or none."""
    if not found:
        return Answers(_NO_NUMBERS, (), np.zeros(0, np.uint8), np.zeros(0, np.int64))
    transformations = np.concatenate([each.transformations for each in found])
    counts = [len(each.transformations) for each in found]
    order = np.argsort(transformations, kind="stable")
    return Answers(
        transformations[order],
        tuple(each.readers[0] for each in found),
        np.repeat(np.arange(len(found), dtype=np.uint8), counts)[order],
        np.concatenate([each.answers for each in found])[order],
    )


_NO_NUMBERS = np.zeros(0, np.int32)
_REMOVED = 256
"""So many may be removed before anything is made anew."""
