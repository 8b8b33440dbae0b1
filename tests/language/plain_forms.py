"""Plain queries and parsed ones in one form, to be compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.lower import Lowering
from tamis.language.model import Query
from tamis.language.plain.reader import PlainReader
from tamis.language.table import QueryTable
from tests.language.raising import raised


def read_plain(
    texts: Sequence[str | bytes],
    namespaces: dict[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[list[int], QueryTable]:
    """The number of the query of each text, -1 where it is declined, and the queries."""
    encoded = [t if isinstance(t, bytes) else t.encode(errors="surrogatepass") for t in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    starts = ends - [len(text) for text in encoded]
    reader = PlainReader(namespaces or {}, limits)
    numbers = reader.read(np.frombuffer(b"".join(encoded), np.uint8), starts, ends)
    return numbers.tolist(), reader.queries()


def decoded(queries: QueryTable, number: int) -> Query:
    """A query of a table, as :func:`form` has it."""
    return form(raised(queries, number))


def form(query: Query) -> Query:
    """The query, as its words have it."""
    lowering = Lowering()
    number = lowering.add(query)
    return raised(lowering.table(), number)
