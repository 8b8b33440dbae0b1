"""Why a document matches a subscription or not: what each step reached, which failed first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from tamis.core.index.matchset import Explanation
from tamis.core.names import USUAL_PREFIXES, XML_NAMESPACE
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Name, Vocabulary
from tamis.language import model as ast
from tamis.language.printer import print_expression, print_path, print_predicate, print_step
from tamis.language.subscriptions import Subscriptions
from tamis.language.xpath import element_tests
from tamis.matching.engines.reference.execute import Evaluator
from tamis.matching.engines.reference.nodes import Rows

_SHOWN = 3  # lines and values given as examples
_EXPRESSIONS_MAX = 1000  # expressions that are read once more
_OF_ATTRIBUTES = (XML_NAMESPACE, USUAL_PREFIXES["xlink"], USUAL_PREFIXES["xsi"])  # have no elements


def explain(query: ast.Query, batch: DocumentBatch, vocabulary: Vocabulary) -> Explanation:
    """Explain a query on the single document of a batch that was parsed with every projection."""
    explainer = _Explainer(Evaluator(batch, vocabulary))
    roots = explainer.evaluator.nodes.documents
    lines = tuple(explainer.expression(query.expression, roots, ""))
    matched = bool(explainer.evaluator.where(query.expression, roots).any())
    return Explanation(matched, lines)


class NamespaceMismatch(NamedTuple):
    """A name test of elements, and the other namespace in which documents have the name."""

    test: ast.NameTest
    namespace: str


def find_namespace_mismatch(
    subscriptions: Subscriptions, names: Collection[Name]
) -> NamespaceMismatch | None:
    """The first element name that documents have, but only in a namespace that is not asked for.

    ``names`` are those of elements and attributes. So a name in no namespace, which may be that of
    an attribute, is a mismatch only for tests under a default namespace.

    >>> find_namespace_mismatch(Subscriptions({"x": "/a/b"}), [("", "b"), ("urn:u", "a")])
    NamespaceMismatch(test=NameTest(namespace='', local='a'), namespace='urn:u')
    """
    found: dict[str, str] = {}
    for namespace, local in names:
        if namespace and namespace not in _OF_ATTRIBUTES:
            found.setdefault(local, namespace)
    default = subscriptions.default_namespace
    for test in _element_tests(subscriptions):
        if test.namespace is None or test.local is None or (test.namespace, test.local) in names:
            continue
        if test.local in found:
            return NamespaceMismatch(test, found[test.local])
        if default is not None and test.prefix is None and ("", test.local) in names:
            return NamespaceMismatch(test, "")
    return None


def _element_tests(subscriptions: Subscriptions) -> Iterator[ast.NameTest]:
    """Tests of elements: of all queries that have words, and of some others."""
    queries, rules = subscriptions.queries, subscriptions.options
    others = np.arange(len(queries))
    if queries.is_lowered:
        others = queries.unstreamed
        for is_attribute, test in queries.table.tests:
            if isinstance(test, ast.NameTest) and not is_attribute:
                yield test
    for number in others[:_EXPRESSIONS_MAX].tolist():
        text = queries.texts[queries.examples[number]]
        yield from element_tests(text, rules.namespaces, rules.limits)


class _Explainer:
    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator

    def expression(self, expression: ast.Expression, within: Rows, indent: str) -> Iterator[str]:
        """A line with the truth of an expression at the document node, and its parts below it."""
        truth = "true" if self.evaluator.where(expression, within).any() else "false"
        yield f"{indent}{truth}: {print_expression(expression)}"
        inner = indent + "  "
        match expression:
            case ast.Exists(paths):
                yield from self.paths(paths, within, inner)
            case ast.Compare(_, ast.Nodes(paths) as value, _):
                yield from self.paths(paths, within, inner)
                yield from self.values(value, within, inner)
            case ast.Compare(_, value, _) | ast.Contains(value, _) | ast.StartsWith(value, _):
                yield from self.values(value, within, inner)
            case ast.Not(operand):
                yield from self.expression(operand, within, inner)
            case ast.And(operands) | ast.Or(operands):
                for operand in operands:
                    yield from self.expression(operand, within, inner)

    def paths(self, paths: tuple[ast.Path, ...], within: Rows, indent: str) -> Iterator[str]:
        for path in paths:
            if len(paths) > 1:
                yield f"{indent}{print_path(path)}"
            yield from self.path(path, within, indent + "  " * (len(paths) > 1))

    def path(self, path: ast.Path, within: Rows, indent: str) -> Iterator[str]:
        """A line for each step and each predicate, until none is left."""
        rows = list(_labelled(path))
        predicates = [print_predicate(p) for _, step in rows for p in step.predicates]
        width = max((len(text) for text in [*predicates, *(label for label, _ in rows)]), default=0)
        for label, step in rows:
            if not label:
                (within,) = self.evaluator.narrowed(step, within)
                continue
            before = within
            stages = [label, *(print_predicate(p) for p in step.predicates)]
            causes: list[ast.Predicate | None] = [None, *step.predicates]
            narrowed = self.evaluator.narrowed(step, within)
            for text, cause, within in zip(stages, causes, narrowed, strict=True):
                found = len(within)
                if found:
                    yield f"{indent}{text:<{width}}  {self.counted(within, found)}"
                else:
                    of = f"none of {len(before)}" if cause is not None else "none"
                    yield f"{indent}{text:<{width}}  {of}  ← fails here"
                    if cause is None:
                        yield from self.similar_names(step, indent + "    ")
                    yield from self.seen(cause, before, indent + "    ")
                    return
                before = within

    def similar_names(self, step: ast.Step, indent: str) -> Iterator[str]:
        """Names of the document that may have been meant: of a namespace, or in another case."""
        test = step.test
        if not isinstance(test, ast.NameTest) or test.local is None:
            return
        for namespace, local in self.evaluator.vocabulary:
            if local.lower() == test.local.lower() and not test.passes(namespace, local):
                where = f"in the namespace {namespace!r}" if namespace else "in no namespace"
                yield f"{indent}the document has a {local!r} {where}"

    def seen(self, cause: ast.Predicate | None, before: Rows, indent: str) -> Iterator[str]:
        """What a failed predicate found instead."""
        match cause:
            case ast.Compare(_, value, _) | ast.Contains(value, _) | ast.StartsWith(value, _):
                yield from self.values(value, before, indent)
            case ast.And(operands):
                for operand in operands:
                    left = self.evaluator.where(operand, before)
                    if not left.any():
                        yield f"{indent}false at all of them: {print_expression(operand)}"
                        yield from self.seen(operand, before, indent + "  ")

    def values(self, value: ast.Value, within: Rows, indent: str) -> Iterator[str]:
        """Examples of a value at the context nodes."""
        examples = [*islice(self.value_examples(value, within), _SHOWN + 1)]
        examples[_SHOWN:] = ["…"] * len(examples[_SHOWN:])
        if examples:
            yield f"{indent}found: {', '.join(examples)}"
        elif isinstance(value, ast.Nodes):
            yield f"{indent}found: no such node"

    def value_examples(self, value: ast.Value, within: Rows) -> Iterator[str]:
        evaluator = self.evaluator
        match value:
            case ast.Nodes(paths):
                selected = evaluator.selected(paths, within).tolist()
                return (_quoted(evaluator.string_value(row)) for row in selected)
            case ast.Count() | ast.StringLength():
                return map(str, evaluator.numbers(value, within))
            case text:
                return (_quoted(found) for found in evaluator.strings(text, within))

    def counted(self, nodes: Rows, found: int) -> str:
        lines: dict[int, None] = {}  # in their order, each once
        for row in nodes.tolist():
            lines[self.evaluator.line(row)] = None
            if len(lines) > _SHOWN:
                break
        shown = ", ".join(map(str, [*lines][:_SHOWN]))
        more = ", …" if len(lines) > _SHOWN else ""
        return (
            f"{found:,} node{'' if found == 1 else 's'}, "
            f"line{'' if len(lines) == 1 else 's'} {shown}{more}"
        )


def _labelled(path: ast.Path) -> Iterator[tuple[str, ast.Step]]:
    """The steps, each with its text without predicates.

    ``//x`` is one line: its descendant-or-self step has an empty label.
    """
    separator = "/" if path.absolute else ""
    for index, step in enumerate(path.steps, 1):
        if step == ast.DESCEND and separator and index < len(path.steps):
            yield "", step  # shown with the step that follows
            separator = "//"
        else:
            yield separator + print_step(ast.Step(step.axis, step.test)), step
            separator = "/"


def _quoted(value: bytes) -> str:
    text = " ".join(value[:200].decode(errors="ignore").split())
    return f"'{text[:40]}…'" if len(text) > 40 else f"'{text}'"
