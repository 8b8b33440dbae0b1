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
    """``FLUSH`` among items: the next item may take long, so all results so far come first."""

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


class WorkerPool:
    """Runs some calls at a time. Its threads begin when they are first needed, and end with it.

    Args:
        threads: how many calls at most run at once.

    >>> WorkerPool(2).run([lambda: 1, lambda: 2]), list(WorkerPool(2).map_in_order(abs, [-1, 2]))
    ([1, 2], [1, 2])
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def run(
        self, calls: Sequence[Callable[[], Result]], failed: Callable[[], None] = lambda: None
    ) -> list[Result]:
        """Run calls; return their results when all have ended, or raise the error of one.

        The first call runs in the caller's thread.

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
        from concurrent.futures import wait  # noqa: PLC0415 - one thread needs none

        tasks: list[Future[Result]] = []
        try:
            for call in calls[1:]:
                tasks.append(self._executor(self._threads - 1).submit(run_one, call))
            first = run_one(calls[0])
        except BaseException:
            failed()
            wait(tasks)
            self.close()  # what could not be begun may be waiting for one of the threads
            raise
        wait(tasks)
        return [first, *(task.result() for task in tasks)]

    def map_in_order(
        self, function: Callable[[Item], Result], items: Iterable[Item | Flush]
    ) -> Generator[Result, None, None]:
        """What a function makes of each item, in the order of the items.

        Items are taken in the thread of the caller; at most ``threads + 1`` of them are without a
        result that was asked for. Where taking one fails, the results of those before it come
        first. One thread is the caller's own. When the generator ends or is closed, the pool is
        closed too.
        """
        if self._threads == 1:
            for item in items:
                if not isinstance(item, Flush):
                    yield function(item)
            return
        failure = None
        waiting: deque[Future[Result]] = deque()
        source = iter(items)
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
                    waiting.append(self._executor(self._threads).submit(function, item))
                while waiting and (
                    len(waiting) > self._threads or waiting[0].done() or isinstance(item, Flush)
                ):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            self.close()
        if failure is not None:
            raise failure

    def _executor(self, workers: int) -> ThreadPoolExecutor:
        if self._process != os.getpid():  # forked: the threads stayed in the parent
            self._pool, self._process = None, os.getpid()
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

            self._pool = ThreadPoolExecutor(workers, "tamis")
        return self._pool

    def close(self) -> None:
        """End the threads, after what they have begun."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
