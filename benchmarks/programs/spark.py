"""Spark's work and others' beside it, on the same documents and the same two cores.

    python -m benchmarks.programs.spark WAY DOCUMENTS WARMUP SUBSCRIPTIONS [--record TAG]
        [--written]

Ways: of files, ``in-process`` (two threads, no Spark), ``files`` (``match_files``), ``run`` (into
Parquet) and ``xml`` (Spark's ``xml`` source, and a condition in SQL for each subscription); of a
column of XML, ``column`` (``match``), ``from-xml`` and ``xpath`` (Spark's ``from_xml`` with such
conditions, or an ``xpath_boolean`` for each subscription), ``lengths`` (a ``mapInArrow`` that
returns the documents' lengths alone), ``worker`` (``match`` in a new process of Python, as another
executor begins) and ``worker-lengths`` (the lengths in such a process). With ``--written``, Spark
writes the rows, of a document and a subscription, into Parquet; otherwise it counts them.

All answer the documents to warm up with before the clock starts (``answer``); all but the first
start Spark and do so on each core, and the column is in Spark's memory by then. What is written is
written once before. A document in error ends all. The note has what the largest of Spark's Python
workers took of memory after a quarter of the time, after a half of it, and in the end.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.programs.protocol import Phases, answer, load, read_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES = 2
SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.ui.enabled": "false",
}

Counts = dict[str, int]


def main() -> None:
    parser = ArgumentParser()
    for name in ("way", "documents", "warmup", "subscriptions"):
        parser.add_argument(name)
    parser.add_argument("--record")
    parser.add_argument("--written", action="store_true")
    options = parser.parse_args()
    phases = Phases()
    load("pyspark", phases)
    work = {"in-process": in_process}.get(options.way, on_spark)
    counts, note = work(options, phases)
    from tamis import __version__  # noqa: PLC0415

    answer(phases, counts, version=f"tamis {__version__}", note=note)


def in_process(options: Namespace, phases: Phases) -> tuple[Counts, str]:
    """Two threads of one process."""
    import tamis  # noqa: PLC0415 - timed as a part of the whole, in other phases

    with phases("compile"):
        matcher = tamis.compile(read_subscriptions(options.subscriptions))

    def counted(folder: str) -> Counts:
        paths = sorted(Path(folder).glob("*.xml"))
        matches = 0
        if options.record is None:
            batches = matcher.answers(paths, CORES)
            matches = sum(_matches(found.matches) for found in batches)
        else:
            for path in paths:
                found = matcher.record_answers(path, options.record, CORES)
                matches += sum(_matches(answers.matches) for answers in found)
        return {"documents": len(paths), "matches": matches}

    with phases("cold"):
        counted(options.warmup)
    with phases("answer"):
        counts = counted(options.documents)
    return counts, _per_document(counts)


def _matches(found: Any) -> int:
    """How many matches there are, each looked at."""
    assert not found.errors
    return len(found.lists(0)[1])


def on_spark(options: Namespace, phases: Phases) -> tuple[Counts, str]:
    """A Spark of this process, on as many cores."""
    from tamis import spark as tamis_spark  # noqa: PLC0415
    from tamis.cli.run import JVM_SETTINGS  # noqa: PLC0415

    with phases("start"):
        settings = SETTINGS | {
            "spark.python.worker.reuse": str("worker" not in options.way).lower()
        }
        if options.way in ("files", "run"):
            settings |= JVM_SETTINGS
        started = tamis_spark.start_spark(f"local[{CORES}]", settings)
        spark = started.__enter__()
    try:
        with phases("compile"):
            subscriptions = tamis_spark.program(read_subscriptions(options.subscriptions))
        ways: dict[str, Callable[..., Iterator[Counts]]] = {
            "files": files,
            "run": run,
            "column": column,
            "worker": partial(column, parts=1),
            "lengths": lengths,
            "worker-lengths": partial(lengths, parts=1),
            "xml": xml,
            "from-xml": from_xml,
            "xpath": xpath,
        }
        way = ways[options.way]
        with phases("cold"), ThreadPoolExecutor(CORES) as pool:
            warm = partial(way, spark, options, subscriptions)
            for _ in pool.map(list, map(warm, [options.warmup] * CORES)):
                pass
            if options.written:  # the JVM compiles itself a second time, for what takes long
                list(way(spark, options, subscriptions, options.documents))
        measured = way(spark, options, subscriptions, options.documents)
        counts = next(measured)  # what is not to be measured is done
        with WorkersMemory() as memory, phases("answer"):
            counts |= next(measured)
        for more in measured:  # and what is known afterwards
            counts |= more
    finally:
        started.__exit__(*sys.exc_info())
    return counts, "; ".join(filter(None, [_per_document(counts), memory.said()]))


class WorkersMemory:
    """What Spark's Python workers take, twice a second inside the ``with`` block."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> WorkersMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_done.wait(0.5):
            self.sizes.append(max(map(_size_of, _workers()), default=0))

    def said(self) -> str:
        """The sizes, in words; nothing of a short time."""
        if len(self.sizes) < 8 or not self.sizes[0]:
            return ""
        quarter, half, end = (self.sizes[len(self.sizes) * n // 4 - 1] / 1e6 for n in (1, 2, 4))
        return f"a worker took {quarter:.0f}, {half:.0f} and in the end {end:.0f} MB"


def _workers() -> list[Path]:
    """The folders in /proc of the workers that were started from here."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            is_ours = os.getsid(int(folder.name)) == os.getsid(0)
        except OSError:  # it ended
            continue
        if is_ours and words[1:3] == [b"-m", b"pyspark.daemon"]:
            found.append(folder)
    return found


def _size_of(process: Path) -> int:
    try:
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # it ended
        return 0


def _per_document(counts: Counts) -> str:
    if not counts["documents"] or "matches" not in counts:
        return ""
    return f"{counts['matches'] / counts['documents']:.3g} matches a document"


# Each way is a generator: what it yields first is known before the clock starts, and then what it
# took the time for.


def files(spark: SparkSession, options: Namespace, made: Any, folder: str) -> Iterator[Counts]:
    """``match_files``, its rows counted by Spark."""
    from tamis.spark import match_files  # noqa: PLC0415

    yield {"documents": len(list(Path(folder).glob("*.xml")))}
    rows = match_files(spark, folder, made, record=options.record, errors="fail")
    yield from _rows(rows.select("document", "subscription"), options)


def run(spark: SparkSession, options: Namespace, made: Any, folder: str) -> Iterator[Counts]:
    """``run``, into Parquet."""
    from tamis.spark import run as run_job  # noqa: PLC0415

    yield {}
    with tempfile.TemporaryDirectory() as output:
        done = run_job(spark, made, folder, output, record=options.record, errors="fail")
        yield {"documents": done.documents, "matches": done.matches}


def _column(spark: SparkSession, folder: str, parts: int = 4 * CORES) -> DataFrame:
    """The documents, in the memory of the JVM."""
    df = spark.read.format("binaryFile").load(folder)
    df = df.selectExpr("path as document", "content as xml").repartition(parts).cache()
    df.count()
    return df


def column(
    spark: SparkSession, options: Namespace, made: Any, folder: str, parts: int = 4 * CORES
) -> Iterator[Counts]:
    """``match`` of a column, of so many parts."""
    from tamis.spark import match  # noqa: PLC0415

    df = _column(spark, folder, parts)
    yield {"documents": df.count()}
    rows = match(df, made, record=options.record, errors="fail", keep=["document"])
    yield from _rows(rows.select("document", "subscription"), options)
    df.unpersist()


def lengths(
    spark: SparkSession, options: Namespace, made: Any, folder: str, parts: int = 4 * CORES
) -> Iterator[Counts]:
    """What it costs that documents come to Python, and numbers back."""
    del options, made
    df = _column(spark, folder, parts)

    def lengths_of(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - in the workers
        import pyarrow.compute as pc  # noqa: PLC0415

        for batch in batches:
            yield pa.RecordBatch.from_arrays([pc.binary_length(batch["xml"])], ["length"])

    yield {"documents": df.count()}
    df.mapInArrow(lengths_of, "length int").count()
    yield {}
    df.unpersist()


def xml(spark: SparkSession, options: Namespace, made: Any, folder: str) -> Iterator[Counts]:
    """Spark's source ``xml``, with conditions."""
    del made
    conditions, schema = in_sql(options)
    yield {"documents": len(list(Path(folder).glob("*.xml")))}
    reader = spark.read.format("xml").option("rowTag", ROOT).schema(schema)
    yield from _selected(reader.load(folder), "_metadata.file_path", conditions, options)


def from_xml(spark: SparkSession, options: Namespace, made: Any, folder: str) -> Iterator[Counts]:
    """Spark's ``from_xml``, with conditions."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    del made
    conditions, schema = in_sql(options)
    df = _column(spark, folder)
    yield {"documents": df.count()}
    parsed = df.select("document", F.from_xml(F.col("xml").cast("string"), schema).alias("parsed"))
    yield from _selected(parsed.select("document", "parsed.*"), "document", conditions, options)
    df.unpersist()


def xpath(spark: SparkSession, options: Namespace, made: Any, folder: str) -> Iterator[Counts]:
    """Spark's ``xpath_boolean``, which parses a document for each subscription."""
    del made
    asked = read_subscriptions(options.subscriptions)
    conditions = {id: f"xpath_boolean(xml, '{text}')" for id, text in asked}
    df = _column(spark, folder)
    yield {"documents": df.count()}
    text = df.selectExpr("document", "cast(xml as string) as xml")
    yield from _selected(text, "document", conditions, options)
    df.unpersist()


ROOT = "dblp"
_EXPRESSION = re.compile(r"//(\w+)((?:\[\w+ = \d+\])+)")


def in_sql(options: Namespace) -> tuple[dict[str, str], str]:
    """Subscriptions as an expert writes them in SQL, by id, and the columns that they need.

    They are of the form ``//record[field = 1][other = 2]``.
    """
    fields: dict[str, dict[str, None]] = {}
    conditions = {}
    for id, text in read_subscriptions(options.subscriptions):
        found = _EXPRESSION.fullmatch(text)
        assert found is not None, text
        name, parts = found[1], re.findall(r"\[(\w+) = (\d+)\]", found[2])
        fields.setdefault(name, {}).update(dict.fromkeys(field for field, _ in parts))
        all_hold = " AND ".join(f"r.{field} = {number}" for field, number in parts)
        conditions[id] = f"exists({name}, r -> {all_hold})"
    columns = (
        f"{name} array<struct<{', '.join(f'{field}: long' for field in known)}>>"
        for name, known in fields.items()
    )
    return conditions, ", ".join(columns)


def _selected(
    df: DataFrame, document: str, conditions: dict[str, str], options: Namespace
) -> Iterator[Counts]:
    """A row for each condition that holds of a row."""
    cases = ", ".join(f"CASE WHEN {text} THEN '{id}' END" for id, text in conditions.items())
    ids = f"explode(array_compact(array({cases}))) AS subscription"
    yield from _rows(df.selectExpr(f"{document} AS document", ids), options)


def _rows(rows: DataFrame, options: Namespace) -> Iterator[Counts]:
    """The rows counted, or written and then counted."""
    if not options.written:
        yield {"matches": rows.count()}
        return
    with tempfile.TemporaryDirectory() as output:
        rows.write.mode("overwrite").parquet(output)
        yield {}
        found = rows.sparkSession.read.parquet(output)
        yield {"matches": found.count()}


if __name__ == "__main__":
    main()
