"""``LiveSetMachine``: whatever becomes of a live set, it is like the same set compiled anew.

Each kind of sets has a subclass, which says what its subscriptions are and how they are matched.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple
from unittest import mock

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tamis.core.errors import BadSubscriptions, SubscriptionError, SubscriptionIdError, TamisError
from tamis.core.errors import SubscriptionId as Id
from tamis.core.index import live as live_module
from tamis.core.index import store as store_module
from tamis.core.index.durable import DurableSet
from tamis.core.index.journal import MAGIC


class Given(NamedTuple):
    """A subscription, and the form that it was given in: see ``LiveSetMachine.given``."""

    expression: str
    form: Any


Model = dict[Id, Given]


def of_the_kind(name: str) -> st.SearchStrategy[Any]:
    """The strategy that a subclass has by a name."""
    return st.runner().flatmap(attrgetter(name))


IDS = st.runner().flatmap(
    lambda machine: st.sampled_from(["x", "y", 1, "1", *range(2, 10), -(10**30), *machine.model])
)
EXPRESSIONS, FORMS = of_the_kind("expressions"), of_the_kind("forms")
SETS = st.lists(st.tuples(IDS, EXPRESSIONS), max_size=5).map(dict)
BAD = st.one_of(st.just([]), st.just([]), st.lists(of_the_kind("bad"), max_size=2))
LIMITS = st.fixed_dictionaries(
    {
        "NEWEST_MAX": st.sampled_from([1, 3]),
        "_AT_ONCE_MAX": st.sampled_from([0, 5, 256]),
        "_BULK_MIN": st.sampled_from([1, 2, 16]),
    }
)


class LiveSetMachine(RuleBasedStateMachine):
    """A set in a folder, and a dictionary that it is to be like."""

    kind: ClassVar[type[DurableSet[Any, Any, Any]]]
    expressions: Any
    bad: ClassVar[st.SearchStrategy[str]]
    forms: ClassVar[st.SearchStrategy[Any]] = st.sampled_from(["mapping", "pairs"])
    settings: Any = st.just({})

    def given(self, expressions: Mapping[Id, str], form: Any) -> Any:
        """Subscriptions, as sets take them; only in the two first forms there are bad ones."""
        return list(expressions.items()) if form == "pairs" else dict(expressions)

    def anew(self, model: Model) -> Any:
        """The set of a model, compiled at once."""
        raise NotImplementedError

    def answers(self, matcher: Any, model: Model) -> Any:
        """All that a matcher answers, of the set that the model is of."""
        raise NotImplementedError

    def compare(self, found: Any, expected: Any, model: Model) -> None:
        assert found == expected

    # -- the set and the model ---------------------------------------------------------------------

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.folders = Path(self.stack.enter_context(TemporaryDirectory()))
        self.folder = self.folders / "0"
        self.model: Model = {}
        self.snapshots: list[tuple[Any, Model]] = []
        self.is_made = False

    @initialize(
        given=of_the_kind("settings"),
        limits=LIMITS,
        journal=st.sampled_from([50, 1_000]),
        is_matched=st.booleans(),
    )
    def make(
        self, given: dict[str, Any], limits: dict[str, int], journal: int, is_matched: bool
    ) -> None:
        """Few subscriptions make a segment; threads merge few, and write a short journal anew."""
        for name, value in limits.items():
            self.stack.enter_context(mock.patch.object(live_module, name, value))
        self.stack.enter_context(mock.patch.object(store_module, "_JOURNAL_MAX", journal))
        self.stack.enter_context(mock.patch.object(os, "fsync"))
        self.given_settings, self.is_matched = given, is_matched
        self.live = self.kind.open(self.folder, **given)
        self.is_made = True

    def teardown(self) -> None:
        with self.stack:
            if self.is_made:
                self.stack.callback(self.live.close)
                self.match()

    @invariant()
    def is_like_the_model(self) -> None:
        live, model = self.live, self.model
        assert list(live) == list(live.ids) == [each.id for each in live.entries()] == list(model)
        assert all(id in live and live.get(id) == model[id].expression for id in model)
        assert not any(id in live or live.get(id) is not None for id in ("bad", "bad 0", True))
        assert live.stats().subscriptions == len(live) == len(model)
        if self.is_matched:
            self.match()

    # -- changes -----------------------------------------------------------------------------------

    @rule(id=IDS, expression=EXPRESSIONS, durable=st.booleans())
    def add(self, id: Id, expression: str, durable: bool) -> None:
        if id in self.model:
            with pytest.raises(SubscriptionIdError, match="the id is taken"):
                self.live.add(id, expression, durable=durable)
        else:
            self.live.add(id, expression, durable=durable)
            self.model[id] = Given(expression, "mapping")

    @rule(expressions=SETS, bad=BAD, form=FORMS)
    def add_many(self, expressions: dict[Id, str], bad: list[str], form: Any) -> None:
        taken = [id for id in expressions if id in self.model]
        self.change(self.live.add_many, expressions, bad, form, taken)

    @rule(expressions=SETS, bad=BAD, form=FORMS)
    def update(self, expressions: dict[Id, str], bad: list[str], form: Any) -> None:
        self.change(self.live.update, expressions, bad, form, [])

    def change(
        self,
        method: Callable[[Any], None],
        expressions: dict[Id, str],
        bad: list[str],
        form: Any,
        taken: list[Id],
    ) -> None:
        """All are changed; or, where some are bad or their ids are taken, nothing is."""
        wrong: dict[Id, str] = {f"bad {number}": text for number, text in enumerate(bad)}
        for id, text in wrong.items():
            with pytest.raises(SubscriptionError) as refused:
                self.live.add(id, text)
            assert refused.value.id == id
        given = self.given(expressions | wrong, "pairs" if wrong and form != "mapping" else form)
        if wrong or taken:
            with pytest.raises(BadSubscriptions) as caught:
                method(given)
            assert [error.id for error in caught.value.errors] == [*wrong, *taken]
        else:
            method(given)
            left = {id: each for id, each in self.model.items() if id not in expressions}
            self.model = left | {id: Given(text, form) for id, text in expressions.items()}

    @rule(id=IDS, durable=st.booleans())
    def remove(self, id: Id, durable: bool) -> None:
        if id in self.model:
            self.live.remove(id, durable=durable)
            self.model = {other: each for other, each in self.model.items() if other != id}
        else:
            with pytest.raises(SubscriptionIdError, match="no such subscription"):
                self.live.remove(id)

    # -- matches and merges ------------------------------------------------------------------------

    @rule()
    def match(self) -> None:
        self.check(self.live, self.model)

    @rule()
    def match_snapshots(self) -> None:
        for snapshot, model in self.snapshots[-3:]:
            self.check(snapshot, model)
        self.snapshots.append((self.live.snapshot(), dict(self.model)))

    @rule(is_beside=st.booleans())
    def merge(self, is_beside: bool) -> None:
        """By a call, or by the thread that a match begins."""
        if is_beside:
            self.live.snapshot()
            self.wait("_merger")
        else:
            assert list(self.live.compiled().ids) == list(self.model)

    def check(self, matcher: Any, model: Model) -> None:
        """The same answers as the same set compiled anew."""
        snapshot = matcher.snapshot()
        assert list(snapshot.ids) == list(model)
        assert len(snapshot.ids) == len(snapshot) == len(model)
        self.compare(self.answers(matcher, model), self.answers(self.anew(model), model), model)

    def wait(self, name: str) -> None:
        """Wait for a thread of the set, if there is one."""
        with self.live._lock:  # it is started while this is held
            thread = getattr(self.live, name)
        if thread is not None:
            thread.join()

    # -- the folder --------------------------------------------------------------------------------

    @rule()
    def save(self) -> None:
        self.live.compact()
        assert self.live.stats().segments == 1
        assert len(list(self.folder.iterdir())) <= 4

    @rule()
    def read(self) -> None:
        """Others see the same set in the folder."""
        with self.kind.open(self.folder, read_only=True) as other:
            self.check(other, self.model)

    @rule()
    def reopen(self) -> None:
        self.live.close()
        self.live = self.kind.open(self.folder)

    @rule(torn=st.integers(0, 40))
    def crash(self, torn: int) -> None:
        """Go on with the folder of a process that was killed while it wrote a record."""
        self.wait("_checkpointer")  # tests.core.index.crash has crashes meanwhile
        assert self.live._store is not None
        journal = self.live._store.journal.path.name
        copy = self.folders / str(len(list(self.folders.iterdir())))
        shutil.copytree(self.folder, copy)
        with (copy / journal).open("ab") as file:
            file.write((MAGIC + b"\1" * 36)[:torn])
        self.live.close()
        self.folder, self.live = copy, self.kind.open(copy)


def counted(match: Any) -> Any:
    """What a match has, in two ways that have to agree."""
    found = len(match), list(match)
    assert found[0] == len(found[1])
    return found


def told(ask: Callable[..., Any], *arguments: Any) -> Any:
    """What is answered, or the text of the error."""
    try:
        return ask(*arguments)
    except TamisError as error:
        return str(error)
