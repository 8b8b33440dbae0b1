"""``PathSharingFallback``: plans that rely on a DTD, and others for documents that leave it."""

from __future__ import annotations

from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.matching.conformance import Schema
from tamis.transform.shapes import Shape
from tamis.transform.strategy import Groups
from tamis_papers.pathsharing.claims import Claims
from tamis_papers.pathsharing.planning import Planner
from tamis_papers.pathsharing.strategy import PathSharing


class PathSharingFallback:
    """A strategy of the paper, with what can be claimed of the queries and of a DTD.

    A document that has an element where the DTD has none of its kind is answered by plans that were
    made of the queries alone; they are made when the first such document comes.

    Args:
        labels: that shapes are made with.
        sharing: see ``Planner``.
        is_shared: likewise.
        schema: the DTD, or None.
        nodes_max: see ``PathSharing``.

    Attributes:
        schema_violations: how many documents left the DTD so far.
    """

    def __init__(
        self, labels: Labels, sharing: str, is_shared: bool, schema: Schema | None, nodes_max: int
    ) -> None:
        self.schema_violations = 0
        self._labels = labels
        self._sharing = sharing, is_shared
        self._nodes_max = nodes_max
        self._schema = schema
        self._strategy = self._make(schema)
        self._edge_labels = None if schema is None else schema.edges.labels()
        self._shapes: list[Shape | None] = []  # of those that are there, if there is a DTD
        self._without: PathSharing | None = None

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""
        if self._schema is not None:
            self._shapes.append(shape)
        if self._without is not None:
            self._without.add(shape)
        return self._strategy.add(shape)

    def remove(self, number: int) -> None:
        """Forget a transformation."""
        if self._schema is not None:
            self._shapes[number] = None
        if self._without is not None:
            self._without.remove(number)
        self._strategy.remove(number)

    def find_groups(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Groups:
        """As ``PathSharing.find_groups``."""
        strategy = self._strategy
        if self._leaves(batch, vocabulary):
            self.schema_violations += 1
            strategy = self._open_without()
        return strategy.find_groups(batch, vocabulary)

    def _make(self, schema: Schema | None) -> PathSharing:
        claims = Claims(self._labels, None if schema is None else schema.expanded)
        planner = Planner(self._sharing[0], claims, self._sharing[1])
        return PathSharing(self._labels, planner, self._nodes_max)

    def _leaves(self, batch: DocumentBatch, vocabulary: Vocabulary) -> bool:
        """Whether the document leaves the DTD."""
        if self._schema is None or self._schema.is_trusted:
            return False
        assert self._edge_labels is not None
        numbers, _ = self._edge_labels.of(vocabulary)
        return bool((self._schema.edges.violations(batch, numbers) >= 0).any())

    def _open_without(self) -> PathSharing:
        """The plans that do without the DTD; where a query was removed, a number is left out."""
        if self._without is None:
            self._without = self._make(None)
            for shape in self._shapes:
                self._without.add(shape) if shape is not None else self._without.skip()
        return self._without
