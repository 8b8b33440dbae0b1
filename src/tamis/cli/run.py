"""``tamis run``: match files on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from tamis.cli.arguments import (
    EngineName,
    NamespacesFile,
    SkipBad,
    SubscriptionsFile,
    Unsupported,
    read_subscriptions,
)
from tamis.cli.console import Status, say
from tamis.errors import UsageError

EXAMPLES = """\b
Examples:
  tamis run --subscriptions orders.tsv --input incoming/ --output answers/
  tamis run --subscriptions orders.tsv --input 'archive/2026-*/*.xml' --output answers/ \\
      --master 'local[4]' --conf spark.driver.memory=4g

\b
Results, as Parquet:
  answers/matches  document, record, subscription: one row a match
  answers/errors   document, record, code, message, line, column: one row a document in error
"""

# Neither documents nor matches enter the JVM, so it need not compile itself for speed, which takes
# longer than a small job.
JVM_SETTINGS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def run(  # noqa: PLR0913, PLR0917 - one for each option
    subscriptions: SubscriptionsFile,
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input",
            metavar="PATH",
            help="A file, a folder (its *.xml and *.xml.gz) or a quoted pattern; or several of "
            "these.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(metavar="DIR", help="The folder for the folders matches and errors."),
    ],
    more_inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="More of these: --input takes several."),
    ] = None,
    master: Annotated[
        str,
        typer.Option(metavar="URL", help="Where Spark runs: here, or on the cluster of this URL."),
    ] = "local[*]",
    engine: EngineName = "auto",
    namespaces: NamespacesFile = None,
    unsupported: Unsupported = "refuse",
    skip_bad: SkipBad = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace DIR/matches and DIR/errors, if they exist."),
    ] = False,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A property of Spark. May be given several times."),
    ] = None,
) -> None:
    """Match files against subscriptions on Spark, and write the answers as Parquet.

    Spark's tasks get the paths of the files, so all of its machines must see them. A document in
    error, or a path that leads nowhere, makes the exit status 3; the others are answered. Needs
    Java 17 or newer.
    """
    from tamis import spark  # noqa: PLC0415 - keeps --help fast
    from tamis.matching.matcher import compile_subscriptions  # noqa: PLC0415
    from tamis.spark.output import check_output  # noqa: PLC0415
    from tamis.spark.session import SPARK_ERRORS  # noqa: PLC0415

    # What the user may have got wrong is found out before Spark starts, which takes a while.
    properties = JVM_SETTINGS | _properties(conf or [])
    usable = read_subscriptions(subscriptions, namespaces, unsupported, skip_bad)
    matcher = compile_subscriptions(usable, engine=engine)
    check_output(output, overwrite)
    with spark.start_spark(master, properties) as session:
        try:
            paths = [*inputs, *(more_inputs or [])]
            summary = spark.run(session, matcher, paths, output, overwrite=overwrite)
        except SPARK_ERRORS as error:
            said, _, _ = str(error).partition("\nDriver stacktrace:")
            lines = [line for line in said.splitlines() if not line.startswith("\t")]
            say("\n".join(["Spark could not finish the job:", *lines]))
            raise typer.Exit(Status.FAILED) from None
    say(str(summary))
    if summary.errors:
        say(f"what is wrong with them is in {output}/errors")
        raise typer.Exit(Status.DOCUMENTS)


def _properties(settings: Sequence[str]) -> dict[str, str]:
    """Spark's properties.

    >>> _properties(["spark.executor.memory=4g"])
    {'spark.executor.memory': '4g'}
    """
    for setting in settings:
        if "=" not in setting:
            raise UsageError(f"--conf {setting}: expected KEY=VALUE")
    pairs = (setting.partition("=") for setting in settings)
    return {key.strip(): value for key, _, value in pairs}
