"""``PathSharing``: Diao and Franklin's strategies; see README.md."""

from __future__ import annotations

from tamis.core.arrays import freeze
from tamis.core.kernel.state import zeros
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.matching.engines.nfa.execute import NfaRun
from tamis.transform.constants import read_of
from tamis.transform.layout import CONSTANTS, EVENTS, Read
from tamis.transform.shapes import Shape
from tamis.transform.strategy import BY_EVENT, ROOM, Groups, Workspace
from tamis_papers.pathsharing import layout
from tamis_papers.pathsharing.building import Building
from tamis_papers.pathsharing.kernels.running import find_groups
from tamis_papers.pathsharing.planning import Planner


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

    def __init__(
        self,
        labels: Labels,
        planner: Planner,
        nodes_max: int = 1 << 24,
    ) -> None:
        self._labels = labels
        self._planner = planner
        self._building = Building(labels, planner.is_shared)
        self._run = NfaRun()
        arrays = zeros(layout.Work, ROOM, **_FIRST_SIZES)
        self.work = Workspace(layout.STATE_SIZE, layout.WORK, arrays, _TOGETHER, nodes_max)

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""
        return self._building.add(self._planner.plan(shape))

    def skip(self) -> None:
        """Leave a number out."""
        self._building.skip()

    def remove(self, number: int) -> None:
        """Forget a transformation."""
        self._building.remove(number)

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
        self.work.find(find_groups, read, layout.NODES_USED)
        return self._groups()

    def read(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Read:
        """Have the kernels know the document, the plans, and arrays that are long enough."""
        building, work = self._building, self.work
        rows = self._run.run(building.nfa, self._labels.names, batch, vocabulary)
        attributes = building.constants.attributes
        read = read_of(rows, building.nfa.records, batch, attributes, vocabulary)
        plans = building.plans(vocabulary)
        work.register(CONSTANTS, building.constants.arrays())
        work.register(layout.PLANS, plans)
        work.words[EVENTS], work.words[layout.ROWS] = len(batch.tags), len(rows)
        work.reserve(len(batch.tags) + 2, *BY_EVENT, "own_states", "open_states")
        work.reserve(len(rows) + 1, "row_tuples")
        work.reserve(len(building.nfa), "state_counts")
        work.reserve(len(building), *_BY_OPERATOR)
        work.reserve(building.queries, "listed_from")
        work.reserve(len(plans.is_live), "is_answer")
        return read

    def _groups(self) -> Groups:
        """What was found, copied."""
        building, words, arrays = self._building, self.work.words, self.work.arrays
        listed = int(words[layout.LISTED_USED])
        answers, lists = int(words[layout.ANSWERS_USED]), int(words[layout.LISTS_USED])
        groups = Groups(
            transformations=arrays.answers[:answers].copy(),
            group_starts=arrays.group_starts[:answers].copy(),
            group_ends=arrays.group_ends[:answers].copy(),
            bound=arrays.bound[: words[layout.BOUND_USED]].copy(),
            path_starts=arrays.path_starts[:answers].copy(),
            paths=building.paths if building.is_shared else arrays.paths[:listed].copy(),
            of_path=arrays.of_path[: words[layout.PATHS_USED] + 1].copy(),
            list_bound=arrays.list_bound[:lists].copy(),
            list_starts=arrays.list_starts[:lists].copy(),
            list_ends=arrays.list_ends[:lists].copy(),
            nodes=arrays.nodes[: words[layout.NODES_USED]].copy(),
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
    "table": 2 * layout.TABLE_SLOT * ROOM,  # at most half full
}
_TOGETHER = (
    ("answers", "path_starts", "group_starts", "group_ends"),
    ("list_bound", "list_starts", "list_ends"),
)
