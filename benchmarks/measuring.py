"""An experiment, measured: programs take turns on documents that no process has seen before.

Each repetition makes new documents (or events, and filters of these), and each program answers
them in a new process. Who goes first changes with each repetition, so that a machine that gets
slower or faster is unfair to nobody.
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
        sizes: of the documents or events of each repetition, as ``make_input`` gives them, if there
            are any.
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
        repetitions = min(workload.repetitions or experiment.repetitions, experiment.repetitions)
        for repetition in range(repetitions):
            say(f"{experiment.name}/{workload.name}: {repetition + 1} of {repetitions}")
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
    if workload.documents or workload.events:
        size = make_input(workload, repetition, data, folder)
        result.sizes.append(size)
    places = {
        "workload": workload.name,
        "repetition": str(repetition),
        "data": str(data),
        "documents": os.path.join(folder, "documents"),
        "warmup": os.path.join(folder, "warmup"),
        "subscriptions": os.path.join(folder, "subscriptions.tsv"),
        "dtd": os.path.join(data, workload.documents.get("dtd_file", "")),
        "events": os.path.join(folder, "events"),
        "at": f"{workload.point.at:g}" if workload.point else "",
    }
    with pinned(experiment.cores) as result.cores:
        answers = _answers(experiment, result, repetition, places)
    verify(workload, answers, size, is_first=repetition == 0)
    for name in ("documents", "warmup", "events"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return answers


def _answers(
    experiment: Experiment, result: Measured, repetition: int, places: Mapping[str, str]
) -> dict[str, Answer]:
    """One answer of each program, in the order of declaration; the first one to run changes.

    A program that cannot run is skipped from the first repetition on.
    """
    chosen = result.workload.programs or [program.name for program in experiment.programs]
    programs = [p for p in experiment.programs if p.name in chosen and p.name not in result.skipped]
    if not programs:
        raise UnavailableError("it is for none of the programs that are to run")
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


def make_input(workload: Workload, repetition: int, data: Path, folder: Path) -> Mapping[str, int]:
    """Make a repetition's documents or events, in another process to keep this one small.

    The first repetition makes the subscriptions to documents too: they are those of all. Filters of
    events are made with them each time.

    Returns:
        ``documents`` and ``bytes``, or ``events``; and the ``seed``.
    """
    module = "events" if workload.events else "documents"
    declared = {
        "documents": workload.documents,
        "subscriptions": workload.subscriptions if repetition == 0 else {},
        "events": workload.events,
        "filters": workload.filters,
        "repetition": repetition,
        "data": str(data),
    }
    made = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", json.dumps(declared), str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise AnswerError(
            f"the {module} of {workload.name} could not be made: {made.stderr.strip()}"
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
    made = [key for key in ("documents", "events") if key in size]
    for key in made:
        given[key] = {"the workload": size[key]}
    for name, answer in answers.items():
        for key in made:
            if key not in answer.counts:
                raise AnswerError(f'the answer of {name} has no count of "{key}"')
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
        if 0 in values.values() and key not in workload.zero:
            raise AnswerError(f"{key} are 0: this measures nothing")
    _verify_digests(workload, answers, is_first)


def _verify_digests(workload: Workload, answers: Mapping[str, Answer], is_first: bool) -> None:
    digests = {name: answer.digest for name, answer in answers.items() if answer.digest}
    if is_first and workload.digest:
        digests["the declaration"] = workload.digest
    if len(set(digests.values())) > 1:
        raise AnswerError(
            f"the answers of {', '.join(digests)} differ, though their counts are equal"
        )
