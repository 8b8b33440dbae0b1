"""``RelativeStrategy``: the default strategy; see README.md."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import freeze
from tamis.core.kernel.state import bound, zeros
from tamis.documents.batch import BatchBuilder, DocumentBatch
from tamis.documents.parser import Recorded
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.matching.engines.nfa.layout import WORK as NFA_WORK
from tamis.matching.engines.nfa.states import NfaRun
from tamis.transform.constants import BY_EVENT, ROOM, Workspace, read_of
from tamis.transform.kernels.messages import ANSWERED
from tamis.transform.layout import CONSTANTS, EVENTS, READ, Constants, Groups
from tamis.transform.shapes import Shape
from tamis.transform.strategies.relative import layout as at
from tamis.transform.strategies.relative.compile import Building
from tamis.transform.strategies.relative.kernels.find import find_groups, find_one
from tamis.transform.strategy import FoundOne, Strategy

_BY_SELECTION = (
    *("selection_stamp", "selection_node", "selection_first", "selection_last"),
    *("matched", "bound_from", "bound_to"),
)
_FIRST_SIZES = {
    **dict.fromkeys(("hits", "pairs", "groups"), 2 * ROOM),
    "lists_of": 2 * at.LIST_SLOT * ROOM,  # at most half full
}
_TOGETHER = (
    ("answers", "answer_paths", "group_starts", "group_ends"),
    ("groups", "bound"),
    ("list_bound", "list_starts", "list_ends"),
)


_ONE_EVENTS = 1 << 12
"""Single documents have at most so many events, unless longer ones were met."""
_EMPTY, _NO_ROWS = BatchBuilder().freeze(), np.zeros(0, np.int64)
_ROWS_PLACE = np.array([READ.rows, NFA_WORK.occurrences, NFA_WORK.occurrences + 1, 0])
_COUNTS = {
    **dict.fromkeys(("answers", "group_starts", "group_ends", "answer_paths"), at.ANSWERS_USED),
    "bound": at.BOUND_USED,
    **dict.fromkeys(("list_bound", "list_starts", "list_ends"), at.LIST_KEYS),
    "nodes": at.NODES_USED,
    "of_path": at.WORK.of_path + 1,
}
_NAMES = {"transformations": "answers", "path_starts": "answer_paths"}
_LENT = np.array(
    [
        (ANSWERED.paths, at.PLANS.paths, at.PLANS.paths + 1, 0),
        *(
            (field, getattr(at.WORK, _NAMES.get(name, name)), _COUNTS[_NAMES.get(name, name)], 0)
            for name, field in zip(ANSWERED._fields, ANSWERED, strict=True)
            if name != "paths"
        ),
    ]
).reshape(-1)
"""Of each array of ``Groups``: see ``tamis.core.kernel.record.borrow``."""


class RelativeStrategy:
    """The plans of all transformations, and the workspace of one thread.

    ``nodes_max`` limits the lists of a document, and likewise what is true of its bound nodes.

    >>> from tamis.language.flwr import parse_transformation
    >>> from tamis.transform.shapes import Shapes, task_of
    >>> labels = Labels()
    >>> strategy = RelativeStrategy(labels)
    >>> text = "<r>{ for $b in //b where $b/@n > 1 return $b/c }</r>"
    >>> strategy.add(Shapes(labels).of(task_of(parse_transformation(text))))
    0
    """

    def __init__(self, labels: Labels, nodes_max: int = 1 << 24) -> None:
        self._building = Building(labels)
        self._run = NfaRun()
        arrays = zeros(at.Work, ROOM, **_FIRST_SIZES)
        self._work = Workspace(at.STATE_SIZE, at.WORK, arrays, _TOGETHER, nodes_max)
        self._plans: tuple[at.Plans, Constants] | None = None  # None if transformations are new
        self._one: tuple[object, ...] = (None,) * 3  # what single documents are of
        self._find_one = bound(find_one, self._work.words)
        self._lent = self._work.words, _LENT

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""
        self._plans = None
        return self._building.add(shape)

    def find_groups(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Groups:
        """What the transformations find in a document; see ``Searcher``."""
        building, work = self._building, self._work
        self._one = (None,) * 3
        rows = self._run.run(building.nfa, building.labels.names, batch, vocabulary)
        attributes = building.constants.attributes
        read = read_of(rows, building.nfa.records, batch, attributes, vocabulary)
        self._reserve(len(batch.tags), len(rows))
        if self._plans is None:
            self._plans = self._registered()
        work.words[EVENTS], work.words[at.ROWS] = len(batch.tags), len(rows)
        work.find(find_groups, read, at.NODES_USED)
        return self._groups(self._plans[0])

    def find_one(self, recorded: Recorded, vocabulary: Vocabulary) -> FoundOne | None:
        """What they find in one small document; see ``Searcher``."""
        names, one = len(vocabulary), self._one
        is_ready = one[0] is recorded and one[1] is vocabulary and one[2] == names
        if not is_ready or self._plans is None:
            self._prepare(recorded, vocabulary)
            self._one = recorded, vocabulary, names
        if not self._run.run_one() or self._find_one():
            self._one = (None,) * 3
            return None
        words = self._work.words
        found = self._work.arrays.answers[: words[at.ANSWERS_USED]]
        return FoundOne(self._lent, found, int(words[at.NODES_USED]))

    def _prepare(self, recorded: Recorded, vocabulary: Vocabulary) -> None:
        """Have kernels look at each document that is recorded."""
        building, work = self._building, self._work
        if self._plans is None:
            self._plans = self._registered()
        self._reserve(_ONE_EVENTS, _ONE_EVENTS)
        nfa = self._run.prepare_one(building.nfa, building.labels.names, recorded, vocabulary)
        attributes = building.constants.attributes
        read = read_of(_NO_ROWS, building.nfa.records, _EMPTY, attributes, vocabulary)
        work.register(READ, read)
        places = recorded.places_in(READ)
        work.register(at.ONE, at.One(recorded.state, places, nfa, _ROWS_PLACE))

    def _reserve(self, events: int, rows: int) -> None:
        self._work.reserve(events + 2, *BY_EVENT, "is_bound", "first_hit", "first_list")
        self._work.reserve(rows, "row_stamp")

    def _registered(self) -> tuple[at.Plans, Constants]:
        """The arrays of all transformations, and as much room for what is about these."""
        building, work = self._building, self._work
        plans, constants = building.plans(), building.constants.arrays()
        work.register(at.PLANS, plans)
        work.register(CONSTANTS, constants)
        work.reserve(building.constants.leaves.count, "leaf_stamp")
        work.reserve(len(building.nfa), "binding_stamp", "binding_row")
        work.reserve(building.selections, *_BY_SELECTION)
        work.reserve(building.constants.sources.count + 1, "of_path", "path_at")
        work.reserve(len(plans.selection_of) // 64 + 1, "is_answer")
        return plans, constants

    def _groups(self, plans: at.Plans) -> Groups:
        """What was found, copied; the paths of transformations stay what they are."""
        words, arrays = self._work.words, self._work.arrays
        answers, lists = int(words[at.ANSWERS_USED]), int(words[at.LIST_KEYS])
        groups = Groups(
            transformations=arrays.answers[:answers].copy(),
            group_starts=arrays.group_starts[:answers].copy(),
            group_ends=arrays.group_ends[:answers].copy(),
            bound=arrays.bound[: words[at.BOUND_USED]].copy(),
            path_starts=arrays.answer_paths[:answers].copy(),
            paths=plans.paths,
            of_path=arrays.of_path[: self._building.constants.sources.count + 1].copy(),
            list_bound=arrays.list_bound[:lists].copy(),
            list_starts=arrays.list_starts[:lists].copy(),
            list_ends=arrays.list_ends[:lists].copy(),
            nodes=arrays.nodes[: words[at.NODES_USED]].copy(),
        )
        if words[at.IS_UNORDERED]:
            _order(groups)
        freeze(*groups)
        return groups


def _order(groups: Groups) -> None:
    """Bring each list into document order."""
    order = np.argsort(groups.list_starts)
    starts, ends = groups.list_starts[order], groups.list_ends[order]
    lists = np.repeat(starts, ends - starts)
    groups.nodes[:] = groups.nodes[np.lexsort((groups.nodes, lists))]


STRATEGY = Strategy(
    name="relative",
    check=lambda _: None,
    searcher=lambda labels, nodes_max, _: RelativeStrategy(labels, nodes_max),
    explain=lambda *_: "",
    takes_schema=False,
)
