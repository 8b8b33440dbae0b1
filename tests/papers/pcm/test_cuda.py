"""CCM without a GPU: it is right in Numba's simulator, it compiles, and it is refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tamis
from tamis.core import gpu
from tamis.core.errors import EngineRefused, MissingExtra
from tamis.events.model import TableBuilder
from tamis_papers import pcm
from tests.support.processes import printed

SOURCES = Path(tamis.__file__).parents[1]


@pytest.mark.long("tamis_papers/pcm")
def test_in_the_simulator() -> None:
    """It says nothing about speed, nor about how threads of a GPU see each other's memory."""
    found = printed("-m", "tests.papers.pcm.simulated", NUMBA_ENABLE_CUDASIM="1")
    assert found == "as the reference\n"


def test_ptx() -> None:
    """Both kernels compile, with all that they call inside, and count in one atomic operation."""
    pytest.importorskip("numba_cuda", reason="needs the extra cuda")
    assert printed("-m", "tests.papers.pcm.ptx") == "evaluate inlined 1\nreset inlined 0\n"


def test_no_gpu() -> None:
    found = printed(
        "-c",
        "from tamis.core.errors import EngineRefused\n"
        "from tamis_papers import pcm\n"
        "from tamis.events.model import TableBuilder\n"
        "try:\n"
        "    pcm.CCM.compile(TableBuilder().freeze())\n"
        "except EngineRefused as error:\n"
        "    print(error)\n",
        CUDA_VISIBLE_DEVICES="",
    )
    assert found.startswith("the engine ccm needs a CUDA GPU and its driver, and there is none")


def test_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    assert not gpu.has_gpu()
    with pytest.raises(MissingExtra, match=r"numba-cuda, .* pip install 'tamis\[cuda\]'"):
        pcm.CCM.compile(TableBuilder().freeze())


def test_refused_is_a_usage_error() -> None:
    assert issubclass(EngineRefused, tamis.core.errors.UsageError)


def test_few_modules_import_cuda() -> None:
    """One of each engine, and those that match without a GPU do not import it by the way."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imported: list[str] = []
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported = [f"{node.module}.{alias.name}" for alias in node.names]
            if any(name.startswith(("numba.cuda", "numba_cuda", "cuda")) for name in imported):
                found.add(path.relative_to(SOURCES).as_posix())
    engines = ("tamis/matching/engines/stacks", "tamis_papers/pcm", "tamis_papers/twigstacks")
    assert found == {"tamis/core/gpu.py", *(f"{engine}/cuda.py" for engine in engines)}
    loaded = printed(
        "-c",
        "import sys\n"
        "from tamis.events.planner import ENGINES\n"
        "list(map(ENGINES.named, ENGINES.names()))\n"
        "print('tamis_papers.pcm.execute' in sys.modules, 'numba.cuda' in sys.modules)\n",
    )
    assert loaded == "True False\n"
