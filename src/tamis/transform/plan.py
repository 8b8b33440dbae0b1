"""``Task``: what a strategy has to find for a transformation, and what that reads of documents."""

from __future__ import annotations

from typing import NamedTuple

from tamis.documents.demand import Demand
from tamis.language.flwr.model import (
    Aggregate,
    Constructor,
    Content,
    Enclosed,
    Item,
    Transformation,
)
from tamis.language.model import Axis, Compare, Exists, Expression, KindTest, Nodes, Path, Step
from tamis.matching.demand import demand_of


class Task(NamedTuple):
    """The paths and the condition of a transformation: all but what is made of its nodes.

    Attributes:
        binding: absolute; the groups.
        where: true of the bound nodes that have a group, or None.
        paths: relative to the bound node; the lists of a group: the return paths, each once, and
            then those that only the order reads.
    """

    binding: Path
    where: Expression | None
    paths: tuple[Path, ...]


def task_of(transformation: Transformation) -> Task:
    """What a transformation has to be found.

    >>> from tamis.language.flwr import parse_transformation
    >>> text = "<r>{ for $b in //b order by $b/k return <x>{ $b/t, count($b/t) }</x> }</r>"
    >>> len(task_of(parse_transformation(text)).paths)
    2
    """
    flwr = transformation.flwr
    keys = (key.path for key in flwr.order)
    paths = tuple(dict.fromkeys((*transformation.return_paths(), *keys)))
    return Task(flwr.binding, flwr.where, paths)


def demand_of_transformation(transformation: Transformation) -> Demand:
    """What finding a transformation's nodes, and making its message, reads of documents."""
    flwr = transformation.flwr
    steps = flwr.binding.steps
    if flwr.where is not None:
        last = steps[-1]
        steps = (*steps[:-1], Step(last.axis, last.test, (*last.predicates, flwr.where)))
    demand = demand_of(Exists((Path(True, steps),))) | Demand(offsets=True)
    for path in transformation.return_paths():
        demand |= demand_of(Exists((_below(flwr.binding, path),)))
    read = [*_read_as_strings(flwr.result), *(key.path for key in flwr.order)]
    for path in read:
        demand |= demand_of(Compare("=", Nodes((_below(flwr.binding, path),)), ""))
    if any(_copies_attributes(path) for path in transformation.return_paths()):
        demand |= Demand(prefixes=True)
    return demand


def _below(binding: Path, path: Path) -> Path:
    return Path(True, binding.steps + path.steps)


def _copies_attributes(path: Path) -> bool:
    return bool(path.steps) and path.steps[-1].axis is Axis.ATTRIBUTE


def _read_as_strings(items: tuple[Item | Content, ...]) -> list[Path]:
    """The paths whose nodes' string values are in the message: but for copies of elements."""
    found: list[Path] = []
    for item in items:
        match item:
            case Aggregate(function, path) if function != "count":
                found.append(path)
            case Enclosed(inner):
                found += _read_as_strings(inner)
            case Constructor(attributes=attributes, content=content):
                for attribute in attributes:
                    for part in attribute.value:
                        if isinstance(part, Enclosed):
                            found += [inner.path for inner in part.items if hasattr(inner, "path")]
                found += _read_as_strings(content)
            case _:
                pass
    return found


def is_of_elements(path: Path) -> bool:
    """Whether a path selects elements alone."""
    if not path.steps:
        return True
    last = path.steps[-1]
    return last.axis is not Axis.ATTRIBUTE and not isinstance(last.test, KindTest)
