"""``tamis run``: match files on Spark."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from click.exceptions import Exit

from tamis.cli import arguments as args
from tamis.cli.console import Status, say, status_line
from tamis.cli.documents import Records
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
  answers/matches   document, record, subscription, set_version, tamis_version: one row per match
  answers/errors    document, record, code, message, line, column, offset, subscription: one row
                    per error; subscription is null if the whole document is in error
  answers/manifest  file, size, modified, set_version, …: one row per input file
"""

# Neither documents nor matches enter the JVM, so it need not compile itself for speed, which takes
# longer than a small job.
JVM_SETTINGS = dict.fromkeys(
    ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"), "-XX:TieredStopAtLevel=1"
)


class StreamOptions(NamedTuple):
    """Options that only ``--stream`` takes.

    Options:
        checkpoint: With --stream: the folder that records the progress, so that a restarted command
            continues.
        trigger: With --stream: the time between two looks for new files, such as "10 seconds". now:
            match the new files and exit.
        max_files: With --stream: the largest number of files per micro-batch.
        max_bytes: With --stream: the largest size of the files of a micro-batch. A larger file is a
            micro-batch by itself.
    """

    checkpoint: Annotated[
        Path | None, Option(metavar="DIR", show_default="a folder inside the output")
    ] = None
    trigger: Annotated[
        str | None, Option(metavar="TIME", show_default="as soon as a batch is done")
    ] = None
    max_files: Annotated[int | None, Option(metavar="N", min=1, show_default="1000")] = None
    max_bytes: Annotated[int | None, Option(metavar="N", min=1, show_default="10 GiB")] = None


def run(  # noqa: PLR0913, PLR0917 - one for each option
    inputs: Annotated[list[str], Option("--input", metavar="PATH")],
    output: Annotated[str, Option(metavar="DIR")],
    more_inputs: Annotated[list[str] | None, Argument(metavar="PATH")] = None,
    subscriptions: args.SubscriptionsOrProgram = None,
    program: args.ProgramFile = None,
    records: Records = Records(),
    master: Annotated[
        str | None, Option(metavar="URL", show_default="the master of spark-submit, else local[*]")
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

    Spark's tasks open the files by path, so every machine must see the same paths. A document in
    error makes the exit status 3; the other documents are answered. If a path does not exist, the
    exit status is 2, and no file is read. Needs Java 17 or newer.

    With --stream, matches new files in folders in micro-batches. The answers of a micro-batch
    appear together and exactly once, even after a crash and restart. A changed subscriptions file
    takes effect with the next micro-batch. --output may also be a database,
    postgresql://user@host/name. There, rows count only if tamis_runs has their run (batch) as done.

    Options:
        inputs: A file, a folder or an archive (zip, tar, tar.gz) with *.xml and *.xml.gz files, a
            quoted pattern, or a URI (s3a://…). Repeatable.
        output: The folder for the results, or table:NAME for tables of Spark's catalog (Delta,
            Iceberg, Hive): NAME_matches, NAME_errors, NAME_manifest and NAME_runs.
        more_inputs: More inputs, as for --input.
        master: The URL of the Spark cluster; local[*] runs on this machine.
        overwrite: Replace the results in DIR.
        only_new: Skip every file whose size and modification time are already in DIR/manifest, even
            if an earlier run used other subscriptions. Add the answers to the results in DIR. Files
            that could not be read are tried again.
        program_memory: The memory per machine for compiled subscriptions. If they need more, tasks
            divide the subscriptions, and each of these tasks reads the documents.
        is_stream: Match new files in the folders until the command is interrupted.
        conf: Set a property of Spark. Repeatable.
    """
    from tamis import spark  # noqa: PLC0415 - keeps --help fast
    from tamis.spark.splits import check_paths  # noqa: PLC0415
    from tamis.spark.tables import is_table  # noqa: PLC0415

    # Wrong usage is reported before Spark starts, which takes a while.
    properties = JVM_SETTINGS | {"spark.ui.showConsoleProgress": "false"} | _properties(conf or [])
    modes = {"--overwrite": overwrite, "--only-new": only_new, "--stream": is_stream}
    chosen = [name for name, is_set in modes.items() if is_set]
    if len(chosen) > 1:
        raise UsageError(f"choose one of {' and '.join(chosen)}")
    if not is_stream and of_stream != StreamOptions():
        raise UsageError("--checkpoint, --trigger, --max-files and --max-bytes are for --stream")
    paths = [*inputs, *(more_inputs or [])]
    wanted: dict[str, Any] = {**records.wanted(namespaces), "declared_encoding": declared_encoding}

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
    with _started(master, properties) as session, status_line() as show:
        wanted |= {"overwrite": overwrite, "only_new": only_new, "on_progress": show}
        _check_catalog(session, output)
        summary = spark.run(session, made, paths, output, **wanted)
    say(f"{summary} (Spark's start apart)")
    if len(made.partitions) > 1:
        say(summary.plan)
    if summary.errors:
        place = (
            f"{output.removeprefix('table:')}_errors" if is_table(output) else f"{output}/errors"
        )
        say(f"what is wrong with them is in {place}")
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
    from tamis.spark.arrivals import BATCH_BYTES_MAX, BATCH_FILES_MAX, stream_folders  # noqa: PLC0415
    from tamis.spark.stream import check_is_folder  # noqa: PLC0415

    stream_folders(paths, options.trigger)
    if options.checkpoint is None:
        check_is_folder(output)
    batches = errors = 0

    def read_again() -> ProgramArtifact:
        try:
            return read()
        except Exit:  # the reason is printed already
            raise UsageError(f"{file} cannot be used") from None

    def on_batch(run: str, version: str, done: spark.Summary) -> None:
        nonlocal batches, errors
        say(f"{run}, set {version}: {done}")
        batches += 1
        errors += done.errors

    source = spark.Reloading(file, read_again)
    with started as session:
        _check_catalog(session, output)
        query = spark.stream(
            session,
            source,
            paths,
            output,
            checkpoint=options.checkpoint,
            trigger=options.trigger,
            files_max=options.max_files or BATCH_FILES_MAX,
            bytes_max=options.max_bytes or BATCH_BYTES_MAX,
            on_batch=on_batch,
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
    from tamis.spark.tables import is_table  # noqa: PLC0415

    if is_postgres(output):
        raise UsageError(
            "a database is an output of --stream: --trigger now ends with what is there"
        )
    if is_table(output):
        return  # when Spark is started, it knows what is there
    store = ParquetStore(output)
    if not may_exist:
        with store.turn():
            store.check_new()


def _check_catalog(session: Any, output: str) -> None:
    """See that tables will be there when Spark has ended."""
    from tamis.spark.tables import is_table  # noqa: PLC0415

    catalog = output.removeprefix("table:").partition(".")[0]
    is_own = session.conf.get(f"spark.sql.catalog.{catalog}", None) is not None
    kept = session.conf.get("spark.sql.catalogImplementation", "in-memory") != "in-memory"
    if is_table(output) and not is_own and not kept:
        raise UsageError(
            f"{output}: this catalog of Spark's ends with the command. Name a table of another one "
            "(--conf spark.sql.catalog.…), or use Hive's (--conf spark.sql.catalogImplementation"
            "=hive --conf spark.sql.warehouse.dir=FOLDER)"
        )


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
    for setting in settings:
        if "=" not in setting:
            raise UsageError(f"--conf {setting}: expected KEY=VALUE")
    pairs = (setting.split("=", 1) for setting in settings)
    return {key.strip(): value for key, value in pairs}
