"""``PathSharingFallback``: plans that rely on a DTD, and others for documents that violate it."""

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
    """

    def __init__(
        self, labels: Labels, sharing: str, is_shared: bool, schema: Schema | None, nodes_max: int
    ) -> None:
        self._labels = labels
        self._sharing = sharing, is_shared
        self._nodes_max = nodes_max
        self._schema = schema
        self._strategy = self._make(schema)
        self._violations = None if schema is None else schema.violations()
        if self._violations is not None:
            self._edge_labels = self._violations.edges.labels()
        self._shapes: list[Shape | None] = []  # of those that are there, if there is a DTD
        self._without: PathSharing | None = None

    @property
    def schema_violations(self) -> int:
        """How many documents violated the DTD so far."""
        return 0 if self._violations is None else self._violations.count

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
        violations = self._violations
        if violations is not None and violations.find(batch, vocabulary, self._edge_labels).any():
            strategy = self._fallback()
        return strategy.find_groups(batch, vocabulary)

    def _make(self, schema: Schema | None) -> PathSharing:
        claims = Claims(self._labels, None if schema is None else schema.expanded)
        planner = Planner(self._sharing[0], claims, self._sharing[1])
        return PathSharing(self._labels, planner, self._nodes_max)

    def _fallback(self) -> PathSharing:
        """The plans that do without the DTD; where a query was removed, a number is left out."""
        if self._without is None:
            self._without = self._make(None)
            for shape in self._shapes:
                self._without.add(shape) if shape is not None else self._without.skip()
        return self._without
