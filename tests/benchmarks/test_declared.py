"""Experiments are read whole, and what is wrong in them is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.declared import EXPERIMENTS, DeclarationError, Point, Target, load, names

GOOD = """
about = "x"
measure = ["parse"]
baseline = "p"
[programs]
p.command = "run '{documents}' fast"
[workloads.w]
documents = { kind = "dblp", size = 1000 }
target = { program = "p", ratio = 2 }
"""


def test_all_experiments_can_be_read() -> None:
    assert names() == [
        "automaton",
        "automaton-lxml",
        "edges",
        "end-to-end",
        "events",
        "events-deployment",
        "events-end-to-end",
        "events-figures",
        "events-parallel",
        "events-rivals",
        "events-shapes",
        "events-sigma",
        "events-system",
        "generators",
        "gpu-ablations",
        "gpu-events",
        "gpu-twigs",
        "live",
        "live-segments",
        "matching",
        "nodes",
        "schema",
        "schema-further",
        "schema-million",
        "spark",
        "spark-column",
        "spark-curve",
        "spark-native",
        "spark-records",
        "spark-worker",
        "stacks-figures",
        "stacks-threads",
        "start",
        "subscriptions",
        "switching",
        "threads",
        "tokenizer",
        "transform",
        "transform-figures",
        "transform-messages",
        "transform-operators",
        "values",
        "values-records",
    ]
    for name in names():
        assert load(EXPERIMENTS / f"{name}.toml").about


def test_what_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(GOOD)
    experiment = load(path)
    assert experiment.name == "x"
    assert experiment.programs[0].command == ("run", "{documents}", "fast")
    assert experiment.workloads[0].targets == (Target("p", ratio=2),)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('about = "x"', "", "about is missing"),
        ('about = "x"', 'about = "x"\ncolour = 1', "the file has what nobody knows: colour"),
        ('baseline = "p"', 'baseline = "q"', "the baseline q is no program"),
        ('baseline = "p"', "", "the target of w is a ratio, without a baseline"),
        ("p.command", "p.commando", "program p has what nobody knows: commando"),
        ("ratio = 2", "ratio = 2, seconds = 1", "the target of w is a program and a ratio or sec"),
        ('program = "p"', 'program = "q"', "the target of w is of no program"),
        (
            "ratio = 2",
            "megabytes_per_second = 2, of = 'p'",
            "the target of w is of a program, but no ratio or seconds",
        ),
        ("[workloads.w]", "[workloads.w", "x.toml: "),
        (
            "[workloads.w]",
            "[workloads.w]\nprograms = ['q']",
            "w is for programs that there are not",
        ),
        ("[workloads.w]", "[workloads.w]\nevents = { number = 1 }", "w has events and documents"),
        ("[workloads.w]", "[sweeps.w]", "sweep w has no axis or no points"),
        (
            "[workloads.w]",
            "[sweeps.w]\npoints = [{}]\n[workloads.v]",
            "sweep w has no axis or no po",
        ),
        (
            "[workloads.w]",
            "[sweeps.w]\naxis = 'x'\npoints = [{}]\n[workloads.v]",
            "a point of w does not say where it is",
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(GOOD.replace(before, after))
    with pytest.raises(DeclarationError) as error:
        load(path)
    assert message in str(error.value)


SWEEP = """
about = "x"
measure = ["match"]
repetitions = 10
[programs]
p.command = "run {events} {at}"
q.command = "run"
[sweeps.names]
axis = "names"
events = { number = 100 }
filters = { interfaces = 2 }
points = [
    { at = 10, filters = { names = 10 } },
    { at = 0.5, events = { warmup = 7 }, programs = ["p"], repetitions = 2, zero = ["matches"] },
]
"""


def test_a_sweep(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(SWEEP)
    first, second = load(path).workloads
    assert (first.name, second.name) == ("names-10", "names-0.5")
    assert first.point == Point("names", "names", 10)
    assert first.filters == {"interfaces": 2, "names": 10}
    assert (first.programs, first.repetitions, first.zero) == ((), None, ())
    assert second.filters == {"interfaces": 2}
    assert second.events == {"number": 100, "warmup": 7}
    assert (second.programs, second.repetitions, second.zero) == (("p",), 2, ("matches",))


def test_a_sweep_of_one_value(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    start, _ = SWEEP.split("points = ")
    path.write_text(f'{start}each = "filters.names"\npoints = [10, 1_000]\n')
    workloads = load(path).workloads
    assert [each.name for each in workloads] == ["names-10", "names-1000"]
    assert [each.filters["names"] for each in workloads] == [10, 1000]
    assert all(each.filters["interfaces"] == 2 for each in workloads)
    path.write_text(f'{start}each = "names"\npoints = [10]\n')
    with pytest.raises(DeclarationError, match="a point of names has what nobody knows: names"):
        load(path)


def test_an_experiment_that_is_not_there() -> None:
    with pytest.raises(DeclarationError, match="there is no experiment warp: automaton, "):
        load(EXPERIMENTS / "warp.toml")
