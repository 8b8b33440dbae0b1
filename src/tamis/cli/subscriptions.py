"""``tamis subscriptions``: sets of subscriptions that folders keep."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Annotated, Any, Literal

import tamis
from tamis.cli import arguments as args
from tamis.cli.console import open_results, say
from tamis.cli.options import Argument, Commands, Option
from tamis.core.arguments import is_store
from tamis.core.errors import SubscriptionId, UnknownSubscription, UsageError

_LINES = {
    "create": "Make a folder that keeps subscriptions.",
    "add": "Add subscriptions to a folder, or replace some.",
    "remove": "Remove subscriptions from a folder.",
    "list": "Print the subscriptions of a folder.",
    "compact": "Compile the subscriptions of a folder together.",
}
commands = Commands(
    "subscriptions",
    _LINES,
    package="tamis.cli",
    modules=dict.fromkeys(_LINES, "subscriptions"),
    help="""Keep subscriptions in a folder, where they are added and removed.

    A folder keeps its changes through crashes. One process at a time may change it; others may read
    it meanwhile. Commands that take --subscriptions or --program take such a folder.
    """,
)
EXAMPLES = {
    "create": """\b
Examples:
  tamis subscriptions create orders/ --subscriptions orders.tsv --ns o=urn:orders
  tamis subscriptions create alarms/ --kind events
  tamis subscriptions create messages/ --kind transform --subscriptions queries/
""",
    "add": """\b
Examples:
  tamis subscriptions add orders/ --subscriptions more.tsv
  tamis subscriptions add orders/ --id large --expression '//order[total > 1000]'
  tamis subscriptions add orders/ --replace --id large --expression '//order[total > 5000]'
""",
    "remove": """\b
Examples:
  tamis subscriptions remove orders/ large urgent
""",
    "list": """\b
Examples:
  tamis subscriptions list orders/

\b
Results:
  {"id": "large", "expression": "//order[total > 1000]"}
""",
    "compact": """\b
Examples:
  tamis subscriptions compact orders/
""",
}
Folder = Annotated[Path, Argument(metavar="FOLDER", help="A folder that keeps subscriptions.")]
SomeIds = Annotated[list[str], Argument(metavar="ID", help="The id of what is removed.")]
_GIVEN = Option(
    metavar="FILE|DIR",
    help="A file with subscriptions, as tamis match, match-events or transform takes it.",
)


def create(  # noqa: PLR0913, PLR0917 - one for each option
    folder: Annotated[Path, Argument(metavar="FOLDER")],
    kind: Literal["xpath", "events", "transform"] = "xpath",
    subscriptions: Annotated[Path | None, _GIVEN] = None,
    namespaces: args.Namespaces = args.Namespaces(),
    schema: args.SchemaOptions = args.SchemaOptions(),
    dtd_trust: args.DtdTrust = False,
    engine: args.EngineName = "auto",
    unsupported: args.Unsupported = "refuse",
    limit: args.LimitSettings = None,
) -> None:
    """Make a folder that keeps subscriptions, and what they are read and compiled with.

    Options:
        folder: The folder, which is made; it may exist, if it is empty.
        kind: xpath: for tamis match. events: for tamis match-events. transform: for tamis
            transform.
    """
    if is_store(folder):
        raise UsageError(f"{folder} keeps subscriptions already: tamis subscriptions add adds some")
    limits = args.read_limits(limit)
    settings: dict[str, Any] = {"limits": limits}
    of_documents = (*namespaces, *schema, dtd_trust)
    if kind == "events" and any(of_documents):
        raise UsageError("--kind events: namespaces and DTDs are about documents: leave them out")
    if kind != "xpath" and unsupported != "refuse":
        raise UsageError("--unsupported: lxml evaluates XPath alone: leave it out")
    if kind == "transform" and engine != "auto":
        raise UsageError("--engine: transformations have none: leave it out")
    if kind != "events":
        graph = schema.graph(limits, dtd_trust)
        settings |= namespaces.read() | {"dtd": graph, "dtd_trust": dtd_trust}
    if kind != "transform":
        settings["engine"] = engine
    if kind == "xpath":
        settings["unsupported"] = unsupported
    is_new = not folder.exists()
    try:
        with getattr(tamis, args.KINDS[kind]).open(folder, **settings) as live:
            if subscriptions is not None:
                live.add_many(subscriptions, durable=True)
                live.compact()
            say(f"{folder}: {len(live):,} subscriptions")
    except BaseException:
        if is_new:
            rmtree(folder, ignore_errors=True)
        raise


def add(
    folder: Folder,
    subscriptions: Annotated[Path | None, _GIVEN] = None,
    id: Annotated[str | None, Option(metavar="ID")] = None,
    expression: Annotated[str | None, Option(metavar="TEXT")] = None,
    replace: bool = False,
) -> None:
    """Add subscriptions, all of them or, if one cannot be used, none.

    The command ends when they are safe on the disk.

    Options:
        id: The id of a single subscription.
        expression: Its expression.
        replace: Replace the subscriptions whose ids are there.
    """
    if (subscriptions is None) == (id is None) or (id is None) != (expression is None):
        raise UsageError("give either --subscriptions, or --id and --expression")
    with args.open_store(folder, read_only=False) as live:
        before = len(live)
        given = subscriptions if subscriptions is not None else [(id, expression)]
        (live.update if replace else live.add_many)(given, durable=True)
        say(f"{folder}: {len(live) - before:,} more, {len(live):,} subscriptions")


def remove(folder: Folder, ids: SomeIds) -> None:
    """Remove subscriptions, all of them or, if one is not there, none."""
    with args.open_store(folder, read_only=False) as live:
        found = [_found(live, id) for id in ids]
        for id in dict.fromkeys(found):
            live.remove(id)
        live.flush()
        say(f"{folder}: {len(live):,} subscriptions")


def _found(live: Any, id: str) -> SubscriptionId:
    """An id as it is there: *.ndjson may have numbers."""
    if id in live:
        return id
    with suppress(ValueError):  # of what is no number
        if id.isascii() and int(id) in live:
            return int(id)
    raise UnknownSubscription(id=id)


def list(folder: Folder, output: args.Output = None) -> None:
    """Print one JSON object per subscription, in the order of the results: *.ndjson of them."""
    with args.open_store(folder) as live, open_results(output) as results:
        key = "query" if live.KIND == "transform" else "expression"
        entries = [*live.entries()]
        has_interfaces = any(getattr(one, "interface", one.id) != one.id for one in entries)
        for entry in entries:
            line = {"id": entry.id, key: entry.expression}
            results.write(line | {"interface": entry.interface} if has_interfaces else line)


def compact(folder: Folder) -> None:
    """Compile all subscriptions together, so that the folder opens and matches as fast as it can.

    Without it, Tamis compiles new subscriptions beside the others, and writes what was changed when
    there is much of it.
    """
    with args.open_store(folder, read_only=False) as live:
        live.compact()
        say(f"{folder}: {len(live):,} subscriptions")
