"""``RelativeStrategy``: the default strategy; see README.md."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.arrays import note
from tamis.documents.batch import EventBatch, Int32, freeze
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.matching.nfa.running import NfaRun
from tamis.transform.groups import Groups, too_many_nodes
from tamis.transform.relative import layout
from tamis.transform.relative.building import Building
from tamis.transform.relative.kernels.answers import find_groups
from tamis.transform.relative.layout import DONE, ODD_NUMBER, PLANS, READ, WORK, Plans, Read, Work
from tamis.transform.shapes import Shape

_ROOM = 256


class RelativeStrategy:
    """The plans of all transformations, and the workspace of one thread.

    Args:
        nodes_max: in the lists of a document, and likewise what is true of its bound nodes.

    >>> from tamis.language.flwr import parse_transformation
    >>> from tamis.transform.plan import task_of
    >>> from tamis.transform.shapes import Shapes
    >>> strategy = RelativeStrategy()
    >>> text = "<r>{ for $b in //b where $b/@n > 1 return $b/c }</r>"
    >>> strategy.add(Shapes(strategy.labels).of(task_of(parse_transformation(text))))
    0
    """

    def __init__(self, nodes_max: int = 1 << 24) -> None:
        self._nodes_max = nodes_max
        self._building = Building()
        self._run = NfaRun()
        self._state = np.zeros(layout.STATE_SIZE, np.int64)
        self._plans: Plans | None = None  # as kernels know them; None where some were added since
        self._fitted = -1  # the number of transformations that the arrays are long enough for
        self._is_work_new = True
        self._work: dict[str, NDArray[Any]] = {
            name: np.zeros(_SIZES.get(name, _ROOM), _DTYPES.get(name, np.int64))
            for name in Work._fields
        }

    @property
    def labels(self) -> Labels:
        """The labels that shapes have to be made with."""
        return self._building.labels

    def add(self, shape: Shape) -> int:
        """Add a transformation: its number."""
        self._plans = None
        return self._building.add(shape)

    def remove(self, number: int) -> None:
        """Forget a transformation."""
        self._building.remove(number)

    def find_groups(self, batch: EventBatch, vocabulary: Vocabulary) -> Groups | None:
        """What the transformations find in a document.

        Args:
            batch: of this document alone.

        Raises:
            DocumentLimitError: there are more nodes than is allowed.

        Returns:
            None where it has a number of so many digits that only Python reads it.
        """
        building = self._building
        rows = self._run.run(building.nfa, building.labels.names, batch, vocabulary)
        read = Read(
            rows=rows.reshape(-1),
            records=building.nfa.records.reshape(-1),
            tags=batch.tags,
            attribute_event=batch.attribute_event,
            attribute_name=batch.attribute_name,
            value_start=batch.value_start,
            value_end=batch.value_end,
            attribute_values=batch.attribute_values,
            text_event=batch.text_event,
            text_start=batch.text_start,
            text_end=batch.text_end,
            text_values=batch.text_values,
            names=self._names(vocabulary),
        )
        state = self._state
        if self._plans is None:
            self._plans = building.plans()
            note(state, PLANS.is_binding, self._plans)
        self._fit(len(batch.tags), len(rows))
        state[layout.EVENTS], state[layout.ROWS] = len(batch.tags), len(rows)
        note(state, READ.rows, read)
        self._note_work()
        while (status := find_groups(state)) != DONE:
            if status == ODD_NUMBER:
                return None
            self._widen(Work._fields[state[layout.FULL]])
            self._note_work()
        return self._groups(self._plans)

    def _note_work(self) -> None:
        if self._is_work_new:
            note(self._state, WORK.ends, Work(**self._work))
            self._is_work_new = False

    def _names(self, vocabulary: Vocabulary) -> Int32:
        """The ids that the names of attributes have in a vocabulary."""
        found = [vocabulary.find(*name) for name in self._building.attributes]
        return np.array(found, np.int32)

    def _fit(self, events: int, rows: int) -> None:
        """Have the arrays be long enough that are about events, occurrences and what is planned."""
        building = self._building
        for name in _BY_EVENT:
            self._reserve(name, events + 2)
        self._reserve("row_stamp", rows)
        if self._fitted == building.queries:
            return
        self._fitted = building.queries
        self._reserve("frontier", 64)
        self._reserve("leaf_stamp", building.leaves)
        for name in ("binding_stamp", "binding_row"):
            self._reserve(name, len(building.nfa))
        for name in _BY_SELECTION:
            self._reserve(name, building.selections)
        for name in ("of_path", "path_at"):
            self._reserve(name, building.sources + 1)
        words = (building.queries + 63) // 64
        if len(self._work["is_answer"]) != words:
            self._replace("is_answer", words)

    def _reserve(self, name: str, size: int) -> None:
        if len(self._work[name]) < size:
            self._replace(name, size + size // 2)

    def _widen(self, name: str) -> None:
        """Make an array longer that was full, and those that go with it.

        Raises:
            DocumentLimitError: it is long enough for all that is allowed.
        """
        if len(self._work[name]) >= _WIDTHS.get(name, 1) * self._nodes_max:
            raise too_many_nodes(self._nodes_max)
        for each in _TOGETHER.get(name, (name,)):
            self._replace(each, 2 * len(self._work[each]))

    def _replace(self, name: str, size: int) -> None:
        """A longer array; nothing that is kept from document to document is in it."""
        self._work[name] = np.zeros(size, self._work[name].dtype)
        self._is_work_new = True

    def _groups(self, plans: Plans) -> Groups:
        """What was found, copied; the paths of transformations stay what they are."""
        state, work = self._state, self._work
        answers, lists = int(state[layout.ANSWERS_USED]), int(state[layout.LIST_KEYS])
        groups = Groups(
            documents=np.zeros(answers, np.int32),
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
        freeze(*groups)
        return groups


_DTYPES: dict[str, Any] = {
    "is_bound": np.uint8,
    "found_leaves": np.int32,
    "matched": np.int32,
    "is_answer": np.uint64,
    "number": np.float64,
    "answers": np.int32,
}
_SIZES = {
    "lists_of": layout.LIST_SLOT * _ROOM,
    "number": 1,
}
_WIDTHS = {"lists_of": 2 * layout.LIST_SLOT, "hits": 2, "pairs": 2, "groups": 2}
"""Numbers of each entry; the table of lists is at most half full."""
_BY_EVENT = (
    "ends",
    "parents",
    "attributes_from",
    "texts_from",
    "stack",
    "is_bound",
    "first_hit",
    "first_list",
)
_BY_SELECTION = (
    "selection_stamp",
    "selection_node",
    "selection_first",
    "selection_last",
    "matched",
    "bound_from",
    "bound_to",
)
_TOGETHER = {
    "groups": ("groups", "bound"),
    "answers": ("answers", "answer_paths", "group_starts", "group_ends"),
    "list_bound": ("list_bound", "list_starts", "list_ends"),
}
