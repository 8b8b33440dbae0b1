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
from typing import NamedTuple

from tamis.language.filters import Codes, has_label
from tamis.language.model import (
    DESCEND,
    HERE,
    And,
    Axis,
    Compare,
    Constant,
    Contains,
    Count,
    Exists,
    Expression,
    NameOf,
    Nodes,
    NormalizeSpace,
    Not,
    Or,
    Path,
    Position,
    Predicate,
    Query,
    StartsWith,
    Step,
    StringFunction,
    StringLength,
    StringOf,
    Value,
)
from tamis.schema.prune import ROOT, Pruner, Reached, TooManyError

_FALSE = Constant(False)
_TRUE = Constant(True)


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
    """The beginning of a path: a linear filter, and what stands at its end.

    Attributes:
        codes: the filter.
        predicates: of its last step.
        rest: the steps behind it.
        is_kept: the rest is not looked into: something else than elements, or a position.
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
        """An expression whose context is what was reached."""
        match expression:
            case Exists(paths):
                found = self._union(paths, reached, existence_only=True)
                return Exists(found) if found else _FALSE
            case Compare(operator, Nodes(paths), literal):
                found = self._union(paths, reached)
                return Compare(operator, Nodes(found), literal) if found else _FALSE
            case Compare(operator, value, literal):
                return Compare(operator, self._value(value, reached), literal)
            case Contains(text, literal):
                return Contains(self._text(text, reached), literal)
            case StartsWith(text, literal):
                return StartsWith(self._text(text, reached), literal)
            case Not(operand):
                inner = self.expression(operand, reached)
                return Constant(not inner.value) if isinstance(inner, Constant) else Not(inner)
            case And(operands):
                return _all([self.expression(operand, reached) for operand in operands])
            case Or(operands):
                return _any([self.expression(operand, reached) for operand in operands])
        return expression

    def _value(self, value: Value, reached: Reached) -> Value:
        match value:
            case Count(path):
                return Count(self._only(path, reached))
            case StringLength(text):
                return StringLength(self._text(text, reached))
            case Nodes():
                raise AssertionError(value)  # is asked for apart
        return self._text(value, reached)

    def _text(self, text: StringFunction, reached: Reached) -> StringFunction:
        match text:
            case StringOf(path):
                return StringOf(self._only(path, reached))
            case NameOf(path, local):
                return NameOf(self._only(path, reached), local)
            case NormalizeSpace(inner):
                return NormalizeSpace(self._text(inner, reached))

    def _only(self, path: Path, reached: Reached) -> Path:
        """The one path that comes of a path, or else itself."""
        found = self._union((path,), reached)
        return found[0] if len(found) == 1 else path

    def _union(
        self, paths: Sequence[Path], reached: Reached, existence_only: bool = False
    ) -> tuple[Path, ...]:
        """The paths that together are some paths."""
        found = (
            replace(path, steps=steps)
            for path in paths
            for steps in self._steps(path.steps, ROOT if path.absolute else reached, existence_only)
        )
        return tuple(dict.fromkeys(found))

    def _steps(
        self, steps: tuple[Step, ...], reached: Reached, existence_only: bool
    ) -> Iterator[tuple[Step, ...]]:
        """All that some steps become.

        Args:
            existence_only: nothing is asked but whether there is a node: which one does not matter.
        """
        piece = _first_piece(steps, self.pruner)
        if not piece.codes:
            yield self._counted(piece.rest)
            return
        ends_here = not piece.rest and not piece.predicates
        for codes in self.pruner.prune(
            piece.codes, reached, existence_only=ends_here and existence_only
        ):
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
            assert not isinstance(predicate, Position)
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
        if step in (DESCEND, HERE):
            continue
        is_element = step.axis in (Axis.CHILD, Axis.DESCENDANT) and has_label(step.test)
        if not is_element or any(isinstance(part, Position) for part in step.predicates):
            return _Piece(_codes(linear, pruner), (), steps[begin:], True)
        linear += [*steps[begin : index - 1], replace(step, predicates=())]
        begin = index
        if step.predicates:
            return _Piece(_codes(linear, pruner), step.predicates, steps[begin:], False)
    return _Piece(_codes(linear, pruner), (), steps[begin:], True)


def _codes(steps: list[Step], pruner: Pruner) -> Codes:
    return pruner.labels.codes(steps) or ()


def _all(operands: list[Expression]) -> Expression:
    if _FALSE in operands:
        return _FALSE
    left = [operand for operand in operands if operand != _TRUE]
    return left[0] if len(left) == 1 else And(tuple(left)) if left else _TRUE


def _any(operands: list[Expression]) -> Expression:
    if _TRUE in operands:
        return _TRUE
    left = [operand for operand in operands if operand != _FALSE]
    return left[0] if len(left) == 1 else Or(tuple(left)) if left else _FALSE


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
        case Exists(paths) | Compare(_, Nodes(paths), _):
            return _of_all([_path_failure(path.steps, reached, pruner) for path in paths])
        case Or(operands):
            return _of_all([_failure(operand, reached, pruner) for operand in operands])
        case And(operands):
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
            if not isinstance(predicate, Position):
                reason = _failure(predicate, reached, pruner)
                if reason is not None:
                    return reason
        if piece.is_kept:
            return None
        steps = piece.rest
