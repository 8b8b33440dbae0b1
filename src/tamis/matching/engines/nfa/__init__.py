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
    """See :func:`tamis.matching.engines.nfa.compile.compile_queries`."""
    from tamis.matching.engines.nfa.compile import compile_queries  # noqa: PLC0415 - imports kernels

    return compile_queries(queries, pruner)


def open_nfa(program: NfaProgram, _bytes_max: int) -> NfaSearcher:
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


def _of_expression(expression: ast.Expression) -> Iterator[str]:
    match expression:
        case ast.Exists(paths) | ast.Compare(_, ast.Nodes(paths), _):
            for path in paths:
                yield from _of_path(path)
        case ast.Compare(_, value, _):
            yield from _of_string(value)
        case ast.Contains(text, _) | ast.StartsWith(text, _):
            yield from _of_string(text)
        case ast.Not(operand):
            yield from _of_expression(operand)
        case ast.And(operands) | ast.Or(operands):
            for operand in operands:
                yield from _of_expression(operand)
        case ast.Constant():
            pass


def _of_string(value: ast.Value) -> Iterator[str]:
    match value:
        case ast.StringLength(text) | ast.NormalizeSpace(text):
            yield from _of_string(text)
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


def _steps(expression: ast.Expression) -> int:
    match expression:
        case ast.Exists(paths) | ast.Compare(_, ast.Nodes(paths), _):
            steps = [step for path in paths for step in path.steps]
            return len(steps) + sum(
                _steps(predicate)
                for step in steps
                for predicate in step.predicates
                if not isinstance(predicate, ast.Position)
            )
        case ast.Not(operand):
            return _steps(operand)
        case ast.And(operands) | ast.Or(operands):
            return sum(map(_steps, operands))
        case ast.Compare(_, value, _) | ast.Contains(value, _) | ast.StartsWith(value, _):
            while isinstance(value, ast.StringLength | ast.NormalizeSpace):
                value = value.text
            assert not isinstance(value, ast.Nodes)
            return _steps(ast.Exists((value.path,)))
        case ast.Constant():
            return 0


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
