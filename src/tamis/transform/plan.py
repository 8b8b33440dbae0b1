"""``Task``: what a strategy has to find for a transformation, and what that reads of documents."""

from __future__ import annotations

from typing import NamedTuple

from tamis.documents.projection import Projection
from tamis.language.flwr.model import Transformation
from tamis.language.model import Axis, Compare, Exists, Expression, Nodes, Path, Step
from tamis.matching.projection import projection_of


class Task(NamedTuple):
    """The paths and the condition of a transformation: all but what is made of its nodes.

    Attributes:
        binding: absolute; the groups.
        where: true of the bound nodes that have a group, or None.
        paths: relative to the bound node; the lists of a group.
        are_read: for each of these, whether the strings of its nodes are read.
    """

    binding: Path
    where: Expression | None
    paths: tuple[Path, ...]
    are_read: tuple[bool, ...]


def task_of(transformation: Transformation) -> Task:
    """What a transformation has to be found.

    >>> from tamis.language.flwr import parse_transformation
    >>> text = "<r>{ for $b in //b order by $b/k return <x>{ $b/t, count($b/t) }</x> }</r>"
    >>> task_of(parse_transformation(text)).are_read
    (False, True)
    """
    flwr = transformation.flwr
    return Task(flwr.binding, flwr.where, flwr.paths, flwr.are_read)


def projection_of_task(task: Task) -> Projection:
    """What finding a task's nodes, and making messages of them, reads of documents."""
    steps = task.binding.steps
    if task.where is not None:
        last = steps[-1]
        steps = (*steps[:-1], Step(last.axis, last.test, (*last.predicates, task.where)))
    projection = projection_of(Exists((Path(True, steps),))) | Projection(offsets=True)
    for path, is_read in zip(task.paths, task.are_read, strict=True):
        projection |= projection_of_path(task.binding, path, is_read)
    return projection


def projection_of_path(binding: Path, path: Path, is_read: bool) -> Projection:
    """What a path of a task reads; with the strings of its nodes, or without."""
    whole = Path(True, binding.steps + path.steps)
    projection = projection_of(Compare("=", Nodes((whole,)), "") if is_read else Exists((whole,)))
    if path.steps and path.steps[-1].axis is Axis.ATTRIBUTE:
        projection |= Projection(prefixes=True)  # it may be copied, as it is written
    return projection
