"""CCM's kernels, compiled to PTX without a GPU: ``python -m tests.papers.pcm.ptx``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from numba import cuda, types

from tamis_papers.pcm import cuda as at_work

_CC = (8, 0)
_BYTES, _INT32S, _INT64S = types.uint8[::1], types.int32[::1], types.int64[::1]
_UINT64S = types.uint64[::1]
_LINES, _COUNTS, _MARKS = types.int64[:, ::1], types.uint32[:, ::1], types.uint8[:, ::1]
_TABLES = (
    *(_BYTES, _INT64S, _INT32S, _UINT64S, _INT32S),
    *(_INT64S, _BYTES, _INT64S, _INT64S, _BYTES, _INT32S),
)
_EVALUATE = (
    *(_LINES, types.int64, _UINT64S, _BYTES),
    *_TABLES,
    *(_COUNTS, _MARKS, types.int64, types.int64),
)
_RESET = (_COUNTS, _MARKS, types.int64, types.boolean)


def _of(kernel: Any, signature: tuple[Any, ...]) -> str:
    return str(cuda.compile_ptx(kernel.py_func, signature, cc=_CC)[0])


def main() -> None:
    # What Numba has of Python, such as views of numbers, asks the device what to compile for.
    device = SimpleNamespace(compute_capability=_CC)
    with patch("numba.cuda.dispatcher.get_current_device", lambda: device):
        evaluate, reset = _of(at_work.evaluate, _EVALUATE), _of(at_work.reset, _RESET)
    for name, code in (("evaluate", evaluate), ("reset", reset)):
        assert ".target sm_80" in code
        assert ".entry" in code
        print(name, "calls" if "call.uni" in code else "inlined", code.count("atom."))


if __name__ == "__main__":
    main()
