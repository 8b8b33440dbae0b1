"""The tables that are printed."""

from __future__ import annotations

from typing import Any

Table = dict[str, Any]


def describe(name: str, workload: str, found: Table) -> str:
    """All lines about one workload."""
    baseline = found["baseline"]
    lines = [f"{name} · {workload}: {_sizes(found)}"]
    lines += _aligned(_rows(found, baseline))
    for program, table in found["programs"].items():
        if table["note"]:
            lines.append(f"  {program}: {table['note']}")
    lines += [f"  {program} had to wait for its core" for program in _waited(found)]
    lines += [f"  SKIPPED {program}: {why}" for program, why in found["skipped"].items()]
    lines += [f"  target: {target(table)}" for table in found["targets"]]
    return "\n".join(lines)


def _waited(found: Table) -> list[str]:
    """The programs that others kept from running for more than a tenth of the time."""
    return [
        program
        for program, table in found["programs"].items()
        if table["cpu_seconds"]["median"] < 0.9 * table["wall_seconds"]["median"] - 0.05
    ]


def target(table: Table) -> str:
    """A target, and whether it was met.

    >>> target({"program": "tamis", "ratio": 7.0, "of": "expat", "reached": 7.5, "met": True})
    'tamis at least 7 × expat: MET, 7.5'
    >>> target({"program": "tamis", "seconds": 0.2, "reached": None, "met": None})
    'tamis at most 0.2 s: not measured'
    >>> target({"program": "tamis", "seconds": 0.2, "of": "python", "reached": 0.1, "met": True})
    'tamis at most 0.2 s more than python: MET, 0.1'
    """
    if "ratio" in table:
        wanted = f"at least {table['ratio']:g} × {table['of']}"
    elif "megabytes_per_second" in table:
        wanted = f"at least {table['megabytes_per_second']:g} MB/s"
    elif "microseconds_per_event" in table:
        wanted = f"at most {table['microseconds_per_event']:g} µs an event"
    else:
        wanted = f"at most {table['seconds']:g} s"
        if "of" in table:
            wanted += f" more than {table['of']}"
    verdict = {None: "not measured", True: "MET", False: "MISSED"}[table["met"]]
    reached = "" if table["reached"] is None else f", {table['reached']:.3g}"
    return f"{table['program']} {wanted}: {verdict}{reached}"


def _sizes(found: Table) -> str:
    parts = [f"{found['bytes'] / 1e6:.1f} MB"] if "bytes" in found else []
    parts += [f"{name} {value:,}" for name, value in found["counts"].items()]
    parts.append(f"{found['repetitions']} repetitions")
    if found["cores"]:
        parts.append(f"core {' and '.join(map(str, found['cores']))}")
    return ", ".join(parts)


def _rows(found: Table, baseline: str | None) -> list[list[str]]:
    """The head and one row a program; columns are those that some program has."""
    programs = found["programs"]
    phases = list(dict.fromkeys(phase for table in programs.values() for phase in table["phases"]))
    if phases == found["measure"]:
        phases = []  # the first column says it already
    columns: list[tuple[str, Any]] = [
        ("seconds (min–max)", lambda table: _spread(table["seconds"])),
        (f"× {baseline} (min–max)", lambda table: _spread(table.get("ratio"))),
        ("µs/event (mean ± 95 %)", lambda table: _mean(table.get("microseconds_per_event"))),
        ("MB/s", lambda table: _median(table.get("megabytes_per_second"))),
        ("M events/s", lambda table: _median(table.get("events_per_second"), 1e-6)),
        *((f"{phase} ms", _phase(phase)) for phase in phases),
        ("peak MB", lambda table: f"{table['peak_bytes'] / 1e6:.0f}"),
        ("engine", lambda table: table["engine"]),
        ("version", lambda table: table["version"]),
    ]
    filled = [(head, [cell(table) for table in programs.values()]) for head, cell in columns]
    kept = [("program", list(programs))] + [(head, cells) for head, cells in filled if any(cells)]
    return [[head for head, _ in kept]] + [
        list(row) for row in zip(*(c for _, c in kept), strict=True)
    ]


def _phase(name: str) -> Any:
    return lambda table: _median(table["phases"].get(name), 1e3)


def _median(values: Table | None, scale: float = 1.0) -> str:
    return "" if values is None else _digits(values["median"] * scale)


def _mean(values: Table | None) -> str:
    if values is None:
        return ""
    half = f" ± {_digits(values['interval'])}" if "interval" in values else ""
    return f"{_digits(values['mean'])}{half}"


def _spread(values: Table | None) -> str:
    if values is None:
        return ""
    return f"{_digits(values['median'])} ({_digits(values['min'])}–{_digits(values['max'])})"


def _digits(value: float) -> str:
    """Three digits, and no exponent.

    >>> _digits(1234.5), _digits(12.345), _digits(0.012345)
    ('1234', '12.3', '0.0123')
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 0.0001 else f"{value:.1e}"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
