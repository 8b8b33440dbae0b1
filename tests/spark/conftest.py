"""One Spark for all tests of it, and what all ways of running it are asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tamis
from tamis.spark import start_spark
from tamis_workload.observed.generator import draw_from_documents
from tests.support.corpora import CORPORA, corpus
from tests.support.oracles import read


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores, whose JVM does not spend them on compiling itself."""
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "2",
    }
    with start_spark("local[2]", settings) as session:
        yield session


@pytest.fixture(scope="session")
def all_corpora() -> tuple[tamis.CompiledMatcher, list[Path]]:
    """Documents of all corpora, and subscriptions drawn from them."""
    paths = [path for name in sorted(CORPORA) for path in corpus(name)[:12]]
    good = [path for path in paths if read(path) is not None]
    drawn = draw_from_documents(good, 60, seed=11)
    return tamis.compile(enumerate(drawn.expressions), namespaces=drawn.namespaces), paths
