"""Programs take turns on new documents, and their answers have to be equal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.declared import Experiment, Program
from benchmarks.figures import figures
from benchmarks.measuring import Measured, measure
from benchmarks.report import describe
from benchmarks.running import Answer, AnswerError, UnavailableError

Declare = Callable[..., Experiment]
Fake = Callable[..., Program]


def said(elements: int = 6, seconds: float = 0.5, **more: Any) -> dict[str, Any]:
    counts = {"documents": 2, "elements": elements}
    return {"times": {"parse": seconds}, "counts": counts, **more}


def run_all(experiment: Experiment, data: Path) -> Measured:
    return measure(experiment, experiment.workloads[0], data, lambda text: None)


def test_programs_take_turns(declare: Declare, fake: Fake, data: Path) -> None:
    log = data / "log"
    code = f"open({str(log)!r}, 'a').write(sys.argv[0][-4])"
    programs = [fake(name, said(), code=code) for name in ("a", "b", "c")]
    measured = run_all(declare(*programs), data)
    assert log.read_text() == "abcbca"
    assert [len(answers) for answers in measured.answers.values()] == [2, 2, 2]
    assert list(measured.answers) == ["a", "b", "c"]


def test_a_liar_is_caught(declare: Declare, fake: Fake, data: Path) -> None:
    honest, liar = fake("honest", said()), fake("liar", said(elements=5))
    with pytest.raises(AnswerError, match="elements differ: honest 6, liar 5"):
        run_all(declare(honest, liar), data)


def test_who_skips_documents_is_caught(declare: Declare, fake: Fake, data: Path) -> None:
    lazy = fake("lazy", {"times": {"parse": 0.1}, "counts": {"documents": 1}})
    with pytest.raises(AnswerError, match="documents differ: the workload 2, lazy 1"):
        run_all(declare(lazy), data)
    silent = fake("silent", {"times": {"parse": 0.1}, "counts": {"elements": 6}})
    with pytest.raises(AnswerError, match='the answer of silent has no count of "documents"'):
        run_all(declare(silent), data)


def test_equal_counts_of_different_answers(declare: Declare, fake: Fake, data: Path) -> None:
    first, second = fake("first", said(digest="1f")), fake("second", said(digest="2e"))
    neither = fake("neither", said())
    with pytest.raises(AnswerError, match="the answers of first, second differ, though"):
        run_all(declare(first, neither, second), data)


def test_nothing_is_no_measurement(declare: Declare, fake: Fake, data: Path) -> None:
    with pytest.raises(AnswerError, match="elements are 0: this measures nothing"):
        run_all(declare(fake(says=said(elements=0))), data)
    with pytest.raises(AnswerError, match="the answer of fake has no time of parse"):
        run_all(declare(fake(says={**said(), "times": {"start": 1}})), data)


def test_expected_counts(declare: Declare, fake: Fake, data: Path) -> None:
    documents = 'documents = { kind = "corpus", folder = "tiny", size = 50 }\n'
    good = declare(fake(says=said()), workload=documents + "expected.elements = 6")
    assert run_all(good, data)
    other = declare(fake(says=said()), workload=documents + "expected.elements = 7")
    with pytest.raises(AnswerError, match="elements differ: fake 6, the declaration 7"):
        run_all(other, data)
    nobody = declare(fake(says=said()), workload=documents + "expected.matches = 7")
    with pytest.raises(AnswerError, match="nobody counted matches, of which 7 are declared"):
        run_all(nobody, data)


def test_an_expected_digest(declare: Declare, fake: Fake, data: Path) -> None:
    documents = 'documents = { kind = "corpus", folder = "tiny", size = 50 }\n'
    declared = documents + 'digest = "1f"'
    assert run_all(declare(fake(says=said(digest="1f")), workload=declared), data)
    with pytest.raises(AnswerError, match="the answers of fake, the declaration differ"):
        run_all(declare(fake(says=said(digest="2e")), workload=declared), data)


def test_subscriptions_are_drawn_once(declare: Declare, fake: Fake, data: Path) -> None:
    log = data / "log"
    code = f"import os\nopen({str(log)!r}, 'a').write(f'{{os.stat(sys.argv[1]).st_mtime_ns}}\\n')"
    program = fake(says={"times": {"parse": 1}, "counts": {"documents": 1}}, code=code)
    program = Program(program.name, (*program.command, "{subscriptions}"))
    workload = """documents = { kind = "dblp", records = 1 }
    subscriptions = { kind = "paths", count = 1, dtd = "<!ELEMENT a EMPTY>" }"""
    run_all(declare(program, workload=workload), data)
    first, second = log.read_text().split()
    assert first == second


def test_who_is_not_there_is_skipped_aloud(declare: Declare, fake: Fake, data: Path) -> None:
    experiment = declare(Program("absent", ("no-such-filter",)), fake(says=said()))
    measured = run_all(experiment, data)
    assert list(measured.answers) == ["fake"]
    text = describe("x", "tiny", figures(experiment, measured))
    assert "  SKIPPED absent: no-such-filter is not installed" in text
    with pytest.raises(UnavailableError, match="absent: no-such-filter is not installed"):
        run_all(declare(Program("absent", ("no-such-filter",))), data)


def test_documents_that_are_not_there(declare: Declare, fake: Fake, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="the real documents tiny are not in nowhere/"):
        run_all(declare(fake(says=said())), tmp_path / "nowhere")


def answers(*seconds: float, elements: int = 6) -> list[Answer]:
    return [Answer({"parse": value}, {"elements": elements}, peak_bytes=7) for value in seconds]


def test_figures(declare: Declare, fake: Fake) -> None:
    programs = [fake("base"), fake("fast"), fake("slow")]
    more = 'baseline = "base"'
    workload = """target = [
        { program = "fast", ratio = 4 },
        { program = "slow", ratio = 0.5, of = "fast" },
        { program = "fast", megabytes_per_second = 2 },
        { program = "slow", seconds = 5 },
    ]"""
    experiment = declare(*programs, workload=workload, more=more)
    measured = Measured(
        experiment.workloads[0],
        {"base": answers(3, 4, 8), "fast": answers(1, 1, 1), "slow": answers(6, 4, 8)},
        sizes=[{"bytes": 2_000_000, "documents": 1, "seed": 9}] * 3,
    )
    found = figures(experiment, measured)
    fast, slow = found["programs"]["fast"], found["programs"]["slow"]
    assert fast["ratio"] == {"median": 4, "min": 3, "max": 8}
    assert slow["ratio"] == {"median": 1, "min": 0.5, "max": 1}
    assert slow["seconds"] == {"median": 6, "min": 4, "max": 8, "runs": [6, 4, 8]}
    assert fast["megabytes_per_second"]["median"] == 2
    assert fast["events_per_second"]["median"] == 12
    first = {"program": "fast", "ratio": 4, "of": "base", "met": True, "reached": 4}
    assert found["targets"][0] == first
    assert [target["reached"] for target in found["targets"]] == [4, 0.1667, 2, 6]
    assert [target["met"] for target in found["targets"]] == [True, False, True, False]
    text = describe("x", "tiny", found)
    assert "  target: fast at least 4 × base: MET, 4" in text
    assert "  target: slow at least 0.5 × fast: MISSED, 0.167" in text
    assert "  target: fast at least 2 MB/s: MET, 2" in text
    assert re.search(r"slow +6 \(4–8\) +1 \(0\.5–1\)", text)
