"""Draws the records: one SVG an experiment, into ``docs/benchmarks``.

    python -m benchmarks.plots [RECORDS [PLOTS]]

The same record gives the same bytes.
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
    plots.mkdir(parents=True, exist_ok=True)
    for path in sorted(records.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if draw(record, plots / f"{path.stem}.svg"):
            print(plots / f"{path.stem}.svg")
    return 0


def draw(record: Table, path: Path) -> bool:
    """Draw one record: a panel a workload, a bar a program; False where nothing was measured."""
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
    columns = min(len(found), 3)
    rows = -(-len(found) // columns)
    bars = max(len(table["programs"]) for table in found.values())
    size = (_PANEL_INCHES * columns, rows * (0.9 + 0.28 * bars) + 0.5)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for panel, (name, table) in zip(axes.flat, found.items(), strict=False):
        _draw_panel(panel, name, table)
    for panel in axes.flat[len(found) :]:
        panel.set_axis_off()
    figure.suptitle(f"{record['experiment']}: {record['machine']['processor']}, {record['date']}")
    return figure


def _draw_panel(panel: Any, name: str, table: Table) -> None:
    """The medians of the programs of one workload, from least to most where they are speeds."""
    programs = table["programs"]
    is_speed = all("megabytes_per_second" in program for program in programs.values())
    key = "megabytes_per_second" if is_speed else "seconds"
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
    panel.set_xlabel("MB/s (more is better)" if is_speed else "seconds (less is better)")
    panel.spines[["top", "right"]].set_visible(False)
    most = max(value["max"] for value in values)
    goal = _goal(table, is_speed)
    if goal is not None:
        panel.axvline(goal, color=_TARGET, lw=1, ls=":")
        panel.text(goal, -0.55, "target", ha="center", va="bottom", fontsize=7, color=_TARGET)
        most = max(most, goal)
    panel.set_xlim(0, most * 1.2)


def _goal(table: Table, is_speed: bool) -> float | None:
    """Where the target is on the axis; the first, where there are several."""
    if not table["targets"]:
        return None
    target = table["targets"][0]
    goal: float | None = target.get("megabytes_per_second" if is_speed else "seconds")
    other = table["programs"].get(target.get("of"))
    if is_speed and other is not None:
        goal = other["megabytes_per_second"]["median"] * target["ratio"]
    return goal


if __name__ == "__main__":
    sys.exit(main())
