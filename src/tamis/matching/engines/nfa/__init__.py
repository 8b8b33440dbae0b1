"""YFilter's engine: one NFA for all paths, run with a stack of active states; see README.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tamis.language import model as ast
from tamis.language.filters import Labels, has_label
from tamis.matching.engine import Engine, locates_nothing
from tamis.schema.prune import Heuristics

if TYPE_CHECKING:
    from tamis.matching.engines.nfa.compile import NfaProgram
    from tamis.matching.engines.nfa.execute import NfaSearcher
    from tamis.schema.prune import Pruner

__all__ = ["ENGINE", "compile_queries", "open_nfa", "refuses"]


def compile_queries(queries: Sequence[ast.Query], pruner: Pruner | None = None) -> NfaProgram:
    """The NFA of all paths of some queries."""
    from tamis.matching.engines.nfa.compile import NfaProgram  # noqa: PLC0415 - imports kernels

    return NfaProgram(queries, pruner)


def open_nfa(program: NfaProgram, _cache_bytes: int) -> NfaSearcher:
    """What matches with a program, for one thread at a time."""
    from tamis.matching.engines.nfa.execute import NfaSearcher  # noqa: PLC0415 - imports kernels

    return NfaSearcher(program)


# -- what the engine does not run, and why ---------------------------------------------------------

_FIRST_AXES = (ast.Axis.CHILD, ast.Axis.ATTRIBUTE)
STEPS_MAX = 120
"""Steps of a query that is more than filters: they are evaluated inside each other."""


def refuses(query: ast.Query) -> str | None:
    """Why the engine cannot run a query, or None where it can.

    >>> from tamis.language.xpath import parse
    >>> refuses(parse("//a[not(b)]")), refuses(parse("//a[2]"))
    (None, 'it asks for a position')
    """
    if Labels().filters(query) is not None:
        return None
    reason = next(_of_expression(query.expression), None)
    if reason is None and _steps(query.expression) > STEPS_MAX:
        return f"it has more than {STEPS_MAX} steps, with predicates"
    return reason


def _of_expression(expression: ast.Expression | ast.Value) -> Iterator[str]:
    match expression:
        case ast.Exists(paths) | ast.Nodes(paths):
            for path in paths:
                yield from _of_path(path)
        case ast.Compare(_, inner, _) | ast.Contains(inner, _) | ast.StartsWith(inner, _):
            yield from _of_expression(inner)
        case ast.Not(inner) | ast.StringLength(inner) | ast.NormalizeSpace(inner):
            yield from _of_expression(inner)
        case ast.And(operands) | ast.Or(operands):
            for operand in operands:
                yield from _of_expression(operand)
        case ast.StringOf(path):
            if any(step.axis not in _FIRST_AXES for step in ast.without_here(path.steps)):
                yield "the first of several nodes is asked for, and they are not just children"
            yield from _of_path(path)
        case ast.NameOf(_, local):
            yield "it calls local-name()" if local else "it calls name()"
        case ast.Count():
            yield "it calls count()"


def _of_path(path: ast.Path) -> Iterator[str]:
    descends = is_leaf = False
    for step in ast.without_here(path.steps):
        if is_leaf:
            yield "a step goes on from an attribute or a text node"
        if step == ast.DESCEND:
            descends = True
            continue
        is_leaf = step.axis is ast.Axis.ATTRIBUTE or step.test is ast.KindTest.TEXT
        yield from _of_step(step, descends, is_leaf)
        descends = False
    if descends:
        yield "a // leads to nodes of any kind"


def _of_step(step: ast.Step, descends: bool, is_leaf: bool) -> Iterator[str]:
    if step.axis is ast.Axis.DESCENDANT_OR_SELF:
        yield "it has a descendant-or-self:: that is not written //"
    elif step.axis is ast.Axis.SELF and step.test is not ast.KindTest.NODE:
        yield "it has a self:: with a name"
    elif not is_leaf and isinstance(step.test, ast.NameTest) and not has_label(step.test):
        yield "it asks for a name in any namespace, or for all names in none"
    elif step.axis is ast.Axis.SELF and descends:
        yield "a // leads to ."
    elif step.test is ast.KindTest.NODE and step.axis not in (ast.Axis.SELF, ast.Axis.ATTRIBUTE):
        yield "it has a step to node()"
    if is_leaf and step.predicates:
        yield "an attribute or a text node has a predicate"
    for predicate in step.predicates:
        if isinstance(predicate, ast.Position):
            yield "it asks for a position"
        else:
            yield from _of_expression(predicate)


def _steps(expression: ast.Predicate | ast.Value) -> int:
    """How many steps an expression has, those of predicates included."""
    match expression:
        case ast.Exists(paths) | ast.Nodes(paths):
            return sum(map(_steps_of_path, paths))
        case ast.StringOf(path):
            return _steps_of_path(path)
        case ast.Compare(_, inner, _) | ast.Contains(inner, _) | ast.StartsWith(inner, _):
            return _steps(inner)
        case ast.Not(inner) | ast.StringLength(inner) | ast.NormalizeSpace(inner):
            return _steps(inner)
        case ast.And(operands) | ast.Or(operands):
            return sum(map(_steps, operands))
    return 0


def _steps_of_path(path: ast.Path) -> int:
    return sum(1 + sum(map(_steps, step.predicates)) for step in path.steps)


ENGINE = Engine(
    name="nfa",
    refuses=refuses,
    compile=compile_queries,
    searcher=open_nfa,
    is_automatic=False,
    takes_plain=True,
    heuristics=Heuristics(filters_max=32, steps_max=256),
    locates=locates_nothing,
)
