"""Medians, spreads and ratios of what was measured, as they are printed and recorded."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.declared import Experiment, Target
from benchmarks.measuring import Measured, measured_s
from benchmarks.running import Answer

Table = dict[str, Any]


def spread(values: Sequence[float]) -> Table:
    """The median, the least and the most, with four digits.

    >>> spread([3.0, 1.0, 2.00004])
    {'median': 2.0, 'min': 1.0, 'max': 3.0}
    """
    found = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {key: float(f"{value:.4g}") for key, value in found.items()}


def with_mean(values: Sequence[float]) -> Table:
    """The same, with the mean, and half of its 95 % confidence interval (by Student's t).

    >>> with_mean([3.0, 1.0, 2.0])
    {'median': 2.0, 'min': 1.0, 'max': 3.0, 'mean': 2.0, 'interval': 2.484}
    """
    found = {**spread(values), "mean": float(f"{statistics.mean(values):.4g}")}
    if len(values) > 1:
        t = _STUDENT_T[min(len(values) - 2, len(_STUDENT_T) - 1)]
        half = t * statistics.stdev(values) / math.sqrt(len(values))
        found["interval"] = float(f"{half:.4g}")
    return found


# Of 1, 2, … degrees of freedom, what 2.5 % of the draws are above; the last of more than there are.
_STUDENT_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip


def figures(experiment: Experiment, measured: Measured) -> Table:
    """All that is said about one workload.

    Returns:
        ``programs``: by name, each with ``seconds`` (the measured phases together, ``runs`` has
        those of each repetition), ``phases``, ``ratio`` to the baseline, ``megabytes_per_second``
        and ``events_per_second`` where there are documents, ``microseconds_per_event`` (with its
        mean, and how far that may be off) where there are attribute–value events, ``wall_seconds``
        and ``cpu_seconds`` of whole processes, ``peak_bytes``. A
        ratio above one is faster than the baseline; it is taken in each repetition, whose
        documents are the same, and of these the median.
    """
    programs = {
        name: _of_program(experiment, measured, answers)
        for name, answers in measured.answers.items()
    }
    return {
        **_sizes(measured),
        "cores": measured.cores,
        "measure": list(experiment.measure),
        "baseline": experiment.baseline,
        "repetitions": max(map(len, measured.answers.values())),
        "programs": programs,
        "skipped": measured.skipped,
        "targets": [
            _reached(target, experiment.baseline, programs) for target in measured.workload.targets
        ],
    }


def _sizes(measured: Measured) -> Table:
    """How the documents were made and how large they are on average, and the first counts."""
    first: dict[str, int] = {}
    for answers in measured.answers.values():
        first |= answers[0].counts
    workload = measured.workload
    sizes: Table = {
        "documents": workload.documents,
        "subscriptions": workload.subscriptions,
        "counts": first,
    }
    if workload.events:
        sizes |= {"events": workload.events, "filters": workload.filters}
    if workload.point:
        sizes["point"] = asdict(workload.point)
    if measured.sizes:
        sizes["seeds"] = [size["seed"] for size in measured.sizes]
    if measured.sizes and "bytes" in measured.sizes[0]:
        sizes["bytes"] = round(statistics.mean(size["bytes"] for size in measured.sizes))
    return sizes


def _of_program(experiment: Experiment, measured: Measured, answers: Sequence[Answer]) -> Table:
    seconds = [measured_s(experiment, answer) for answer in answers]
    phases = {
        phase: [answer.times.get(phase, 0.0) for answer in answers] for phase in answers[0].times
    }
    table: Table = {
        "version": answers[0].version,
        "engine": answers[0].engine,
        "note": answers[-1].note,
        "digest": answers[0].digest,
        "seconds": {**spread(seconds), "runs": [float(f"{value:.4g}") for value in seconds]},
        "phases": {phase: spread(values) for phase, values in phases.items()},
        "wall_seconds": spread([answer.wall_s for answer in answers]),
        "cpu_seconds": spread([answer.cpu_s for answer in answers]),
        "peak_bytes": max(answer.peak_bytes for answer in answers),
    }
    if measured.sizes and "bytes" in measured.sizes[0]:
        sizes = [size["bytes"] for size in measured.sizes]
        table["megabytes_per_second"] = spread(
            [size / value / 1e6 for size, value in zip(sizes, seconds, strict=True)]
        )
    if measured.sizes and "events" in measured.sizes[0]:
        table["microseconds_per_event"] = with_mean(
            [
                1e6 * value / size["events"]
                for size, value in zip(measured.sizes, seconds, strict=True)
            ]
        )
    elements = _elements(measured)
    if elements:
        table["events_per_second"] = spread(
            [2 * count / value for count, value in zip(elements, seconds, strict=True)]
        )
    baseline = measured.answers.get(experiment.baseline or "")
    if baseline:
        others = [measured_s(experiment, answer) for answer in baseline]
        table["ratio"] = spread(
            [other / value for other, value in zip(others, seconds, strict=True)]
        )
    return table


def _elements(measured: Measured) -> list[int]:
    """The number of elements of each repetition, of whoever counted them; empty if nobody did."""
    for answers in measured.answers.values():
        if "elements" in answers[0].counts:
            return [answer.counts["elements"] for answer in answers]
    return []


def _reached(target: Target, baseline: str | None, programs: Table) -> Table:
    """A target, what was reached of it and whether it was met; None where it cannot be told."""
    table: Table = {"program": target.program, "met": None, "reached": None}
    found = programs.get(target.program)
    if target.seconds is not None:
        table["seconds"] = target.seconds
        if target.of:
            table["of"] = target.of
        if found and (target.of is None or target.of in programs):
            runs = found["seconds"]["runs"]
            if target.of:
                others = programs[target.of]["seconds"]["runs"]
                runs = [ours - theirs for ours, theirs in zip(runs, others, strict=True)]
            table["reached"] = spread(runs)["median"]
            table["met"] = table["reached"] <= target.seconds
        return table
    if target.microseconds_per_event is not None:
        table["microseconds_per_event"] = target.microseconds_per_event
        if found and "microseconds_per_event" in found:
            table["reached"] = found["microseconds_per_event"]["mean"]
            table["met"] = table["reached"] <= target.microseconds_per_event
        return table
    if target.ratio is not None:
        table |= {"ratio": target.ratio, "of": target.of or baseline}
        other = programs.get(table["of"])
        if found and other:
            runs = zip(other["seconds"]["runs"], found["seconds"]["runs"], strict=True)
            table["reached"] = spread([theirs / ours for theirs, ours in runs])["median"]
    else:
        table["megabytes_per_second"] = target.megabytes_per_second
        if found and "megabytes_per_second" in found:
            table["reached"] = found["megabytes_per_second"]["median"]
    if table["reached"] is not None:
        table["met"] = table["reached"] >= (target.ratio or target.megabytes_per_second)
    return table
