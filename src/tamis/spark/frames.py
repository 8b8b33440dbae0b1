"""Subscriptions matched against a column of XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from tamis.errors import UsageError
from tamis.language.subscriptions import Unsupported
from tamis.matching.matchset import Which
from tamis.spark.rows import Errors, Form
from tamis.spark.subscriptions import SubscriptionSet, program
from tamis.spark.worker import AnswerColumn


def match(  # noqa: PLR0913 - what may be asked
    df: DataFrame,
    subscriptions: SubscriptionSet,
    column: str = "xml",
    *,
    keep: Sequence[str] | None = None,
    record: str | None = None,
    as_array: bool = False,
    nodes: Which | None = None,
    errors: Errors = "column",
    namespaces: Mapping[str, str] | None = None,
    unsupported: Unsupported = "refuse",
) -> DataFrame:
    """Match a column of XML; the result has one row for each match.

    A document that matches nothing has no row. One in error has a single row, without a
    subscription; so has a null. Works on batch and streaming DataFrames, and through Spark Connect;
    needs no more of Spark than the DataFrame, and computes nothing by itself.

    Spark hands the workers Arrow batches of at most so many documents as
    ``spark.sql.execution.arrow.maxRecordsPerBatch`` says: lower that where they are large.

    Args:
        df: has the documents, and whatever identifies them.
        subscriptions: whatever :func:`tamis.spark.program` takes, or what it makes.
        column: the column of XML, of type string or binary. (A string that declares an encoding
            other than UTF-8 is an error, as everywhere.)
        keep: the columns that each row repeats; by default all but ``column``.
        record: the tag of the elements that are records, each of which is answered by itself; see
            :meth:`tamis.CompiledMatcher.match_records`.
        as_array: one row a document, or record, with an array of ids, which may be empty.
        nodes: tell also which nodes were selected, the "first" or "all".
        errors: a "column" tells them, or documents in error are left out ("drop"), or the first one
            makes the job fail ("fail").
        namespaces, unsupported: as for :class:`tamis.Subscriptions`, where one has to be made.

    Returns:
        The kept columns, then:

        * ``record long``: the record's number in its document; null without ``record``;
        * ``subscription`` (long if all ids are integers, else string); or ``subscriptions``, an
          array of them, null where the document is in error;
        * ``nodes array<struct<start long, end long, line long>>``, where they are asked for: byte
          ranges, see :meth:`tamis.Match.nodes`; with ``as_array``, an array of these, one for each
          subscription;
        * ``set_version string``: a hash of the subscriptions; ``tamis_version string``;
        * ``error struct<code string, message string, line int, column int, offset long>``, with
          ``errors="column"``.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: there is no such column, or it is of another type; or subscriptions that go
            through the slow lane are asked about records or nodes.
    """
    if not isinstance(column, str):
        raise UsageError(f"column is the name of one, not {type(column).__name__}")
    fields = {field.name: field for field in df.schema}
    if len(fields) < len(df.schema):
        raise UsageError(f"several columns have the same name: {', '.join(df.columns)}")
    kept = [name for name in fields if name != column] if keep is None else list(keep)
    _check_columns(fields, column, kept)
    made = program(subscriptions, namespaces=namespaces, unsupported=unsupported)
    form = Form.of(made, record, as_array, nodes, errors)
    own = form.fields()
    in_lower_case = {name.lower() for name in kept}  # Spark does not tell cases apart
    for field in own:
        if field.name in in_lower_case:
            raise UsageError(
                f"the result has a column {field.name!r} of its own: rename the input's"
            )
    schema = StructType([*(fields[name] for name in kept), *own])
    made.send(df.sparkSession)
    # By number, since mapInArrow() itself cannot deal with every name.
    read = [F.col(_quoted(name)).alias(str(number)) for number, name in enumerate([*kept, column])]
    given = df.select(read)
    tasks = (
        AnswerColumn(part, form, tuple(kept), column, tells_errors=number == 0)
        for number, part in enumerate(made.shares)
    )
    return reduce(_union, (given.mapInArrow(task, schema) for task in tasks))


def _check_columns(fields: Mapping[str, StructField], column: str, kept: Sequence[str]) -> None:
    for name in [column, *kept]:
        if name not in fields:
            raise UsageError(f"there is no column {name!r}: the columns are {', '.join(fields)}")
    for number, name in enumerate(kept):
        if name in kept[:number]:
            raise UsageError(f"the column {name!r} is kept twice")
    if not isinstance(fields[column].dataType, BinaryType | StringType):
        kind = fields[column].dataType.simpleString()
        raise UsageError(f"the column {column!r} is of type {kind}, not string or binary")


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionAll(other)


def _quoted(name: str) -> str:
    """A column's name that Spark does not take apart at its dots."""
    return "`" + name.replace("`", "``") + "`"
