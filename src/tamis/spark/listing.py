"""Which files a job reads, found on the driver, and how they are dealt out to its tasks."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from glob import glob, has_magic
from typing import NamedTuple

from tamis.documents.folder import file_problem, folder_documents

# What opening a document costs, as the number of bytes that could be matched in that time.
OPENING_BYTES = 4096
# A large job has tasks of TASK_BYTES. A small one has fewer bytes in each, so that all cores have
# work, until there are SMALL_TASKS; but not below SMALL_TASK_BYTES, which cost no more than the
# start of a task.
SMALL_TASK_BYTES = 1 << 20
SMALL_TASKS = 64
TASK_BYTES = 32 << 20


class Listed(NamedTuple):
    """A document to read.

    Attributes:
        path: as it was given, or the folder that was given and the name in it.
        size: in bytes.
        problem: why it cannot even be tried, or None.
    """

    path: str
    size: int = 0
    problem: str | None = None


def list_documents(paths: Iterable[str]) -> list[Listed]:
    """The documents that paths stand for, each once.

    A path is a file, a folder (its ``*.xml`` and ``*.xml.gz``, not those in folders below) or,
    where there is neither, a pattern with ``*``, ``?`` or ``[…]``. One that leads nowhere is listed
    with its problem, or is found missing by whoever reads it.
    """
    return list({found.path: found for path in paths for found in _expanded(path)}.values())


def _expanded(path: str) -> Iterator[Listed]:
    if not has_magic(path) or os.path.lexists(path):
        yield from _list_path(path)
        return
    names = sorted(glob(path))
    if not names:
        yield Listed(path, problem="no file has a name like this")
    for name in names:
        yield from _list_path(name)


def _list_path(path: str) -> Iterator[Listed]:
    if not os.path.isdir(path):
        yield _listed(path, file_problem(path))
        return
    for name, problem in folder_documents(path):
        yield _listed(name, problem)


def _listed(path: str, problem: str | None) -> Listed:
    try:
        return Listed(path, os.stat(path).st_size if problem is None else 0, problem)
    except (OSError, ValueError):  # the task that reads it will say what is the matter
        return Listed(path)


def deal(sizes: Sequence[int]) -> list[int]:
    """For each document the number of the task that reads it, so that tasks are about equal.

    The largest document goes first, each to the task that has least to do by then.

    >>> deal([1_200_000, 400_000, 300_000, 500_000])
    [0, 1, 1, 1]
    """
    costs = [size + OPENING_BYTES for size in sizes]
    loads = [(0, task) for task in range(_tasks(sum(costs), len(costs)))]
    tasks = [0] * len(costs)
    for document in sorted(range(len(costs)), key=lambda document: -costs[document]):
        load, task = loads[0]
        heapq.heapreplace(loads, (load + costs[document], task))
        tasks[document] = task
    return tasks


def _tasks(cost: int, documents: int) -> int:
    tasks = max(min(cost // SMALL_TASK_BYTES, SMALL_TASKS), cost // TASK_BYTES, 1)
    return min(tasks, max(documents, 1))
