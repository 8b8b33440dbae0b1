"""``tamis compile``: subscriptions, compiled once and saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from tamis.cli import arguments as args
from tamis.cli.console import Status, about, warn
from tamis.cli.documents import DOCUMENT_HELP, DocumentChoice, Documents
from tamis.cli.options import Option

if TYPE_CHECKING:
    from tamis.matching.matcher import CompiledMatcher

EXAMPLES = """\b
Examples:
  tamis compile --subscriptions orders.tsv --output orders.tamis
  tamis compile --subscriptions orders.tsv --output orders.tamis --warm yesterday/
  tamis match --program orders.tamis incoming/
"""


def compile(
    subscriptions: args.SubscriptionsFile,
    output: Path,
    namespaces: args.Namespaces = args.Namespaces(),
    unsupported: args.Unsupported = "refuse",
    skip_bad: args.SkipBad = False,
    warm: Annotated[
        list[str] | None,
        Option(
            "--warm",
            metavar="DOCUMENT",
            help="Match this first, and save the warm cache beside the program, in FILE.cache; "
            f"or several of these. {DOCUMENT_HELP}",
        ),
    ] = None,
    choice: DocumentChoice = DocumentChoice(),
    limit: args.LimitSettings = None,
) -> None:
    """Compile subscriptions and save them, for tamis match --program.

    A program is loaded at once, whatever the number of subscriptions, and processes that match with
    the same one share its memory. It is of this version of Tamis: another one says that it has to
    be made again.

    Options:
        output: Where to save the program. A file that is there is replaced when all is written; who
            matches with the old one keeps it.
    """
    options = args.ParseOptions(namespaces, unsupported, skip_bad, limit)
    matcher = args.read_matcher(subscriptions, None, options, "auto")
    errors = _warm(matcher, Documents(warm or [], choice, matcher.limits))
    matcher.save(output, warm=bool(warm))
    if errors:
        raise Exit(Status.DOCUMENTS)


def _warm(matcher: CompiledMatcher, documents: Documents) -> int:
    """Match documents with one thread, so that one cache has all; says how many are in error."""
    errors = 0
    with documents.shown(False) as advance:
        for target, found in documents.answered(matcher.match_many):
            if found.error is not None:
                errors += 1
                warn(f"left out: {about(target.label, found.error)}")
            advance()
    return errors
