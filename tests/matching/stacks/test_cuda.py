"""Stacks on a GPU, without one: simulated, compiled, refused."""

from __future__ import annotations

import json

import pytest

from tamis.core import gpu
from tamis.core.errors import MissingExtra
from tamis.language.xpath import parse
from tamis.matching.engine import reason_of
from tamis.matching.engines.stacks import CUDA
from tests.support.processes import printed


@pytest.mark.long("tamis/matching/engines/stacks")
def test_in_the_simulator() -> None:
    """Numba's simulator says nothing of speed, nor of the order of threads."""
    pytest.importorskip("numba_cuda", reason="needs the extra cuda")
    found = printed("-m", "tests.matching.stacks.simulated", NUMBA_ENABLE_CUDASIM="1")
    assert found == "as the reference\n"


def test_ptx() -> None:
    """All is inlined, no register is spilt, and no thread waits for another one."""
    pytest.importorskip("numba_cuda", reason="needs the extra cuda")
    pytest.importorskip("nvidia.cuda_nvcc", reason="needs ptxas")
    code = (
        "import json, numba_cuda\n"
        "from benchmarks.gpu_model import stacks\n"
        "print(json.dumps([*stacks()]))\n"
    )
    found = json.loads(printed("-c", code))
    assert [each["card"].split()[0] for each in found] == ["A100", "H100"]
    for each in found:
        assert each["calls"] == each["spill_store_bytes"] == each["barriers"] == 0
        assert each["occupancy"] >= 0.35
        assert 10 < each["instructions"]["edge"] < each["instructions"]["slot"] < 200


def test_refused_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    refused = reason_of(CUDA, parse("//a"))
    assert refused is not None
    assert refused.startswith("the engine stacks-cuda needs a CUDA GPU and its driver")
    with pytest.raises(MissingExtra, match=r"pip install 'tamis\[cuda\]'"):
        CUDA.compile([])
    code = (
        "from tamis.core.errors import EngineRefused\n"
        "from tamis.matching.engines.stacks import CUDA\n"
        "try:\n"
        "    CUDA.compile([])\n"
        "except EngineRefused as error:\n"
        "    print(error)\n"
    )
    assert printed("-c", code, CUDA_VISIBLE_DEVICES="").startswith("the engine stacks-cuda needs")
