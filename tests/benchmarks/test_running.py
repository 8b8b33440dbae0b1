"""One run of one program: answers, programs that are not there, and programs that misbehave."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.declared import Program
from benchmarks.running import AnswerError, UnavailableError, pinned, run

GOOD = {"times": {"parse": 0.5}, "counts": {"elements": 3}}


def test_an_answer(fake: Callable[..., Program]) -> None:
    program = fake(says={**GOOD, "engine": "quick", "version": "1"}, code="print('chatter')")
    answer = run(program, {})
    assert answer.times == {"parse": 0.5}
    assert answer.counts == {"elements": 3}
    assert (answer.engine, answer.version, answer.digest) == ("quick", "1", "")
    assert answer.wall_s > 0
    assert answer.cpu_s > 0
    assert answer.peak_bytes > 1_000_000


def test_memory_is_that_of_the_program(fake: Callable[..., Program]) -> None:
    ours = run(fake("little", GOOD), {}).peak_bytes  # no less than this process has
    answer = run(fake("much", GOOD, code=f"held = b'x' * {ours + 50_000_000}"), {})
    assert ours + 50_000_000 < answer.peak_bytes < ours + 100_000_000


def test_places_are_filled_in(fake: Callable[..., Program]) -> None:
    program = fake(says=GOOD, code="assert sys.argv[1:] == ['a folder', '-xb'], sys.argv")
    program = Program("fake", (*program.command, "{documents}", "-x{warmup}"))
    assert run(program, {"documents": "a folder", "warmup": "b"})
    with pytest.raises(AnswerError, match=r"the command of fake: 'warmup'; there are \{python\}"):
        run(program, {"documents": "a folder"})


def test_a_program_that_is_not_installed() -> None:
    with pytest.raises(UnavailableError, match="no-such-filter is not installed"):
        run(Program("filter", ("no-such-filter", "{python}")), {})


def test_a_program_that_cannot_run_here(fake: Callable[..., Program]) -> None:
    with pytest.raises(UnavailableError, match="lxml is not installed"):
        run(fake(says={"skip": "lxml is not installed"}), {})


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("", "the last line of fake is no JSON: ''"),
        ("done\nin 3 s", "the last line of fake is no JSON: 'in 3 s'"),
        ("[1]", "fake printed no JSON object"),
        ('{"counts": {"elements": 1}}', 'the answer of fake has no "times"'),
        ('{"times": {"parse": 1}}', 'the answer of fake has no "counts"'),
        ('{"times": {"parse": 1}, "counts": {}}', 'the answer of fake has no "counts"'),
        ('{"times": {"parse": -1}, "counts": {"a": 1}}', "the answer of fake: times.parse is -1"),
        ('{"times": {"parse": NaN}, "counts": {"a": 1}}', "times.parse is nan"),
        ('{"times": {"parse": 1}, "counts": {"a": 1.5}}', "the answer of fake: counts.a is 1.5"),
        ('{"times": {"parse": 1}, "counts": {"a": true}}', "counts.a is True"),
    ],
)
def test_what_is_no_answer(fake: Callable[..., Program], says: str, message: str) -> None:
    with pytest.raises(AnswerError) as error:
        run(fake(printed=says), {})
    assert message in str(error.value)


def test_a_program_that_fails_says_why(fake: Callable[..., Program]) -> None:
    with pytest.raises(AnswerError, match="fake ended with status 1: no memory left"):
        run(fake(says=GOOD, code="sys.exit('no memory left')"), {})


def test_another_engine_is_an_error(fake: Callable[..., Program]) -> None:
    answers: dict[str, Any] = {**GOOD, "engine": "slow"}
    with pytest.raises(AnswerError, match="fake was to use the engine quick, not slow"):
        run(fake(says=answers, engine="quick"), {})
    with pytest.raises(AnswerError, match=r"the engine quick, not \?"):
        run(fake(says=GOOD, engine="quick"), {})


def test_a_program_that_does_not_end(fake: Callable[..., Program]) -> None:
    with pytest.raises(AnswerError, match=r"fake was not done after 0\.3 s"):
        run(fake(says=GOOD, code="import time; time.sleep(60)"), {}, timeout_s=0.3)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores cannot be chosen here")
def test_programs_are_kept_on_cores(fake: Callable[..., Program]) -> None:
    before = os.sched_getaffinity(0)
    code = "import os; cores = len(os.sched_getaffinity(0)); assert cores == 1, cores"
    with pinned(1) as cores:
        run(fake(says=GOOD, code=code), {})
    assert len(cores) == 1
    assert os.sched_getaffinity(0) == before
    with pytest.raises(UnavailableError, match="it needs 1000 cores"), pinned(1000):
        pass
