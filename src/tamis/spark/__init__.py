"""Tamis on Spark: DataFrames in, DataFrames out.

::

    from tamis import spark as tamis_spark

    rows = tamis_spark.match(df, {"late": "//order[@due < 20]"}, column="xml")

:func:`match` answers a column of XML; :func:`run` answers files and writes Parquet, which is what
``tamis run`` does. Documents are parsed and matched inside Spark's Python workers, batch by batch
through Arrow, so Tamis must be installed where they run.
"""

from __future__ import annotations

from tamis.errors import MissingExtra

try:
    import pyarrow
    import pyspark
except ImportError as error:
    raise MissingExtra("spark", error.name or "pyspark") from None
else:
    del pyarrow, pyspark

from tamis.spark.frames import match
from tamis.spark.job import Summary, run
from tamis.spark.session import start_spark

__all__ = ["Summary", "match", "run", "start_spark"]
