"""What a circuit takes of a device, and how fast it is there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from tamis.hardware import tools
from tamis.hardware.generate import Generated

AIM = 250.0
"""The clock in MHz that place and route aims at, unless another is named."""


def estimate(generated: Generated, folder: Path) -> dict[str, Any]:
    """The report of a circuit that is synthesised, but neither placed nor routed.

    It has no clock: before routing there is none to report.
    """
    seconds = tools.synthesize(folder)
    cells = tools.count_cells(folder)
    luts = cells["lut"] + tools.LUTS_OF_RAM * cells["lut_ram"]
    return {
        "estimate": True,
        **_of_area(generated, luts, cells["ff"], cells["lut_ram"]),
        "synthesis_seconds": round(seconds, 1),
    }


def route(
    generated: Generated, folder: Path, seeds: Sequence[int], megahertz: float = AIM
) -> dict[str, Any]:
    """The report of a routed circuit: its area, and the clock that each seed of the placer gave.

    The megabytes per second are those of the input at the median clock, if it never waits.
    """
    result = estimate(generated, folder)
    routed = [of_routed(tools.place_and_route(folder, seed, megahertz)) for seed in seeds]
    clock = median(one["megahertz"] for one in routed)
    area = _of_area(generated, *(routed[0][kind] for kind in ("luts", "registers", "lut_rams")))
    return {
        **result,
        **area,
        "estimate": False,
        "luts_share": routed[0]["luts_share"],
        "megahertz": {str(seed): one["megahertz"] for seed, one in zip(seeds, routed, strict=True)},
        "megahertz_median": round(clock, 2),
        "megabytes_per_second_peak": round(clock * generated.circuit.options.bytes, 1),
        "route_seconds": [one["route_seconds"] for one in routed],
    }


def of_routed(routed: tools.Routed) -> dict[str, Any]:
    """What one run of place and route gave: the area, with that of LUT-RAM, and the clock."""
    used, available = routed.used, routed.available
    luts = used["TRELLIS_COMB"] + tools.LUTS_OF_WRITING * used.get("TRELLIS_RAMW", 0)
    return {
        "luts": luts,
        "luts_share": round(luts / available["TRELLIS_COMB"], 4),
        "registers": used["TRELLIS_FF"],
        "lut_rams": used.get("TRELLIS_RAMW", 0),
        "megahertz": round(routed.megahertz, 2),
        "route_seconds": round(routed.seconds, 1),
    }


def _of_area(generated: Generated, luts: int, registers: int, lut_rams: int) -> dict[str, Any]:
    count = generated.tables.bit_count
    return {
        "options": generated.circuit.options._asdict(),
        "tags": len(generated.tables.tags),
        "clusters": len(generated.circuit.bits),
        "queries": count,
        "luts": luts,
        "registers": registers,
        "lut_rams": lut_rams,
        "luts_per_query": round(luts / count, 2),
    }


def write_floor_plan(folder: Path, seed: int) -> Path:
    """Draw where the cells of each cluster are, as an SVG; the file."""
    placed = json.loads((folder / f"placed-{seed}.json").read_text(encoding="utf-8"))
    (module,) = placed["modules"].values()
    cells = module["cells"]
    squares: dict[tuple[int, int], str] = {}
    for name, cell in cells.items():
        place = re.match(r"X(\d+)/Y(\d+)/", cell["attributes"].get("NEXTPNR_BEL", ""))
        if place:
            squares.setdefault((int(place[1]), int(place[2])), _unit_of(name))
    width, height = (max(one[axis] for one in squares) + 2 for axis in (0, 1))
    units = sorted(set(squares.values()))
    colors = {unit: f"hsl({number * 137 % 360} 60% 55%)" for number, unit in enumerate(units)}
    drawn = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1" fill="{colors[unit]}"/>'
        for (x, y), unit in sorted(squares.items())
    )
    legend = "".join(
        f'<text x="{width + 2}" y="{3 * number + 3}" font-size="2.5" fill="{colors[unit]}">'
        f"{escape(unit)}</text>"
        for number, unit in enumerate(units)
    )
    tall = max(height, 3 * len(units) + 4)
    target = folder / f"floor-plan-{seed}.svg"
    target.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 30} {tall}">'
        f'<rect width="{width}" height="{height}" fill="#f4f4f4"/>{drawn}{legend}</svg>\n',
        encoding="utf-8",
    )
    return target


def _unit_of(name: str) -> str:
    """The part of the circuit that a cell belongs to."""
    found = re.match(r"(cluster_\d+|front|fanout)", name)
    return found[1] if found else "input and read-out"
