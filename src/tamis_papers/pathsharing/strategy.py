"""``PathSharing``: Diao and Franklin's strategies; see README.md."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tamis.core.arrays import freeze
from tamis.core.kernel.record import register
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.matching.engines.nfa.execute import NfaRun
from tamis.transform.shapes import Shape
from tamis.transform.strategy import Groups
from tamis.transform.strings.constants import ids_of, read_of
from tamis.transform.strings.layout import (
    CONSTANTS,
    DONE,
    EVENTS,
    NONE,
    READ,
    Read,
)
from tamis.transform.strings.workspace import BY_EVENT, Trait, Workspace
from tamis_papers.pathsharing import layout
from tamis_papers.pathsharing.building import Building
from tamis_papers.pathsharing.kernels.running import find_groups, finish, prepare, run_kind
from tamis_papers.pathsharing.layout import PLANS, WORK
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
        self._work = Workspace(layout.STATE_SIZE, WORK, _TRAITS, nodes_max)
        self._registered: Any = None  # keeps arrays alive that kernels know

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
        read = self._read(batch, vocabulary)
        self._work.run(find_groups, read)
        self._work.check(int(self._work.state[layout.NODES_USED]))
        return self._groups()

    def profile(self, batch: DocumentBatch, vocabulary: Vocabulary) -> dict[str, float]:
        """The seconds that each kind of operator takes for a document, and path matching.

        The operators of a kind are run together; what reads of shared selections comes last.
        """
        started = time.perf_counter()
        self._read(batch, vocabulary)
        state = self._work.state
        while prepare(state) != DONE:
            self._work.widen()
        seconds = {"path matching": time.perf_counter() - started}
        for kind, name in enumerate(_KINDS, layout.SELECTION):
            started = time.perf_counter()
            if kind == layout.OUTER_JOIN_SELECT:
                run_kind(state, NONE)
            if run_kind(state, kind) != DONE:
                raise RuntimeError("profile a document after its groups were found")
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - started
        finish(state)
        return seconds

    def _read(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Read:
        """Have the kernels know the document, the plans, and arrays that are long enough."""
        building, work, state = self._building, self._work, self._work.state
        rows = self._run.run(building.nfa, self._labels.names, batch, vocabulary)
        names = ids_of(building.constants.attributes, vocabulary)
        read = read_of(rows, building.nfa.records, batch, names)
        constants, plans = building.constants.arrays(), building.plans(vocabulary)
        self._registered = read, constants, plans
        register(state, READ.rows, read)
        register(state, CONSTANTS.sources, constants)
        register(state, PLANS.operators, plans)
        state[EVENTS], state[layout.ROWS] = len(batch.tags), len(rows)
        work.fit((*BY_EVENT, "own_states", "open_states"), len(batch.tags) + 2)
        work.fit(("row_tuples",), len(rows) + 1)
        work.fit(("state_counts",), len(building.nfa))
        work.fit(_BY_OPERATOR, len(building))
        work.fit(("listed_from",), building.queries)
        work.fit_exactly("is_answer", (building.queries + 63) // 64)
        return read

    def _groups(self) -> Groups:
        """What was found, copied."""
        building, state, work = self._building, self._work.state, self._work
        listed = int(state[layout.LISTED_USED])
        answers, lists = int(state[layout.ANSWERS_USED]), int(state[layout.LISTS_USED])
        groups = Groups(
            transformations=work["answers"][:answers].copy(),
            group_starts=work["group_starts"][:answers].copy(),
            group_ends=work["group_ends"][:answers].copy(),
            bound=work["bound"][: state[layout.BOUND_USED]].copy(),
            path_starts=work["path_starts"][:answers].copy(),
            paths=building.paths if building.is_shared else work["paths"][:listed].copy(),
            of_path=work["of_path"][: state[layout.PATHS_USED] + 1].copy(),
            list_bound=work["list_bound"][:lists].copy(),
            list_starts=work["list_starts"][:lists].copy(),
            list_ends=work["list_ends"][:lists].copy(),
            nodes=work["nodes"][: state[layout.NODES_USED]].copy(),
        )
        freeze(*groups)
        return groups


_KINDS = (
    "Selection",
    "DupElim",
    "GroupBy",
    "Semijoin",
    "Where-Filter",
    "Join",
    "shared Selection",
    "shared Selection",
    "Return-Select",
    "OuterJoin-Select",
)
"""The names of kinds of operators, from selections on."""
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
_TRAITS = {
    "tuples": Trait(width=2),
    "pool": Trait(width=2),
    "chain": Trait(width=2),
    "table": Trait(width=2 * layout.TABLE_SLOT),  # at most half full
    "ready": Trait(np.int32),
    "right_leaves": Trait(np.int32),
    "is_answer": Trait(np.uint64),
    "answers": Trait(np.int32, together=("path_starts", "group_starts", "group_ends")),
    "paths": Trait(np.int32),
    "list_bound": Trait(together=("list_starts", "list_ends")),
}
