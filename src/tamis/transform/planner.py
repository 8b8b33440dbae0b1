"""Which strategy answers each transformation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arguments import is_one_of
from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentLimitError, UnsupportedExpression, UsageError
from tamis.core.index import Choices
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.filters import Labels
from tamis.transform.shapes import NoShapeError, Shape, Shapes, Task, TaskProjections
from tamis.transform.strategy import GroupReader, Groups, Strategy

if TYPE_CHECKING:
    from tamis.matching.conformance import Schema

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
        self._projections = TaskProjections()
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
        self._projections.add_task(task)
        if shape is not None:
            self._own_numbers[number] = self._shaped.add(shape)
            self._shaped_numbers.append(number)
        else:
            self._left[number] = task

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
        return self._projections.total

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
            tasks = [self._left[number] for number in left]
            from tamis.transform.strategies import reference  # noqa: PLC0415 - few need it

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
