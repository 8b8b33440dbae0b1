"""Histories of a live set that threads share, and whether they are linearizable.

A history is *linearizable* if there is an order of its operations in which each takes effect
between its call and its return, and in which a set without threads gives the same results.
``linearized`` searches for such an order as Wing and Gong (1993) do: it tries each operation that
no other has to precede, and goes back where the results differ. It searches only once from the same
operations done and the same state, as Lowe (2017) does. So only operations that overlap take time.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from tamis.core import index
from tamis.core.errors import BadSubscriptions, SubscriptionId, SubscriptionIdError

EXPRESSIONS = range(3)
"""Their numbers; each kind of sets has a text for each."""
IDS: Sequence[SubscriptionId] = ("x", "y", 1, "1", -7)
_CORE = str(Path(index.__file__).parent)

Pairs = tuple[tuple[SubscriptionId, int], ...]
"""Ids and their expressions."""


class Operation(NamedTuple):
    """A call, when it began, and what it returned when."""

    method: str
    arguments: tuple[Any, ...]
    called: int
    result: Any
    returned: int


class State(NamedTuple):
    """A set without threads: how many changes there were, and the subscriptions in their order.

    Each method returns its result and the next state. Changes result in the ids that are refused.
    """

    version: int = 0
    pairs: Pairs = ()

    def update(self, new: Pairs) -> tuple[Any, State]:
        left = [pair for pair in self.pairs if pair[0] not in dict(new)]
        return (), State(self.version + 1, (*left, *new))

    def add_many(self, new: Pairs) -> tuple[Any, State]:
        taken = tuple(id for id, _ in new if id in dict(self.pairs))
        return (taken, self) if taken else self.update(new)

    def add(self, id: SubscriptionId, expression: int) -> tuple[Any, State]:
        return self.add_many(((id, expression),))

    def remove(self, id: SubscriptionId) -> tuple[Any, State]:
        if id not in dict(self.pairs):
            return (id,), self
        left = tuple(pair for pair in self.pairs if pair[0] != id)
        return (), State(self.version + 1, left)

    def match(self) -> tuple[Any, State]:
        """For each expression, the ids that have it."""
        return [[id for id, own in self.pairs if own == number] for number in EXPRESSIONS], self

    compiled = match

    def snapshot(self) -> tuple[Any, State]:
        return (self.version, self.match()[0]), self

    def compact(self) -> tuple[Any, State]:
        return None, self

    def changes(self) -> tuple[Any, State]:
        return self.version, self

    def ids(self) -> tuple[Any, State]:
        return tuple(id for id, _ in self.pairs), self

    def count(self) -> tuple[Any, State]:
        return len(self.pairs), self

    def contains(self, id: SubscriptionId) -> tuple[Any, State]:
        return id in dict(self.pairs), self


EMPTY = State()


def linearized(history: Sequence[Operation], first: State = EMPTY) -> list[Operation] | None:
    """An order of the operations that explains their results, if there is one."""
    tried: set[tuple[int, State]] = set()

    def rest(done: int, state: State) -> list[Operation] | None:
        """An order of the operations whose bit in ``done`` is 0."""
        left = [number for number in range(len(history)) if not done >> number & 1]
        if not left or (done, state) in tried:
            return None if left else []
        tried.add((done, state))
        end = min(history[number].returned for number in left)
        for number in left:
            each = history[number]
            if each.called < end:
                result, after = getattr(state, each.method)(*each.arguments)
                if result == each.result:
                    found = rest(done | 1 << number, after)
                    if found is not None:
                        return [each, *found]
        return None

    return rest(0, first)


class Kind(NamedTuple):
    """A kind of live sets.

    Attributes:
        text: gives the text of an expression.
        answer: gives the result of ``State.match`` for a set, a snapshot or a compiled set.
    """

    name: str
    make: Callable[[], Any]
    text: Callable[[int], str]
    answer: Callable[[Any], list[list[SubscriptionId]]]


class Calls:
    """The methods of ``State``, as calls of a live set that threads share."""

    def __init__(self, kind: Kind, live: Any) -> None:
        self.kind, self.live = kind, live

    def _texts(self, new: Pairs) -> dict[SubscriptionId, str]:
        return {id: self.kind.text(expression) for id, expression in new}

    def update(self, new: Pairs) -> Any:
        self.live.update(self._texts(new))
        return ()

    def add_many(self, new: Pairs) -> Any:
        try:
            self.live.add_many(self._texts(new))
        except BadSubscriptions as several:
            return tuple(error.id for error in several.errors)
        return ()

    def add(self, id: SubscriptionId, expression: int) -> Any:
        try:
            self.live.add(id, self.kind.text(expression))
        except SubscriptionIdError as error:
            return (error.id,)
        return ()

    def remove(self, id: SubscriptionId) -> Any:
        try:
            self.live.remove(id)
        except SubscriptionIdError as error:
            return (error.id,)
        return ()

    def match(self) -> Any:
        return self.kind.answer(self.live)

    def compiled(self) -> Any:
        return self.kind.answer(self.live.compiled())

    def snapshot(self) -> Any:
        snapshot = self.live.snapshot()
        return snapshot.version, self.kind.answer(snapshot)

    def compact(self) -> Any:
        return self.live.compact()

    def changes(self) -> Any:
        return self.live.version

    def ids(self) -> Any:
        return self.live.ids

    def count(self) -> Any:
        return len(self.live)

    def contains(self, id: SubscriptionId) -> Any:
        return id in self.live


Call = tuple[str, tuple[Any, ...]]
"""A method of ``Calls``, and its arguments."""

CHANGES = ("add", "add_many", "update", "remove")
READS = ("match", "match", "snapshot", "snapshot", "compiled", "compact", "changes", "changes",
         "ids", "count", "contains")  # fmt: skip


def drawn_program(rng: random.Random, length: int) -> list[Call]:
    """Calls of a thread that changes the set, or reads it, or both."""
    methods = rng.choice([CHANGES, READS, CHANGES + READS])
    return [drawn_call(rng, rng.choice(methods)) for _ in range(length)]


def drawn_call(rng: random.Random, method: str) -> Call:
    id, expression = rng.choice(IDS), rng.choice(EXPRESSIONS)
    if method == "add":
        return method, (id, expression)
    if method in ("add_many", "update"):
        ids = rng.sample(IDS, rng.randint(1, 4))
        return method, (tuple((each, rng.choice(EXPRESSIONS)) for each in ids),)
    return method, (id,) if method in ("remove", "contains") else ()


def recorded(calls: Calls, programs: Iterable[Sequence[Call]]) -> list[Operation]:
    """Run each program in a thread, then read the whole set, and return the history."""
    history: list[Operation] = []
    clock = count()  # the next number is taken by one thread at a time

    def run(program: Sequence[Call]) -> None:
        for method, arguments in program:
            called = next(clock)
            try:
                result = getattr(calls, method)(*arguments)
            except Exception as error:  # no state has such a result
                result = repr(error)
            history.append(Operation(method, arguments, called, result, next(clock)))

    threads = [threading.Thread(target=run, args=[program]) for program in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run([("ids", ()), ("match", ()), ("changes", ())])
    return history


def last_state(history: Sequence[Operation]) -> State:
    """The state at the end of a recorded history."""
    ids, found, version = (operation.result for operation in history[-3:])
    expressions = {id: number for number, own in enumerate(found) for id in own}
    return State(version, tuple((id, expressions[id]) for id in ids))


@contextmanager
def preempted(seed: int, chance: float = 0.03) -> Iterator[None]:
    """Have threads that start meanwhile pause at random between two lines of ``tamis.core.index``.

    In a short pause another thread takes its turn. In a long one it finishes several calls.
    """
    rng = random.Random(seed)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "call" and not frame.f_code.co_filename.startswith(_CORE):
            return None
        if event == "line" and rng.random() < chance:
            time.sleep(10 ** rng.uniform(-5, -2.7))
        return trace

    before = threading.gettrace()
    threading.settrace(trace)
    try:
        yield
    finally:
        threading.settrace(before)  # type: ignore[arg-type]
