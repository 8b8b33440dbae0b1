"""The command line: ``tamis COMMAND``.

Each command is one module with one function of the same name; what they share is beside them:
``arguments`` (what is asked), ``results`` (standard output), ``console`` (standard error and the
exit status). Modules import Tamis's engines, lxml, rich and Spark inside functions, so that
``tamis --help`` starts fast.
"""

from typing import Annotated

import typer

from tamis import __version__
from tamis.cli import (
    check,
    compile,
    explain,
    match,
    match_events,
    run,
    schema,
    select,
    transform,
    workload,
)
from tamis.cli.console import Commands

__all__ = ["app", "main"]

EXIT_STATUS = """\b
Exit status:
  0    all documents, or events, were answered
  1    the results could not be written; of check --against: there are differences
  2    wrong usage, a pattern that no file fits, or a bad subscription
  3    some document or event was in error; the others were answered; or no document has a --record
  130  interrupted
"""

# Plain help and plain usage errors: they go through pipes and searches unharmed.
app = typer.Typer(
    cls=Commands,
    epilog=EXIT_STATUS,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
)
app.command(epilog=match.EXAMPLES)(match.match)
app.command(epilog=match_events.EXAMPLES)(match_events.match_events)
app.command(epilog=transform.EXAMPLES)(transform.transform)
app.command(epilog=compile.EXAMPLES)(compile.compile)
app.command(epilog=check.EXAMPLES)(check.check)
app.command(epilog=select.EXAMPLES)(select.select)
app.command(epilog=explain.EXAMPLES)(explain.explain)
app.command(epilog=run.EXAMPLES)(run.run)
app.command(epilog=schema.EXAMPLES)(schema.schema)
app.add_typer(workload.app, name="workload")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tamis {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it and end."),
    ] = False,
) -> None:
    """Matches XML documents against XPath subscriptions, and events against theirs.

    Results go to standard output, one JSON object a line; messages go to standard error.
    """


def main() -> None:
    """Runs the command that ``sys.argv`` names, and exits with its status."""
    app()
