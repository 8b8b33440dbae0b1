"""An experiment, measured: programs take turns on documents that no process has seen before.

Each repetition makes new documents, and each program answers them in a new process. Who goes first
changes with each repetition, so that a machine that gets slower or faster is unfair to nobody.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.declared import Experiment, Workload
from benchmarks.running import ROOT, Answer, AnswerError, UnavailableError, pinned, run

Say = Callable[[str], None]


@dataclass
class Measured:
    """The answers of all programs on one workload.

    Attributes:
        answers: by program, one a repetition; those that were skipped are not there.
        skipped: why others are not there, by program.
        sizes: of the documents of each repetition, as ``make_documents`` gives them, if there are
            any.
        cores: which cores programs ran on; empty where the system does not tell.
    """

    workload: Workload
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    sizes: list[Mapping[str, int]] = field(default_factory=list)
    cores: list[int] = field(default_factory=list)


def measure(experiment: Experiment, workload: Workload, data: Path, say: Say) -> Measured:
    """Measure one workload; ``data`` is the folder of real documents.

    Raises:
        UnavailableError: the workload cannot be made here.
        AnswerError: a program failed, or answers differ.
    """
    result = Measured(workload)
    with tempfile.TemporaryDirectory(prefix="tamis-bench-") as folder:
        for repetition in range(experiment.repetitions):
            say(f"{experiment.name}/{workload.name}: {repetition + 1} of {experiment.repetitions}")
            answers = _repetition(experiment, result, repetition, data, Path(folder))
            for name, answer in answers.items():
                result.answers.setdefault(name, []).append(answer)
    return result


def _repetition(
    experiment: Experiment, result: Measured, repetition: int, data: Path, folder: Path
) -> dict[str, Answer]:
    """The answers of one repetition, verified; subscriptions stay in the folder for the next."""
    workload = result.workload
    size: Mapping[str, int] = {}
    if workload.documents:
        size = make_documents(workload, repetition, data, folder)
        result.sizes.append(size)
    places = {
        "workload": workload.name,
        "data": str(data),
        "documents": os.path.join(folder, "documents"),
        "warmup": os.path.join(folder, "warmup"),
        "subscriptions": os.path.join(folder, "subscriptions.tsv"),
        "dtd": os.path.join(data, workload.documents.get("dtd_file", "")),
    }
    with pinned(experiment.cores) as result.cores:
        answers = _answers(experiment, result, repetition, places)
    verify(workload, answers, size, is_first=repetition == 0)
    for name in ("documents", "warmup"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return answers


def _answers(
    experiment: Experiment, result: Measured, repetition: int, places: Mapping[str, str]
) -> dict[str, Answer]:
    """One answer of each program, in the order of declaration; the first one to run changes.

    A program that cannot run is skipped from the first repetition on.
    """
    programs = [p for p in experiment.programs if p.name not in result.skipped]
    turn = repetition % len(programs)
    found = {}
    for program in programs[turn:] + programs[:turn]:
        try:
            answer = run(program, places, experiment.timeout_s)
        except UnavailableError as reason:
            if repetition > 0:
                raise AnswerError(f"{program.name} ran before, and now: {reason}") from None
            result.skipped[program.name] = str(reason)
            continue
        if measured_s(experiment, answer) <= 0:
            phases = " or ".join(experiment.measure)
            raise AnswerError(f"the answer of {program.name} has no time of {phases}")
        found[program.name] = answer
    if not found:
        raise UnavailableError("; ".join(f"{name}: {why}" for name, why in result.skipped.items()))
    return {program.name: found[program.name] for program in programs if program.name in found}


def measured_s(experiment: Experiment, answer: Answer) -> float:
    """Seconds of the phases that are compared."""
    return sum(answer.times.get(phase, 0.0) for phase in experiment.measure)


def make_documents(
    workload: Workload, repetition: int, data: Path, folder: Path
) -> Mapping[str, int]:
    """Make a repetition's documents, in another process to keep this one small.

    The first repetition makes the subscriptions too: they are those of all.

    Returns:
        ``documents``, ``bytes`` and the ``seed``.
    """
    declared = {
        "documents": workload.documents,
        "subscriptions": workload.subscriptions if repetition == 0 else {},
        "repetition": repetition,
        "data": str(data),
    }
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.documents", json.dumps(declared), str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise AnswerError(
            f"the documents of {workload.name} could not be made: {made.stderr.strip()}"
        )
    answer = json.loads(made.stdout)
    if "skip" in answer:
        raise UnavailableError(answer["skip"])
    size: Mapping[str, int] = answer
    return size


def verify(
    workload: Workload, answers: Mapping[str, Answer], size: Mapping[str, int], is_first: bool
) -> None:
    """Check one repetition: what several programs counted is equal, and nothing is zero.

    Raises:
        AnswerError: naming the programs that differ.
    """
    given: dict[str, dict[str, int]] = {}
    if "documents" in size:
        given["documents"] = {"the workload": size["documents"]}
    for name, answer in answers.items():
        if "documents" in size and "documents" not in answer.counts:
            raise AnswerError(f'the answer of {name} has no count of "documents"')
        for key, value in answer.counts.items():
            given.setdefault(key, {})[name] = value
    if is_first:
        for key, value in workload.expected.items():
            given.setdefault(key, {})["the declaration"] = value
            if len(given[key]) == 1:
                raise AnswerError(f"nobody counted {key}, of which {value:,} are declared")
    for key, values in given.items():
        if len(set(values.values())) > 1:
            raise AnswerError(
                f"{key} differ: " + ", ".join(f"{n} {v:,}" for n, v in values.items())
            )
        if 0 in values.values():
            raise AnswerError(f"{key} are 0: this measures nothing")
    digests = {name: answer.digest for name, answer in answers.items() if answer.digest}
    if is_first and workload.digest:
        digests["the declaration"] = workload.digest
    if len(set(digests.values())) > 1:
        raise AnswerError(
            f"the answers of {', '.join(digests)} differ, though their counts are equal"
        )
