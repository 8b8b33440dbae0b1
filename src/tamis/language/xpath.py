"""Subscription text → :class:`~tamis.language.model.Query`, or a refusal that says where and why.

What is supported is the forward fragment of XPath 1.0 that can be answered in one pass over a
document (the table in docs/xpath.md, generated from the tests). :mod:`tamis.language.grammar` reads
all of XPath; :mod:`tamis.language.analyzer` makes queries of it or refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from tamis.core.errors import SubscriptionSyntaxError, UnsupportedExpression
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language import grammar as tree
from tamis.language.analyzer import FOR_EVENTS, NOT_ELEMENTS, Analyzer, Operand, ValueAnalyzer
from tamis.language.grammar import StepSyntax, Syntax, parse_syntax, walk
from tamis.language.model import Constant, NameTest, Query

__all__ = ["Operand", "Unsupported", "absolute_xpath", "element_tests", "parse", "parse_value"]

Unsupported = Literal["refuse", "slow"]
"""What becomes of XPath outside the streamed fragment: it is an error, or lxml evaluates it."""


def parse(
    text: str,
    namespaces: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    *,
    with_hint: bool = True,
) -> Query:
    """Read one subscription, an XPath 1.0 expression whose context is the document node.

    ``namespaces`` are prefix → URI; ``xml`` is always declared, and ``""`` is of elements without
    a prefix. ``with_hint``: a refusal says what to write instead; to find that takes longer than
    to refuse.

    Raises:
        SubscriptionSyntaxError: ``text`` is not XPath 1.0, or uses an undeclared prefix.
        UnsupportedExpression: it is, but outside the streamed fragment.
        SubscriptionLimitError: it reaches a limit.

    >>> parse("//a[last()]")
    Traceback (most recent call last):
    tamis.core.errors.UnsupportedExpression: last() is not supported: how many siblings follow ...
      //a[last()]
          ^
      hint: unsupported="slow" has lxml evaluate it
    """
    syntax = _syntax(text, limits)
    analyzer = Analyzer(text, namespaces or {})
    return analyzer.analyzed(syntax, analyzer.query, with_hint=with_hint)


def _syntax(text: str, limits: Limits) -> Syntax:
    try:
        return parse_syntax(text, limits)
    except SubscriptionSyntaxError as error:
        from tamis.language.events import is_filter  # noqa: PLC0415 - for a message

        if not is_filter(text, limits):
            raise
        raise SubscriptionSyntaxError(error.message, text, error.position, FOR_EVENTS) from None


def parse_value(
    text: str, namespaces: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Operand:
    """Read an expression that is to be evaluated, document by document; errors as :func:`parse`.

    More is supported than :func:`parse` does: ``count()`` of any path, and ``string()``.

    >>> parse_value("2"), parse_value("count(//a) > 1") == parse_value("1 < count(//a)")
    (2.0, True)
    """
    syntax = _syntax(text, limits)
    analyzer = ValueAnalyzer(text, namespaces or {})
    return analyzer.analyzed(syntax, analyzer.operand, as_boolean=False)


def parse_any(
    text: str, namespaces: Mapping[str, str], unsupported: Unsupported, limits: Limits
) -> Query:
    """As :func:`parse`; ``"slow"`` accepts expressions outside the streamed fragment, for lxml.

    >>> parse_any("a[last()]", {}, "slow", DEFAULT_LIMITS).unstreamed
    '/a[last()]'
    """
    is_refused = unsupported == "refuse"
    try:
        return parse(text, namespaces, limits, with_hint=is_refused)
    except UnsupportedExpression:
        if is_refused:
            raise
    absolute = absolute_xpath(text, namespaces, limits)
    declared = tuple(sorted((prefix, uri) for prefix, uri in namespaces.items() if prefix))
    return Query(Constant(False), declared, unstreamed=absolute)


def absolute_xpath(
    text: str, namespaces: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> str:
    """Check any XPath 1.0 expression, and write its context, the document node, into it.

    Name tests that XPath 1.0 does not have become predicates: ``Q{URI}name``, ``*:name``, and those
    of a default namespace. Variables, which nobody could bind, are unsupported.

    >>> absolute_xpath("a[last()]", {"": "urn:d"})
    "/*[local-name() = 'a' and namespace-uri() = 'urn:d'][last()]"
    """
    syntax = _syntax(text, limits)
    analyzer = Analyzer(text, namespaces or {})
    analyzer.check(syntax)
    return absolute_text(text, syntax, _changes(analyzer, syntax))


def element_tests(
    text: str, namespaces: Mapping[str, str], limits: Limits = DEFAULT_LIMITS
) -> list[NameTest]:
    """The tests of names of elements in an expression that can be used, as they are written.

    >>> element_tests("//a[b/@c]", {})
    [NameTest(namespace='', local='a'), NameTest(namespace='', local='b')]
    """
    analyzer = Analyzer(text, namespaces)
    steps = [
        step
        for step in walk(parse_syntax(text, limits))
        if isinstance(step, StepSyntax) and step.has_name and step.axis not in NOT_ELEMENTS
    ]
    return [analyzer.name_test(step) for step in sorted(steps, key=lambda step: step.test_position)]


# -- expressions of XPath 1.0 for other evaluators -------------------------------------------------

_CONTEXT_FUNCTIONS = frozenset(
    "string string-length normalize-space number name local-name namespace-uri".split()
)
Change = tuple[int, int, str]
"""From where to where a text is replaced, and by what."""


def absolute_text(text: str, syntax: Syntax, changes: Iterable[Change] = ()) -> str:
    """The expression with the document node as its context, and with changes inside of steps.

    Evaluators that start from the root element (lxml) then give the answer of one that starts from
    the document node: position 1 of 1, and in no language.

    >>> text = "count(a[b]) > 1 and .//c and name() = '' and last() = 2"
    >>> absolute_text(text, parse_syntax(text, DEFAULT_LIMITS))
    "count(/a[b]) > 1 and /.//c and name(/) = '' and 1 = 2"
    """
    changes = list(changes)
    pending = [syntax]
    while pending:
        node = pending.pop()
        match node:
            case tree.LocationPath(position=position, absolute=False):
                changes.append((position, position, "/"))
            case tree.FilterExpression(primary=inner) | tree.Negation(operand=inner):
                pending.append(inner)
            case tree.Call(name="position" | "last", position=position, close=close):
                changes.append((position, close + 1, "1"))
            case tree.Call(name="lang", position=position, close=close):
                changes.append((position, close + 1, "false()"))
            case tree.Call(name=name, arguments=(), close=close) if name in _CONTEXT_FUNCTIONS:
                changes.append((close, close, "/"))
            case tree.Call(arguments=parts) | tree.Operation(operands=parts):
                pending += parts
            case _:
                pass
    for start, end, written in sorted(changes, reverse=True):
        text = text[:start] + written + text[end:]
    return text


def _changes(analyzer: Analyzer, syntax: Syntax) -> Iterator[Change]:
    """The changes that turn all other name tests into predicates of XPath 1.0."""
    for step in walk(syntax):
        if not isinstance(step, StepSyntax) or not step.has_name:
            continue
        test = analyzer.name_test(step)
        if test.prefix and "{" not in test.prefix:
            continue
        if test.prefix is not None or test.namespace or (test.namespace is None and test.local):
            conditions = [] if test.local is None else [f"local-name() = '{test.local}'"]
            if test.namespace is not None:
                conditions.append(f"namespace-uri() = {_quoted(test.namespace)}")
            end = step.test_position + len(step.test)
            yield step.test_position, end, f"*[{' and '.join(conditions)}]"


def _quoted(text: str) -> str:
    if "'" not in text:
        return f"'{text}'"
    return "concat('" + "', \"'\", '".join(text.split("'")) + "')"
