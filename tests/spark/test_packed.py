"""Executors that have nothing but Python: Tamis comes to them in a packed environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.servers import environment

ROOT = Path(__file__).parents[2]

_DRIVER = """
import os, sys
from pyspark.sql import SparkSession
from tamis import spark as tamis_spark

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
df = spark.createDataFrame([(f"<a><b n='{n}'/></a>",) for n in range(20)], "xml string")
df = df.repartition(4)
found = tamis_spark.match(df, {"odd": "//b[@n = 7]", "all": "//b"}, column="xml").collect()
print("matches", sorted(row.subscription for row in found).count("all"), len(found))

def where(_):
    import time, tamis
    from tamis.core.kernel import declare
    time.sleep(1)
    assert sys.executable.endswith("environment/bin/python"), sys.executable
    yield os.getcwd(), tamis.__file__.startswith(sys.prefix), declare.mode(), "numba" in sys.modules

workers = spark.sparkContext.parallelize(range(4), 4).mapPartitions(where)
for cwd, is_packed, mode, has_numba in set(workers.collect()):
    print("worker", is_packed, mode, has_numba, cwd)
spark.stop()
"""


def run(*words: str | Path, folder: Path | None = None, **more: str) -> str:
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, pyarrow and pandas, without Numba and Spark."""
    folder = tmp_path_factory.mktemp("packed")
    hatchling = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"]
    run(*hatchling, folder=ROOT)
    (wheel,) = (folder / "dist").iterdir()
    run(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv/bin/python"
    run(python, "-m", "pip", "install", "-q", wheel, "pyarrow", "pandas<3", "venv-pack")
    run(
        folder / "venv/bin/venv-pack",
        "-q",
        "-p",
        folder / "venv",
        "-o",
        folder / "environment.tar.gz",
    )
    return folder / "environment.tar.gz"


@pytest.mark.spark
def test_workers_run_what_is_packed(packed: Path, tmp_path: Path) -> None:
    """On a cluster of two workers, each a process of its own; the library comes with the rest."""
    script = tmp_path / "driver.py"
    script.write_text(_DRIVER)
    said = run(
        *(Path(sys.executable).with_name("spark-submit"), "--master", "local-cluster[2,1,1024]"),
        *("--archives", f"{packed}#environment"),
        *("--conf", "spark.pyspark.python=./environment/bin/python"),
        *("--conf", f"spark.pyspark.driver.python={sys.executable}", script),
        PYSPARK_PYTHON="",
        PYTHONPATH="",  # or workers would find this checkout
    ).splitlines()
    assert "matches 20 21" in said
    workers = [line.split() for line in said if line.startswith("worker ")]
    assert len({cwd for *_, cwd in workers}) == 2
    assert {tuple(words[1:4]) for words in workers} == {("True", "native", "False")}
