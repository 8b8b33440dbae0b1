"""Documents through a simulated circuit."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tamis.core.errors import SubscriptionId, UsageError
from tamis.hardware import tools
from tamis.hardware.circuit import READOUT_MIN
from tamis.hardware.generate import Generated
from tamis.hardware.parser import STATUSES

_HEAD = struct.Struct("<BQ")


class Answer(NamedTuple):
    """What a circuit says of a document.

    Attributes:
        status: why the matches do not count, of ``STATUSES``; empty: they do.
        cycle: in which the last bit was read out.
        positions: those of the read-out whose bit was set.
    """

    status: tuple[str, ...]
    cycle: int
    positions: list[int]


class Simulator:
    """A circuit that Verilator has compiled.

    Args:
        generated: the circuit.
        folder: for the files of the tools. What is there of the same circuit is used again. One
            program at a time may use a folder.
        netlist: simulate what synthesis made of it, with models of the device's cells.
        waveforms: a file for the waveforms of all signals in the first run, as VCD.
    """

    def __init__(
        self,
        generated: Generated,
        folder: Path,
        netlist: bool = False,
        waveforms: Path | None = None,
    ) -> None:
        if netlist and waveforms is not None:
            raise UsageError("waveforms are those of the Verilog: ask for them without a netlist")
        self.generated = generated
        self._waveforms = waveforms
        folder = folder.absolute()
        circuit = generated.circuit
        self._lengths = [len(part) for part in circuit.bits]
        self._outputs = len(self._lengths) if circuit.options.outputs == "cluster" else 1
        generated.write(folder)
        source = "netlist.v" if netlist else "tamis.v"
        if netlist and not (folder / source).exists():
            tools.synthesize(folder)
        width = circuit.options.bytes
        self._program = tools.build_simulator(
            folder, source, width, self._outputs, waveforms is not None
        )

    def run(self, documents: Sequence[bytes], gaps: int = 0, seed: int = 1) -> Iterator[Answer]:
        """The answer to each document.

        Args:
            documents: follow each other without a pause.
            gaps: the percentage of cycles without input, 0 to 99.
            seed: of the gaps, and of what registers and memories hold at first.
        """
        if not 0 <= gaps < 100 or seed < 1:
            raise UsageError("gaps are 0 to 99 percent of the cycles, and a seed is 1 or more")
        # What Verilator generates may need a larger stack than is usual.
        command = ["sh", "-c", 'ulimit -s unlimited 2>&-; exec "$@"', "sh"]
        command += [str(self._program), str(gaps), str(seed)]
        if self._waveforms is not None:
            command.append(str(self._waveforms))
            self._waveforms = None
        command += ["+verilator+rand+reset+2", f"+verilator+seed+{seed}"]
        given = b"".join(struct.pack("<I", len(one)) + one for one in documents)
        done = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            raise tools.ToolFailed(f"the simulation stopped with {done.returncode}")
        size = self.answer_bytes
        for start in range(0, len(documents) * size, size):
            status, cycle = _HEAD.unpack_from(done.stdout, start)
            bits = done.stdout[start + _HEAD.size : start + size]
            names = tuple(name for bit, name in enumerate(STATUSES) if status >> bit & 1)
            yield Answer(names, cycle, list(self._positions(bits)))

    @property
    def answer_bytes(self) -> int:
        """The bytes that the simulated circuit writes for each document."""
        if self._outputs == 1:
            return _HEAD.size + max(READOUT_MIN, sum(self._lengths))
        return _HEAD.size + max(READOUT_MIN, *self._lengths) * self._outputs

    def _positions(self, bits: bytes) -> Iterator[int]:
        """The positions whose bit is set; with an output a cluster these take turns."""
        if self._outputs == 1:
            yield from (place for place in range(sum(self._lengths)) if bits[place])
            return
        first = 0
        for output, length in enumerate(self._lengths):
            yield from (
                first + place for place in range(length) if bits[place * self._outputs + output]
            )
            first += length

    def match(self, documents: Sequence[bytes]) -> Iterator[list[SubscriptionId] | tuple[str, ...]]:
        """The ids of the subscriptions that match each document, or the tuple of its status."""
        order = {id: place for place, id in enumerate(self.generated.subscriptions.ids)}
        for answer in self.run(documents):
            found = [id for place in answer.positions for id in self.generated.ids[place]]
            yield answer.status or sorted(found, key=order.__getitem__)
