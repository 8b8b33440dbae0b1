"""CUDA GPUs: whether there is one, and arrays on it. Numba is imported when it is asked for.

Where there is no GPU, Numba's simulator counts as one (``NUMBA_ENABLE_CUDASIM=1``).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from tamis.core.errors import EngineRefused, MissingExtra


def has_gpu() -> bool:
    """Whether there is a GPU, with its driver and the extra ``cuda``."""
    try:
        return bool(_cuda().is_available())
    except MissingExtra:
        return False


def no_gpu(engine: str, other: str) -> str:
    """Why an engine is refused where there is no GPU; another engine runs on the processor."""
    return (
        f"the engine {engine} needs a CUDA GPU and its driver, and there is none: {other} is the "
        "same algorithm on the processor"
    )


def require_gpu(engine: str, other: str) -> None:
    """Refuse an engine where there is no GPU.

    Raises:
        MissingExtra: what it needs for one is not installed.
        EngineRefused: there is none.
    """
    if not _cuda().is_available():
        raise EngineRefused(no_gpu(engine, other))


def on_device(array: Any) -> Any:
    """A copy of an array on the GPU, where none may be empty."""
    full = np.ascontiguousarray(array) if len(array) else np.zeros(1, array.dtype)
    return _cuda().to_device(full)


def _cuda() -> Any:
    if find_spec("numba_cuda") is None:
        raise MissingExtra("cuda", "numba-cuda")
    from numba import cuda  # noqa: PLC0415 - few have a GPU
    from numba.cuda.core import config  # noqa: PLC0415

    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a launch may well be small
    return cuda
