"""``RelativeStrategy``: the default strategy; see README.md."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import freeze
from tamis.core.kernel.record import register
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.matching.engines.nfa.execute import NfaRun
from tamis.transform.shapes import Shape
from tamis.transform.strategies.relative import layout
from tamis.transform.strategies.relative.building import Building
from tamis.transform.strategies.relative.kernels.answers import find_groups
from tamis.transform.strategies.relative.layout import PLANS, WORK, Plans
from tamis.transform.strategy import Groups, Strategy
from tamis.transform.strings.constants import ids_of, read_of
from tamis.transform.strings.layout import (
    CONSTANTS,
    EVENTS,
    READ,
    Constants,
)
from tamis.transform.strings.workspace import BY_EVENT, Trait, Workspace


class RelativeStrategy:
    """The plans of all transformations, and the workspace of one thread.

    Args:
        labels: that shapes are made with.
        nodes_max: in the lists of a document, and likewise what is true of its bound nodes.

    >>> from tamis.language.flwr import parse_transformation
    >>> from tamis.transform.shapes import task_of
    >>> from tamis.transform.shapes import Shapes
    >>> labels = Labels()
    >>> strategy = RelativeStrategy(labels)
    >>> text = "<r>{ for $b in //b where $b/@n > 1 return $b/c }</r>"
    >>> strategy.add(Shapes(labels).of(task_of(parse_transformation(text))))
    0
    """

    def __init__(self, labels: Labels, nodes_max: int = 1 << 24) -> None:
        self._building = Building(labels)
        self._run = NfaRun()
        self._work = Workspace(layout.STATE_SIZE, WORK, _TRAITS, nodes_max)
        self._plans: tuple[Plans, Constants] | None = None  # as kernels know them, if none is new
        self._fitted = -1  # the number of transformations that the arrays are long enough for

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""
        self._plans = None
        return self._building.add(shape)

    def remove(self, number: int) -> None:
        """Forget a transformation."""
        self._building.remove(number)

    def find_groups(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Groups:
        """What the transformations find in a document.

        Args:
            batch: of this document alone.

        Raises:
            DocumentLimitError: there are more nodes than is allowed.
        """
        building = self._building
        rows = self._run.run(building.nfa, building.labels.names, batch, vocabulary)
        names = ids_of(building.constants.attributes, vocabulary)
        read = read_of(rows, building.nfa.records, batch, names)
        state = self._work.state
        if self._plans is None:
            self._plans = building.plans(), building.constants.arrays()
            register(state, PLANS.is_binding, self._plans[0])
            register(state, CONSTANTS.sources, self._plans[1])
        self._fit(len(batch.tags), len(rows))
        state[EVENTS], state[layout.ROWS] = len(batch.tags), len(rows)
        register(state, READ.rows, read)
        self._work.run(find_groups, read)
        self._work.check(int(state[layout.NODES_USED]))
        return self._groups(self._plans[0])

    def _fit(self, events: int, rows: int) -> None:
        """Have the arrays be long enough that are about events, occurrences and what is planned."""
        building, work = self._building, self._work
        work.fit((*BY_EVENT, "is_bound", "first_hit", "first_list"), events + 2)
        work.fit(("row_stamp",), rows)
        if self._fitted == building.queries:
            return
        self._fitted = building.queries
        work.fit(("leaf_stamp",), building.leaves)
        work.fit(("binding_stamp", "binding_row"), len(building.nfa))
        work.fit(_BY_SELECTION, building.selections)
        work.fit(("of_path", "path_at"), building.sources + 1)
        work.fit_exactly("is_answer", (building.queries + 63) // 64)

    def _groups(self, plans: Plans) -> Groups:
        """What was found, copied; the paths of transformations stay what they are."""
        state, work = self._work.state, self._work
        answers, lists = int(state[layout.ANSWERS_USED]), int(state[layout.LIST_KEYS])
        groups = Groups(
            transformations=work["answers"][:answers].copy(),
            group_starts=work["group_starts"][:answers].copy(),
            group_ends=work["group_ends"][:answers].copy(),
            bound=work["bound"][: state[layout.BOUND_USED]].copy(),
            path_starts=work["answer_paths"][:answers].copy(),
            paths=plans.paths,
            of_path=work["of_path"][: self._building.sources + 1].copy(),
            list_bound=work["list_bound"][:lists].copy(),
            list_starts=work["list_starts"][:lists].copy(),
            list_ends=work["list_ends"][:lists].copy(),
            nodes=work["nodes"][: state[layout.NODES_USED]].copy(),
        )
        if state[layout.IS_UNORDERED]:
            _order(groups)
        freeze(*groups)
        return groups


def _order(groups: Groups) -> None:
    """Bring each list into document order."""
    order = np.argsort(groups.list_starts)
    starts, ends = groups.list_starts[order], groups.list_ends[order]
    lists = np.repeat(starts, ends - starts)
    groups.nodes[:] = groups.nodes[np.lexsort((groups.nodes, lists))]


_BY_SELECTION = (
    "selection_stamp",
    "selection_node",
    "selection_first",
    "selection_last",
    "matched",
    "bound_from",
    "bound_to",
)
_TRAITS = {
    "is_bound": Trait(np.uint8),
    "matched": Trait(np.int32),
    "is_answer": Trait(np.uint64),
    "answers": Trait(np.int32, together=("answer_paths", "group_starts", "group_ends")),
    "lists_of": Trait(width=2 * layout.LIST_SLOT),  # at most half full
    "hits": Trait(width=2),
    "pairs": Trait(width=2),
    "groups": Trait(width=2, together=("bound",)),
    "list_bound": Trait(together=("list_starts", "list_ends")),
}


STRATEGY = Strategy(
    name="relative",
    check=lambda _: None,
    searcher=lambda labels, nodes_max, _: RelativeStrategy(labels, nodes_max),
    explain=lambda *_: "",
    takes_schema=False,
)
