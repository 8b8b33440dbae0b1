"""Runs experiments: see README.md beside this file.

python -m benchmarks [EXPERIMENT ...] [--list] [--repeat N] [--record PATH] ...
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import declared, recording
from benchmarks.declared import DeclarationError, Experiment
from benchmarks.figures import figures
from benchmarks.measuring import measure
from benchmarks.report import describe
from benchmarks.running import ROOT, AnswerError, UnavailableError

DATA = ROOT.parent / "shared" / "data"
_BUSY = 0.5  # processes that want to run beside us, from which on it is said


def main(words: Sequence[str] | None = None) -> int:
    """The exit status: 1 if a program failed or answers differ, 2 for wrong usage."""
    options = _options(words)
    try:
        experiments = [
            _experiment(name, options) for name in options.experiments or declared.names()
        ]
    except DeclarationError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    if options.list:
        for experiment in experiments:
            _describe(experiment)
        return 0
    if options.record and len(experiments) > 1 and options.record.suffix == ".json":
        print("benchmarks: several experiments are recorded in a folder", file=sys.stderr)
        return 2
    busy = os.getloadavg()[0]
    if busy > _BUSY:
        print(f"The machine is busy (load {busy:.1f}): times say less than they could.\n")
    is_good = True
    for experiment in experiments:
        workloads = _run(experiment, options.data)
        is_good &= not any("failed" in found for found in workloads.values())
        if options.record:
            path = options.record
            if path.suffix != ".json":
                path /= f"{experiment.name}.json"
            recording.write(path, recording.record(experiment, workloads, busy))
    return 0 if is_good else 1


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run experiments.")
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="by default all")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--repeat", type=int, metavar="N", help="instead of what is declared")
    parser.add_argument(
        "--record", type=Path, metavar="PATH", help="a file; or a folder, for a file of each"
    )
    parser.add_argument("--workload", action="append", metavar="NAME", help="only these")
    parser.add_argument("--program", action="append", metavar="NAME", help="only these")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help="also run the programs of another checkout, in turn with these, and compare with them",
    )
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", default=os.environ.get("TAMIS_BENCH_DATA") or DATA,
        help="real documents; by default $TAMIS_BENCH_DATA or ../shared/data",
    )  # fmt: skip
    options = parser.parse_args(words)
    if options.repeat is not None and options.repeat < 1:
        parser.error("--repeat is 1 or more")
    options.data = options.data.resolve()
    return options


def _experiment(name: str, options: argparse.Namespace) -> Experiment:
    """An experiment as declared, but for what was asked to be otherwise; a path is one too."""
    path = Path(name) if name.endswith(".toml") else declared.EXPERIMENTS / f"{name}.toml"
    experiment = declared.load(path)
    changes: dict[str, Any] = {}
    if options.repeat:
        changes["repetitions"] = options.repeat
    for key in ("workload", "program"):
        wanted = getattr(options, key)
        if wanted:
            kept = tuple(e for e in getattr(experiment, f"{key}s") if e.name in wanted)
            if not kept:
                raise DeclarationError(f"{name} has no {key} {' or '.join(wanted)}")
            changes[f"{key}s"] = kept
    experiment = dataclasses.replace(experiment, **changes)
    if options.against:
        experiment = declared.against(experiment, options.against.resolve())
    return experiment


def _describe(experiment: Experiment) -> None:
    print(f"{experiment.name}: {experiment.about}")
    print(f"  programs: {', '.join(p.name for p in experiment.programs)}")
    print(f"  workloads: {', '.join(w.name for w in experiment.workloads)}\n")


def _run(experiment: Experiment, data: Path) -> dict[str, Any]:
    """Measure and print each workload; gives the figures, or why there are none, by workload."""
    results: dict[str, Any] = {}
    for workload in experiment.workloads:
        try:
            measured = measure(experiment, workload, data, _say)
        except UnavailableError as reason:
            results[workload.name] = {"skipped": str(reason)}
            print(f"{experiment.name} · {workload.name}: SKIPPED: {reason}\n", flush=True)
        except AnswerError as reason:
            results[workload.name] = {"failed": str(reason)}
            print(f"{experiment.name} · {workload.name}: FAILED: {reason}\n", flush=True)
        else:
            found = figures(experiment, measured)
            results[workload.name] = found
            text = describe(experiment.name, workload.name, found)
            print(text + "\n", flush=True)
    return results


def _say(text: str) -> None:
    """Progress, for who is watching."""
    if sys.stderr.isatty():
        print(f"\r{text}\x1b[K", end="\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
