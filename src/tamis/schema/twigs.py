"""Whole queries pruned with a DTD: twigs, their predicates, and what is made of several paths.

A path is cut where a step has predicates, its *split nodes*. Each piece is a linear filter, pruned
for itself; each filter that it becomes ends at another element, and for that element the predicates
are pruned, and what follows. So trunk and branches stay together: ``//a[*/d]//e`` becomes
``/a[b/d or c/d]/…`` and not two filters that may be true at different elements.

(The paper says that the linear parts of a twig can be pruned independently of each other: they
could then be true at different elements.)

What pruning cannot keep, it leaves: positions, counts and the first of several nodes depend on all
nodes that a step reaches, so such paths change only where a single one comes of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from tamis.language import model
from tamis.language.filters import Codes, has_label
from tamis.language.model import Axis, Constant, Expression, Path, Predicate, Query, Step
from tamis.schema.prune import ROOT, Pruner, Reached, TooManyError

_FALSE = Constant(False)
_TRUE = Constant(True)
_Value = TypeVar("_Value", bound=model.Value)


def prune_query(query: Query, pruner: Pruner) -> Query:
    """A query that is true of the same documents, as far as these are of the DTD.

    One that would become more than the heuristics allow is pruned with care, or else left as it is.

    >>> from tamis.language.printer import print_query
    >>> from tamis.language.xpath import parse
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd('''<!ELEMENT a (b, c)> <!ELEMENT b (d)> <!ELEMENT c (d, e)>
    ...     <!ELEMENT d EMPTY> <!ELEMENT e EMPTY>'''))
    >>> pruned = prune_query(parse("//*[d][not(e)]"), Pruner(graph))
    >>> print_query(pruned)
    '/a/b[d] | /a/c[d][not(e)]'
    """
    try:
        expression = _Twigs(pruner).expression(query.expression, ROOT)
    except (TooManyError, RecursionError):  # it may have hundreds of split nodes behind each other
        if pruner.careful is not pruner:
            return prune_query(query, pruner.careful)
        expression = query.expression if failure_of(query, pruner) is None else _FALSE
    return replace(query, expression=expression)


class _Piece(NamedTuple):
    """The beginning of a path: a linear filter, the predicates at its end, and the steps behind it.

    The rest of a piece that ``is_kept`` is not looked into: something else than elements, or a
    position.
    """

    codes: Codes
    predicates: tuple[Predicate, ...]
    rest: tuple[Step, ...]
    is_kept: bool


class _Twigs:
    """Prunes the expressions of one query, as long as they stay within the heuristics' bounds."""

    def __init__(self, pruner: Pruner) -> None:
        self.pruner = pruner
        self._paths_left = pruner.heuristics.filters_max
        self._steps_left = pruner.heuristics.steps_max

    def expression(self, expression: Expression, reached: Reached) -> Expression:
        match expression:
            case model.Exists(paths):
                left = self._union(paths, reached, existence_only=True)
                return model.Exists(left) if left else _FALSE
            case model.Compare(operator, model.Nodes(paths), literal):
                left = self._union(paths, reached)
                return model.Compare(operator, model.Nodes(left), literal) if left else _FALSE
            case model.Compare(operator, value, literal):
                return model.Compare(operator, self._value(value, reached), literal)
            case model.Contains(text, literal) | model.StartsWith(text, literal):
                return type(expression)(self._value(text, reached), literal)
            case model.Not(operand):
                inner = self.expression(operand, reached)
                if isinstance(inner, Constant):
                    return Constant(not inner.value)
                return model.Not(inner)
            case model.And(operands) | model.Or(operands):
                found = [self.expression(operand, reached) for operand in operands]
                return _joined(type(expression), found)
        return expression

    def _value(self, value: _Value, reached: Reached) -> _Value:
        match value:
            case model.Count() | model.StringOf() | model.NameOf():
                return replace(value, path=self._only(value.path, reached))
            case model.StringLength() | model.NormalizeSpace():
                return replace(value, text=self._value(value.text, reached))
        return value

    def _only(self, path: Path, reached: Reached) -> Path:
        found = self._union((path,), reached)
        return found[0] if len(found) == 1 else path

    def _union(
        self, paths: Sequence[Path], reached: Reached, existence_only: bool = False
    ) -> tuple[Path, ...]:
        found: dict[Path, None] = {}
        for path in paths:
            start = ROOT if path.absolute else reached
            for steps in self._steps(path.steps, start, existence_only):
                found[replace(path, steps=steps)] = None
        return tuple(found)

    def _steps(
        self, steps: tuple[Step, ...], reached: Reached, existence_only: bool
    ) -> Iterator[tuple[Step, ...]]:
        """All that some steps become; see :meth:`Pruner.prune`."""
        piece = _first_piece(steps, self.pruner)
        if not piece.codes:
            yield self._counted(piece.rest)
            return
        ends_here = not piece.rest and not piece.predicates
        exists = ends_here and existence_only
        for codes in self.pruner.prune(piece.codes, reached, existence_only=exists):
            begun = self.pruner.labels.steps(codes)
            if ends_here:
                yield self._counted(begun)
                continue
            end = self.pruner.end(codes, reached)
            predicates = self._predicates(piece.predicates, end)
            if predicates is None:
                continue
            begun = (*begun[:-1], replace(begun[-1], predicates=predicates))
            rests = [piece.rest] if piece.is_kept else self._steps(piece.rest, end, existence_only)
            for rest in rests:
                yield self._counted((*begun, *rest))

    def _predicates(
        self, predicates: tuple[Predicate, ...], reached: Reached
    ) -> tuple[Predicate, ...] | None:
        """The predicates at an element, or None where one of them is never true of it."""
        found: list[Predicate] = []
        for predicate in predicates:
            assert not isinstance(predicate, model.Position)
            inner = self.expression(predicate, reached)
            if inner == _FALSE:
                return None
            if inner != _TRUE:
                found.append(inner)
        return tuple(found)

    def _counted(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        self._paths_left -= 1
        self._steps_left -= len(steps)
        if min(self._paths_left, self._steps_left) < 0:
            raise TooManyError
        return steps


def _first_piece(steps: tuple[Step, ...], pruner: Pruner) -> _Piece:
    """The steps up to the first that has predicates, or to the first that is not to elements."""
    begin = index = 0  # of what is not in the piece yet, of the step
    linear: list[Step] = []
    for index, step in enumerate(steps, start=1):
        if step in (model.DESCEND, model.HERE):
            continue
        is_element = step.axis in (Axis.CHILD, Axis.DESCENDANT) and has_label(step.test)
        if not is_element or any(isinstance(part, model.Position) for part in step.predicates):
            break
        linear += [*steps[begin : index - 1], replace(step, predicates=())]
        begin = index
        if step.predicates:
            codes = pruner.labels.codes(linear) or ()
            return _Piece(codes, step.predicates, steps[begin:], False)
    return _Piece(pruner.labels.codes(linear) or (), (), steps[begin:], True)


def _joined(kind: type[model.And | model.Or], operands: list[Expression]) -> Expression:
    """Operands without constants, if none of these decides the whole."""
    neutral, decisive = (_TRUE, _FALSE) if kind is model.And else (_FALSE, _TRUE)
    if decisive in operands:
        return decisive
    left = tuple(operand for operand in operands if operand != neutral)
    return left[0] if len(left) == 1 else kind(left) if left else neutral


# -- consistency -----------------------------------------------------------------------------------


def failure_of(query: Query, pruner: Pruner) -> str | None:
    """Why a query can never be true of a document of the DTD, in words, if that is known.

    >>> from tamis.language.xpath import parse
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT book (title)> <!ELEMENT title (#PCDATA)>"))
    >>> failure_of(parse("//book[title/book]"), Pruner(graph))
    'book is never a child of title'
    """
    return _failure(query.expression, ROOT, pruner)


def _failure(expression: Expression, reached: Reached, pruner: Pruner) -> str | None:
    match expression:
        case model.Exists(paths) | model.Compare(_, model.Nodes(paths), _):
            return _of_all([_path_failure(path.steps, reached, pruner) for path in paths])
        case model.Or(operands):
            return _of_all([_failure(operand, reached, pruner) for operand in operands])
        case model.And(operands):
            reasons = (_failure(operand, reached, pruner) for operand in operands)
            return next((reason for reason in reasons if reason is not None), None)
    return None


def _of_all(reasons: list[str | None]) -> str | None:
    """The reasons of all parts of something that is true where one of them is."""
    if None in reasons:
        return None
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason is not None))


def _path_failure(steps: tuple[Step, ...], reached: Reached, pruner: Pruner) -> str | None:
    while True:
        piece = _first_piece(steps, pruner)
        reason = pruner.failure(piece.codes, reached)
        if reason is not None or not piece.codes:
            return reason
        reached = pruner.end(piece.codes, reached)
        for predicate in piece.predicates:
            if not isinstance(predicate, model.Position):
                reason = _failure(predicate, reached, pruner)
                if reason is not None:
                    return reason
        if piece.is_kept:
            return None
        steps = piece.rest
