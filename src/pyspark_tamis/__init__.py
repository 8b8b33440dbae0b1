"""Where Spark looks for the format ``tamis``; it imports all that is called ``pyspark_…``.

Where something is missing there is no such format, and the others are not concerned.
"""

from contextlib import suppress

from tamis.core.errors import MissingExtra

with suppress(MissingExtra):
    from tamis.spark.files import TamisSource as DefaultSource

__all__ = ["DefaultSource"]
