"""``tamis explain``: what an expression asks, and why a document matches it or does not."""

from __future__ import annotations

from typing import Annotated

import typer

from tamis.cli.arguments import NamespacesFile, find_document, read_prefixes
from tamis.cli.console import Status, say
from tamis.cli.results import open_results
from tamis.errors import DocumentError

EXAMPLES = """\b
Examples:
  tamis explain '//order[total > 100]/item[2]'
  tamis explain '//order[total > 100]/item[2]' order.xml
"""


def explain(
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION", help="An XPath expression.")],
    document: Annotated[
        str | None, typer.Argument(metavar="DOCUMENT", help="A file, or - for standard input.")
    ] = None,
    namespaces: NamespacesFile = None,
) -> None:
    """Explain an expression, or its answer to a document.

    Without a document: how the expression is read, part by part. With one: what each step and
    each predicate found in it, up to the first that found nothing.

    Exit status 0, whether the document matches or not.
    """
    from tamis.language.xpath import parse  # noqa: PLC0415 - keeps --help fast

    prefixes = read_prefixes(namespaces)
    query = parse(expression, prefixes)
    if document is None:
        from tamis.cli.outline import outline  # noqa: PLC0415 - keeps --help fast

        explanation = "\n".join(outline(query))
    else:
        explanation = _on_document(expression, prefixes, document)
    with open_results() as results:
        results.write_text(explanation)


def _on_document(expression: str, prefixes: dict[str, str], argument: str) -> str:
    from tamis.language.subscriptions import Subscriptions  # noqa: PLC0415 - keeps --help fast
    from tamis.matching.matcher import compile_subscriptions  # noqa: PLC0415

    matcher = compile_subscriptions(
        Subscriptions([("expression", expression)], namespaces=prefixes)
    )
    document = find_document(argument).document
    try:
        if isinstance(document, DocumentError):
            raise document
        return str(matcher.explain(document, "expression"))
    except DocumentError as error:
        say(f"{argument}: {error}")
        raise typer.Exit(Status.DOCUMENTS) from None
