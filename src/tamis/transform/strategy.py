"""What a strategy is: the contract that all keep, and that the planner chooses by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.transform.groups import Groups
from tamis.transform.shapes import Shape

if TYPE_CHECKING:
    from tamis.matching.conformance import Schema


class Searcher(Protocol):
    """The transformations of a strategy, at work; it belongs to one thread at a time."""

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""

    def remove(self, number: int) -> None:
        """Forget a transformation."""

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
        searcher: opens a searcher that has no transformations. It is given the labels that shapes
            are made with, how many nodes the lists of one document may have, and a DTD or None.
        explain: how it answers a shape, given likewise; "" if its name says all.
        takes_schema: whether it makes use of a DTD.
    """

    name: str
    check: Callable[[Shape], None]
    searcher: Callable[[Labels, int, Schema | None], Searcher]
    explain: Callable[[Shape, Labels, Schema | None], str]
    takes_schema: bool
