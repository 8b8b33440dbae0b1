"""Work spread over threads: a stream whose results stay in order, or a few calls at a time."""

from __future__ import annotations

import enum
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from tamis.core.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")


class Flush(enum.Enum):
    """``FLUSH`` among items: taking the next may last, so all results so far are wanted first."""

    FLUSH = enum.auto()


def usable_cores() -> int:
    """The number of cores that this process may use.

    >>> usable_cores() >= 1
    True
    """
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def check_threads(threads: object) -> int:
    """The number of threads, if it can be one.

    Raises:
        UsageError: it cannot.
    """
    if not isinstance(threads, int) or threads < 1:
        raise UsageError(f"the work needs at least one thread, a whole number, not {threads!r}")
    return threads


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item | Flush], threads: int
) -> Generator[Result, None, None]:
    """What a function makes of each item, in the order of the items.

    Items are taken in the thread of the caller; at most ``threads + 1`` of them are without a
    result that was asked for. Where taking one fails, the results of those before it come first.
    One thread is the caller's own; when the generator ends or is closed, no others are left.

    >>> list(in_order(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    if threads == 1:
        for item in items:
            if not isinstance(item, Flush):
                yield function(item)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - one thread needs none

    failure = None
    waiting: deque[Future[Result]] = deque()
    source = iter(items)
    pool = ThreadPoolExecutor(threads, "tamis")
    try:
        while True:
            try:
                item = next(source)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            if not isinstance(item, Flush):
                waiting.append(pool.submit(function, item))
            while waiting and (
                len(waiting) > threads or waiting[0].done() or isinstance(item, Flush)
            ):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
    if failure is not None:
        raise failure


class WorkerPool:
    """Runs some calls at a time, the first in the caller's thread.

    Its threads begin when they are first needed, and end with it.

    Args:
        threads: how many calls at most run at once.

    >>> WorkerPool(2).run([lambda: 1, lambda: 2])
    [1, 2]
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def run(
        self, calls: Sequence[Callable[[], Result]], failed: Callable[[], None] = lambda: None
    ) -> list[Result]:
        """What calls return, when all have ended; or raises what one of them did.

        Args:
            calls: one at least, and no more than there are threads.
            failed: called at once where one raises or cannot be begun, since others may wait for
                it.
        """

        def run_one(call: Callable[[], Result]) -> Result:
            try:
                return call()
            except BaseException:
                failed()
                raise

        if len(calls) == 1:
            return [run_one(calls[0])]
        from concurrent.futures import ThreadPoolExecutor, wait  # noqa: PLC0415 - one thread has none

        if self._process != os.getpid():  # forked: the threads stayed in the parent
            self._pool, self._process = None, os.getpid()
        tasks: list[Future[Result]] = []
        try:
            for call in calls[1:]:
                self._pool = self._pool or ThreadPoolExecutor(self._threads - 1, "tamis")
                tasks.append(self._pool.submit(run_one, call))
            first = run_one(calls[0])
        except BaseException:
            failed()
            wait(tasks)
            self._give_up()
            raise
        wait(tasks)
        return [first, *(task.result() for task in tasks)]

    def _give_up(self) -> None:
        """End the threads: what could not be begun may be waiting for one of them."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
