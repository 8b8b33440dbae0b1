"""What an experiment is: the TOML files of ``benchmarks/experiments``, read and checked."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

EXPERIMENTS = Path(__file__).parent / "experiments"


class DeclarationError(Exception):
    """An experiment's file that cannot be used."""


@dataclass(frozen=True)
class Program:
    """A contender: a command that speaks the protocol (see README.md).

    Attributes:
        name: what tables, plots and records call it.
        command: its words, before the places in braces are filled in.
        engine: what it has to say that it used, or None where that is its own affair.
        checkout: the folder in which it runs, with the Python of the virtual environment that is in
            it; None is this checkout, with the Python that runs the benchmarks.
    """

    name: str
    command: tuple[str, ...]
    engine: str | None = None
    checkout: Path | None = None


@dataclass(frozen=True)
class Target:
    """What the project wants to reach; missing it is said, and is no failure.

    Attributes:
        program: whose target it is.
        ratio: at least so many times as fast as the program ``of``, or None.
        of: the program that a ratio is of, instead of the baseline; or that ``seconds`` are more
            than.
        seconds: at most so many, or None.
        megabytes_per_second: at least so many, or None.
        microseconds_per_event: at most so many on average, or None.
    """

    program: str
    ratio: float | None = None
    of: str | None = None
    seconds: float | None = None
    megabytes_per_second: float | None = None
    microseconds_per_event: float | None = None


@dataclass(frozen=True)
class Point:
    """One of several workloads that differ in a number: together they are a line in a plot.

    Attributes:
        sweep: what they are called together.
        axis: what the number is of.
        at: the number.
        rates: whether what is of interest is how many events a second there were, not how long
            each took.
    """

    sweep: str
    axis: str
    at: float
    rates: bool = False


@dataclass(frozen=True)
class Workload:
    """What programs are given.

    Attributes:
        documents: how they are made (see ``documents.py``); empty where there are none.
        subscriptions: how they are drawn; empty where there are none.
        expected: counts that the first repetition has to give, beside being equal.
        digest: that of the answers of the first repetition, or "" where it is not declared.
        events: how many attribute–value events there are (see ``events.py``); empty where there
            are none.
        filters: options of the generator of these and of their filters.
        programs: the names of those that get it; empty: all.
        repetitions: how often, if not as often as the experiment says.
        zero: counts that may be zero.
        point: where it is in a sweep, or None.
    """

    name: str
    documents: Mapping[str, Any]
    subscriptions: Mapping[str, Any]
    expected: Mapping[str, int]
    targets: tuple[Target, ...] = ()
    digest: str = ""
    events: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, Any] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    repetitions: int | None = None
    zero: tuple[str, ...] = ()
    point: Point | None = None


@dataclass(frozen=True)
class Experiment:
    """Programs and workloads; each program gets each workload, but those that name theirs.

    Attributes:
        about: what is measured, in a sentence or two.
        measure: the phases whose sum is compared.
        baseline: the program that the others are compared with, or None.
        repetitions: how often all of it is done, each time with other documents.
        cores: processor cores that programs may use.
        timeout_s: after so many seconds a program has failed.
    """

    name: str
    about: str
    measure: tuple[str, ...]
    programs: tuple[Program, ...]
    workloads: tuple[Workload, ...]
    baseline: str | None = None
    repetitions: int = 5
    cores: int = 1
    timeout_s: float = 600


def against(experiment: Experiment, checkout: Path) -> Experiment:
    """The same programs twice: of this checkout, and of another one as the baseline.

    Only the baseline of one program is of use, so with several programs there is none.

    Raises:
        DeclarationError: the other checkout has no virtual environment.
    """
    if not (checkout / ".venv" / "bin" / "python").exists():
        raise DeclarationError(f"{checkout} has no virtual environment: run make venv in it")
    others = tuple(
        replace(program, name=f"{program.name}-before", checkout=checkout)
        for program in experiment.programs
    )
    workloads = tuple(
        replace(
            workload,
            programs=(*workload.programs, *(f"{name}-before" for name in workload.programs)),
            targets=(),
        )
        for workload in experiment.workloads
    )
    return replace(
        experiment,
        programs=experiment.programs + others,
        workloads=workloads,
        baseline=others[0].name if len(others) == 1 else None,
    )


def names() -> list[str]:
    """The declared experiments."""
    return sorted(path.stem for path in EXPERIMENTS.glob("*.toml"))


def load(path: Path) -> Experiment:
    """Read one experiment; of sweeps, a workload each point.

    Raises:
        DeclarationError: something in it is missing, unknown or contradicts the rest.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DeclarationError(
            f"there is no experiment {path.stem}: {', '.join(names())}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise DeclarationError(f"{path.name}: {error}") from None
    try:
        experiment = _experiment(path.stem, table)
        _check(experiment)
    except DeclarationError as error:
        raise DeclarationError(f"{path.name}: {error}") from None
    return experiment


def _experiment(name: str, table: dict[str, Any]) -> Experiment:
    _known(
        table,
        "about measure baseline repetitions cores timeout_s target programs workloads sweeps",
        "the file",
    )
    for key in ("about", "measure", "programs"):
        if not table.get(key):
            raise DeclarationError(f"{key} is missing")
    every = {"target": table.get("target", [])}
    workloads = [
        _workload(key, {**every, **value}) for key, value in table.get("workloads", {}).items()
    ]
    for key, value in table.get("sweeps", {}).items():
        workloads += _sweep(key, value)
    if not workloads:
        raise DeclarationError("workloads is missing")
    return Experiment(
        name=name,
        about=" ".join(table["about"].split()),
        measure=tuple(table["measure"]),
        programs=tuple(_program(key, value) for key, value in table["programs"].items()),
        workloads=tuple(workloads),
        **{
            key: table[key]
            for key in ("baseline", "repetitions", "cores", "timeout_s")
            if key in table
        },
    )


def _program(name: str, table: dict[str, Any]) -> Program:
    _known(table, "command engine", f"program {name}")
    if not table.get("command"):
        raise DeclarationError(f"program {name} has no command")
    return Program(name, tuple(shlex.split(table["command"])), table.get("engine"))


_WORKLOAD_KEYS = (
    "documents subscriptions expected digest target events filters programs repetitions zero"
)


_WANTED = ("ratio", "seconds", "megabytes_per_second", "microseconds_per_event")


def _sweep(name: str, table: dict[str, Any]) -> list[Workload]:
    """A workload for each of the points; what all of them have is declared once.

    Where only one value changes, ``each`` names it and points are numbers.
    """
    _known(table, f"axis each rates points {_WORKLOAD_KEYS}", f"sweep {name}")
    if not table.get("axis") or not table.get("points"):
        raise DeclarationError(f"sweep {name} has no axis or no points")
    common = {key: table[key] for key in table if key in _WORKLOAD_KEYS.split()}
    points = table["points"]
    if "each" in table:
        whole, _, key = table["each"].partition(".")
        points = [{"at": value, whole: {key: value}} for value in points]
    workloads = []
    for point in points:
        _known(point, f"at {_WORKLOAD_KEYS}", f"a point of {name}")
        if "at" not in point:
            raise DeclarationError(f"a point of {name} does not say where it is: at = …")
        own = {key: value for key, value in point.items() if key != "at"}
        for key in ("documents", "subscriptions", "events", "filters"):
            own[key] = {**common.get(key, {}), **own.get(key, {})}
        workload = _workload(f"{name}-{point['at']}", {**common, **own})
        where = Point(name, table["axis"], point["at"], table.get("rates", False))
        workloads.append(replace(workload, point=where))
    return workloads


def _workload(name: str, table: dict[str, Any]) -> Workload:
    _known(table, _WORKLOAD_KEYS, f"workload {name}")
    targets = table.get("target", [])
    if isinstance(targets, dict):
        targets = [targets]
    for target in targets:
        _known(target, f"program of {' '.join(_WANTED)}", f"the target of {name}")
        if len(target.keys() & set(_WANTED)) != 1 or "program" not in target:
            raise DeclarationError(
                f"the target of {name} is a program and a {' or '.join(_WANTED)}"
            )
        if "of" in target and not target.keys() & {"ratio", "seconds"}:
            raise DeclarationError(f"the target of {name} is of a program, but no ratio or seconds")
    return Workload(
        name=name,
        documents=table.get("documents", {}),
        subscriptions=table.get("subscriptions", {}),
        expected=table.get("expected", {}),
        targets=tuple(Target(**target) for target in targets),
        digest=table.get("digest", ""),
        events=table.get("events", {}),
        filters=table.get("filters", {}),
        programs=tuple(table.get("programs", ())),
        repetitions=table.get("repetitions"),
        zero=tuple(table.get("zero", ())),
    )


def _check(experiment: Experiment) -> None:
    programs = {program.name for program in experiment.programs}
    if experiment.baseline not in (None, *programs):
        raise DeclarationError(f"the baseline {experiment.baseline} is no program")
    for workload in experiment.workloads:
        if not programs.issuperset(workload.programs):
            raise DeclarationError(f"{workload.name} is for programs that there are not")
        if workload.events and workload.documents:
            raise DeclarationError(f"{workload.name} has events and documents: it has either")
        for target in workload.targets:
            if {target.program, target.of} - {None, *programs}:
                raise DeclarationError(f"the target of {workload.name} is of no program")
            if target.ratio is not None and (target.of or experiment.baseline) is None:
                raise DeclarationError(
                    f"the target of {workload.name} is a ratio, without a baseline"
                )


def _known(table: Mapping[str, Any], keys: str, where: str) -> None:
    unknown = sorted(set(table) - set(keys.split()))
    if unknown:
        raise DeclarationError(f"{where} has what nobody knows: {', '.join(unknown)}")
