"""``tamis explain``: what an expression asks, and why a document matches it or does not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from tamis.cli.arguments import EncodingRule, LimitSettings, read_limits
from tamis.cli.console import Status, about, say
from tamis.cli.documents import find_document
from tamis.cli.namespaces import DeclaredPrefixes, DefaultNamespace, Namespaces, NamespacesFile
from tamis.cli.options import Argument, Option
from tamis.cli.results import open_results
from tamis.core.errors import DocumentError, EventError, UsageError
from tamis.core.limits import Limits

if TYPE_CHECKING:
    from tamis.documents.encodings import DeclaredEncoding

EXAMPLES = """\b
Examples:
  tamis explain '//order[total > 100]/item[2]'
  tamis explain '//order[total > 100]/item[2]' order.xml
  tamis explain --transformation "$(cat late.xq)" --strategy plan-sharing --dtd orders.dtd
  echo '{"temp": 25}' | tamis explain --events 'area = "a1" and temp > 30 or wind > 20' -
"""


def explain(  # noqa: PLR0913, PLR0917 - one for each option
    expression: Annotated[
        str,
        Argument(
            metavar="EXPRESSION",
            help="An XPath expression; with --events, one of tamis match-events; with "
            "--transformation, a FLWR expression.",
        ),
    ],
    document: Annotated[
        str | None, Argument(metavar="DOCUMENT", help="A file, or - for standard input.")
    ] = None,
    namespaces: NamespacesFile = None,
    ns: DeclaredPrefixes = None,
    default_ns: DefaultNamespace = None,
    declared_encoding: EncodingRule = "check",
    limit: LimitSettings = None,
    events: Annotated[
        bool,
        Option("--events", help="It is of events, and the document is one: a JSON object."),
    ] = False,
    transformation: Annotated[
        bool, Option("--transformation", help="It is one of tamis transform.")
    ] = False,
    strategy: Annotated[
        str,
        Option(
            help="With --transformation: whose plan is printed: relative, path-sharing-f, "
            "path-sharing-fw, path-sharing-fwr, plan-sharing or reference."
        ),
    ] = "auto",
    dtd: Annotated[
        Path | None,
        Option(metavar="FILE", help="With --transformation: a DTD that the plan relies on."),
    ] = None,
    root: Annotated[
        str | None,
        Option(metavar="NAME", help="With --dtd: the element that documents begin with."),
    ] = None,
) -> None:
    """Explain an expression, or its answer to a document.

    Without a document: how the expression is read, part by part. With one: what each step and
    each predicate found in it, up to the first that found nothing. With --events: the filters that
    it comes to, and in each the first constraint that an event does not satisfy. With
    --transformation: the strategy that finds its nodes, and if it is one of the broker paper's, the
    plan, with the claims that it relies on.

    Exit status 0, whether the document matches or not.
    """
    declared = Namespaces(namespaces, ns, default_ns)
    limits = read_limits(limit)
    if transformation:
        if document is not None or events:
            raise UsageError("--transformation: leave out --events and the document")
        explanation = _of_transformation(expression, declared, limits, strategy, dtd, root)
    elif strategy != "auto" or dtd is not None or root is not None:
        raise UsageError(
            "--strategy, --dtd and --root are about transformations: give --transformation too"
        )
    elif events:
        if any(declared):
            raise UsageError("--events: namespaces are about documents: leave them out")
        explanation = _of_events(expression, limits, document)
    else:
        explanation = _of_documents(expression, declared, limits, document, declared_encoding)
    with open_results() as results:
        results.write_text(explanation)


def _of_documents(
    expression: str,
    declared: Namespaces,
    limits: Limits,
    document: str | None,
    encoding: DeclaredEncoding,
) -> str:
    from tamis.language.xpath import parse  # noqa: PLC0415 - keeps --help fast

    if expression.lstrip().startswith("<"):
        raise UsageError("this is no XPath: if it is a transformation, give --transformation")
    query = parse(expression, declared.declared(), limits)
    if document is None:
        from tamis.cli.outline import outline  # noqa: PLC0415 - keeps --help fast

        return "\n".join(outline(query))
    return _on_document(expression, declared, limits, document, encoding)


def _of_transformation(
    text: str,
    declared: Namespaces,
    limits: Limits,
    strategy: str,
    dtd: Path | None,
    root: str | None,
) -> str:
    from tamis.transform.transformer import Transformer  # noqa: PLC0415 - keeps --help fast

    prefixes, default = declared.read()
    transformer = Transformer(
        namespaces=prefixes,
        default_namespace=default,
        strategy=strategy,
        dtd=dtd,
        root=root,
        limits=limits,
    )
    transformer.add("expression", text)
    return transformer.explain("expression")


def _of_events(expression: str, limits: Limits, argument: str | None) -> str:
    from tamis.events.explain import explain as explain_event  # noqa: PLC0415
    from tamis.events.kernels import ODD  # noqa: PLC0415
    from tamis.events.ndjson import read_line  # noqa: PLC0415
    from tamis.events.subscriptions import EventSubscriptions  # noqa: PLC0415
    from tamis.language.constraints import parse_filters, print_filters  # noqa: PLC0415

    filters = parse_filters(expression, limits)
    if argument is None:
        return "\n".join(["any of", *(f"  {print_filters([filter])}" for filter in filters)])
    table = EventSubscriptions([("expression", expression)], limits=limits).table
    try:
        event = read_line(_read_event(argument), ODD, table.names, limits)
    except EventError as error:
        say(about(argument, error))
        raise Exit(Status.DOCUMENTS) from None
    return str(explain_event(table, 0, "expression", event))


def _read_event(argument: str) -> bytes:
    """The bytes of a file, or of standard input."""
    try:
        if argument != "-":
            return Path(argument).read_bytes()
        if sys.stdin is None:  # as it is after <&-
            raise UsageError("standard input is closed")
        return sys.stdin.buffer.read()
    except (OSError, ValueError) as error:  # a NUL in the path
        raise UsageError(f"cannot read {argument}: {getattr(error, 'strerror', error)}") from None


def _on_document(
    expression: str,
    declared: Namespaces,
    limits: Limits,
    argument: str,
    encoding: DeclaredEncoding,
) -> str:
    from tamis.matching.matcher import compile_subscriptions  # noqa: PLC0415 - keeps --help fast

    prefixes, default = declared.read()
    matcher = compile_subscriptions(
        [("expression", expression)], namespaces=prefixes, default_namespace=default, limits=limits
    )
    document = find_document(argument).document
    try:
        if isinstance(document, DocumentError):
            raise document
        return str(matcher.explain(document, "expression", declared_encoding=encoding))
    except DocumentError as error:
        say(about(argument, error))
        raise Exit(Status.DOCUMENTS) from None
