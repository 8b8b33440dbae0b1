"""``Workspace``: the arrays that kernels fill, which grow when they are full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64
from tamis.core.kernel.record import register
from tamis.language.values import xpath_number
from tamis.transform.strategy import too_many_nodes
from tamis.transform.strings.layout import DONE, FULL, NODES, ODD_FOUND, ODD_KNOWN, Nodes, Read

_ROOM, _ROOM_MAX = 256, 1 << 20


class Workspace:
    """A state, and the arrays of one thread that it leads to.

    An array that a kernel fills keeps nothing from document to document, so all begins again in a
    longer one where it was full.

    Args:
        size: of the state.
        places: the strategy's own arrays: a namedtuple of their places.
        traits: of those that are not int64s, or not one number for each thing.
        nodes_max: in the lists of a document. Other arrays may have as many things, and always
            ``_ROOM_MAX``.

    Attributes:
        state: int64[size]; for kernels.
    """

    def __init__(self, size: int, places: Any, traits: Mapping[str, Trait], nodes_max: int) -> None:
        self.state: Int64 = np.zeros(size, np.int64)
        self._places = {**NODES._asdict(), **places._asdict()}
        self._names = {place: name for name, place in self._places.items()}
        self._traits = {**_OF_NODES, **traits}
        self._nodes_max = nodes_max
        self._arrays: dict[str, NDArray[Any]] = {}
        for name in self._places:
            trait = self._trait(name)
            self._replace(name, trait.size or trait.width * _ROOM)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def fit(self, names: Sequence[str], size: int) -> None:
        """Have some arrays be at least so long."""
        for name in names:
            if len(self._arrays[name]) < size:
                self._replace(name, size + size // 2)

    def fit_exactly(self, name: str, size: int) -> None:
        """Have an array be so long."""
        if len(self._arrays[name]) != size:
            self._replace(name, size)

    def widen(self) -> None:
        """Make the array longer that was full, and those that go with it.

        Raises:
            DocumentLimitError: it is long enough for all that is allowed.
        """
        name = self._names[int(self.state[FULL])]
        trait = self._trait(name)
        if len(self._arrays[name]) >= trait.width * max(self._nodes_max, _ROOM_MAX):
            raise too_many_nodes(self._nodes_max)
        for each in (name, *trait.together):
            self._replace(each, 2 * len(self._arrays[each]))

    def check(self, nodes: int) -> None:
        """Check how many nodes are in the lists of a document.

        Raises:
            DocumentLimitError: more than is allowed.
        """
        if nodes > self._nodes_max:
            raise too_many_nodes(self._nodes_max)

    def run(self, kernel: Callable[[Int64], int], read: Read) -> None:
        """Run a kernel over a document, again and again until all is done.

        It runs again with a longer array where one was full, and where it met numbers that it could
        not read, with these read.

        Args:
            read: the document.

        Raises:
            DocumentLimitError: an array is long enough for all that is allowed.
        """
        self.state[ODD_KNOWN] = 0
        while True:
            self.state[ODD_FOUND] = 0
            if kernel(self.state) != DONE:
                self.widen()
            elif self.state[ODD_FOUND] > 0:
                self._read_odd(read)
            else:
                return

    def _read_odd(self, read: Read) -> None:
        """Read the numbers that kernels cannot, beside those that were read so far."""
        found = self["odd_found"][: 2 * self.state[ODD_FOUND]].reshape(-1, 2)
        known = self["odd_known"][: 2 * self.state[ODD_KNOWN]].reshape(-1, 2)
        strings = np.unique(np.concatenate([found, known]), axis=0)
        buffers = read.text_values, read.attribute_values
        values = [
            xpath_number(bytes(buffers[key & 1][key >> 1 : end])) for key, end in strings.tolist()
        ]
        self.fit(("odd_known",), strings.size)
        self.fit(("odd_values",), len(values))
        self["odd_known"][: strings.size] = strings.reshape(-1)
        self["odd_values"][: len(values)] = values
        self.state[ODD_KNOWN] = len(values)

    def _trait(self, name: str) -> Trait:
        return self._traits.get(name, _PLAIN)

    def _replace(self, name: str, size: int) -> None:
        array = np.zeros(size, self._trait(name).dtype)
        self._arrays[name] = array
        register(self.state, self._places[name], (array,))


class Trait(NamedTuple):
    """What is special about an array.

    Attributes:
        dtype: of its numbers.
        width: how many are about one thing.
        size: of the array at first, or 0.
        together: arrays that are full when it is.
    """

    dtype: Any = np.int64
    width: int = 1
    size: int = 0
    together: tuple[str, ...] = ()


_PLAIN = Trait()
_OF_NODES = {
    "found_leaves": Trait(np.int32),
    "number": Trait(np.float64, size=1),
    "odd_found": Trait(width=2),
    "odd_values": Trait(np.float64),
}
BY_EVENT = Nodes._fields[: Nodes._fields.index("found_leaves")]
"""The arrays of ``Nodes`` that have a number for each event."""
