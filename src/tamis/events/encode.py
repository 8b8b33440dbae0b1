"""Events → ``AttributeBatch``."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tamis.documents.batch import freeze
from tamis.errors import EventError, MalformedEvent
from tamis.events.building import packed
from tamis.events.model import BOOLEAN, STRING, AttributeBatch, number


def encode(events: Iterable[Mapping[str, Any]], names: Sequence[str]) -> AttributeBatch:
    """Events as Python has them.

    Args:
        names: of a filter table.

    >>> batch = encode([{"area": "area1", "temp": 35, "unknown": None}], ["temp", "area"])
    >>> batch.names, batch.kinds, batch.values
    (array([1, 0], dtype=int32), array([2, 0], dtype=uint8), array([ 0, 35]))
    """
    numbers = {name: place for place, name in enumerate(names)}
    starts, own, values = array("q", [0]), array("i"), array("q")
    kinds = bytearray()
    strings: dict[str, int] = {}
    errors: dict[int, EventError] = {}
    for event in events:
        before = len(values)
        try:
            for name, value in event.items():
                if value is None:
                    continue
                if isinstance(value, str):
                    kind, bits = STRING, strings.setdefault(value, len(strings))
                elif isinstance(value, bool):
                    kind, bits = BOOLEAN, int(value)
                elif isinstance(value, int | float):
                    kind, bits = number(value)
                else:
                    raise TypeError(f"the attribute {name!r} is of type {type(value).__name__}")
                if name in numbers:
                    own.append(numbers[name])
                    kinds.append(kind)
                    values.append(bits)
        except (OverflowError, TypeError) as error:
            errors[len(starts) - 1] = MalformedEvent(str(error))
            del own[before:], kinds[before:], values[before:]
        starts.append(len(values))
    string_starts, string_bytes = packed(text.encode() for text in strings)
    batch = AttributeBatch(
        np.array(starts, np.int64),
        np.array(own, np.int32),
        np.frombuffer(bytes(kinds), np.uint8),
        np.array(values, np.int64),
        string_starts,
        string_bytes,
        errors,
    )
    freeze(*batch[:6])
    return batch
