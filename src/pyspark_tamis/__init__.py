"""Where Spark looks for the format ``tamis``; it imports all that is called ``pyspark_…``."""

from tamis.spark.source import TamisSource as DefaultSource

__all__ = ["DefaultSource"]
