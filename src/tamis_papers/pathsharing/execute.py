"""``PathSharing``: Diao and Franklin's strategies; see README.md.

``PathSharingFallback``: plans that rely on a DTD, and others for documents that violate it.
"""

from __future__ import annotations

from tamis.core.arrays import freeze
from tamis.core.kernel.state import zeros
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import Recorded
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.matching.conformance import Schema
from tamis.matching.engines.nfa.states import NfaRun
from tamis.transform import layout as base
from tamis.transform.constants import BY_EVENT, ROOM, Workspace, read_of
from tamis.transform.layout import Groups
from tamis.transform.shapes import Shape
from tamis_papers.pathsharing import layout as at
from tamis_papers.pathsharing.claims import Claims
from tamis_papers.pathsharing.compile import Building
from tamis_papers.pathsharing.kernels.run import find_groups
from tamis_papers.pathsharing.plan import Planner

# -- one set of plans ------------------------------------------------------------------------------


class PathSharing:
    """The plans of all transformations, and the workspace of one thread.

    Args:
        labels: that shapes are made with.
        planner: makes the plans; if it makes them to be shared, equal operators are one.
        nodes_max: in the lists of a document; likewise the tuples of its paths.

    >>> from tamis.language.flwr import parse_transformation
    >>> from tamis_papers.pathsharing.claims import Claims
    >>> from tamis.transform.shapes import task_of
    >>> from tamis.transform.shapes import Shapes
    >>> labels = Labels()
    >>> strategy = PathSharing(labels, Planner("fwr", Claims(labels, None)))
    >>> text = "<r>{ for $b in //b where $b/@n > 1 return $b/c }</r>"
    >>> strategy.add(Shapes(labels).of(task_of(parse_transformation(text))))
    0
    """

    def __init__(self, labels: Labels, planner: Planner, nodes_max: int = 1 << 24) -> None:
        self._labels = labels
        self._planner = planner
        self._building = Building(labels, planner.is_shared)
        self._run = NfaRun()
        arrays = zeros(at.Work, ROOM, **_FIRST_SIZES)
        self.work = Workspace(at.STATE_SIZE, at.WORK, arrays, _TOGETHER, nodes_max)

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""
        return self._building.add(self._planner.plan(shape))

    @property
    def operators(self) -> int:
        """How many operators the plans have."""
        return len(self._building)

    def find_groups(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Groups:
        """What the transformations find in a document.

        Args:
            batch: of this document alone.

        Raises:
            DocumentLimitError: there are more nodes or path-tuples than is allowed.
        """
        read = self.read(batch, vocabulary)
        self.work.find(find_groups, read, at.NODES_USED)
        return self._groups()

    def read(self, batch: DocumentBatch, vocabulary: Vocabulary) -> base.Read:
        """Have the kernels know the document, the plans, and arrays that are long enough."""
        building, work = self._building, self.work
        rows = self._run.run(building.nfa, self._labels.names, batch, vocabulary)
        attributes = building.constants.attributes
        read = read_of(rows, building.nfa.records, batch, attributes, vocabulary)
        plans = building.plans(vocabulary)
        work.register(base.CONSTANTS, building.constants.arrays())
        work.register(at.PLANS, plans)
        work.words[base.EVENTS], work.words[at.ROWS] = len(batch.tags), len(rows)
        work.reserve(len(batch.tags) + 2, *BY_EVENT, "own_states", "open_states")
        work.reserve(len(rows) + 1, "row_tuples")
        work.reserve(len(building.nfa), "state_counts")
        work.reserve(len(building), *_BY_OPERATOR)
        work.reserve(building.queries, "listed_from")
        work.reserve(building.queries // 64 + 1, "is_answer")
        return read

    def _groups(self) -> Groups:
        """What was found, copied."""
        building, words, arrays = self._building, self.work.words, self.work.arrays
        listed = int(words[at.LISTED_USED])
        answers, lists = int(words[at.ANSWERS_USED]), int(words[at.LISTS_USED])
        groups = Groups(
            transformations=arrays.answers[:answers].copy(),
            group_starts=arrays.group_starts[:answers].copy(),
            group_ends=arrays.group_ends[:answers].copy(),
            bound=arrays.bound[: words[at.BOUND_USED]].copy(),
            path_starts=arrays.path_starts[:answers].copy(),
            paths=building.paths if building.is_shared else arrays.paths[:listed].copy(),
            of_path=arrays.of_path[: words[at.PATHS_USED] + 1].copy(),
            list_bound=arrays.list_bound[:lists].copy(),
            list_starts=arrays.list_starts[:lists].copy(),
            list_ends=arrays.list_ends[:lists].copy(),
            nodes=arrays.nodes[: words[at.NODES_USED]].copy(),
        )
        freeze(*groups)
        return groups


_BY_OPERATOR = (
    "list_stamp",
    "list_from",
    "list_to",
    "first_out",
    "last_out",
    "ready",
    "bound_stamp",
    "bound_from",
    "bound_to",
)
_PAIRS = 2 * ROOM
_FIRST_SIZES = {
    "tuples": _PAIRS,
    "pool": _PAIRS,
    "chain": _PAIRS,
    "table": 2 * at.TABLE_SLOT * ROOM,  # at most half full
}
_TOGETHER = (
    ("answers", "path_starts", "group_starts", "group_ends"),
    ("list_bound", "list_starts", "list_ends"),
)


# -- plans that rely on a DTD, and others for documents that violate it ----------------------------


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
        self._shapes: list[Shape] = []  # all of them, if there is a DTD
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

    def find_one(self, _recorded: Recorded, _vocabulary: Vocabulary) -> None:
        """It looks at batches only."""

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
        """The plans that do without the DTD."""
        if self._without is None:
            self._without = self._make(None)
            for shape in self._shapes:
                self._without.add(shape)
        return self._without
