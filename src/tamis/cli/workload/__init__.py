"""``tamis workload``: seeded generators of subscriptions, documents and events."""

import typer

from tamis.cli.console import Commands
from tamis.cli.workload import dblp, documents, events, queries, transformations, twigs

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Generate subscriptions, documents and events: for one seed the same bytes everywhere.",
)
app.command(epilog=queries.EXAMPLES)(queries.queries)
app.command(epilog=twigs.EXAMPLES)(twigs.twigs)
app.command(epilog=transformations.EXAMPLES)(transformations.transformations)
app.command(epilog=documents.EXAMPLES)(documents.documents)
app.command(epilog=dblp.EXAMPLES)(dblp.dblp)
app.command(epilog=events.EXAMPLES)(events.events)
