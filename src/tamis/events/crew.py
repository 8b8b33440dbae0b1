"""Threads that are kept, so that even a single event may be shared among them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Result = TypeVar("Result")


class Crew:
    """Runs some calls at a time, the first in the caller's thread.

    Its threads begin when they are first needed, and end with it.

    Args:
        threads: how many calls at most run at once.

    >>> Crew(2).run([lambda: 1, lambda: 2])
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
                self._pool = self._pool or ThreadPoolExecutor(self._threads - 1, "tamis-events")
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
