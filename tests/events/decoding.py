"""Batches of attributes, read back."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tamis.events.model import BOOLEAN, FLOAT, INTEGER, EventBatch


def decoded(batch: EventBatch, names: list[str]) -> list[dict[str, Any] | str]:
    """The attributes of each event, or the text of its error; the form of the batch is checked."""
    dtypes = [np.int64, np.int32, np.uint8, np.int64, np.int64, np.uint8]
    for array, dtype in zip(batch[:6], dtypes, strict=True):
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert not array.flags.writeable
    assert batch.event_starts[0] == batch.string_starts[0] == 0
    assert batch.event_starts[-1] == len(batch.names) == len(batch.kinds) == len(batch.values)
    assert batch.string_starts[-1] == len(batch.string_bytes)
    found: list[dict[str, Any] | str] = []
    for number in range(batch.events):
        places = range(batch.event_starts[number], batch.event_starts[number + 1])
        attributes = {names[batch.names[place]]: _value(batch, place) for place in places}
        assert len(attributes) == len(places)
        if number in batch.errors:
            assert not attributes
            found.append(str(batch.errors[number]))
        else:
            found.append(attributes)
    return found


def canonical(events: list[Any]) -> list[Any]:
    """Events with each float that an integer is equal to as that integer."""

    def value(given: Any) -> Any:
        if isinstance(given, float) and given.is_integer() and -(2**63) <= given < 2**63:
            return int(given)
        return given

    return [{name: value(given) for name, given in event.items()} for event in events]


def _value(batch: EventBatch, place: int) -> Any:
    kind, bits = int(batch.kinds[place]), int(batch.values[place])
    if kind == INTEGER:
        return bits
    if kind == FLOAT:
        return struct.unpack("<d", struct.pack("<q", bits))[0]
    if kind == BOOLEAN:
        return (False, True)[bits]
    start, end = batch.string_starts[bits : bits + 2]
    return batch.string_bytes[start:end].tobytes().decode()
