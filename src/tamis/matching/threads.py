"""Work spread over threads, with its results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, TypeVar

from tamis.documents.source import Flush
from tamis.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")


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
