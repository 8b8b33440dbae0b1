"""One Spark for all tests of it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tamis.spark import start_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores, whose JVM does not spend them on compiling itself."""
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "2",
    }
    with start_spark("local[2]", settings) as session:
        yield session
