"""The command line: ``tamis COMMAND``.

Each command is a function in a module of its name; ``compile`` is in ``match``, ``schema`` in
``explain``, ``completion`` in ``options``. What commands share is beside them: ``options`` (how
functions become commands), ``arguments`` (common options), ``documents`` (input), ``console``
(results, messages and the exit status).

A command's module is imported when the command is called, and modules import Tamis's engines, lxml,
rich and Spark inside functions: so ``tamis --help`` needs none of them, and a command only its own.
"""

import click

from tamis import __version__
from tamis.cli.options import Commands

__all__ = ["app", "main"]

EXIT_STATUS = """\b
Exit status:
  0    every document or event was answered
  1    the output cannot be written, or check --against printed a difference
  2    wrong usage, a pattern that matches no file, or a bad subscription
  3    a document or event is in error, and the others were answered;
       or no document has records (--record)
  130  interrupted
"""


def _print_version(context: click.Context, _: click.Parameter, is_set: bool) -> None:
    if is_set:
        click.echo(f"tamis {__version__}")
        context.exit()


app = Commands(
    "tamis",
    {
        "match": "Match documents against subscriptions.",
        "match-events": "Match events against subscriptions.",
        "transform": "Transform documents into messages for subscriptions.",
        "convert": "Convert rules of others to subscriptions of events.",
        "compile": "Compile subscriptions and save the program.",
        "subscriptions": "Keep subscriptions in a folder, and change them.",
        "check": "Check subscriptions for errors.",
        "select": "Print the nodes that an expression selects, or its value.",
        "explain": "Explain an expression, or its answer to a document.",
        "serve": "Serve a broker over HTTP.",
        "publish": "Publish documents or events to a broker.",
        "subscribe": "Add subscriptions to a broker.",
        "tail": "Print the messages of a broker's subscription.",
        "run": "Match files against subscriptions on Spark.",
        "schema": "Show the structure that a DTD permits.",
        "hardware": "Generate circuits from subscriptions, and simulate them.",
        "workload": "Generate subscriptions, documents and events.",
        "completion": "Print a completion script for a shell.",
    },
    package=__name__,
    modules={
        **dict.fromkeys(("serve", "publish", "subscribe", "tail"), "broker"),
        "compile": "match",
        "schema": "explain",
        "completion": "options",
    },
    help="""Matches XML documents and events against standing subscriptions.

    Prints results on standard output, one JSON object per line, and messages on standard error.
    """,
    epilog=EXIT_STATUS,
    params=[
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print the version and exit.",
        )
    ],
)


def main() -> None:
    """Runs the command that ``sys.argv`` names, and exits with its status."""
    app(prog_name="tamis")
