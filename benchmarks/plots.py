"""Draws records as SVG: those that pages in ``docs/benchmarks`` show.

    python -m benchmarks.plots [RECORDS [PLOTS]]

It draws each record again whose plot is in the folder. The same record gives the same bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.running import ROOT

RECORDS = Path(__file__).parent / "records"
PLOTS = ROOT / "docs" / "benchmarks"
_OURS, _OTHERS, _TARGET = "#c2410c", "#94a3b8", "#0f172a"
_PANEL_INCHES = 4.2
_WIDE = 20  # points of which the last is so many times the first are at their logarithms
# Fixed ids, and text as text: a plot changes where its record does.
_STYLE: Any = {"svg.hashsalt": "tamis", "svg.fonttype": "none", "font.size": 9}

Table = dict[str, Any]


def main() -> int:
    records = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    plots = Path(sys.argv[2]) if len(sys.argv) > 2 else PLOTS
    try:
        import matplotlib  # noqa: F401, PLC0415 - an extra
    except ImportError:
        print("plots need matplotlib: pip install 'tamis[bench]'", file=sys.stderr)
        return 1
    for plot in sorted(plots.glob("*.svg")):
        record = json.loads((records / f"{plot.stem}.json").read_text(encoding="utf-8"))
        if draw(record, plot):
            print(plot)
    return 0


def draw(record: Table, path: Path) -> bool:
    """Draw one record; False where nothing was measured.

    There is a panel each workload, with a bar each program; or one each sweep, with a line each.
    """
    from matplotlib import pyplot, rc_context  # noqa: PLC0415 - an extra

    found = {name: table for name, table in record["workloads"].items() if "programs" in table}
    if not found:
        return False
    with rc_context(_STYLE):
        figure = _figure(record, found, pyplot)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return True


def _figure(record: Table, found: Table, pyplot: Any) -> Any:
    """The panels, three in a row."""
    sweeps: dict[str, list[Table]] = {}
    for table in found.values():
        if "point" in table:
            sweeps.setdefault(table["point"]["sweep"], []).append(table)
    bars = {name: table for name, table in found.items() if "point" not in table}
    count = len(bars) + len(sweeps)
    columns = min(count, 3)
    rows = -(-count // columns)
    most = max(len(table["programs"]) for table in found.values())
    row_inches = 3.2 if sweeps else 0.9 + 0.28 * most
    size = (_PANEL_INCHES * columns, rows * row_inches + 0.5)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    panels = iter(axes.flat)
    for name, table in bars.items():
        _draw_panel(next(panels), name, table)
    for points in sweeps.values():
        _draw_sweep(next(panels), points)
    for panel in panels:
        panel.set_axis_off()
    figure.suptitle(f"{record['experiment']}: {record['machine']['processor']}, {record['date']}")
    return figure


def _draw_sweep(panel: Any, points: list[Table]) -> None:
    """The means of the programs at each point, and how far these may be off; both axes by powers.

    Where the points are near each other, or one is at 0, theirs is linear.
    """
    where = points[0]["point"]
    for name in dict.fromkeys(name for table in points for name in table["programs"]):
        there = [table for table in points if name in table["programs"]]
        found = [_per_one(table, name) for table in there]
        means, half = [mean for mean, _ in found], [off for _, off in found]
        if where["rates"]:  # an error of 1 % is one of 1 % in the other direction
            half = [1e6 * off / mean**2 for off, mean in zip(half, means, strict=True)]
            means = [1e6 / mean for mean in means]
        ats = [table["point"]["at"] for table in there]
        panel.errorbar(ats, means, half, label=name, marker="o", ms=3, lw=1, capsize=2)
    ats = [table["point"]["at"] for table in points]
    if min(ats) > 0 and max(ats) / min(ats) > _WIDE:
        panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_title(where["sweep"])
    panel.set_xlabel(where["axis"])
    one = "ms a document" if points[0].get("documents") else "µs an event"
    panel.set_ylabel("events a second" if where["rates"] else one)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize=7)


def _per_one(table: Table, name: str) -> tuple[float, float]:
    """The µs that a program took for an event, or ms for a document; and how far that is off."""
    program = table["programs"][name]
    if not table.get("documents"):
        value = program["microseconds_per_event"]
        return value["mean"], value.get("interval", 0.0)
    seconds, scale = program["seconds"], 1e3 / table["counts"]["documents"]
    return scale * seconds["median"], scale * (seconds["max"] - seconds["min"]) / 2


def _draw_panel(panel: Any, name: str, table: Table) -> None:
    """The medians of the programs of one workload, from least to most where they are speeds."""
    programs = table["programs"]
    is_speed = all("megabytes_per_second" in program for program in programs.values())
    of_events = all("microseconds_per_event" in program for program in programs.values())
    key, label = "seconds", "seconds (less is better)"
    if of_events:
        key, label = "microseconds_per_event", "µs an event (less is better)"
    elif is_speed:
        key, label = "megabytes_per_second", "MB/s (more is better)"
    values = [program[key] for program in programs.values()]
    medians = [value["median"] for value in values]
    spread = [
        [value["median"] - value["min"] for value in values],
        [value["max"] - value["median"] for value in values],
    ]
    ours = next((target["program"] for target in table["targets"]), "tamis")
    colours = [_OURS if program == ours else _OTHERS for program in programs]
    bars = panel.barh(list(programs), medians, xerr=spread, color=colours, error_kw={"lw": 0.8})
    panel.bar_label(bars, [f"{median:.3g}" for median in medians], padding=6)
    panel.invert_yaxis()
    panel.set_title(name)
    panel.set_xlabel(label)
    panel.spines[["top", "right"]].set_visible(False)
    most = max(value["max"] for value in values)
    goal = _goal(table, key)
    if goal is not None:
        panel.axvline(goal, color=_TARGET, lw=1, ls=":")
        panel.text(goal, -0.55, "target", ha="center", va="bottom", fontsize=7, color=_TARGET)
        most = max(most, goal)
    panel.set_xlim(0, most * 1.2)


def _goal(table: Table, key: str) -> float | None:
    """Where the target is on the axis; the first, where there are several."""
    if not table["targets"]:
        return None
    target = table["targets"][0]
    goal: float | None = target.get(key)
    other = table["programs"].get(target.get("of"))
    if key == "megabytes_per_second" and other is not None:
        goal = other["megabytes_per_second"]["median"] * target["ratio"]
    return goal


if __name__ == "__main__":
    sys.exit(main())
