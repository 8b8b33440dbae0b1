"""How Tamis compiles its kernels, and where what was compiled is kept.

A kernel is a function of flat arrays in a module or package named ``kernels``; it never raises.
Compiling it takes seconds, so the machine code is cached, in a folder of the user's named by a hash
of Tamis's sources: Numba does not notice that a function that a kernel calls, or the layout of an
argument, changed in another file, and would run what no longer fits.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from numba.core import event as numba_events

log = logging.getLogger("tamis.jit")

F = TypeVar("F", bound=Callable[..., Any])

_config: Any = numba.config
_cache_folder_is_set = threading.Lock()
_kernels: set[Any] = set()
_types: Any = numba.types
_register: Any = numba_events.register


# Kernels get arrays and make none, so the counting of references to arrays is left out (it took
# nine tenths of the time of a kernel with many short functions). One that allocates after all does
# not compile.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}

# Nothing that kernels see is defined in these, which stand above all that has kernels.
_WITHOUT_KERNELS = ("cli/", "spark/")


def kernel(function: F) -> F:
    """Compile a function with Numba when it is first called: no GIL, NumPy's rules for errors.

    For those that Python calls: to prepare the cache of each takes some milliseconds at import.
    """
    with _cache_folder_is_set:
        before = _config.CACHE_DIR
        _config.CACHE_DIR = str(cache_folder())  # read while decorating; a user's stays as it was
        try:
            compiled: F = numba.njit(nogil=True, cache=True, **_OPTIONS)(function)
        finally:
            _config.CACHE_DIR = before
    _kernels.add(compiled)
    return compiled


def called(function: F) -> F:
    """Compile a function that only kernels call, with them: what is cached has it inside."""
    compiled: F = _for_wide_integers(numba.njit(nogil=True, **_OPTIONS)(function))
    return compiled


def inlined(function: F) -> F:
    """Compile a function into each kernel that calls it."""
    compiled: F = _for_wide_integers(numba.njit(forceinline=True, **_OPTIONS)(function))
    return compiled


def _for_wide_integers(compiled: Any) -> Any:
    """Compile a function for integers of 64 bits alone.

    Numba would compile it, and all that it calls, once more for each constant that it is called
    with, and for each narrower type.
    """
    compile_for = compiled.compile

    def compile_wide(signature: Any) -> Any:
        return compile_for(tuple(map(_wide, signature)))

    compiled.compile = compile_wide
    return compiled


def _wide(type: Any) -> Any:
    plain = _types.unliteral(type)
    is_signed = isinstance(plain, _types.Integer) and plain.signed
    return _types.int64 if is_signed else plain


class _Announcer(numba_events.Listener):
    """Logs, on ``tamis.jit``, once, that kernels are compiled: that one was not in the cache."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in _kernels:
            _announce()

    def on_end(self, event: Any) -> None:
        pass


@cache
def _announce() -> None:
    log.info("compiling, for this version of Tamis and this machine: about a minute, once")


_register("numba:compile", _Announcer())


@cache
def cache_folder() -> Path:
    """The folder of compiled kernels: the user's own, or a private one until the process ends.

    What is in it gets unpickled, so nobody else may be able to write there.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "tamis" / f"kernels-{_fingerprint()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        others = stat.S_IWGRP | stat.S_IWOTH
        if (
            found.st_uid == os.getuid()
            and not found.st_mode & others
            and os.access(folder, os.W_OK)
        ):
            return folder
    except OSError:  # no home, or nothing can be written there
        pass
    private = Path(tempfile.mkdtemp(prefix="tamis-kernels-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


def _fingerprint() -> str:
    """A hash of all that machine code depends on (the processor, Numba looks after itself)."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):  # kernels' arguments are defined all over it
        name = path.relative_to(package).as_posix()
        if not name.startswith(_WITHOUT_KERNELS):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    versions = (sys.version, numba.__version__, llvmlite.__version__)
    digest.update(repr((*versions, _config.BOUNDSCHECK, _config.OPT)).encode())
    return digest.hexdigest()[:16]
