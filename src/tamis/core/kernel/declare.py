"""How functions become kernels: ``kernel``, ``called``, ``inlined``, ``intrinsic``; prototypes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import dtype_of
from tamis.core.errors import LibraryError, UsageError
from tamis.core.kernel.library import Library, open_library, symbol_of

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[Callable[..., Any]] = []
"""Of ``jit`` and of the build: the kernels that were declared so far, as Numba's dispatchers."""

# Kernels make no arrays, so references to arrays are not counted: counting took nine tenths of the
# time of a kernel with many short functions. A kernel that allocates does not compile.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}

# Only kernels call other functions. A wrapper for Python takes Numba as long as a small function.
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}


@cache
def mode() -> str:
    """How kernels run in this process: ``native``, ``jit``, ``python``, or ``build``.

    Raises:
        UsageError: ``TAMIS_KERNELS`` is something else, or is ``jit`` and Numba cannot be imported.
        LibraryError: the native library cannot be used, and Numba is not installed.
    """
    asked = os.environ.get("TAMIS_KERNELS", "native")
    if asked not in ("native", "jit", "python", "build"):
        raise UsageError(f"TAMIS_KERNELS={asked}: write native, jit or python")
    if asked == "jit":
        try:
            _numba()
        except ImportError as error:
            raise UsageError(
                f"TAMIS_KERNELS=jit: {error}: install Numba: pip install 'tamis[jit]'"
            ) from None
    if asked != "native":
        return asked
    try:
        _library()
    except LibraryError as error:
        try:
            _numba()
        except ImportError:
            raise error from None
        sys.stderr.write(
            f"tamis: {error}; until then Numba compiles kernels in memory, for about a minute\n"
        )
        return "jit"
    return "native"


@cache
def _library() -> Library:
    return open_library()


def kernel(function: F) -> F:
    """Make a function a kernel, which Python and kernels call; the GIL is released meanwhile."""
    how = mode()
    if how == "native":
        return cast(F, wraps(function)(_library().caller(symbol_of(function))))
    if how == "python":
        return uncompiled(function)
    compiled = _for_wide_integers(_numba().njit(nogil=True, **_OPTIONS, **_WRAPPED[how])(function))
    KERNELS.append(compiled)
    return cast(F, compiled)


# The library's functions are called by ctypes, so Numba's own wrappers are left out.
_WRAPPED: dict[str, dict[str, bool]] = {"jit": {}, "build": {"no_cpython_wrapper": True}}


def called(function: F) -> F:
    """Make a function one that only kernels call."""
    if mode() in ("native", "python"):
        return function
    return cast(F, _for_wide_integers(_numba().njit(nogil=True, **_INNER)(function)))


def inlined(function: F) -> F:
    """Make a function one that is compiled into each kernel that calls it."""
    if mode() in ("native", "python"):
        return function
    return cast(F, _for_wide_integers(_numba().njit(forceinline=True, **_INNER)(function)))


def intrinsic(function: F) -> F:
    """Make a function an intrinsic: its body is its twin in Python, for ``python`` and tests.

    The function of the same name in the module's namesake, with ``_llvm`` behind its name, makes
    the code of LLVM.
    """
    if mode() in ("native", "python"):
        return function
    return cast(F, getattr(import_module(f"{function.__module__}_llvm"), function.__name__))


class _Word(np.uint64):
    """A uint64 of any integer, modulo 2**64: as machine code has it, and NumPy has not."""

    def __new__(cls, number: Any) -> Any:
        return np.uint64(int(number) & 0xFFFFFFFFFFFFFFFF)


U: type[np.uint64] = _Word if os.environ.get("TAMIS_KERNELS") == "python" else np.uint64
"""What kernels call uint64."""


def _numba() -> Any:
    return import_module("numba")


def uncompiled(function: F) -> F:
    """The function itself, with the integers of machine code instead of NumPy's."""

    def given(argument: Any) -> Any:
        if isinstance(argument, np.ndarray):
            return argument.view(WideArray)
        if isinstance(argument, tuple):
            return type(argument)(*map(given, argument))
        return np.int64(argument) if isinstance(argument, int) else argument

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # uint64 are modulo 2**64
            result = function(*map(given, arguments))
        return int(result) if isinstance(result, np.integer) else result

    return cast(F, run)


class WideArray(np.ndarray[Any, Any]):
    """Of ``python``: an array whose items have 64 bits once they are read, as Numba has them.

    What is stored is cut to the bits of an item.
    """

    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        return np.int64(item) if isinstance(item, _NARROW) else item

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, int | np.integer) and self.dtype.kind in "iu":
            bits = int(value) & ((1 << (8 * self.dtype.itemsize)) - 1)
            value = np.array(bits, f"u{self.dtype.itemsize}").view(self.dtype)
        super().__setitem__(key, value)


_NARROW = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)


def _for_wide_integers(compiled: Any) -> Any:
    """Compile a function for integers of 64 bits alone.

    Numba would compile it, and all that it calls, once more for each constant that it is called
    with, and for each narrower type.
    """
    types = _numba().types
    compile_for = compiled.compile

    def wide(type: Any) -> Any:
        plain = types.unliteral(type)
        is_signed = isinstance(plain, types.Integer) and plain.signed
        return types.int64 if is_signed else plain

    def compile_wide(signature: Any) -> Any:
        return compile_for(tuple(map(wide, signature)))

    compiled.compile = compile_wide
    return compiled


# -- prototypes ----------------------------------------------------------------------------------

Parameter = Any
"""A name such as ``int64``, ``int64[]`` or ``int64[,]``, or a list of these."""

_Item = TypeVar("_Item", bound=np.generic)
Rows = Annotated[NDArray[_Item], 2]
"""An array of two dimensions."""

_ARRAYS = (np.ndarray, get_origin(NDArray[np.int64]))
_NUMBERS = {int: "int64", bool: "int64", np.uint64: "uint64"}


def prototype_of(function: Callable[..., Any]) -> tuple[list[Parameter], str]:
    """The declared signature of a kernel: its parameters, and the type of its result, "" for none.

    It is a C prototype. An array is a pointer and its length, or its rows and columns; an int or a
    bool is an ``int64``; a NamedTuple is its fields. The result is an ``int64``, or nothing.
    Parameters are written as names, for the library's list of kernels, and a NamedTuple as a list:

    >>> def scan(state: NDArray[np.int64], rows: Rows[np.uint8], count: int) -> int: ...
    >>> prototype_of(scan)
    (['int64[]', 'uint8[,]', 'int64'], 'int64')

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
