"""The names of ``tamis_workload`` are those that it says, each with its home."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tamis_workload as workload


def test_each_name_is_there() -> None:
    assert sorted(workload.__all__) == workload.__all__
    for name in workload.__all__:
        assert getattr(workload, name).__module__.startswith("tamis_workload.")
    with pytest.raises(AttributeError):
        workload.nothing  # noqa: B018


def test_queries_need_no_numba() -> None:
    program = (
        "import sys; import tamis_workload as w; w.queries_from_dtd, w.twigs_from_dtd;"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"False\n"
