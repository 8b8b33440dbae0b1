"""The CUDA kernel without a GPU: simulated, interpreted with faults planted in it, compiled."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from tamis.core import gpu
from tamis.core.errors import EngineRefused
from tamis.language.xpath import parse
from tamis.matching.engine import reason_of
from tamis.matching.engines.reference import ENGINE as REFERENCE
from tamis_papers import twigstacks
from tamis_papers.twigstacks import TwigOptions
from tests.papers.twigstacks.drawing import TRAP, answers, drawn_twigs, drawn_xml
from tests.papers.twigstacks.test_twigstacks import ERRATA
from tests.support.processes import printed
from tests.support.simt import Fault, Fix

needs_cuda = pytest.mark.skipif(gpu.find_spec("numba_cuda") is None, reason="needs the extra cuda")
SMALL = TwigOptions(block=12, levels=3, stride=4)
ATOMICS = SMALL._replace(has_atomics=True)
TWIGS = ["/a//c[.//d]/e", "/a//c//d", "//a[b]/c", "//a[b][.//c]", "//a//a", "//*[*/*]", "/a/b"]
DOCUMENTS = [TRAP, "<a><a><b/></a><b/><x><c/></x></a>", "<a><b/><c><a><a><b/><c/></a></a></c></a>"]


@pytest.mark.long("tamis_papers/twigstacks")
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


in_both_variants = pytest.mark.parametrize("options", [SMALL, ATOMICS], ids=["arrays", "atomics"])


@needs_cuda
@in_both_variants
@pytest.mark.parametrize("seed", range(4))
def test_in_shuffled_order(seed: int, options: TwigOptions) -> None:
    assert check(seed, TWIGS, DOCUMENTS, options)
    draw = Random(seed)
    twigs = drawn_twigs(draw, 10)
    assert check(seed, twigs, [drawn_xml(draw, 3) for _ in range(4)], options)


@needs_cuda
@in_both_variants
def test_errata_in_shuffled_order(options: TwigOptions) -> None:
    twigs = list(dict.fromkeys(twig for twig, _ in ERRATA))
    assert check(1, twigs, [document for _, document in ERRATA], options)


@needs_cuda
@in_both_variants
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 9, 1_000])
def test_stacks_that_spill(depth: int, options: TwigOptions) -> None:
    """Of 3 levels, 2 are open elements: the first is the document's."""
    document = f"{'<a>' * depth}<b/><c/>{'</a>' * depth}"
    assert check(depth, TWIGS, [document], options)


@needs_cuda
@pytest.mark.parametrize(
    ("options", "barrier"),
    [*((SMALL, barrier) for barrier in (0, 2, 4)), *((ATOMICS, barrier) for barrier in range(4))],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_missing_barrier_is_found(options: TwigOptions, barrier: int, seed: int) -> None:
    """The second and the fourth are for atomic operations alone, the last one for arrays."""
    missing: Fix = ("cuda.syncthreads()", "pass", barrier)
    with pytest.raises(Fault, match=r"race for byte|never reach"):
        check(seed, TWIGS, DOCUMENTS, options, (missing,))


@needs_cuda
@pytest.mark.parametrize("report", range(2))
def test_reports_that_are_not_atomic_are_found(report: int) -> None:
    """A child that reads its parent's cell and writes it back loses what another one reports."""
    atomic = "cuda.atomic.and_(staged, parent_cell, reported)"
    plain: Fix = (atomic, "staged[parent_cell] = staged[parent_cell] & reported", report)
    with pytest.raises(Fault, match="race for byte"):
        check(0, TWIGS, DOCUMENTS, ATOMICS, (plain,))


@needs_cuda
@pytest.mark.parametrize("write", range(2))
def test_a_cell_that_is_not_set_again_is_found(write: int) -> None:
    """Neither at the beginning of a document nor behind an end tag."""
    unset: Fix = ("staged[cell] = 1", "pass", write)
    assert not all(check(seed, TWIGS, DOCUMENTS, ATOMICS, (unset,)) for seed in range(5))


@needs_cuda
def test_a_barrier_that_some_skip_is_found() -> None:
    lone: Fix = ("cuda.syncthreads()", f"if is_used:\n{' ' * 20}cuda.syncthreads()", 2)
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
    level_0 = "shared[np.uint32(level_0 + column)] = at.BEGINNING if column < twigs else 0"
    assert not check(0, TWIGS, DOCUMENTS, faults=((level_0, "pass", 0),))


# -- compiled --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modelled() -> list[dict[str, Any]]:
    """What the model prints."""
    pytest.importorskip("numba_cuda", reason="needs the extra cuda")
    pytest.importorskip("nvidia.cuda_nvcc", reason="needs ptxas")
    return [json.loads(line) for line in printed("-m", "benchmarks.gpu_model").splitlines()]


@pytest.mark.long("tamis_papers/twigstacks")
def test_ptx(modelled: list[dict[str, Any]]) -> None:
    """All is inlined and no register is spilt. Arrays need no atomic operation, three barriers."""
    found = [each for each in modelled if each.get("kernel") == "twigstacks"]
    assert [each["children"] for each in found] == ["arrays", "atomics"] * 2
    for each in found:
        assert each["calls"] == each["spill_store_bytes"] == 0
        counted = {"arrays": (0, 3), "atomics": (2, 5)}[each["children"]]
        assert (each["atomics"], each["barriers"]) == counted
        assert each["registers"] <= 64
        assert each["occupancy"] >= 0.5
        assert 50 < each["instructions_per_event_and_column"] < 200
    found = [each for each in modelled if each.get("kernel") == "ccm"]
    assert len(found) == 2
    for each in found:
        assert each["spill_store_bytes"] == 0
        assert all(0 < microseconds < 1 for microseconds in each["model_us_per_event"].values())


@pytest.mark.long("tamis_papers/twigstacks")
def test_ablations(modelled: list[dict[str, Any]]) -> None:
    """Every size of a block fits; two streams hide the copies of all launches but one."""
    sizes = [each for each in modelled if each.get("ablation") == "block size"]
    assert [each["threads"] for each in sizes] == [32, 64, 128, 256, 512, 1_024] * 4
    assert all(each["occupancy"] >= 0.5 and each["columns_used"] > 0.9 for each in sizes)
    for each in modelled:
        if each.get("ablation") == "streams":
            model = each["model_us"]
            assert model["one_stream"] == pytest.approx(model["copies"] + model["kernel"], abs=0.3)
            hidden = model["one_stream"] - model["two_streams"]
            share = 1 - 1 / each["launches"]
            assert hidden == pytest.approx(share * model["copies"], rel=0.2)


# -- refused ---------------------------------------------------------------------------------------


def test_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    assert not gpu.has_gpu()
    refused = reason_of(twigstacks.CUDA, parse("//a"))
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
