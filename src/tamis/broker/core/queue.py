"""``DeliveryQueue``: the messages that a subscriber has still to get, and what became of them.

Nothing here reads a clock, draws a number or writes anything: callers give the time and the jitter,
and store what ``changes`` hands out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from tamis.core.errors import TamisError


class BrokerError(TamisError):
    """A command to a broker cannot be followed."""

    code = "broker"


class StaleLease(BrokerError):  # noqa: N818 - says what is the matter
    """The lease ended: what it had is given to another one, or done."""

    code = "broker-lease"


class QueueOptions(NamedTuple):
    """How messages are delivered.

    Attributes:
        is_ordered: the attempts of a message begin when all before it are acknowledged or dead. A
            lease then holds some messages, in order; to acknowledge one acknowledges those before.
        window: without order: how many messages may be on lease at a time.
        attempts_max: a message that failed so often is dead.
        delay_s, delay_max_s: the second attempt waits up to ``delay_s``, each further one up to
            twice as long, but no longer than the other. How long is drawn ("full jitter").
        backlog_max: with more messages to get, failed ones too, the oldest are dropped: see
            ``Gap``.
    """

    is_ordered: bool = True
    window: int = 1_000
    attempts_max: int = 16
    delay_s: float = 1.0
    delay_max_s: float = 3_600.0
    backlog_max: int = 100_000

    def delay(self, attempts: int, share: float) -> float:
        """How long to wait after so many attempts, with a share from 0 to 1 of what is possible.

        >>> [QueueOptions().delay(attempts, 0.5) for attempts in (1, 2, 3, 60)]
        [0.5, 1.0, 2.0, 1800.0]
        """
        return share * min(self.delay_max_s, self.delay_s * 2.0 ** min(attempts - 1, 64))


class Delivery(NamedTuple):
    """A message on its way to a subscriber.

    Attributes:
        number: of the message in its topic.
        attempt: from 1.
        is_replay: whether the subscriber may have got it before.
    """

    number: int
    attempt: int
    is_replay: bool


class Lease(NamedTuple):
    """Messages that one consumer has for some time.

    Attributes:
        token: later leases of the queue have larger ones.
        until: the time at which it ends.
    """

    token: int
    until: float
    deliveries: tuple[Delivery, ...]


class Failure(NamedTuple):
    """A message whose last attempt failed.

    Attributes:
        attempts: how many there were.
        due: when the next one may begin; None: the message is dead.
    """

    number: int
    attempts: int
    due: float | None
    reason: str


class Gap(NamedTuple):
    """Messages that were dropped before they were delivered.

    Attributes:
        first, last: the numbers of the first and the last of them.
        messages: how many there are.
        reason: ``"backlog"``: the subscriber had too many to get; ``"retention"``: they were too
            old, or the topic too large.
    """

    first: int
    last: int
    messages: int
    reason: str = "backlog"


class Changes(NamedTuple):
    """What has to be durable.

    Attributes:
        cursor: all messages up to this number are acknowledged, dropped, or have a failure.
        failures: by number; None: it has none any more.
    """

    cursor: int
    failures: dict[int, Failure | None]
    gaps: list[Gap]


class _OpenLease:
    """What is left of a lease."""

    def __init__(self, until: float, deliveries: Iterable[Delivery]) -> None:
        self.until, self.deliveries = until, {each.number: each for each in deliveries}


class DeliveryQueue:
    """The messages of one subscription.

    Args:
        draw: a number from 0 to 1, for the delay of an attempt.
        next_token: the token of a new lease; each is larger than all before, also than those of
            earlier processes.
        cursor, failures: as ``changes`` said; dead messages up to the cursor may be left out.
        known: the last number that the topic had when the process started: messages up to it may
            have been delivered before.

    >>> from itertools import count
    >>> queue = DeliveryQueue(QueueOptions(), lambda: 1.0, count(1).__next__)
    >>> queue.add(3), queue.add(7)
    (False, False)
    >>> lease = queue.take(10, now=0.0, seconds=30.0)
    >>> [each.number for each in lease.deliveries], queue.take(10, 0.0, 30.0)
    ([3, 7], None)
    >>> queue.acknowledge(lease.token, [3])
    >>> queue.fail(lease.token, 7, "status 503", now=1.0)
    >>> cursor, failures, _ = queue.changes()
    >>> cursor, failures[7]
    (7, Failure(number=7, attempts=1, due=2.0, reason='status 503'))
    >>> queue.take(10, 1.5, 30.0), queue.take(10, 2.0, 30.0).deliveries
    (None, (Delivery(number=7, attempt=2, is_replay=True),))
    """

    def __init__(
        self,
        options: QueueOptions,
        draw: Callable[[], float],
        next_token: Callable[[], int],
        *,
        cursor: int = 0,
        failures: Iterable[Failure] = (),
        known: int = 0,
    ) -> None:
        self.options, self._draw, self._next_token, self._known = options, draw, next_token, known
        self.last = self.cursor = cursor
        self._is_rewound = False
        self._forgotten = 0
        self._waiting: list[int] = []  # a heap of those without a failure
        self._failures: dict[int, Failure] = {}
        self._again: list[tuple[float, int]] = []  # a heap of the others: see _try_again
        self._leases: dict[int, _OpenLease] = {}
        self._tried: set[int] = set()  # which were on lease, of all that are to be delivered
        self._changed: dict[int, Failure | None] = {}
        self._gaps: list[Gap] = []
        self._dead: set[int] = set()  # those beyond the cursor, as they were stored
        for failure in failures:
            if failure.due is None:
                self._dead.add(failure.number)
            else:
                self._try_again(failure)

    def configure(self, options: QueueOptions) -> None:
        """Deliver in another way from now on."""
        self.options, self._again = options, []
        on_lease = {number for held in self._leases.values() for number in held.deliveries}
        for number in self._failures.keys() - on_lease:
            self._try_again(self._failures[number])

    @property
    def is_leased(self) -> bool:
        """Whether a consumer has messages."""
        return bool(self._leases)

    @property
    def backlog(self) -> int:
        """How many messages are to be delivered, those on lease too."""
        fresh = sum(n not in self._failures for h in self._leases.values() for n in h.deliveries)
        return len(self._waiting) + len(self._failures) + fresh

    @property
    def is_empty(self) -> bool:
        """Whether no message is to be delivered, and everything is stored."""
        is_stored = not (self._changed or self._gaps or self._is_rewound)
        is_over = not (self._waiting or self._failures or self._leases)
        return is_stored and is_over and self.cursor >= self.last

    @property
    def _on_lease(self) -> int:
        return sum(len(held.deliveries) for held in self._leases.values())

    def add(self, number: int) -> bool:
        """Add a message, numbers ascend; return whether others were dropped for it.

        A message that has a failure is not added: it has its next attempt, or is dead.
        """
        self.last = max(self.last, number)  # one that failed may be later
        if number in self._failures or number in self._dead:
            return False
        heapq.heappush(self._waiting, number)
        is_full = len(self._waiting) + len(self._failures) > self.options.backlog_max
        if is_full:
            self._drop()
        return is_full

    def _drop(self) -> None:
        on_lease = {number for held in self._leases.values() for number in held.deliveries}
        every = sorted({*self._waiting, *self._failures} - on_lease)
        # Many at once, so that there are few gaps.
        dropped = every[: max(1, self.options.backlog_max // 10)]
        self._take_out(dropped)
        self._gaps.append(Gap(dropped[0], dropped[-1], len(dropped)))

    def _due(self, number: int) -> float:
        due = self._failures[number].due
        assert due is not None, "a dead message is not delivered"
        return due

    # -- leases ------------------------------------------------------------------------------------

    def take(self, most: int, now: float, seconds: float) -> Lease | None:
        """Up to so many messages, for so long; None if there are none at present."""
        if self.options.is_ordered:
            room = 0 if self._leases else most
        else:
            room = min(most, self.options.window - self._on_lease)
        deliveries: list[Delivery] = []
        while len(deliveries) < room and (number := self._next(now)) is not None:
            failure = self._failures.get(number)
            is_replay = number <= self._known or number in self._tried
            deliveries.append(Delivery(number, failure.attempts + 1 if failure else 1, is_replay))
        if not deliveries:
            return None
        self._tried.update(each.number for each in deliveries)
        token = self._next_token()
        self._leases[token] = _OpenLease(now + seconds, deliveries)
        return Lease(token, now + seconds, tuple(deliveries))

    def due(self) -> float | None:
        """The earliest time at which ``take`` returns a lease; None: not without another change."""
        if self._leases and (self.options.is_ordered or self._on_lease >= self.options.window):
            return None
        again = self._again[0][1] if self._again else None
        if self._waiting and (again is None or not self.options.is_ordered):
            return 0.0
        if again is None:
            return None
        return 0.0 if self._waiting and self._waiting[0] < again else self._due(again)

    def release(self, token: int) -> None:
        """End a lease: what is left of it waits again, and no attempt failed."""
        self._give_back(self._held(token))
        del self._leases[token]

    def extend(self, token: int, until: float) -> None:
        """Let a lease end later."""
        held = self._held(token)
        held.until = max(held.until, until)

    def _next(self, now: float) -> int | None:
        """Take the next message out of those that may be delivered."""
        if self._again:
            number = self._again[0][1]
            is_first = not self._waiting or number < self._waiting[0]
            is_due = self._due(number) <= now
            if is_due and (is_first or not self.options.is_ordered):
                return heapq.heappop(self._again)[1]
            if is_first and self.options.is_ordered:
                return None
        return heapq.heappop(self._waiting) if self._waiting else None

    def acknowledge(self, token: int, numbers: Sequence[int]) -> None:
        """Messages were delivered, and if they are ordered, all before them in the lease.

        A message that was acknowledged before is passed over.
        """
        held = self._held(token)
        done = [number for number in numbers if number in held.deliveries]
        if self.options.is_ordered and done:
            last = max(done)
            done = [number for number in held.deliveries if number <= last]
        for number in done:
            if held.deliveries.pop(number, None):  # else it is named twice
                self._settle(number)
        if not held.deliveries:
            del self._leases[token]

    def _settle(self, number: int) -> None:
        """A message is acknowledged or dropped."""
        self._tried.discard(number)
        if self._failures.pop(number, None):
            self._changed[number] = None

    def fail(self, token: int, number: int, reason: str, now: float, wait_s: float = 0.0) -> None:
        """An attempt failed. If messages are ordered, this ends the lease.

        Args:
            wait_s: the next attempt waits at least so long.
        """
        held = self._held(token)
        if number not in held.deliveries:
            return
        self._fail(held.deliveries.pop(number), reason, now, wait_s)
        if self.options.is_ordered:
            self._give_back(held)
        if not held.deliveries:
            del self._leases[token]

    def expire(self, now: float) -> bool:
        """End the leases whose time is over, whether there are any: these attempts failed."""
        over = [(token, held) for token, held in self._leases.items() if held.until <= now]
        for token, held in over:
            most = 1 if self.options.is_ordered else len(held.deliveries)
            for number in [*held.deliveries][:most]:
                self._fail(held.deliveries.pop(number), "the lease ended", now)
            self._give_back(held)
            del self._leases[token]
        return bool(over)

    def _held(self, token: int) -> _OpenLease:
        try:
            return self._leases[token]
        except KeyError:
            raise StaleLease("the lease ended: fetch the messages again") from None

    def _fail(self, delivery: Delivery, reason: str, now: float, wait_s: float = 0.0) -> None:
        number, attempts = delivery.number, delivery.attempt
        if number <= self._forgotten:
            self._settle(number)  # it is in a gap
            return
        is_dead = attempts >= self.options.attempts_max
        delay = max(wait_s, self.options.delay(attempts, self._draw()))
        due = None if is_dead else now + delay
        failure = self._changed[number] = Failure(number, attempts, due, reason)
        if is_dead:
            self._failures.pop(number, None)
            self._tried.discard(number)
        else:
            self._try_again(failure)

    def _try_again(self, failure: Failure) -> None:
        self._failures[failure.number] = failure
        self.last = max(self.last, failure.number)
        due = self._due(failure.number)
        key = float(failure.number) if self.options.is_ordered else due
        heapq.heappush(self._again, (key, failure.number))

    def _give_back(self, held: _OpenLease) -> None:
        """What is left of a lease waits again; that it was on it is no attempt."""
        for number in held.deliveries:
            if number in self._failures:
                self._try_again(self._failures[number])
            elif number > self._forgotten:
                heapq.heappush(self._waiting, number)
        held.deliveries.clear()

    def replay(self, failure: Failure, now: float) -> None:
        """Deliver a dead message again, from its first attempt on; once, if asked twice."""
        on_lease = {number for held in self._leases.values() for number in held.deliveries}
        if failure.number in self._failures.keys() | on_lease | set(self._waiting):
            return
        self._dead.discard(failure.number)
        self._changed[failure.number] = again = failure._replace(attempts=0, due=now)
        self._tried.add(failure.number)
        self._try_again(again)

    def settled_beyond(self, after: int) -> list[int]:
        """Messages that had failed and are settled; what is stored of them may be "dead" still."""
        return [each for each, failure in self._changed.items() if failure is None and each > after]

    def rewind(self, to: int, numbers: Sequence[int]) -> None:
        """End all leases: their consumer has gone, and its next one has what is up to ``to``.

        Args:
            to: messages up to it are acknowledged; all others are delivered once more.
            numbers: those beyond it that are not dead, ascending.
        """
        for held in self._leases.values():
            self._give_back(held)
        self._leases.clear()
        self._take_out(self._up_to(to))
        dead = {number for number, each in self._changed.items() if each and each.due is None}
        known = self._failures.keys() | self._dead | dead | set(self._waiting)
        fresh = [number for number in numbers if number > self._forgotten and number not in known]
        if fresh:
            self._tried.update(fresh)
            self._waiting = sorted([*fresh, *self._waiting])
            self.cursor, self._is_rewound = min(self.cursor, fresh[0] - 1), True

    def forget(self, number: int) -> None:
        """The bodies of all messages up to a number are deleted: they cannot be delivered."""
        before, self._forgotten = self._forgotten, number
        on_lease = {each for held in self._leases.values() for each in held.deliveries}
        # A message on lease may still be acknowledged; if the process ends before, it is lost.
        leased = {each for each in on_lease if before < each <= number}
        gone = self._up_to(number)
        self._take_out(gone)
        if every := sorted(gone - on_lease | leased):
            self._gaps.append(Gap(every[0], every[-1], len(every), "retention"))

    def _up_to(self, last: int) -> set[int]:
        """The messages up to a number that wait, or failed."""
        return {each for each in (*self._waiting, *self._failures) if each <= last}

    def _take_out(self, numbers: Collection[int]) -> None:
        """Do not deliver messages that wait, or failed."""
        gone = {*numbers}
        for each in gone:
            self._settle(each)
        self._waiting = sorted(each for each in self._waiting if each not in gone)
        self._again = [entry for entry in self._again if entry[1] in self._failures]
        heapq.heapify(self._again)

    # -- what is stored ----------------------------------------------------------------------------

    def changes(self) -> Changes | None:
        """What changed since this was called last; None if nothing did."""
        first = self.first_open()
        cursor = max(self.cursor, self.last if first is None else first - 1)
        is_same = cursor == self.cursor and not self._is_rewound
        if is_same and not self._changed and not self._gaps:
            return None
        found = Changes(cursor, self._changed, self._gaps)
        self.cursor, self._changed, self._gaps, self._is_rewound = cursor, {}, [], False
        self._dead = {number for number in self._dead if number > cursor}
        return found

    def first_left(self, token: int = 0) -> int | None:
        """The first message that is to be delivered, apart from those of a lease."""
        own = self._leases[token].deliveries if token else {}
        failed = self._failures.keys() - own.keys()
        others = (held.deliveries for at, held in self._leases.items() if at != token)
        return min(failed.union(self._waiting[:1], *others), default=None)

    def first_open(self) -> int | None:
        """The first message that is to be delivered and has no failure."""
        on_lease = (number for held in self._leases.values() for number in held.deliveries)
        first = min((number for number in on_lease if number not in self._failures), default=None)
        if not self._waiting:
            return first
        return self._waiting[0] if first is None else min(first, self._waiting[0])
