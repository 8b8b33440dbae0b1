"""What expressions read of documents, so that the parser can skip the rest.

Each step of a path is followed by its *cover*: names of elements such that each node that the path
has reached is one of them, or lies in one. The text that an expression reads is that of its cover:
of the last element that a path names, or of all elements where none has been named yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from operator import or_

from tamis.documents.vocabulary import ALL_NAMES, NO_NAMES, Names, Projection
from tamis.language import model as ast
from tamis.language.xpath import Operand


def projection_of(expression: Operand, cover: Names = ALL_NAMES) -> Projection:
    """What an expression or a value reads beyond the tags.

    Args:
        cover: of the context node; that of the document node is everything.

    >>> from tamis.language.xpath import parse
    >>> projection_of(parse("//a[b > 1]//*[@c]").expression)[:2]
    (Names([('', 'c')]), Names([('', 'b')]))
    """
    match expression:
        case ast.Exists((path,)) | ast.Count(path):
            return _projection_of_path(path, cover)
        case ast.Exists(paths):
            return _union(_projection_of_path(path, cover) for path in paths)
        case ast.Nodes((path,)) | ast.StringOf(path):
            return _projection_of_string(path, cover)
        case ast.Nodes(paths):
            return _union(_projection_of_string(path, cover) for path in paths)
        case ast.NameOf(path, local):
            return _projection_of_path(path, cover) | Projection(prefixes=not local)
        case ast.Compare(_, inner, _) | ast.Contains(inner, _) | ast.StartsWith(inner, _):
            return projection_of(inner, cover)
        case ast.Not(inner) | ast.NormalizeSpace(inner) | ast.StringLength(inner):
            return projection_of(inner, cover)
        case ast.And(operands) | ast.Or(operands):
            return _union(projection_of(operand, cover) for operand in operands)
    return Projection()


def cover_of(path: ast.Path) -> Names:
    """The cover of the nodes that an absolute path selects: the context of what follows."""
    return _covers(path, ALL_NAMES)[-1]


def _projection_of_string(path: ast.Path, cover: Names) -> Projection:
    """What the string values of a path's nodes are made of."""
    return _projection_of_path(path, cover) | Projection(text=_covers(path, cover)[-1])


def _projection_of_path(path: ast.Path, cover: Names) -> Projection:
    projection = Projection()
    followings = (*path.steps[1:], None)
    for step, following, (before, reached) in zip(
        path.steps, followings, pairwise(_covers(path, cover)), strict=False
    ):
        for predicate in step.predicates:
            if not isinstance(predicate, ast.Position):
                projection |= projection_of(predicate, reached)
        of_step = _projection_of_step(step, following, before)
        if of_step is not None:
            projection |= of_step
    return projection


def _projection_of_step(
    step: ast.Step, following: ast.Step | None, cover: Names
) -> Projection | None:
    """What finding a step's nodes takes beyond the tags, if ``cover`` is that of its contexts."""
    if step.axis is ast.Axis.ATTRIBUTE:
        return Projection(attributes=_names(step.test))
    if step.test is ast.KindTest.TEXT:
        return Projection(text=cover)
    if step.test is ast.KindTest.NODE and step.axis is not ast.Axis.SELF:
        # Only elements have children and attributes: "//b" need not see text and comments.
        of_leaves = (ast.Axis.SELF, ast.Axis.DESCENDANT_OR_SELF)
        leaves_matter = step.predicates or following is None or following.axis in of_leaves
        return Projection(text=cover, misc=True) if leaves_matter else None
    return None


def _covers(path: ast.Path, cover: Names) -> list[Names]:
    """The cover of a path's context nodes, and that of what each of its steps reaches."""
    covers = [ALL_NAMES if path.absolute else cover]
    for step in path.steps:
        if step.axis is ast.Axis.ATTRIBUTE:
            covers.append(NO_NAMES)  # the value of an attribute is not made of text
        else:
            named = _names(step.test)
            covers.append(covers[-1] if named == ALL_NAMES else named)
    return covers


def _names(test: ast.NodeTest) -> Names:
    """The names that pass a test: one, or any that there are."""
    if isinstance(test, ast.NameTest) and test.namespace is not None and test.local is not None:
        return Names([(test.namespace, test.local)])
    return ALL_NAMES


def _union(projections: Iterator[Projection]) -> Projection:
    return reduce(or_, projections, Projection())
