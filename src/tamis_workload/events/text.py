"""Drawn filters and events as text: files of subscriptions, of their interfaces, and NDJSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tamis.events.model import OPERATORS, STRING, EventBatch, FilterTable

_LINES = 10_000  # at a time


def subscription_lines(table: FilterTable) -> Iterator[bytes]:
    r"""``id<TAB>expression`` of each filter, in pieces of many lines; ids are s1, s2, ….

    It is for tables as ``EventWorkload`` makes them: no lists, no floats, no filter without
    constraints, and strings and names without what would have to be escaped.

    >>> from tamis_workload import EventWorkload
    >>> workload = EventWorkload(interfaces=1, filters=(2, 2), constraints=(2, 2), strings=0.5)
    >>> list(subscription_lines(workload.table()))
    [b's1\ta48 prefix "tiof" and a53 > 32\ns2\ta49 = 97 and a8 != "luseajai"\n']
    """
    for first in range(0, table.filters, _LINES):
        starts = table.starts[first : first + _LINES + 1]
        begin, end = int(starts[0]), int(starts[-1])
        constraints = [
            f"{table.names[name]} {OPERATORS[operator]} {value}"
            for name, operator, value in zip(
                table.constraint_names[begin:end].tolist(),
                table.operators[begin:end].tolist(),
                _values(table, begin, end),
                strict=True,
            )
        ]
        places = (starts - begin).tolist()
        yield "".join(
            f"s{first + number}\t{' and '.join(constraints[start:end])}\n"
            for number, (start, end) in enumerate(pairwise(places), start=1)
        ).encode()


def interface_lines(table: FilterTable) -> Iterator[bytes]:
    r"""``id<TAB>interface`` of each filter, in pieces; interfaces are called i1, i2, ….

    >>> from tamis_workload import EventWorkload
    >>> list(interface_lines(EventWorkload(interfaces=2, filters=(1, 1)).table()))
    [b's1\ti1\ns2\ti2\n']
    """
    for first in range(0, table.filters, _LINES):
        yield "".join(
            f"s{first + number}\ti{interface + 1}\n"
            for number, interface in enumerate(
                table.interfaces[first : first + _LINES].tolist(), start=1
            )
        ).encode()


def event_lines(batch: EventBatch, names: Sequence[str]) -> Iterator[bytes]:
    r"""Each event as an object of JSON, a line each, in pieces of many lines.

    Args:
        names: those of the table.

    >>> from tamis_workload import EventWorkload
    >>> workload = EventWorkload(interfaces=1, filters=(1, 1), attributes=(2, 2), strings=0.5)
    >>> list(event_lines(workload.events(2), workload.table().names))
    [b'{"a70":"cibraitho","a20":"cutouclio"}\n{"a68":"hugrouci","a17":33}\n']
    """
    for first in range(0, batch.events, _LINES):
        starts = batch.event_starts[first : first + _LINES + 1]
        begin, end = int(starts[0]), int(starts[-1])
        attributes = [
            f'"{names[name]}":{value}'
            for name, value in zip(
                batch.names[begin:end].tolist(), _values(batch, begin, end), strict=True
            )
        ]
        places = (starts - begin).tolist()
        yield "".join(
            f"{{{','.join(attributes[start:end])}}}\n" for start, end in pairwise(places)
        ).encode()


def _values(of: FilterTable | EventBatch, begin: int, end: int) -> Iterator[str]:
    """Numbers as they are, strings in double quotes."""
    text = of.string_bytes.tobytes()
    starts = of.string_starts.tolist()
    quoted = [f'"{text[start:stop].decode()}"' for start, stop in pairwise(starts)]
    return (
        quoted[value] if kind == STRING else str(value)
        for kind, value in zip(
            of.kinds[begin:end].tolist(), of.values[begin:end].tolist(), strict=True
        )
    )
