"""Subscriptions matched against a column of XML."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from tamis.errors import UsageError
from tamis.language.subscriptions import SubscriptionItems, Subscriptions, Unsupported
from tamis.matching.matcher import CompiledMatcher, compile_subscriptions
from tamis.spark.worker import ERROR_TYPE, AnswerTask, ShippedMatcher, id_type

SubscriptionSet = CompiledMatcher | Subscriptions | SubscriptionItems | str | os.PathLike[str]
"""What may be given as subscriptions; a ``str`` or path names a file of them."""


def match(
    df: DataFrame,
    subscriptions: SubscriptionSet,
    column: str = "xml",
    *,
    keep: Sequence[str] | None = None,
    namespaces: Mapping[str, str] | None = None,
    unsupported: Unsupported = "refuse",
) -> DataFrame:
    """Match a column of XML; the result has one row for each match.

    A document that matches nothing has no row. One in error has a single row, without a
    subscription; so has a null. Works on batch and streaming DataFrames, needs no more of Spark
    than the DataFrame, and computes nothing by itself.

    Each worker process compiles the subscriptions once. Spark hands it Arrow batches of at most
    ``spark.sql.execution.arrow.maxRecordsPerBatch`` documents: lower that where they are large.

    Args:
        df: has the documents, and whatever identifies them.
        subscriptions: a :class:`tamis.Subscriptions`, what makes one (id → expression), a file of
            them, or what :func:`tamis.compile` makes of them with an engine and limits of choice.
        column: the column of XML, of type string or binary. (A string that declares an encoding
            other than UTF-8 is an error, as everywhere.)
        keep: the columns that each row repeats; by default all but ``column``.
        namespaces, unsupported: as for :class:`tamis.Subscriptions`, where one has to be made.

    Returns:
        The kept columns, then ``subscription`` (long if all ids are integers, else string) and
        ``error struct<code string, message string, line int, column int>``.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: there is no such column, or it is of another type.
    """
    fields = {field.name: field for field in df.schema}
    kept = [name for name in fields if name != column] if keep is None else list(keep)
    _check_columns(fields, column, kept)
    matcher = compiled(subscriptions, namespaces, unsupported)
    task = AnswerTask(ShippedMatcher.of(matcher), id_type(matcher.ids), tuple(kept), column)
    schema = StructType([fields[name] for name in kept])
    schema.add("subscription", from_arrow_type(task.ids))
    schema.add("error", from_arrow_type(ERROR_TYPE))
    # By number, since mapInArrow() itself cannot deal with every name.
    read = [F.col(_quoted(name)).alias(str(number)) for number, name in enumerate([*kept, column])]
    return df.select(read).mapInArrow(task, schema)


def compiled(
    subscriptions: SubscriptionSet,
    namespaces: Mapping[str, str] | None = None,
    unsupported: Unsupported = "refuse",
) -> CompiledMatcher:
    """Subscriptions of any kind, compiled.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: the file cannot be read, or the ids cannot be told apart in a column; or
            ``namespaces`` or ``unsupported`` is given for what is parsed already.
    """
    if isinstance(subscriptions, CompiledMatcher):
        if namespaces is not None or unsupported != "refuse":
            raise UsageError("give namespaces and unsupported to Subscriptions, which parses")
        matcher = subscriptions
    elif isinstance(subscriptions, str | os.PathLike):
        file = os.fspath(subscriptions)
        matcher = compile_subscriptions(
            Subscriptions.from_file(file, namespaces=namespaces, unsupported=unsupported)
        )
    else:
        matcher = compile_subscriptions(
            subscriptions, namespaces=namespaces, unsupported=unsupported
        )
    if len(set(map(str, matcher.ids))) < len(matcher.ids):
        raise UsageError("ids that only their type tells apart, as 1 and '1', are one in a column")
    return matcher


def _check_columns(fields: Mapping[str, StructField], column: str, kept: Sequence[str]) -> None:
    for name in [column, *kept]:
        if name not in fields:
            raise UsageError(f"there is no column {name!r}: the columns are {', '.join(fields)}")
    if not isinstance(fields[column].dataType, BinaryType | StringType):
        kind = fields[column].dataType.simpleString()
        raise UsageError(f"the column {column!r} is of type {kind}, not string or binary")
    for name in ("subscription", "error"):
        if name in kept:
            raise UsageError(f"the result has a column {name!r} of its own: rename the input's")


def _quoted(name: str) -> str:
    """A column's name that Spark does not take apart at its dots."""
    return "`" + name.replace("`", "``") + "`"
