"""``State``: a state and the arrays that kernels fill, which grow when they are full.

There is one protocol: a kernel that finds an array full returns the array's field, and goes on when
it is called again.

>>> from typing import NamedTuple
>>> from tamis.core.kernel.record import lay_out
>>> class Work(NamedTuple):
...     found: Int64
...     places: Int64
>>> NEXT, FOUND, NUMBERS = range(3)
>>> WORK, STATE_SIZE = lay_out(NUMBERS, Work)
>>> state = State(STATE_SIZE, WORK, zeros(Work, 1), [("found", "places")])
>>> def find_even(words: Int64) -> int:  # a kernel has the arrays by int64s(words, WORK.found)
...     numbers, (found, places) = np.array([5, 6, 7, 8]), state.arrays
...     for place in range(words[NEXT], len(numbers)):
...         words[NEXT] = place
...         if words[FOUND] == len(found):
...             return WORK.found
...         if numbers[place] % 2 == 0:
...             found[words[FOUND]], places[words[FOUND]] = numbers[place], place
...             words[FOUND] += 1
...     return 0
>>> state.run(find_even), len(state.arrays.found)
(0, 64)
>>> state.arrays.found[: state.words[FOUND]]
array([6, 8])

This module is apart from :mod:`.record`, which kernels import: changes here compile none again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Generic, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64, dtype_of
from tamis.core.kernel.record import register


def bound(kernel: Callable[..., int], state: Int64) -> Callable[..., int]:
    """A kernel with its state, which is checked once: a short kernel takes less than the check.

    The caller keeps the state alive.
    """
    of_state: Callable[[Int64], Callable[..., int]] | None = getattr(kernel, "of_state", None)
    return partial(kernel, state) if of_state is None else of_state(state)


Arrays = TypeVar("Arrays", bound=tuple[Any, ...])
"""A NamedTuple of arrays."""


def zeros(kind: type[Arrays], size: int, **others: NDArray[Any] | int) -> Arrays:
    """New arrays for a NamedTuple, each with ``size`` zeros of the type that it is declared with.

    Args:
        others: arrays that begin otherwise, or their sizes.
    """
    made = {name: others.get(name, size) for name in _dtypes(kind)}
    return kind(
        **{
            name: np.zeros(first, _dtypes(kind)[name]) if isinstance(first, int) else first
            for name, first in made.items()
        }
    )


@cache
def _dtypes(kind: Any) -> dict[str, np.dtype[Any]]:
    """The declared type of each array's items."""
    return {name: dtype_of(hint) for name, hint in get_type_hints(kind).items()}


class State(Generic[Arrays]):
    """A state and the arrays that kernels fill, for one thread at a time.

    A kernel that finds an array full returns the array's field. ``run`` doubles the array and calls
    the kernel again, until the kernel returns anything else. So the kernel either keeps in the
    state how far it is, or begins again. Contents of arrays stay when they grow.

    To bound an array, override ``grow``. When not to use this: where a kernel is called once with a
    few arrays of known sizes, pass them.

    Args:
        size: how many int64 the state has.
        own: the fields of the arrays that the state owns.
        arrays: these arrays, at first (see ``zeros``).
        together: names of arrays that are full at the same time; the kernel may return any of them.

    Attributes:
        words: the int64 array that kernels receive.
        arrays: the arrays that the state owns, as they are now.
    """

    def __init__(
        self, size: int, own: Any, arrays: Arrays, together: Sequence[Sequence[str]] = ()
    ) -> None:
        self.words: Int64 = np.zeros(size, np.int64)
        self.arrays = arrays
        self._own = own
        self._names = dict(zip(own, own._fields, strict=True))
        self._together = {name: names for names in together for name in names}
        self._registered: dict[int, Any] = {}  # keeps arrays alive whose addresses kernels have
        register(self.words, own[0], arrays)

    def register(self, fields: Any, arrays: Sequence[Any]) -> None:
        """Have kernels read other arrays, of a program or a batch; they stay alive until the next.

        Args:
            fields: as ``lay_out`` returns them.
        """
        register(self.words, fields[0], arrays)
        self._registered[fields[0]] = arrays

    def replace(self, **arrays: NDArray[Any]) -> None:
        """Have kernels fill other arrays, given by name."""
        self.arrays = self.arrays._replace(**arrays)  # type: ignore[attr-defined]
        for name, array in arrays.items():
            register(self.words, getattr(self._own, name), (array,))

    def reserve(self, size: int, *names: str, fill: int = 0) -> None:
        """Make arrays that are shorter than ``size`` as long, and half as long again.

        Args:
            fill: new items have this value.
        """
        for name in names:
            array = getattr(self.arrays, name)
            if len(array) < size:
                longer = np.full(size + size // 2, fill, array.dtype)
                longer[: len(array)] = array
                self.replace(**{name: longer})

    def run(self, kernel: Callable[..., int], *numbers: int) -> int:
        """Run a kernel until it returns something else than the field of an array that is full."""
        while (status := int(kernel(self.words, *numbers))) in self._names:
            self.grow(self._names[status])
        return status

    def grow(self, name: str) -> None:
        """Double an array that is full, and those that are full with it."""
        for each in self._together.get(name, (name,)):
            array = getattr(self.arrays, each)
            longer = np.zeros(max(64, 2 * len(array)), array.dtype)
            longer[: len(array)] = array
            self.replace(**{each: longer})

    def memory_usage(self) -> int:
        """The bytes of the state and of the arrays that it owns."""
        owned: int = sum(array.nbytes for array in self.arrays)
        return self.words.nbytes + owned
