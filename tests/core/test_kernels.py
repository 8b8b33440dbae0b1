"""Kernels in three ways, at every level of processors: equal answers, every index in bounds."""

from __future__ import annotations

import json
import random
import re
import subprocess
from typing import Any

import numpy as np
import pytest

from tamis.core.kernel import bits
from tamis.documents.tokenizer import vectors
from tests.support.processes import CHECKED, output, start

NATIVE = ("tests.core.every_kernel", "tests.documents.sample")
ANSWERS = (
    *("drawn", "parsed", "read", "filtered", "asked"),
    *("adversarial", "lengths", "places", "fuzzed", "digest"),
)


def printed(process: subprocess.Popen[str]) -> dict[str, str]:
    """What the process prints, by its first words."""
    return dict(line.split(" ", 1) for line in output(process).splitlines())


@pytest.mark.long
def test_every_kernel_with_every_index_checked() -> None:
    """Compiled by Numba, which notices an index out of bounds; the canary must be one.

    The native kernels give the same answers. Programs and caches with changed numbers, where they
    are not refused, lead to no index out of bounds.
    """
    with start("tests.core.checked", TAMIS_KERNELS="jit", **CHECKED) as process:
        native = {name: what for module in NATIVE for name, what in printed(start(module)).items()}
        checked = printed(process)
    assert (native["kernels"], checked["kernels"]) == ("native", "jit, every index checked")
    assert checked["canary"] == "IndexError"
    assert checked["unused"] == "[]"  # tests.core.use_everything has to use what is new
    assert checked["wrong"] == native["wrong"] == "None"
    for name in ANSWERS:
        assert checked[name] == native[name]
    assert checked["reaches-out"] == "True"  # what is refused, if it is matched all the same
    for kind in ("programs", "caches"):
        assert re.fullmatch(r"refused [1-9]\d+ answered [1-9]\d+", checked[kind])


UNCOMPILED = (
    pytest.param("tests/cases/test_cases.py", marks=pytest.mark.long),
    pytest.param("tests/events/test_matcher.py", marks=pytest.mark.long),
    "tests/transform/test_cases.py",
    "tests/events/test_engines.py",
)


@pytest.mark.parametrize("tests", UNCOMPILED)
def test_what_small_cases_come_to_when_nothing_is_compiled(tests: str) -> None:
    """Hypothesis draws few cases: the same tests draw more for the native kernels."""
    few = "--hypothesis-profile=few"
    said = output(start("pytest", "-q", few, tests, TAMIS_KERNELS="python"))
    assert " passed" in said


# -- twins: what intrinsics do, in Python ----------------------------------------------------------


def blocks() -> list[bytes]:
    """Blocks of 128 bytes: of markup, of UTF-8 whole and broken, and at random."""
    draw = random.Random(1)
    letters = "<>&/='\"]\t\r\n\0 aé€😀".encode()
    found = [bytes(draw.choices(letters, k=128)) for _ in range(200)]
    found += [bytes(draw.randbytes(128)) for _ in range(200)]
    text = "aé€😀\ufffe\uffff\ud7ff\ue000".encode("utf-8", "surrogatepass")
    found += [(text * 9)[start : start + 128] for start in range(len(text))]
    return found


def _integers(mask: Any) -> list[int]:
    return [int(each) for each in (mask if isinstance(mask, tuple) else (mask,))]


def twins() -> list[tuple[str, list[Any]]]:
    """What each intrinsic and its twin say, in this process; ``tests.core.twins`` prints it."""
    said: list[tuple[str, list[Any]]] = []
    for number, block in enumerate(blocks()):
        data = np.frombuffer(block, np.uint8)
        at = data.ctypes.data + 64
        masks = [vectors.structure(at), vectors.attribute(at), vectors.line_ends(at)]
        masks += [vectors.returns(at), vectors.name_ends(at), vectors.near_name_ends(at)]
        masks += [vectors.value_ends(at, 34), vectors.found(at, 97)]
        masks += [vectors.utf8_faults(at, at - 64), vectors.word(at), vectors.byte(at)]
        word = np.uint64(int.from_bytes(block[:8], "little"))
        masks += [bits.first(word), bits.ones(word), bits.last(word | np.uint64(1))]
        said.append((str(number), [_integers(mask) for mask in masks]))
    return said


def test_twins_say_what_llvm_does() -> None:
    """``tests.core.twins`` has Numba compile the same calls."""
    compiled = json.loads(output(start("tests.core.twins", TAMIS_KERNELS="jit")))
    assert compiled == json.loads(json.dumps(twins()))


@pytest.mark.parametrize("word", [0, 1, 1 << 63, (1 << 64) - 1])
def test_words_at_the_ends(word: int) -> None:
    first = bits.first(np.uint64(word))
    assert first == (64 if word == 0 else (word & -word).bit_length() - 1)
    assert bits.ones(np.uint64(word)) == word.bit_count()
