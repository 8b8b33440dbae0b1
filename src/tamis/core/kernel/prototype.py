"""The declared signature of a kernel: a C prototype, derived from its annotations.

An array is a pointer and its length, or its rows and columns; an int or a bool is an ``int64``; a
NamedTuple is its fields. The result is an ``int64``, or nothing. Parameters are written as names,
for the library's list of kernels, where a NamedTuple is a list:

>>> import numpy as np
>>> from numpy.typing import NDArray
>>> def scan(state: NDArray[np.int64], rows: Rows[np.uint8], count: int) -> int: ...
>>> prototype_of(scan)
(['int64[]', 'uint8[,]', 'int64'], 'int64')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import dtype_of

Parameter = Any
"""A name such as ``int64``, ``int64[]`` or ``int64[,]``, or a list of these."""

_Item = TypeVar("_Item", bound=np.generic)
Rows = Annotated[NDArray[_Item], 2]
"""An array of two dimensions."""

_ARRAYS = (np.ndarray, get_origin(NDArray[np.int64]))
_NUMBERS = {int: "int64", bool: "int64", np.uint64: "uint64"}


def prototype_of(function: Callable[..., Any]) -> tuple[list[Parameter], str]:
    """The parameters of a kernel, and the type of its result, "" for none.

    Raises:
        TypeError: an annotation is missing, or is none that a kernel may have.
    """
    result: Any = get_type_hints(function)["return"]
    returned = "" if result is type(None) else _NUMBERS[result]
    return [parameter_of(hint) for hint in hints_of(function)], returned


def hints_of(function: Callable[..., Any]) -> list[Any]:
    """The annotations of the parameters."""
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    return list(hints.values())


def fields_of(hint: Any) -> list[Any] | None:
    """The annotations of a NamedTuple's fields, or None."""
    if isinstance(hint, type) and issubclass(hint, tuple):
        return list(get_type_hints(hint, include_extras=True).values())
    return None


def parameter_of(hint: Any) -> Parameter:
    """What the list of kernels says of an annotation."""
    if hint in _NUMBERS:
        return _NUMBERS[hint]
    fields = fields_of(hint)
    if fields is not None:
        return list(map(parameter_of, fields))
    is_table = get_origin(hint) is Annotated
    array = get_args(hint)[0] if is_table else hint
    if get_origin(array) not in _ARRAYS:
        raise TypeError(f"a kernel cannot take {hint}")
    return f"{dtype_of(array).name}[{',' if is_table else ''}]"
