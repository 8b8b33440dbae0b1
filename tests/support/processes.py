"""Runs comparisons in processes of their own, which may crash, or be set up otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent

# Every index is checked; and of what is compiled for that, a quarter of the time is saved.
CHECKED = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1"}


def start(module: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start ``python -m module arguments``."""
    paths = [str(_ROOT), str(_ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    """What a process printed, when it has ended well."""
    out, err = process.communicate()
    assert process.returncode == 0, f"status {process.returncode}: {err[-5_000:]}"
    return out


def printed(*arguments: str, **environment: str) -> str:
    """What ``python arguments`` prints, without this process's variables about CUDA."""
    variables = {name: value for name, value in os.environ.items() if "CUDA" not in name}
    process = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**variables, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout
