"""Registers, wide gates, and the signals between the parts of a circuit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import and_, or_
from typing import Any

from amaranth.hdl import Const, Module, Signal


def delayed(m: Module, value: Any) -> Signal:
    """The value a cycle later."""
    held = Signal(len(value))
    m.d.sync += held.eq(value)
    return held


def later(m: Module, value: Any, cycles: int) -> Any:
    """The value, this number of cycles later."""
    for _ in range(cycles):
        value = delayed(m, value)
    return value


def any_of(values: Iterable[Any]) -> Any:
    """The disjunction of signals; of none, 0.

    >>> any_of(Signal(name=name) for name in "abc")
    (| (| (sig a) (sig b)) (sig c))
    """
    return _tree(or_, list(values) or [Const(0, 1)])


def all_of(values: Iterable[Any]) -> Any:
    """The conjunction of signals; of none, 1."""
    return _tree(and_, list(values) or [Const(1, 1)])


_CHAIN = 64


def _tree(gate: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    """A tree of chains: recursion follows an expression; of chains, Yosys makes small circuits."""
    if len(values) <= _CHAIN:
        return reduce(gate, values)
    parts = (values[k : k + _CHAIN] for k in range(0, len(values), _CHAIN))
    return _tree(gate, [reduce(gate, part) for part in parts])


class EventBus:
    """What a parser tells the stacks in a clock cycle.

    Attributes:
        push: a start tag is complete.
        pop: an element ends. Not in the same cycle as ``push``.
        end: the document is over.
        tags: with ``push``, a bit for each tag, of which one at most is set.
        facts: with ``push``, a bit for each fact.
    """

    def __init__(self, tags: int, facts: int) -> None:
        self.push = Signal()
        self.pop = Signal()
        self.end = Signal()
        self.tags = Signal(tags)
        self.facts = Signal(facts)
