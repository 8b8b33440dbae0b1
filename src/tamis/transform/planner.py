"""Which strategy answers each transformation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.core.arguments import is_one_of
from tamis.core.arrays import Int32
from tamis.core.errors import UnsupportedExpression, UsageError
from tamis.core.index import Choices
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import Recorded
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.transform.layout import Groups
from tamis.transform.shapes import NoShapeError, Shape, Shapes, Task, projection_of_tasks
from tamis.transform.strategy import FoundOne, Searcher, Strategy, too_many_nodes

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


class Planner:
    """Chooses the strategy of each transformation.

    ``nodes_max`` limits the lists of a document. ``UsageError`` is raised for a strategy that does
    not exist, or makes no use of the schema that is given.

    >>> from tamis.language.flwr import parse_transformation
    >>> from tamis.transform.shapes import task_of
    >>> text = "<r>{ for $b in //b where count($b/c) > 1 return $b/c }</r>"
    >>> print(Planner("auto", 1 << 24).explain(task_of(parse_transformation(text))))
    strategy: reference
    faster strategies do not take a condition that is no comparison of a path with a constant \
(not(), contains(), …)
    """

    def __init__(self, strategy: str, nodes_max: int, schema: Schema | None = None) -> None:
        self.nodes_max = nodes_max
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
        self._schema = schema

    def searcher(self, labels: Labels) -> Searcher:
        """Opens a searcher for shapes that are made with some labels."""
        return self._shaped_by.searcher(labels, self.nodes_max, self._schema)

    def check(self, task: Task) -> None:
        """Raise ``UnsupportedExpression`` where the strategy that was named refuses a task."""
        if self._strategy not in ("auto", "reference"):
            self.shape(task, Shapes(Labels()))

    def shape(self, task: Task, shapes: Shapes) -> Shape | None:
        """The shape that the strategy takes; None where the reference strategy answers.

        Raises ``UnsupportedExpression`` as :meth:`check` does.
        """
        if self._strategy == "reference":
            return None
        try:
            return self._taken(task, shapes)
        except NoShapeError as error:
            if self._strategy == "auto":
                return None
            raise UnsupportedExpression(
                f"the strategy {self._strategy!r} does not take {error}",
                hint="leave the strategy to Tamis: 'auto' answers it",
            ) from None

    def _taken(self, task: Task, shapes: Shapes) -> Shape:
        """The shape that the strategy takes, or ``NoShapeError``."""
        shape = shapes.of(task)
        self._shaped_by.check(shape)
        return shape

    def explain(self, task: Task) -> str:
        """How a transformation is answered: the strategy, and its plan if any."""
        if self._strategy == "reference":
            return "strategy: reference"
        shapes = Shapes(Labels())
        try:
            shape = self._taken(task, shapes)
        except NoShapeError as error:
            return f"strategy: reference\nfaster strategies do not take {error}"
        plan = self._shaped_by.explain(shape, shapes.labels, self._schema)
        return f"strategy: {self._shaped_by.name}" + (f"\n{plan}" if plan else "")


class Found(NamedTuple):
    """What one strategy found in a document: the transformation of each answer, ascending."""

    transformations: Int32
    groups: Groups  # by the numbers of the answers


class Plans:
    """Some transformations, by strategy; they belong to one thread at a time.

    Attributes:
        projection: what the transformations read of documents.
    """

    def __init__(self, planner: Planner, tasks: Sequence[Task]) -> None:
        labels = Labels()
        shapes = Shapes(labels)
        numbers: list[int] = []  # of the transformations that have a shape
        self._shaped: Searcher | None = None
        self._left: dict[int, Task] = {}
        self._nodes_max = planner.nodes_max
        for number, task in enumerate(tasks):
            shape = planner.shape(task, shapes)
            if shape is None:
                self._left[number] = task
                continue
            if self._shaped is None:
                self._shaped = planner.searcher(labels)
            self._shaped.add(shape)
            numbers.append(number)
        self._numbers = np.array(numbers, np.int32)
        self.projection = projection_of_tasks(tasks)

    def find_one(self, recorded: Recorded, vocabulary: Vocabulary) -> FoundOne | None:
        """What is found in a small document; None where it is to be looked at as a batch."""
        if self._shaped is None or self._left:
            return None
        found = self._shaped.find_one(recorded, vocabulary)
        return None if found is None or found.nodes > self._nodes_max else found

    def find_groups(self, batch: DocumentBatch, vocabulary: Vocabulary) -> list[Found]:
        """What is found in a document, which is a batch of its own; or ``DocumentLimitError``."""
        found: list[Found] = []
        if self._shaped is not None:
            groups = self._shaped.find_groups(batch, vocabulary)
            found.append(Found(self._numbers[groups.transformations], groups))
        if self._left:
            from tamis.transform.strategies import reference  # noqa: PLC0415 - few need it

            tasks, numbers = [*self._left.values()], np.array([*self._left], np.int32)
            groups = reference.find_groups(tasks, batch, vocabulary, self._nodes_max)
            found.append(Found(numbers[groups.transformations], groups))
        if sum(len(each.groups.nodes) for each in found) > self._nodes_max:
            raise too_many_nodes(self._nodes_max)
        return found
