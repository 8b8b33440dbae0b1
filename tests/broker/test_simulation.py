"""The broker's core under drawn schedules; and planted bugs, which these find."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tamis.broker.core.broker import Broker
from tamis.broker.core.model import Transaction
from tamis.broker.core.queue import Changes, DeliveryQueue, Failure, QueueOptions
from tamis.broker.core.topic import Topic
from tests.broker.simulation import ModelCatalog, ModelIndex, Schedule, Stored, Violation

STEPS, SCHEDULES = 250, 400


@pytest.mark.parametrize("part", range(4))
def test_schedules(part: int) -> None:
    for seed in range(part, SCHEDULES, 4):
        Schedule(seed).run(STEPS)


def test_a_rewind_after_a_dead_message_was_acknowledged() -> None:
    """Both come before the next transaction. One in 100,000 schedules has that."""
    Schedule(62_074).run(STEPS)


def test_schedules_do_something() -> None:
    """Deliveries, failures, dead messages and gaps are there to be wrong."""
    found = [Schedule(seed) for seed in range(60)]
    for each in found:
        each.run(STEPS)
    stored = [one for each in found for one in each.store.subscriptions.values()]
    failures = [failure for one in stored for failure in one.failures.values()]
    assert sum(len(each.promised) for each in found) > 1_000
    assert sum(map(len, (numbers for each in found for numbers in each.delivered.values()))) > 1_000
    assert any(one.gaps for one in stored)
    assert any(failure.due is None for failure in failures)
    assert sum(each.epoch for each in found) > 120


# -- planted bugs ----------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch
BUGS: dict[str, Callable[[Patch], None]] = {}


def bug(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
    BUGS[plant.__name__] = plant
    return plant


@bug
def answered_before_it_is_stored(patch: Patch) -> None:
    commit = Schedule.commit

    def early(self: Schedule) -> None:
        if self.draw.random() < 0.9:
            commit(self)
        elif (transaction := self.broker.begin(self.now)) is not None:
            for reply in transaction.replies:
                self.answer(reply)
            self.start()

    patch.setattr(Schedule, "commit", early)


@bug
def delivered_before_it_is_stored(patch: Patch) -> None:
    begin, committed = Broker.begin, Broker.committed

    def early(self: Broker, now: float) -> Transaction | None:
        found = begin(self, now)
        if found is not None:
            committed(self)
            self._storing = found
        return found

    def late(self: Broker) -> Any:
        found, self._storing = self._storing, None
        assert found is not None
        return found.replies

    patch.setattr(Broker, "begin", early)
    patch.setattr(Broker, "committed", late)


@bug
def the_cursor_passes_what_is_on_lease(patch: Patch) -> None:
    patch.setattr(
        DeliveryQueue, "first_open", lambda self: self._waiting[0] if self._waiting else None
    )


@bug
def failures_are_not_stored(patch: Patch) -> None:
    _with_changes(patch, lambda found: found._replace(failures={}))


@bug
def gaps_are_not_stored(patch: Patch) -> None:
    _with_changes(patch, lambda found: found._replace(gaps=[]))


def _with_changes(patch: Patch, other: Callable[[Changes], Changes]) -> None:
    changes = DeliveryQueue.changes

    def changed(self: DeliveryQueue) -> Changes | None:
        found = changes(self)
        return None if found is None else other(found)

    patch.setattr(DeliveryQueue, "changes", changed)


@bug
def no_marker_after_a_crash(patch: Patch) -> None:
    init = DeliveryQueue.__init__

    def made(self: DeliveryQueue, *args: Any, **named: Any) -> None:
        init(self, *args, **named | {"known": 0})

    patch.setattr(DeliveryQueue, "__init__", made)


@bug
def no_marker_after_a_lease(patch: Patch) -> None:
    take = DeliveryQueue.take

    def taken(self: DeliveryQueue, most: int, now: float, seconds: float) -> Any:
        self._tried.clear()
        return take(self, most, now, seconds)

    patch.setattr(DeliveryQueue, "take", taken)


@bug
def others_overtake_one_that_failed(patch: Patch) -> None:
    def next_any(self: DeliveryQueue, now: float) -> int | None:
        if self._again and self._due(self._again[0][1]) <= now:
            return heapq.heappop(self._again)[1]
        return heapq.heappop(self._waiting) if self._waiting else None

    patch.setattr(DeliveryQueue, "_next", next_any)


@bug
def a_second_lease_of_an_ordered_queue(patch: Patch) -> None:
    take = DeliveryQueue.take

    def taken(self: DeliveryQueue, most: int, now: float, seconds: float) -> Any:
        leases, self._leases = self._leases, {}
        found = take(self, most, now, seconds)
        self._leases = leases | self._leases
        return found

    patch.setattr(DeliveryQueue, "take", taken)


@bug
def tokens_begin_again(patch: Patch) -> None:
    init = Broker.__init__
    patch.setattr(
        Broker, "__init__", lambda self, *args, **named: init(self, *args, **named | {"epoch": 0})
    )


@bug
def keys_are_forgotten(patch: Patch) -> None:
    patch.setattr(Topic, "hold_key", lambda *_: None)
    patch.setattr(Topic, "release_key", lambda *_: None)


@bug
def keys_are_forgotten_in_a_crash(patch: Patch) -> None:
    patch.setattr(ModelCatalog, "key", lambda *_: None)


@bug
def what_is_given_back_is_lost(patch: Patch) -> None:
    patch.setattr(DeliveryQueue, "_give_back", lambda _, held: held.deliveries.clear())


@bug
def a_subscription_misses_its_first_message(patch: Patch) -> None:
    init = Stored.__init__
    patch.setattr(Stored, "__init__", lambda self, since: init(self, since + 1))


@bug
def an_answer_before_the_index_has_it(patch: Patch) -> None:
    change, match = ModelIndex.change, ModelIndex.match

    def later(self: ModelIndex, *changes: Any) -> None:
        self.__dict__.setdefault("later", []).append(changes)

    def matched(self: ModelIndex, messages: Any) -> Any:
        found = match(self, messages)
        for changes in self.__dict__.pop("later", ()):
            change(self, *changes)
        return found

    patch.setattr(ModelIndex, "change", later)
    patch.setattr(ModelIndex, "match", matched)


@bug
def the_version_is_that_of_changes_to_come(patch: Patch) -> None:
    match = ModelIndex.match

    def matched(self: ModelIndex, messages: Any) -> Any:
        found = match(self, messages)
        self.topic.indexed = self.topic.version
        return found

    init = Topic.__init__

    def made(self: Topic, *args: Any) -> None:
        init(self, *args)
        self.index.topic = self  # type: ignore[attr-defined]

    patch.setattr(Topic, "__init__", made)
    patch.setattr(ModelIndex, "match", matched)


@bug
def messages_are_settled_that_are_on_lease(patch: Patch) -> None:
    patch.setattr(Topic, "settled", lambda self: self.received)


@bug
def messages_that_are_dropped_at_the_start_have_no_gap(patch: Patch) -> None:
    init = Topic.__init__

    def made(self: Topic, *args: Any) -> None:
        init(self, *args)
        self.dropped.clear()

    patch.setattr(Topic, "__init__", made)


@bug
def a_dead_message_beyond_the_cursor_comes_again(patch: Patch) -> None:
    found = Stored.open_failures
    patch.setattr(
        Stored, "open_failures", lambda self: [each for each in found(self) if each.due is not None]
    )


@bug
def a_deleted_message_on_lease_is_no_gap(patch: Patch) -> None:
    forget = DeliveryQueue.forget

    def forgotten(self: DeliveryQueue, number: int) -> None:
        leases, self._leases = self._leases, {}
        forget(self, number)
        self._leases = leases

    patch.setattr(DeliveryQueue, "forget", forgotten)


@bug
def a_rewind_is_forgotten(patch: Patch) -> None:
    rewind = DeliveryQueue.rewind

    def rewound(self: DeliveryQueue, to: int, numbers: Any) -> None:
        cursor = self.cursor
        rewind(self, to, numbers)
        self.cursor = max(cursor, self.cursor)

    patch.setattr(DeliveryQueue, "rewind", rewound)


@bug
def a_rewind_has_no_marker(patch: Patch) -> None:
    rewind = DeliveryQueue.rewind

    def rewound(self: DeliveryQueue, to: int, numbers: Any) -> None:
        rewind(self, to, numbers)
        self._tried.clear()

    patch.setattr(DeliveryQueue, "rewind", rewound)


@bug
def a_replaced_subscription_loses_its_messages(patch: Patch) -> None:
    replace = Topic.replace

    def replaced(self: Topic, number: int, *others: Any) -> None:
        replace(self, number, *others)
        self.queues.pop(number, None)

    patch.setattr(Topic, "replace", replaced)


@bug
def nothing_is_ever_dead(patch: Patch) -> None:
    fail = DeliveryQueue._fail

    def failed(self: DeliveryQueue, delivery: Any, *others: Any) -> None:
        self.options = self.options._replace(attempts_max=10)
        fail(self, delivery, *others)

    patch.setattr(DeliveryQueue, "_fail", failed)


@bug
def a_dead_message_is_dropped_without_a_word(patch: Patch) -> None:
    fail = DeliveryQueue._fail

    def failed(self: DeliveryQueue, delivery: Any, *others: Any) -> None:
        fail(self, delivery, *others)
        changed = self._changed[delivery.number]
        if isinstance(changed, Failure) and changed.due is None:
            self._changed[delivery.number] = None

    patch.setattr(DeliveryQueue, "_fail", failed)


def is_found(seed: int) -> bool:
    try:
        Schedule(seed).run(STEPS)
    except Violation:
        return True
    return False


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_found(name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        BUGS[name](patch)
        assert any(map(is_found, range(2_000)))


def test_failed_messages_are_part_of_the_backlog() -> None:
    options = QueueOptions(is_ordered=False, backlog_max=20, window=5)
    queue, dropped = DeliveryQueue(options, lambda: 1.0, count(1).__next__), 0
    for number in range(1, 200):
        queue.add(number)
        if lease := queue.take(5, 0.0, 9.0):
            for each in lease.deliveries:
                queue.fail(lease.token, each.number, "it is down", 0.0)
        assert queue.backlog <= 20
        changes = queue.changes()
        assert changes is not None
        dropped += sum(gap.messages for gap in changes.gaps)
    assert dropped == 199 - queue.backlog
