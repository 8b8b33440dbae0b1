"""The reference strategy: each transformation by itself, as its definition reads.

The oracle of all others, and what answers whatever these do not support: paths and conditions are
evaluated by the reference engine, for one bound node after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.core.arrays import Int64, freeze, starts_of
from tamis.documents.batch import KIND_BITS, DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.matching.engines.reference.execute import Evaluator
from tamis.transform.layout import Groups
from tamis.transform.shapes import Task
from tamis.transform.strategy import too_many_nodes


def find_groups(
    tasks: Sequence[Task], batch: DocumentBatch, vocabulary: Vocabulary, nodes_max: int = 1 << 24
) -> Groups:
    """What some transformations find in a document, a batch of its own, with at most so many nodes.

    Raises ``DocumentLimitError`` where there are more nodes in their lists.
    """
    evaluator = Evaluator(batch, vocabulary)
    nodes = evaluator.nodes
    places = nodes.source << KIND_BITS | nodes.kind
    nodes_left = nodes_max
    answers: list[tuple[int, Int64, list[list[Int64]]]] = []
    for number, task in enumerate(tasks):
        bound = evaluator.selected((task.binding,), nodes.documents)
        if task.where is not None:
            bound = bound[evaluator.where(task.where, bound)]
        lists: list[list[Int64]] = []
        for path in task.paths:
            lists.append([])
            for row in range(len(bound)):
                selected = places[evaluator.selected((path,), bound[row : row + 1])]
                nodes_left -= len(selected)
                if nodes_left < 0:
                    raise too_many_nodes(nodes_max)
                lists[-1].append(selected)
        if len(bound):
            answers.append((number, nodes.source[bound], lists))
    return _groups(answers)


def _groups(answers: Sequence[tuple[int, Int64, list[list[Int64]]]]) -> Groups:
    """Answers as arrays: for each its transformation, bound nodes, and lists by path.

    Each path of each answer has a number of its own.
    """
    columns = [(bound, column) for _, bound, lists in answers for column in lists]
    lists = [nodes for _, column in columns for nodes in column]
    list_ends = starts_of(list(map(len, lists)))
    group_ends = starts_of([len(answer[1]) for answer in answers])
    path_ends = starts_of([len(answer[2]) for answer in answers])
    groups = Groups(
        transformations=np.array([answer[0] for answer in answers], np.int32),
        group_starts=group_ends[:-1],
        group_ends=group_ends[1:],
        bound=_joined([answer[1] for answer in answers]),
        path_starts=path_ends[:-1],
        paths=np.arange(len(columns), dtype=np.int32),
        of_path=starts_of([len(column) for _, column in columns]),
        list_bound=_joined([bound for bound, _ in columns]),
        list_starts=list_ends[:-1],
        list_ends=list_ends[1:],
        nodes=_joined(lists),
    )
    freeze(*groups)
    return groups


def _joined(arrays: Sequence[Int64]) -> Int64:
    return np.concatenate(arrays).astype(np.int64) if arrays else np.zeros(0, np.int64)
