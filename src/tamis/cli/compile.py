"""``tamis compile``: subscriptions, compiled once and saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from tamis.cli.arguments import (
    LimitSettings,
    ReadingRules,
    SkipBad,
    SubscriptionsFile,
    Unsupported,
    read_matcher,
)
from tamis.cli.console import Status, about, warn
from tamis.cli.documents import (
    DOCUMENT_HELP,
    Choice,
    ConcatenatedBy,
    Documents,
    Globs,
    Recursive,
)
from tamis.cli.namespaces import DeclaredPrefixes, DefaultNamespace, Namespaces, NamespacesFile
from tamis.cli.options import Option

if TYPE_CHECKING:
    from tamis.matching.matcher import CompiledMatcher

EXAMPLES = """\b
Examples:
  tamis compile --subscriptions orders.tsv --output orders.tamis
  tamis compile --subscriptions orders.tsv --output orders.tamis --learn yesterday/
  tamis match --program orders.tamis incoming/
"""


def compile(  # noqa: PLR0913, PLR0917 - one for each option
    subscriptions: SubscriptionsFile,
    output: Annotated[
        Path,
        Option(
            metavar="FILE",
            help="Where to save the program. A file that is there is replaced when all is written; "
            "who matches with the old one keeps it.",
        ),
    ],
    namespaces: NamespacesFile = None,
    ns: DeclaredPrefixes = None,
    default_ns: DefaultNamespace = None,
    unsupported: Unsupported = "refuse",
    skip_bad: SkipBad = False,
    learn: Annotated[
        list[str] | None,
        Option(
            "--learn",
            metavar="DOCUMENT",
            help="Match this first, and save what was learned of it beside the program, in "
            f"FILE.cache, so that matching starts warm; or several of these. {DOCUMENT_HELP}",
        ),
    ] = None,
    recursive: Recursive = False,
    glob: Globs = None,
    concatenated: ConcatenatedBy = None,
    limit: LimitSettings = None,
) -> None:
    """Compile subscriptions and save them, for tamis match --program.

    A program is loaded at once, whatever the number of subscriptions, and processes that match with
    the same one share its memory. It is of this version of Tamis: another one says that it has to
    be made again.
    """
    rules = ReadingRules(Namespaces(namespaces, ns, default_ns), unsupported, skip_bad, limit)
    matcher = read_matcher(subscriptions, None, rules, "auto")
    choice = Choice(recursive, glob, concatenated)
    errors = _learn(matcher, Documents(learn or [], choice, matcher.limits))
    matcher.save(output, learned=bool(learn))
    if errors:
        raise Exit(Status.DOCUMENTS)


def _learn(matcher: CompiledMatcher, documents: Documents) -> int:
    """Match documents with one thread, so that one has learned all: how many are in error."""
    errors = 0
    with documents.shown(False) as advance:
        for target, found in documents.answered(matcher.match_many):
            if found.error is not None:
                errors += 1
                warn(f"left out: {about(target.label, found.error)}")
            advance()
    return errors
