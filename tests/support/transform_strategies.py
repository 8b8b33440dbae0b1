"""What strategies find, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.core.limits import Limits
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import Parser
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.flwr import parse_transformation
from tamis.transform.layout import Groups
from tamis.transform.shapes import Task, projection_of_tasks, task_of
from tamis.transform.strategy import GroupReader

Found = dict[int, list[tuple[int, list[list[int]]]]]


def tasks_of(queries: Sequence[str]) -> tuple[list[Task], Projection]:
    """The tasks of some transformations, and what all of them read."""
    tasks = [task_of(parse_transformation(query)) for query in queries]
    return tasks, projection_of_tasks(tasks)


def parsed(document: str, projection: Projection) -> tuple[DocumentBatch, Vocabulary]:
    """A document as a batch of its own."""
    parser = Parser(Vocabulary(), projection, Limits())
    batch, errors = parser.parse([Source(document.encode(), "utf-8")])
    assert not errors
    return batch, parser.vocabulary


def listed(groups: Groups, tasks: Sequence[Task]) -> Found:
    """By transformation its groups: each the bound event, and the places in its lists."""
    reader = GroupReader(groups)
    found: Found = {}
    for answer, number in enumerate(groups.transformations.tolist()):
        paths = range(len(tasks[number].paths))
        columns = [reader.column(answer, index) for index in paths]
        bound = reader.bound(answer)
        found[number] = [(each, [own[i] for own in columns]) for i, each in enumerate(bound)]
    return found
