"""The CUDA kernel without a GPU: simulated, interpreted with faults planted in it, compiled."""

from __future__ import annotations

import json
from random import Random

import pytest

from tamis.core.errors import EngineRefused
from tamis.language.xpath import parse
from tamis.matching.engines.reference import ENGINE as REFERENCE
from tamis_papers import twigstacks
from tamis_papers.twigstacks import TwigOptions
from tests.papers.pcm.test_cuda import printed
from tests.papers.twigstacks.drawing import TRAP, answers, drawn_twigs, drawn_xml
from tests.papers.twigstacks.test_twigstacks import ERRATA
from tests.support.simt import Fault, Fix

needs_cuda = pytest.mark.skipif(
    twigstacks.find_spec("numba_cuda") is None, reason="needs the extra cuda"
)
SMALL = TwigOptions(block=12, levels=3, stride=4)
TWIGS = ["/a//c[.//d]/e", "/a//c//d", "//a[b]/c", "//a[b][.//c]", "//a//a", "//*[*/*]", "/a/b"]
DOCUMENTS = [TRAP, "<a><a><b/></a><b/><x><c/></x></a>", "<a><b/><c><a><a><b/><c/></a></a></c></a>"]


def test_in_the_simulator() -> None:
    """Numba's simulator says nothing of speed, nor of the order of threads."""
    pytest.importorskip("numba_cuda", reason="needs the extra cuda")
    found = printed("-m", "tests.papers.twigstacks.simulated", NUMBA_ENABLE_CUDASIM="1")
    assert found == "as the reference\n"


# -- threads in shuffled order ---------------------------------------------------------------------


def check(
    seed: int,
    twigs: list[str],
    documents: list[str],
    options: TwigOptions = SMALL,
    faults: tuple[Fix, ...] = (),
    first_event: int = 0,
) -> bool:
    """Whether the kernel gives the answers of the reference."""
    from tests.papers.twigstacks.interpreted import interpreted  # noqa: PLC0415 - imports CUDA

    found = interpreted(twigs, documents, options, Random(seed), faults, first_event=first_event)
    return found == answers(REFERENCE, twigs, documents)


@needs_cuda
@pytest.mark.parametrize("seed", range(4))
def test_in_shuffled_order(seed: int) -> None:
    assert check(seed, TWIGS, DOCUMENTS)
    draw = Random(seed)
    assert check(seed, drawn_twigs(draw, 10), [drawn_xml(draw, 3) for _ in range(4)])


@needs_cuda
def test_errata_in_shuffled_order() -> None:
    twigs = list(dict.fromkeys(twig for twig, _ in ERRATA))
    assert check(1, twigs, [document for _, document in ERRATA])


@needs_cuda
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 9, 1_000])
def test_stacks_that_spill(depth: int) -> None:
    """Of 3 levels, 2 are open elements: the first is the document's."""
    document = f"{'<a>' * depth}<b/><c/>{'</a>' * depth}"
    assert check(depth, TWIGS, [document])


@needs_cuda
@pytest.mark.parametrize("barrier", range(3))
@pytest.mark.parametrize("seed", range(3))
def test_a_missing_barrier_is_found(barrier: int, seed: int) -> None:
    with pytest.raises(Fault, match=r"race for byte|never reach"):
        check(seed, TWIGS, DOCUMENTS, faults=(("cuda.syncthreads()", "pass", barrier),))


@needs_cuda
def test_a_barrier_that_some_skip_is_found() -> None:
    lone: Fix = ("cuda.syncthreads()", f"if is_used:\n{' ' * 20}cuda.syncthreads()", 1)
    with pytest.raises(Fault, match=r"never reach|race"):
        check(0, TWIGS, DOCUMENTS, faults=(lone,))


FAR = 1 << 32
"""Events, more than an index of 32 bits can count."""


@needs_cuda
def test_an_overflow_is_found() -> None:
    """The index of an event has 64 bits; 32 would wrap in a batch of 4 GB."""
    index = "np.uint64((start + index) * width)"
    assert check(0, TWIGS, DOCUMENTS, first_event=FAR)
    narrow: Fix = (index, index.replace("64", "32"), 0)
    with pytest.raises(Fault, match="out of bounds"):
        check(0, TWIGS, DOCUMENTS, faults=(narrow,), first_event=FAR)


@needs_cuda
def test_a_store_that_overflows_is_found() -> None:
    """A personality of 4 bytes, as in Table 2, has no room for this one's bits."""
    load = "own = personalities[np.uint64(first + column)]"
    narrow: Fix = (load, f"own = np.uint32({load.removeprefix('own = ')})", 0)
    assert not check(0, TWIGS, DOCUMENTS, faults=(narrow,))


@needs_cuda
def test_an_entry_that_is_not_cleared_is_found() -> None:
    """Shared memory begins with garbage."""
    level_0 = "shared[np.uint32(stack + column)] = at.BEGINNING if column < twigs else 0"
    assert not check(0, TWIGS, DOCUMENTS, faults=((level_0, "pass", 0),))


# -- compiled --------------------------------------------------------------------------------------


def test_ptx() -> None:
    """All is inlined, nothing is atomic, no register is spilt, and there are three barriers."""
    pytest.importorskip("numba_cuda", reason="needs the extra cuda")
    pytest.importorskip("nvidia.cuda_nvcc", reason="needs ptxas")
    found = [json.loads(line) for line in printed("-m", "benchmarks.gpu_model").splitlines()]
    assert [each["kernel"] for each in found] == ["twigstacks"] * 2 + ["ccm"] * 2
    for each in found[:2]:
        assert each["calls"] == each["atomics"] == each["spill_store_bytes"] == 0
        assert each["barriers"] == 3
        assert each["registers"] <= 64
        assert each["occupancy"] >= 0.5
        assert 50 < each["instructions_per_event_and_column"] < 200
    for each in found[2:]:
        assert each["spill_store_bytes"] == 0
        assert all(0 < microseconds < 1 for microseconds in each["model_us_per_event"].values())


# -- refused ---------------------------------------------------------------------------------------


def test_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twigstacks, "find_spec", lambda name: None)
    assert not twigstacks.has_gpu()
    refused = twigstacks.CUDA.refuses(parse("//a"))
    assert refused is not None
    assert refused.startswith("the engine twigstacks-cuda needs a CUDA GPU")


def test_refused_without_a_gpu() -> None:
    code = (
        "from tamis.core.errors import EngineRefused\n"
        "from tamis_papers.twigstacks import CUDA\n"
        "try:\n"
        "    CUDA.compile([])\n"
        "except EngineRefused as error:\n"
        "    print(error)\n"
    )
    assert printed("-c", code, CUDA_VISIBLE_DEVICES="").startswith("the engine twigstacks-cuda")
    assert issubclass(EngineRefused, Exception)
