"""What of a set was read in bulk."""

from __future__ import annotations

from tamis.language.queries import Queries


def read_in_bulk(queries: Queries) -> int:
    """How many queries of a set no Python object was made for."""
    return sum(queries.known(number) is None for number in range(len(queries)))
