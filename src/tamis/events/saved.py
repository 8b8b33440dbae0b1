"""Sets of event subscriptions as files: their filters are read where the file is mapped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tamis.core.array_file import open_arrays, write_arrays
from tamis.core.errors import DamagedProgram, UsageError
from tamis.core.index.columns import TEXT_ARRAYS, Ids, Texts, packed_texts
from tamis.events.model import FilterTable, checked_table
from tamis.events.subscriptions import EventSubscriptions

KIND, _VERSION = "events", 1
_OF_INTERFACES = "interface_"


def save_events(path: Path, subscriptions: EventSubscriptions) -> None:
    """Write a set to a file."""
    table = subscriptions.table
    expressions = map(subscriptions.expression, range(len(subscriptions)))
    arrays = packed_texts(subscriptions.ids, Texts.of(expressions))
    columns = table._asdict().items()
    arrays |= {f"table_{name}": it for name, it in columns if isinstance(it, np.ndarray)}
    if subscriptions.interface_ids is not subscriptions.ids:
        interfaces = packed_texts(subscriptions.interface_ids, Texts.of(()))
        arrays |= {_OF_INTERFACES + name: interfaces[name] for name in TEXT_ARRAYS[:2]}
    metadata = {"names": table.names, "interface_count": table.interface_count}
    write_arrays(path, KIND, _VERSION, arrays, metadata)


def load_events(path: Path) -> EventSubscriptions:
    """Read what ``save_events`` wrote.

    Raises:
        ProgramError: there is no such file, or it is damaged, or of another version of Tamis.
    """
    found = open_arrays(path, KIND, _VERSION)
    arrays: dict[str, Any] = dict(found.arrays)
    try:
        ids = Ids.of_arrays(*(arrays[name] for name in TEXT_ARRAYS[:2]))
        texts = Texts.of_arrays(*(arrays[name] for name in TEXT_ARRAYS[2:]))
        interface_ids = ids
        if _OF_INTERFACES + TEXT_ARRAYS[0] in arrays:
            interfaces = [arrays[_OF_INTERFACES + name] for name in TEXT_ARRAYS[:2]]
            interface_ids = Ids.of_arrays(*interfaces)
        own = {name.removeprefix("table_"): it for name, it in arrays.items() if "table_" in name}
        metadata = found.metadata
        table = checked_table(
            FilterTable(
                names=tuple(metadata["names"]), interface_count=metadata["interface_count"], **own
            )
        )
    except (KeyError, TypeError, UsageError) as error:
        raise DamagedProgram(f"it is no set of event subscriptions: {error}", str(path)) from None
    if not len(ids) == len(texts) == len(table.interfaces):
        raise DamagedProgram("it has not as many ids as subscriptions", str(path))
    return EventSubscriptions.of_columns(ids, interface_ids, table, texts)
