"""Queries → the reference engine's program: distinct queries, and what they read of documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from tamis.documents.batch import Demand, Int32
from tamis.documents.vocabulary import Vocabulary
from tamis.language.model import (
    And,
    Axis,
    Compare,
    Contains,
    Count,
    Exists,
    Expression,
    KindTest,
    NameOf,
    Nodes,
    NormalizeSpace,
    Not,
    Or,
    Path,
    Position,
    Query,
    StartsWith,
    Step,
    StringLength,
    StringOf,
    Value,
)


class ReferenceProgram(NamedTuple):
    """Compiled queries.

    Attributes:
        queries: the distinct ones.
        distinct: int32[subscriptions]; which of them each subscription is.
        demand: what they read of documents.
        vocabulary: where their names are interned.
    """

    queries: tuple[Query, ...]
    distinct: Int32
    demand: Demand
    vocabulary: Vocabulary


def compile_queries(queries: Sequence[Query], vocabulary: Vocabulary) -> ReferenceProgram:
    """Equal queries are evaluated once.

    >>> from tamis.language.xpath import parse
    >>> program = compile_queries([parse("//a"), parse("/b"), parse("//a")], Vocabulary())
    >>> program.distinct
    array([0, 1, 0], dtype=int32)
    """
    numbers: dict[Query, int] = {}
    distinct = [numbers.setdefault(query, len(numbers)) for query in queries]
    demand = Demand()
    for query in numbers:
        demand |= demand_of(query.expression)
    return ReferenceProgram(tuple(numbers), np.array(distinct, dtype=np.int32), demand, vocabulary)


def demand_of(expression: Expression) -> Demand:
    """What an expression reads beyond the tags.

    >>> from tamis.language.xpath import parse
    >>> demand_of(parse("//a[@b]//c").expression)
    Demand(attributes=True, text=False, misc=False, prefixes=False, lines=False)
    """
    match expression:
        case Exists(paths):
            return _union(_demand_of_path(path) for path in paths)
        case Compare(_, value, _):
            return _demand_of_value(value)
        case Contains(text, _) | StartsWith(text, _):
            return _demand_of_value(text)
        case Not(operand):
            return demand_of(operand)
        case And(operands) | Or(operands):
            return _union(demand_of(operand) for operand in operands)
    return Demand()


def _demand_of_value(value: Value) -> Demand:
    match value:
        case Nodes(paths):
            return _union(_demand_of_path(p) for p in paths) | Demand(text=True)
        case StringOf(path):
            return _demand_of_path(path) | Demand(text=True)
        case NameOf(path, local):
            return _demand_of_path(path) | Demand(prefixes=not local)
        case NormalizeSpace(text) | StringLength(text):
            return _demand_of_value(text)
        case Count(path):
            return _demand_of_path(path)


def _demand_of_path(path: Path) -> Demand:
    demand = Demand()
    for step, after in zip_longest(path.steps, path.steps[1:]):
        demand |= _demand_of_step(step, after)
    return demand


def _demand_of_step(step: Step, following: Step | None) -> Demand:
    demand = _union(demand_of(p) for p in step.predicates if not isinstance(p, Position))
    if step.axis is Axis.ATTRIBUTE:
        return demand | Demand(attributes=True)
    if step.test is KindTest.TEXT:
        return demand | Demand(text=True)
    if step.test is KindTest.NODE and step.axis is not Axis.SELF:
        # Only elements have children and attributes: "//b" need not see text and comments.
        leaves_matter = bool(step.predicates) or following is None
        leaves_matter |= following is not None and following.axis in (
            Axis.SELF,
            Axis.DESCENDANT_OR_SELF,
        )
        return demand | Demand(text=leaves_matter, misc=leaves_matter)
    return demand


def _union(demands: Iterator[Demand]) -> Demand:
    result = Demand()
    for demand in demands:
        result |= demand
    return result
