"""Chooses a strategy for each transformation, and has all of them find their groups.

The only place that knows which strategies there are.
"""

from __future__ import annotations

from collections.abc import Iterator

from tamis.documents.batch import EventBatch
from tamis.documents.demand import Demand
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import UnsupportedExpression
from tamis.transform import reference
from tamis.transform.groups import GroupReader
from tamis.transform.plan import Task, demand_of_task
from tamis.transform.relative.strategy import RelativeStrategy
from tamis.transform.shapes import Shapes

STRATEGIES = ("auto", "relative", "reference")


class Plans:
    """All transformations, by strategy.

    Args:
        strategy: one of ``STRATEGIES``.
    """

    def __init__(self, strategy: str) -> None:
        self._strategy = strategy
        self._relative = RelativeStrategy()
        self._shapes = Shapes(self._relative.labels)
        self._left_demand = Demand()
        self._relative_numbers: list[int] = []  # the transformation of each of its own
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

    def find_groups(
        self, batch: EventBatch, vocabulary: Vocabulary
    ) -> Iterator[tuple[int, GroupReader, int]]:
        """What is found in a document, which is a batch of its own.

        Yields:
            Transformation after transformation its number, and which answer of some groups it has.
        """
        left = self._left
        found: list[tuple[int, GroupReader, int]] = []
        if self._own_numbers:
            groups = self._relative.find_groups(batch, vocabulary)
            if groups is None:  # it has a number that kernels cannot read
                left = left | {
                    number: self._tasks[own] for number, own in self._own_numbers.items()
                }
            else:
                reader, numbers = GroupReader(groups), self._relative_numbers
                found = [
                    (numbers[number], reader, answer)
                    for answer, number in enumerate(groups.transformations.tolist())
                ]
        if left:
            numbers = sorted(left)
            groups = reference.find_groups([left[number] for number in numbers], batch, vocabulary)
            reader = GroupReader(groups)
            found += [
                (numbers[number], reader, answer)
                for answer, number in enumerate(groups.transformations.tolist())
            ]
            found.sort(key=lambda answer: answer[0])
        return iter(found)
