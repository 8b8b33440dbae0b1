"""The ports of a small circuit, in Amaranth's simulator: resets, and what they leave behind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from amaranth.sim import Simulator

from tamis.core.errors import UsageError
from tamis.hardware.circuit import SYSTEMS
from tamis.hardware.generate import Generated

pytestmark = pytest.mark.hardware
QUERIES = {"b": "/*/b", "a": "//a", "twig": "/a[c]"}


class Cycle(NamedTuple):
    """What a circuit is given until it takes it; a byte, an end, a reset, or none."""

    byte: int | None = None
    finish: bool = False
    reset: bool = False


RESET, IDLE, FINISH = Cycle(reset=True), Cycle(), Cycle(finish=True)


def sent(data: bytes) -> list[Cycle]:
    return [Cycle(byte) for byte in data]


def answers(cycles: Iterable[Cycle], depth: int = 4) -> list[tuple[set[str], int]]:
    """The matches of each document that a circuit answers, and its status."""
    made = Generated(QUERIES, [("", "c")], options=SYSTEMS["shared"]._replace(depth=depth))
    circuit = made.circuit
    bits: list[int] = []
    found: list[tuple[set[str], int]] = []

    started = False  # what comes out before ``ready`` is high does not count

    async def step(ctx: Any) -> bool:
        nonlocal started
        ctx.set(circuit.clk, 0)
        await ctx.delay(1e-6)
        taken = bool(ctx.get(circuit.ready))
        started = (started or taken) and not ctx.get(circuit.reset)
        if not started:
            bits.clear()
        elif ctx.get(circuit.match_valid):
            bits.append(ctx.get(circuit.match))
            if ctx.get(circuit.match_last):
                ids = {id for place, of in enumerate(made.ids) if bits[place] for id in of}
                found.append((ids, ctx.get(circuit.status)))
                bits.clear()
        ctx.set(circuit.clk, 1)
        await ctx.delay(1e-6)
        return taken

    async def drive(ctx: Any) -> None:
        for cycle in cycles:
            ctx.set(circuit.data, cycle.byte or 0)
            ctx.set(circuit.finish, cycle.finish)
            ctx.set(circuit.valid, cycle.byte is not None or cycle.finish)
            ctx.set(circuit.reset, cycle.reset)
            while not await step(ctx) and ctx.get(circuit.valid):
                pass
        ctx.set(circuit.valid, 0)
        for _ in range(100):
            await step(ctx)

    simulator = Simulator(circuit)
    simulator.add_testbench(drive)
    simulator.run()
    return found


FIRST, SECOND = b"<a><b/></a>", b"<c><a/></c>"
BOTH = [*sent(FIRST), FINISH, *sent(SECOND), FINISH]
GOOD = [({"b", "a"}, 0), ({"a"}, 0)]


@pytest.mark.parametrize("idle", [0, 1, 2, 5, 17])
def test_documents_follow_a_reset(idle: int) -> None:
    assert answers([RESET, *idle * [IDLE], *BOTH]) == GOOD


def test_a_reset_forgets_what_was_sent() -> None:
    begun = [
        [*sent(FIRST[:length]), RESET, *BOTH, *60 * [IDLE]] for length in range(len(FIRST) + 1)
    ]
    assert answers([RESET, *(cycle for cycles in begun for cycle in cycles)]) == GOOD * len(begun)


def test_a_reset_forgets_what_is_read_out() -> None:
    for wait in range(0, 30, 6):
        found = answers([RESET, *sent(FIRST), FINISH, *wait * [IDLE], RESET, *BOTH])
        assert found in (GOOD, [GOOD[0], *GOOD]), wait


@pytest.mark.parametrize("depth", [4, 32])
def test_depth(depth: int) -> None:
    def nested(levels: int) -> list[Cycle]:
        return [*sent(b"<a>" * (levels - 1) + b"<b/>" + b"</a>" * (levels - 1)), FINISH]

    found = answers([RESET, *nested(depth), *nested(depth + 1), *nested(2)], depth)
    assert [status for _, status in found] == [0, 8, 0]
    assert (found[0][0], found[2][0]) == ({"a"}, {"a", "b"})


@pytest.mark.parametrize(
    "options", [{"depth": 2}, {"depth": 12}, {"bytes": 8, "parsers": "cluster"}]
)
def test_refuses_options(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Generated(QUERIES, options=SYSTEMS["shared"]._replace(**options))
