"""Workers without Tamis, or with another one: one line says so, before the job runs."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tamis
from tamis.spark import match, session
from tests.spark.servers import connect_server

CLIENT = """
import sys
from pyspark.sql import SparkSession
import tamis
from tamis import spark as tamis_spark

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
try:
    tamis_spark.match(spark.createDataFrame([("<a/>",)], "xml string"), {"x": "//a"})
except tamis.UsageError as error:
    print(error)
"""

pytestmark = pytest.mark.spark
Python = Callable[[str], str]


@pytest.fixture
def python(write: Callable[..., None], tmp_path: Path) -> Python:
    """The path of a Python where Tamis is "missing", of an "other" version, or in a "zip" file."""
    with zipfile.ZipFile(tmp_path / "tamis.zip", "w") as archive:
        archive.writestr("tamis/__init__.py", f"__version__ = {tamis.__version__!r}")
    write({
        "missing/tamis/__init__.py": "raise ModuleNotFoundError(\"No module named 'tamis'\")",
        "other/tamis/__init__.py": "__version__ = '0.0.1'",
    })  # fmt: skip

    def made(kind: str) -> str:
        path = tmp_path / f"{kind}.sh"
        place = tmp_path / ("tamis.zip" if kind == "zip" else kind)
        path.write_text(f'#!/bin/sh\nPYTHONPATH={place}:$PYTHONPATH exec {sys.executable} "$@"\n')
        path.chmod(0o755)
        return str(path)

    return made


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "missing",
            r"Tamis is not installed where Spark's workers run \(No module named 'tamis'\)",
        ),
        ("other", f"workers have Tamis 0.0.1, and this is {re.escape(tamis.__version__)}: send"),
        ("zip", r"workers have Tamis in a zip file \(--py-files\)"),
    ],
)
def test_workers_with_another_tamis(
    spark: SparkSession, python: Python, kind: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark.createDataFrame([("<a/>",)], "xml string")
    monkeypatch.setattr(session, "_checked", set())
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python(kind))
    for _ in range(2):
        with pytest.raises(tamis.UsageError, match=message) as caught:
            match(df, {"x": "//a"})
        assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert match(df, {"x": "//a"}).count() == 1


def test_workers_that_do_not_start(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_checked", set())
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "no-such-python")
    with pytest.raises(tamis.UsageError, match=r"workers do not start: .*no-such-python") as caught:
        match(spark.range(1).selectExpr("'<a/>' xml"), {"x": "//a"})
    assert "\n" not in str(caught.value)


def test_workers_are_asked_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_checked", set())
    # Another name of the same Python: where it has the same one, a local Spark is not asked.
    monkeypatch.setattr(spark.sparkContext, "pythonExec", f"{Path(sys.executable).parent}/./python")
    session.check_workers(spark)
    monkeypatch.setattr(session, "_PROBE", "no program")
    session.check_workers(spark)


def test_files_of_python_are_refused_by_name(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = spark.sparkContext.getConf().set("spark.submit.pyFiles", "/d/x.py,/d/tamis-0.1.0.whl")
    monkeypatch.setattr(session, "_checked", set())
    monkeypatch.setattr(spark.sparkContext, "getConf", lambda: conf)
    with pytest.raises(tamis.UsageError, match="--py-files cannot bring Tamis"):
        session.check_workers(spark)


def test_spark_connect(python: Python, tmp_path: Path) -> None:
    with connect_server(tmp_path, PYSPARK_PYTHON=python("other")) as url:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, url],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )
    assert "Spark's workers have Tamis 0.0.1" in done.stdout
