"""The command line: ``tamis COMMAND``.

Each command is a function in a module of its name; ``compile`` is in ``match``, ``schema`` in
``explain``, ``completion`` in ``options``. What commands share is beside them: ``options`` (how
functions become commands), ``arguments`` (what is asked), ``documents`` (which are read),
``console`` (results, messages and the exit status).

A command's module is imported when the command is called, and modules import Tamis's engines, lxml,
rich and Spark inside functions: so ``tamis --help`` needs none of them, and a command only its own.
"""

import click

from tamis import __version__
from tamis.cli.options import Commands

__all__ = ["app", "main"]

EXIT_STATUS = """\b
Exit status:
  0    all documents, or events, were answered
  1    the results could not be written; of check --against: there are differences
  2    wrong usage, a pattern that no file fits, or a bad subscription
  3    some document or event was in error; the others were answered; or no document has a --record
  130  interrupted
"""


def _print_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"tamis {__version__}")
        context.exit()


app = Commands(
    "tamis",
    {
        "match": "Match documents against subscriptions.",
        "match-events": "Match events against subscriptions.",
        "transform": "Make of documents the messages that subscriptions want.",
        "compile": "Compile subscriptions and save them.",
        "check": "Check that subscriptions can be used.",
        "select": "Print the nodes that an expression selects, or its value.",
        "explain": "Explain an expression, or its answer to a document.",
        "run": "Match files against subscriptions on Spark.",
        "schema": "Show what a DTD permits.",
        "workload": "Generate subscriptions, documents and events.",
        "completion": "Print the completion of a shell.",
    },
    package=__name__,
    modules={"compile": "match", "schema": "explain", "completion": "options"},
    help="""Matches XML documents against XPath subscriptions, and events against theirs.

    Results go to standard output, one JSON object a line; messages go to standard error.
    """,
    epilog=EXIT_STATUS,
    options=[
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print it and end.",
        )
    ],
)


def main() -> None:
    """Runs the command that ``sys.argv`` names, and exits with its status."""
    app(prog_name="tamis")
