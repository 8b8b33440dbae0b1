"""``tamis run``: match files on Spark."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from click.exceptions import Exit

from tamis.cli import arguments as args
from tamis.cli.console import Status, say
from tamis.cli.documents import RecordTag
from tamis.cli.options import Argument, Option
from tamis.core.errors import UsageError

if TYPE_CHECKING:
    from tamis.spark.program import ProgramArtifact
    from tamis.spark.stream import StreamingQuery

EXAMPLES = """\b
Examples:
  tamis run --subscriptions orders.tsv --input incoming/ --output answers/
  tamis run --subscriptions orders.tsv --input 'archive/2026-*/*.xml' --output answers/ \\
      --master 'local[4]' --conf spark.driver.memory=4g
  tamis run --program titles.tamis --record page --input enwiki.xml --output answers/
  tamis run --subscriptions orders.tsv --input incoming/ --output answers/ --only-new
  tamis run --subscriptions orders.tsv --input incoming/ --output answers/ --stream

\b
Results, as Parquet:
  answers/matches   document, record, subscription, set_version, tamis_version: one row a match
  answers/errors    document, record, code, message, line, column, offset, subscription: one row an
                    error; subscription is null where the whole document is in error
  answers/manifest  file, size, modified, set_version, …: the files that were read
"""

# Neither documents nor matches enter the JVM, so it need not compile itself for speed, which takes
# longer than a small job.
JVM_SETTINGS = dict.fromkeys(
    ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"), "-XX:TieredStopAtLevel=1"
)


class StreamOptions(NamedTuple):
    """How a stream goes on: what only ``--stream`` takes.

    Options:
        checkpoint: With --stream: where to remember how far it is, to go on from there when it is
            started again.
        trigger: With --stream: how often to look, as "10 seconds"; or "now": match what is there
            and was not matched before, and end.
        max_files: With --stream: so many files at a time at most.
    """

    checkpoint: Annotated[
        Path | None, Option(metavar="DIR", show_default="a folder in that of the output")
    ] = None
    trigger: Annotated[str | None, Option(metavar="TIME", show_default="all the time")] = None
    max_files: Annotated[int | None, Option(metavar="N", min=1, show_default="1000")] = None


def run(  # noqa: PLR0913, PLR0917 - one for each option
    inputs: Annotated[list[str], Option("--input", metavar="PATH")],
    output: Annotated[str, Option(metavar="DIR")],
    more_inputs: Annotated[list[str] | None, Argument(metavar="PATH")] = None,
    subscriptions: args.SubscriptionsOrProgram = None,
    program: args.ProgramFile = None,
    record: RecordTag = None,
    master: Annotated[
        str | None, Option(metavar="URL", show_default="local[*], or what spark-submit says")
    ] = None,
    engine: args.EngineName = "auto",
    namespaces: args.Namespaces = args.Namespaces(),
    unsupported: args.Unsupported = "refuse",
    skip_bad: args.SkipBad = False,
    declared_encoding: args.EncodingRule = "check",
    limit: args.LimitSettings = None,
    overwrite: bool = False,
    only_new: bool = False,
    program_memory: Annotated[int, Option(metavar="MB", min=1)] = 4096,
    is_stream: Annotated[bool, Option("--stream")] = False,
    of_stream: StreamOptions = StreamOptions(),
    conf: Annotated[list[str] | None, Option(metavar="KEY=VALUE")] = None,
) -> None:
    """Match files against subscriptions on Spark, and write the answers as Parquet.

    Spark's tasks get the paths of the files, so all of its machines must see them. A document in
    error makes the exit status 3; the others are answered. A path that leads nowhere makes it 2,
    and nothing is read. Needs Java 17 or newer.

    With --stream, files that come into folders are matched in micro-batches; each of them appears
    as a whole, once, whatever dies and is started again. A new version of the subscriptions takes
    effect with the next one. --output may then be a database: postgresql://user@host/name, whose
    rows count where tamis_runs has their run (batch) as done.

    Options:
        inputs: A file, a folder (its *.xml and *.xml.gz), an archive (zip, tar, tar.gz: the same,
            of its members), a quoted pattern, or the URI of one of these (s3://…); or several of
            these.
        output: The folder for the folders of results.
        more_inputs: More of these: --input takes several.
        master: Where Spark runs: here, or on the cluster of this URL.
        overwrite: Replace the results in DIR, if there are any.
        only_new: Match the files that are not in DIR/manifest as they are now (their size, and when
            they were changed), whatever subscriptions they were matched with, and add the answers
            to those in DIR. What could not be read is tried again.
        program_memory: What the compiled subscriptions may take of each machine's memory. More of
            them are divided among tasks, which then read the documents as often.
        is_stream: Go on: match what comes into these folders, until the command is interrupted.
        conf: A property of Spark. May be given several times.
    """
    from tamis import spark  # noqa: PLC0415 - keeps --help fast
    from tamis.spark.splits import check_paths  # noqa: PLC0415

    # What the user may have got wrong is found out before Spark starts, which takes a while.
    properties = JVM_SETTINGS | _properties(conf or [])
    asked = {"--overwrite": overwrite, "--only-new": only_new, "--stream": is_stream}
    if sum(asked.values()) > 1:
        raise UsageError(f"choose one of {' and '.join(name for name in asked if asked[name])}")
    if not is_stream and of_stream != StreamOptions():
        raise UsageError("--checkpoint, --trigger and --max-files are for --stream")
    paths = [*inputs, *(more_inputs or [])]
    wanted: dict[str, Any] = {"record": record, "declared_encoding": declared_encoding}

    def read() -> ProgramArtifact:
        options = args.ParseOptions(namespaces, unsupported, skip_bad, limit)
        matcher = args.read_matcher(subscriptions, program, options, engine)
        return spark.program(matcher, bytes_max=program_memory << 20)

    if is_stream:
        file = subscriptions or program or Path()
        _stream(_started(master, properties), read, file, paths, output, of_stream, wanted)
        return
    check_paths(paths)
    made = read()
    _check_output(output, overwrite or only_new)
    with _started(master, properties) as session:
        wanted |= {"overwrite": overwrite, "only_new": only_new}
        summary = spark.run(session, made, paths, output, **wanted)
    say(f"{summary} (Spark's start apart)")
    if len(made.partitions) > 1:
        say(summary.plan)
    if summary.errors:
        say(f"what is wrong with them is in {output}/errors")
        raise Exit(Status.DOCUMENTS)


def _stream(
    started: AbstractContextManager[Any],
    read: Callable[[], ProgramArtifact],
    file: Path,
    paths: list[str],
    output: str,
    options: StreamOptions,
    wanted: dict[str, Any],
) -> None:
    """Match what comes into folders, until the stream ends or a signal comes.

    ``wanted`` are the arguments of ``tamis.spark.stream`` about documents.
    """
    from tamis import spark  # noqa: PLC0415
    from tamis.spark.postgres import is_postgres  # noqa: PLC0415
    from tamis.spark.stream import NO_CHECKPOINT, stream_folders  # noqa: PLC0415

    stream_folders(paths, options.trigger)
    if is_postgres(output) and options.checkpoint is None:
        raise UsageError(NO_CHECKPOINT)
    batches = errors = 0

    def read_again() -> ProgramArtifact:
        try:
            return read()
        except Exit:  # it was said why
            raise UsageError(f"{file} cannot be used") from None

    def told(run: str, version: str, done: spark.Summary) -> None:
        nonlocal batches, errors
        say(f"{run}, set {version}: {done}")
        batches += 1
        errors += done.errors

    source = spark.Reloading(file, read_again)
    with started as session:
        query = spark.stream(
            session,
            source,
            paths,
            output,
            checkpoint=options.checkpoint,
            trigger=options.trigger,
            files_max=options.max_files or 1000,
            on_batch=told,
            **wanted,
        )
        if options.trigger != "now":
            say(f"watching {', '.join(paths)}: interrupt it, and it ends")
        _wait_for(query)
    if options.trigger == "now" and not batches:
        say("nothing is new")
    if errors:
        raise Exit(Status.DOCUMENTS)


def _check_output(output: str, may_exist: bool) -> None:
    from tamis.spark.parquet import ParquetStore  # noqa: PLC0415
    from tamis.spark.postgres import is_postgres  # noqa: PLC0415

    if is_postgres(output):
        raise UsageError(
            "a database is an output of --stream: --trigger now ends with what is there"
        )
    store = ParquetStore(output)
    if not may_exist:
        with store.turn():
            store.check_new()


@contextmanager
def _started(master: str | None, properties: dict[str, str]) -> Iterator[Any]:
    """Spark, whose errors are reported without the stack of its JVM."""
    from tamis import spark  # noqa: PLC0415
    from tamis.spark.session import spark_errors  # noqa: PLC0415

    with spark.start_spark(master, properties) as session:
        try:
            yield session
        except spark_errors() as error:
            said, _, _ = str(error).partition("\nDriver stacktrace:")
            lines = [line for line in said.splitlines() if not line.startswith("\t")]
            say("\n".join(["Spark could not finish the job:", *lines]))
            raise Exit(Status.FAILED) from None


def _wait_for(query: StreamingQuery) -> None:
    """Wait until a query ends, or a signal says that it should."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        while not query.awaitTermination(1):  # signals are heard between two calls
            pass
    except KeyboardInterrupt:
        say("stopped: started again, it goes on from here")
    finally:
        signal.signal(signal.SIGTERM, before)
        with suppress(Exception):  # the signal may have been for Spark's JVM too
            query.stop()


def _properties(settings: Sequence[str]) -> dict[str, str]:
    """Spark's properties.

    >>> _properties(["spark.executor.memory=4g"])
    {'spark.executor.memory': '4g'}
    """
    found: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"--conf {setting}: expected KEY=VALUE")
        found[key.strip()] = value
    return found
