"""``tamis transform``: what subscriptions make of documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tamis.cli import arguments as args
from tamis.cli import console
from tamis.cli.console import Results, open_results
from tamis.cli.documents import DOCUMENT_HELP, DocumentChoice, Documents, Target
from tamis.cli.options import Argument, Option
from tamis.core.arguments import is_store
from tamis.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.core.errors import SubscriptionId
    from tamis.core.limits import Limits
    from tamis.language.flwr import Transformation
    from tamis.transform.snapshot import Messages

EXAMPLES = """\b
Examples:
  tamis transform --subscriptions queries/ incoming/ > messages.ndjson
  tamis transform --subscriptions queries.ndjson order.xml
  gunzip -c order.xml.gz | tamis transform --subscriptions late.xq -

\b
Results:
  {"document": "1.xml", "subscription": "late", "message": "<late>…</late>"}
  {"document": "1.xml", "subscription": "all", "error": "the message is longer than the limit …"}
  {"document": "2.xml", "error": "mismatched tag", "line": 3, "column": 7}
"""


def transform(  # noqa: PLR0913, PLR0917 - one for each option
    documents: Annotated[list[str], Argument(metavar="DOCUMENT", help=DOCUMENT_HELP)],
    subscriptions: Annotated[list[Path], Option(metavar="DIR|FILE")],
    namespaces: args.Namespaces = args.Namespaces(),
    declared_encoding: args.EncodingRule = "check",
    skip_bad: args.SkipBad = False,
    unsupported: Annotated[str, Option("--unsupported", hidden=True)] = "refuse",
    choice: DocumentChoice = DocumentChoice(),
    limit: args.LimitSettings = None,
    output: args.Output = None,
) -> None:
    """Transform documents into the messages that subscriptions define.

    A subscription is an XQuery FLWR expression inside a constant element: for $s in a path, with an
    optional condition and order, return content for each $s; see docs/transform.md.

    Prints one JSON object per message, in the order of the documents and then of the subscriptions.
    If a subscription selects nothing in a document, there is no message. Each document or message
    in error is one object with "error". The exit status is then 3.

    Options:
        subscriptions: A folder with files ID.xq, one such file, or *.ndjson, where each line is
            {"id": …, "query": "…"}. Repeatable. Or a folder of tamis subscriptions.
    """
    from tamis.transform.transformer import Transformer  # noqa: PLC0415 - keeps --help fast

    if unsupported != "refuse":
        raise UsageError(
            "--unsupported: lxml does not answer transformations (FLWR): it evaluates XPath alone"
        )
    if any(map(is_store, subscriptions)):
        if len(subscriptions) > 1:
            raise UsageError("--subscriptions: give a folder of tamis subscriptions alone")
        about = (*namespaces, skip_bad, limit)
        with args.open_store(subscriptions[0], "transform", given=about) as transformer:
            limits = transformer.limits
    else:
        limits = args.read_limits(limit)
        read = _read(subscriptions, namespaces.declared(), skip_bad, limits)
        transformer = Transformer(read, limits=limits)
    given = Documents(documents, choice, limits)
    with open_results(output) as results, given.shown(results.is_terminal) as advance:
        for target in given:
            (messages,) = transformer.transform_many(
                [target.document], declared_encoding=declared_encoding
            )
            _write(results, target, messages)
            advance()


def _read(
    files: list[Path], prefixes: Mapping[str, str], skip_bad: bool, limits: Limits
) -> Mapping[SubscriptionId, Transformation]:
    """The subscriptions that can be used; the others are listed on standard error.

    Raises:
        Exit: there are others, and ``skip_bad`` is false.
    """
    from tamis.language.flwr import read_transformations  # noqa: PLC0415

    found = read_transformations(files, prefixes, limits)
    good, where = len(found.transformations), ", ".join(map(str, files))
    errors = [f"{refused.file}, {refused.error}" for refused in found.refused]
    args.list_errors(errors, good, where, skip_bad)
    args.check_usable(len(errors), good, where, skip_bad)
    return found.transformations


def _write(results: Results, target: Target, messages: Messages) -> None:
    if messages.error is not None:
        results.write_error(target, messages.error)
        return
    for message in messages:
        line = console.of_document(target) | {"subscription": message.subscription}
        if message.error is None:
            line["message"] = message.text
        else:
            line["error"] = console.in_options(str(message.error))
            results.errors += 1
        results.write(line)
