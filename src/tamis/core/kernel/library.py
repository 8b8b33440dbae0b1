"""The native library: which one belongs here, is it whole, and how its kernels are called.

``src/tamis/core/kernel/native`` has a library for each level of processors, and ``library.json``,
which says what they were made of. Nothing of a library is run before all of that is checked.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.errors import LibraryError, UsageError

SOURCES = Path(__file__).parents[3]
"""The folder of the packages that kernels are in: ``tamis``, and those beside it."""
FOLDER = Path(__file__).parent / "native"
LIST = "library.json"
from_address, HEAD_BYTES = ctypes.c_ssize_t.from_address, object.__basicsize__
"""Where ``address_of`` reads."""
_REMEDY = "build it: make (in a checkout), or pip install --force-reinstall tamis"

# What a level of x86-64 adds to the one before, in the words of Linux's /proc/cpuinfo.
_V2 = frozenset("cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3".split())
_V3 = _V2 | frozenset("abm avx avx2 bmi1 bmi2 f16c fma movbe xsave".split())
_V4 = _V3 | frozenset("avx512bw avx512cd avx512dq avx512f avx512vl".split())
LEVELS = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4, "aarch64": frozenset[str]()}
"""Level → what a processor must have for it; the best one of an architecture is last."""


def architecture_levels() -> list[str]:
    """The levels of this architecture, the best one first."""
    machine = platform.machine()
    prefix = {"x86_64": "x86-64", "AMD64": "x86-64"}.get(machine, machine)
    return [name for name in reversed(LEVELS) if name.startswith(prefix)]


def processor_levels() -> list[str]:
    """The levels that this processor has, the best one first."""
    features: set[str] = set()
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            features = set(next((line for line in lines if line.startswith("flags")), "").split())
    except OSError:  # a system without it
        pass
    return [name for name in architecture_levels() if LEVELS[name] <= features]


def digest_of(names: Iterable[str], folder: Path = SOURCES) -> str:
    """A hash of source files, by their paths in a folder."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes() + b"\0")
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """A hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def symbol_of(function: Callable[..., Any]) -> str:
    """What the library calls a kernel: its module and its name."""
    return f"{function.__module__}.{function.__qualname__}".replace(".", "_")


class Library:
    """A native library whose kernels can be called.

    Args:
        path: the file; it was checked.
        prototypes: of its kernels, by symbol: parameters and result.
    """

    def __init__(self, path: Path, prototypes: dict[str, tuple[list[Any], str]]) -> None:
        self.path = path
        self.prototypes = prototypes
        self._functions = ctypes.CDLL(str(path))  # which releases the GIL

    def caller(self, symbol: str) -> Callable[..., Any]:
        """A function that calls a kernel; array types are checked at each call.

        Raises:
            LibraryError: the library does not have this kernel, or its prototype is none.
        """
        if symbol not in self.prototypes:
            raise LibraryError(f"the kernel {symbol} is missing from {self.path.name}: {_REMEDY}")
        native = self._functions[symbol]
        try:
            parameters, result = self.prototypes[symbol]
            native.argtypes = list(_words(parameters))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise _unreadable(self.path.parent) from None
        native.restype = ctypes.c_int64 if result else None
        if parameters[:1] == ["int64[]"] and all(each == "int64" for each in parameters[1:]):
            return _state_caller(native, len(parameters) - 1)
        return _array_caller(native, parameters)


def _words(parameters: Iterable[Any]) -> Iterable[Any]:
    """The C types of parameters."""
    for parameter in flat(parameters):
        if parameter.endswith("]"):
            yield ctypes.c_void_p
            yield from [ctypes.c_int64] * (parameter.count(",") + 1)
        else:
            yield {"int64": ctypes.c_int64, "uint64": ctypes.c_uint64}[parameter]


def _state_caller(native: Any, count: int) -> Callable[..., Any]:
    """For kernels of a state and integers, which are called often."""
    int64 = np.dtype(np.int64)

    def check(state: Any) -> None:
        if not isinstance(state, np.ndarray):
            raise TypeError(f"a state is an array, not {type(state).__name__}")
        if (state.dtype is not int64 and state.dtype != int64) or not state.flags.carray:
            raise TypeError(
                f"a state is a contiguous array of int64 that can be written, not of {state.dtype}"
            )

    def call(state: Any, *numbers: Any) -> Any:
        if type(state) is not np.ndarray or state.dtype is not int64 or not state.flags.carray:
            check(state)
        if len(numbers) != count:
            raise TypeError(f"a kernel takes a state and {count} numbers, not {len(numbers)}")
        return native(address_of(state), state.size, *map(int, numbers))

    def of_state(state: Any) -> Callable[..., Any]:
        check(state)
        return partial(native, address_of(state), state.size)

    call.of_state = of_state  # type: ignore[attr-defined]
    return call


def _array_caller(native: Any, parameters: list[Any]) -> Callable[..., Any]:
    """For all other kernels, nearly all of which are called while subscriptions are compiled."""
    kinds = [_kind(parameter) for parameter in flat(parameters)]
    is_flat = len(kinds) == len(parameters)

    def call(*arguments: Any) -> Any:
        words: list[int] = []
        for kind, argument in zip(kinds, arguments if is_flat else flat(arguments), strict=True):
            if kind is None:
                words.append(int(argument))
                continue
            item, dimensions = kind
            if (
                not isinstance(argument, np.ndarray)
                or argument.dtype != item
                or argument.ndim != dimensions
                or not argument.flags.c_contiguous
            ):
                raise TypeError(
                    f"a kernel takes a contiguous array of {item} and {dimensions} dimensions, "
                    f"not {argument!r}"
                )
            words.append(address_of(argument))
            words += argument.shape
        return native(*words)

    return call


def address_of(array: NDArray[Any]) -> int:
    """The address of the first item of an array.

    It is read where NumPy's C interface has it: in the first field behind the object's head, as
    CPython has that. NumPy itself takes eight times as long to tell it. Of anything but an array of
    NumPy's it would be nonsense: who calls this has asked.

    >>> array = np.arange(3)
    >>> address_of(array) == array.ctypes.data
    True
    """
    return from_address(id(array) + HEAD_BYTES).value


def flat(values: Iterable[Any]) -> Iterable[Any]:
    """Parameters, or arguments, with the fields of NamedTuples in their place."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from flat(value)
        else:
            yield value


def _kind(parameter: str) -> tuple[np.dtype[Any], int] | None:
    """The items and the dimensions of an array, or None where a parameter is a number."""
    item, is_array, commas = parameter.partition("[")
    return (np.dtype(item), len(commas)) if is_array else None


def open_library(folder: Path = FOLDER, sources: Path = SOURCES) -> Library:
    """The library for this processor, made of these sources.

    Raises:
        LibraryError: there is none, or it is damaged; the message says what to do.
        UsageError: ``TAMIS_LEVEL`` names a level that cannot be used.
    """
    try:
        made = (folder / LIST).read_bytes()
        try:
            return _opened(json.loads(made), folder, sources)
        except LibraryError:
            # Perhaps a build replaced the library after the list was read; it writes the list last.
            again = (folder / LIST).read_bytes()
            if again == made:
                raise
            return _opened(json.loads(again), folder, sources)
    except FileNotFoundError:
        raise LibraryError(f"there is no native library of kernels: {_REMEDY}") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _unreadable(folder) from None


def _unreadable(folder: Path) -> LibraryError:
    return LibraryError(f"{folder / LIST} cannot be read: {_REMEDY}")


def _opened(made: dict[str, Any], folder: Path, source_folder: Path) -> Library:
    """The library that a list describes; a list of another form raises what it happens to."""
    sources: list[str] = made["sources"]
    levels: dict[str, dict[str, str]] = made["levels"]
    file, digest = (levels[_level(list(levels))][key] for key in ("file", "digest"))
    try:
        is_made_of_these = digest_of(sources, source_folder) == made["digest"]
    except OSError:  # one of them is gone
        is_made_of_these = False
    if not is_made_of_these:
        raise LibraryError(f"the native library was made of other sources: {_REMEDY}")
    path = folder / file
    try:
        is_whole = file_digest(path) == digest
    except OSError as error:
        raise LibraryError(f"cannot read {path}: {error.strerror}: {_REMEDY}") from None
    if not is_whole:
        raise LibraryError(f"{path} is damaged: {_REMEDY}")
    kernels: dict[str, Any] = dict(made["kernels"])
    try:
        return Library(path, kernels)
    except OSError as error:
        raise LibraryError(f"cannot load {path}: {error}: {_REMEDY}") from None


def _level(built: list[str]) -> str:
    """The best level that was built and that the processor has.

    Raises:
        LibraryError: there is none.
        UsageError: ``TAMIS_LEVEL`` names one that is not.
    """
    had = processor_levels()
    fitting = [name for name in had if name in built]
    asked = os.environ.get("TAMIS_LEVEL")
    if asked is not None:
        if asked not in fitting:
            raise UsageError(
                f"TAMIS_LEVEL={asked}: built are {', '.join(built)}; this processor has "
                f"{', '.join(had) or 'none of the levels'}: name one of both, or unset it"
            )
        return asked
    if not fitting:
        raise LibraryError(
            f"the native library is for processors of {', '.join(built)}, and this one has "
            f"{', '.join(had) or 'none of the levels'}: {_REMEDY}"
        )
    return fitting[0]
