"""Tamis on Spark: DataFrames in, DataFrames out.

::

    from tamis import spark as tamis_spark

    rows = tamis_spark.match(df, {"late": "//order[@due < 20]"}, column="xml")

:func:`match` answers a column of XML, and :func:`match_events` rows that are events, whose columns
are attributes; :func:`transform` makes messages of a column of XML. :func:`match_files` answers
files, and so does the format ``tamis`` of ``spark.read``. :func:`run` writes the answers of files
as Parquet, and :func:`stream` those of files that come into folders: this is what ``tamis run``
does. :func:`program` compiles subscriptions of XML once for several of these. Spark's Python
workers read and answer, batch by batch through Arrow, so Tamis must be installed where they run.

Start reading at ``program.py``, what workers load, and ``rows.py``, the tasks that answer columns.
Files are found in ``splits.py`` and answered in ``answers.py``; ``job.py`` writes the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.core.errors import MissingExtra
from tamis.core.lazy import importing

try:
    import pyarrow
    import pyspark
except ImportError as error:
    raise MissingExtra("spark", error.name or "pyspark") from None
else:
    del pyarrow, pyspark

from tamis.spark.files import match_files
from tamis.spark.frames import match
from tamis.spark.job import Summary, run
from tamis.spark.program import ProgramArtifact, program
from tamis.spark.session import start_spark
from tamis.spark.stream import Reloading, stream

if TYPE_CHECKING:
    from tamis.spark.events import match_events
    from tamis.spark.transformations import transform

__all__ = [
    "ProgramArtifact",
    "Reloading",
    "Summary",
    "match",
    "match_events",
    "match_files",
    "program",
    "run",
    "start_spark",
    "stream",
    "transform",
]

# The first answer of a worker should not wait for the import of what it does not use.
__getattr__ = importing(__name__, {"match_events": "events", "transform": "transformations"})
