"""``tamis run``: match files on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from tamis.cli.arguments import (
    EngineName,
    NamespacesFile,
    ProgramFile,
    ReadingRules,
    RecordTag,
    SkipBad,
    SubscriptionsOrProgram,
    Unsupported,
    read_matcher,
)
from tamis.cli.console import Status, say
from tamis.errors import UsageError

EXAMPLES = """\b
Examples:
  tamis run --subscriptions orders.tsv --input incoming/ --output answers/
  tamis run --subscriptions orders.tsv --input 'archive/2026-*/*.xml' --output answers/ \\
      --master 'local[4]' --conf spark.driver.memory=4g
  tamis run --program titles.tamis --record page --input enwiki.xml --output answers/
  tamis run --subscriptions orders.tsv --input incoming/ --output answers/ --only-new

\b
Results, as Parquet:
  answers/matches   document, record, subscription, set_version, tamis_version: one row a match
  answers/errors    document, record, code, message, line, column, offset: one row an error
  answers/manifest  file, size, modified, set_version, …: the files that were read
"""

# Neither documents nor matches enter the JVM, so it need not compile itself for speed, which takes
# longer than a small job.
JVM_SETTINGS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def run(  # noqa: PLR0913, PLR0917 - one for each option
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input",
            metavar="PATH",
            help="A file, a folder (its *.xml and *.xml.gz), an archive (zip, tar, tar.gz: the "
            "same, of its members), a quoted pattern, or the URI of one of these (s3://…); or "
            "several of these.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(metavar="DIR", help="The folder for the folders of results."),
    ],
    more_inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="More of these: --input takes several."),
    ] = None,
    subscriptions: SubscriptionsOrProgram = None,
    program: ProgramFile = None,
    record: RecordTag = None,
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
        typer.Option("--overwrite", help="Replace the results in DIR, if there are any."),
    ] = False,
    only_new: Annotated[
        bool,
        typer.Option(
            "--only-new",
            help="Match the files that are not in DIR/manifest as they are now (their size, and "
            "when they were changed), and add the answers to those in DIR.",
        ),
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
    from tamis.spark.output import Output  # noqa: PLC0415
    from tamis.spark.session import SPARK_ERRORS  # noqa: PLC0415

    # What the user may have got wrong is found out before Spark starts, which takes a while.
    properties = JVM_SETTINGS | _properties(conf or [])
    if overwrite and only_new:
        raise UsageError("give either --overwrite or --only-new")
    rules = ReadingRules(namespaces, unsupported, skip_bad)
    made = spark.program(read_matcher(subscriptions, program, rules, engine))
    place = Output(output)
    if not (overwrite or only_new):
        place.check_new()
    with spark.start_spark(master, properties) as session:
        try:
            paths = [*inputs, *(more_inputs or [])]
            summary = spark.run(
                session,
                made,
                paths,
                output,
                record=record,
                overwrite=overwrite,
                only_new=only_new,
            )
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
