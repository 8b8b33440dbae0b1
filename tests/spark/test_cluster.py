"""A standalone cluster: the same answers, also where what runs tasks is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import tamis
from tests.spark.answers import answers_in, in_process
from tests.spark.servers import SPARK_HOME, Cluster, cluster, environment
from tests.support.running import COMMAND

SUBSCRIPTIONS = {
    **{f"s{number}": f"//item[@n = {number}]" for number in range(300)},
    "first": "contains(.//name, 'x')",  # for the slower engine, so that there is time to kill
    "second": "contains(.//name, 'name 0')",
}
ITEMS = "".join(
    f"<item n='{n}'><name>name {n}</name><p>{'text ' * 20}</p></item>" for n in range(900)
)


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def arguments(url: str) -> list[str]:
    return [
        *(COMMAND, "run", "--subscriptions", "s.tsv", "--input", "in", "--output", "out"),
        *("--master", url, "--conf", "spark.ui.enabled=false"),
    ]


def rows(name: str) -> list[tuple[Any, ...]]:
    columns = ["document", "subscription"] if name == "matches" else ["document", "code"]
    table = pq.read_table(f"out/{name}").select(columns)
    return sorted(zip(*table.to_pydict().values(), strict=True))


def expected() -> dict[str, list[tuple[Any, ...]]]:
    matcher = tamis.compile(SUBSCRIPTIONS)
    found: dict[str, list[tuple[Any, ...]]] = {"matches": [], "errors": []}
    paths = sorted(Path("in").iterdir())
    for path, match in zip(paths, matcher.match_many(paths), strict=True):
        if match.error is not None:
            found["errors"].append((str(path), match.error.code))
        else:
            found["matches"] += sorted((str(path), str(id)) for id in match)
    return found


@pytest.mark.spark
def test_an_executor_is_killed_in_mid_job(standalone: Cluster, write: Callable[..., None]) -> None:
    """Its tasks are done again by another one: no match is lost, and none is there twice."""
    lines = "".join(f"{id}\t{text}\n" for id, text in SUBSCRIPTIONS.items())
    documents = {f"in/{n}.xml": f"<all n='{n}'>{ITEMS}</all>" for n in range(60)}
    write({"s.tsv": lines, "in/bad.xml": "<all>", **documents})
    with Path("log").open("wb") as log:
        driver = subprocess.Popen(
            arguments(standalone.url), stderr=log, env=environment(), start_new_session=True
        )
    try:
        end = time.monotonic() + 150
        while not list(Path("out").glob(".tamis-*/matches/*")):  # some task has written
            assert driver.poll() is None, Path("log").read_text()
            assert time.monotonic() < end, Path("log").read_text()
            time.sleep(0.02)
        before = standalone.executors()
        for executor in standalone.working():  # one of them runs tasks
            os.kill(executor, signal.SIGKILL)
        assert driver.wait(timeout=200) == 3, Path("log").read_text()
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert len(before) == 2
    assert "Lost task" in Path("log").read_text()  # so it was done twice, in part or as a whole
    found = {name: rows(name) for name in ("matches", "errors")}
    assert found == expected()
    assert len(found["matches"]) == 60 * 301
    assert [name for name in os.listdir("out") if name.startswith(".")] == [".tamis-lock"]


@pytest.mark.spark
def test_under_spark_submit(standalone: Cluster, write: Callable[..., None]) -> None:
    """Which says where Spark runs, and is not contradicted."""
    write(
        {
            "s.tsv": "a\t//a\n",
            "in/1.xml": "<a/>",
            "in/2.xml": "<b/>",
            "submit.py": "from tamis.cli import main\n\nmain()\n",
        }
    )
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", standalone.url]
    command += ["--conf", "spark.ui.enabled=false", "--conf", "spark.app.name=submitted"]
    run = ["submit.py", "run", "--subscriptions", "s.tsv", "--input", "in", "--output", "out"]
    done = subprocess.run(
        [*command, *run], check=False, capture_output=True, env=environment(), timeout=200
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"2 documents (0.0 MB), 1 match, 0 errors" in done.stdout + done.stderr
    assert rows("matches") == [("in/1.xml", "a")]


@pytest.mark.spark
@pytest.mark.corpora
def test_all_corpora(
    standalone: Cluster, tmp_path: Path, all_corpora: tuple[tamis.CompiledMatcher, list[Path]]
) -> None:
    matcher, paths = all_corpora
    matcher.save(tmp_path / "all.tamis")
    command = [COMMAND, "run", "--program", str(tmp_path / "all.tamis"), "--master", standalone.url]
    command += ["--conf", "spark.ui.enabled=false", "--output", str(tmp_path / "out")]
    done = subprocess.run(
        [*command, "--input", *map(str, paths)],
        check=False, capture_output=True, env=environment(), timeout=200,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr.decode()  # some documents are in error
    assert answers_in(tmp_path / "out") == in_process(matcher, {str(path): path for path in paths})


REPEATED = """
import os, sys, time
from pyspark import TaskContext
from tamis import spark as tamis_spark

url, folder = sys.argv[1:]
settings = {"interval": "100ms", "multiplier": "1.1", "quantile": "0.5", "minTaskRuntime": "200ms"}
conf = {f"spark.speculation.{name}": value for name, value in settings.items()}
conf |= {"spark.speculation": "true", "spark.ui.enabled": "false"}

def first_time(batches):
    import pyarrow as pa
    task = TaskContext.get()
    attempt = pa.scalar(task.attemptNumber(), pa.int32())
    for batch in batches:
        yield batch.append_column("attempt", pa.repeat(attempt, batch.num_rows))
        if task.partitionId() == 0 and task.attemptNumber() == 0:
            raise RuntimeError("the first time")
        if task.partitionId() == 1 and task.attemptNumber() == 0:
            time.sleep(100)

with tamis_spark.start_spark(url, conf) as spark:
    df = spark.range(0, 4000, 1, 4).selectExpr("id n", "concat('<a><n>', id, '</n></a>') xml")
    df = df.mapInArrow(first_time, "n long, xml string, attempt int")
    rows = tamis_spark.match(df, {"all": "//a", "late": "//a[n > 3990]", "no": "//b"})
    rows.write.parquet(folder)
"""


@pytest.mark.spark
def test_tasks_that_fail_or_are_late(standalone: Cluster, tmp_path: Path) -> None:
    """They are repeated, or done twice at once, and count once."""
    done = subprocess.run(
        [sys.executable, "-c", REPEATED, standalone.url, str(tmp_path / "out")],
        check=False, capture_output=True, env=environment(), timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    table = pq.read_table(tmp_path / "out").to_pydict()
    found = sorted(zip(table["n"], table["subscription"], strict=True))
    assert found == sorted(
        [(n, "all") for n in range(4000)] + [(n, "late") for n in range(3991, 4000)]
    )
    attempts = dict(zip(table["n"], table["attempt"], strict=True))
    assert (attempts[0], attempts[1000]) == (1, 1)
