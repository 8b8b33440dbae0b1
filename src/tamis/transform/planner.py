"""Chooses a strategy for each transformation, and has all of them find their groups.

The only place that knows which strategies there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import EventBatch, Int32, Int64
from tamis.documents.demand import Demand
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import UnsupportedExpression
from tamis.transform import reference
from tamis.transform.groups import GroupReader, Groups
from tamis.transform.plan import Task, demand_of_task
from tamis.transform.relative.strategy import RelativeStrategy
from tamis.transform.shapes import Shapes

STRATEGIES = ("auto", "relative", "reference")


class Plans:
    """All transformations, by strategy.

    Args:
        strategy: one of ``STRATEGIES``.
        nodes_max: in the lists of a document.
    """

    def __init__(self, strategy: str, nodes_max: int) -> None:
        self._strategy = strategy
        self._nodes_max = nodes_max
        self._relative = RelativeStrategy(nodes_max)
        self._shapes = Shapes(self._relative.labels)
        self._left_demand = Demand()
        self._relative_numbers: list[int] = []  # the transformation of each of its own
        self._numbers = _NO_NUMBERS  # the same
        self._own_numbers: dict[int, int] = {}  # the other way around
        self._left: dict[int, Task] = {}
        self._tasks: list[Task] = []  # of the relative strategy

    def add(self, task: Task, number: int) -> None:
        """Add a transformation; numbers ascend.

        Raises:
            UnsupportedExpression: the strategy that was named does not support it.
        """
        shape = None
        if self._strategy != "reference":
            shape = self._shapes.of(task)
        if shape is not None:
            self._own_numbers[number] = self._relative.add(shape)
            self._relative_numbers.append(number)
            self._tasks.append(task)
        elif self._strategy == "relative":
            raise UnsupportedExpression(
                "the strategy 'relative' takes steps to elements, and comparisons of what is there",
                hint="leave the strategy to Tamis: strategy='auto'",
            )
        else:
            self._left[number] = task
            self._left_demand |= demand_of_task(task)

    @property
    def demand(self) -> Demand:
        """What the transformations read of documents."""
        return self._shapes.demand | self._left_demand

    def remove(self, number: int) -> None:
        """Forget a transformation."""
        if number in self._left:
            del self._left[number]
        else:
            self._relative.remove(self._own_numbers.pop(number))

    def find_groups(self, batch: EventBatch, vocabulary: Vocabulary) -> Answers:
        """What is found in a document, which is a batch of its own.

        Raises:
            DocumentLimitError: more nodes than is allowed.
        """
        left = self._left
        found: list[Answers] = []
        if self._own_numbers:
            groups = self._relative.find_groups(batch, vocabulary)
            if groups is None:  # it has a number that kernels cannot read
                left = left | {
                    number: self._tasks[own] for number, own in self._own_numbers.items()
                }
            else:
                found.append(_answers(groups, self._numbers_of_relative()))
        if left:
            numbers = sorted(left)
            tasks = [left[number] for number in numbers]
            groups = reference.find_groups(tasks, batch, vocabulary, self._nodes_max)
            found.append(_answers(groups, np.array(numbers, np.int32)))
        return found[0] if len(found) == 1 else _merged(found)

    def _numbers_of_relative(self) -> Int32:
        """The transformation of each of the relative strategy's own numbers."""
        if len(self._numbers) < len(self._relative_numbers):
            self._numbers = np.array(self._relative_numbers, np.int32)
        return self._numbers


class Answers(NamedTuple):
    """What the strategies found in a document.

    Attributes:
        transformations: int32[a]; those that have groups, ascending.
        readers: of the groups that each strategy found.
        reader_of: uint8[a]; which of these reads the groups of each.
        answers: int64[a]; their numbers there.
    """

    transformations: Int32
    readers: tuple[GroupReader, ...]
    reader_of: NDArray[np.uint8]
    answers: Int64


def _answers(groups: Groups, numbers: Int32) -> Answers:
    """What one strategy found; ``numbers`` are the transformations of its own."""
    count = len(groups.transformations)
    return Answers(
        numbers[groups.transformations],
        (GroupReader(groups),),
        np.zeros(count, np.uint8),
        np.arange(count),
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
