"""Makes the filters and the attribute–value events of one repetition of a workload, in a folder.

    python -m benchmarks.events DECLARATION FOLDER

The declaration is JSON, made by ``measuring.py`` of a workload in TOML: ``filters`` are the options
of ``tamis_workload.EventWorkload``, and ``events`` has their ``number``, that of those to warm up
with (``warmup``), and whether there is to be ``text`` of all of it. ``FOLDER/events`` gets

* ``filters.npz``, ``events.npz`` and ``warmup.npz``: the arrays of tables and batches;
* with ``text``: ``subscriptions.tsv``, ``interfaces.tsv``, ``events.ndjson`` and ``warmup.ndjson``;
  and ``events.arrow`` and ``warmup.arrow``, if pyarrow is installed.

Each repetition gets filters and events of another seed. Prints what was made, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tamis.events.model import EventBatch, FilterTable

Table = Mapping[str, Any]

WARMUP = 200


def make(declared: Table, folder: Path) -> dict[str, int]:
    """Write all of a repetition; gives the numbers of events and filters, and the seed."""
    from tamis_workload import EventWorkload  # noqa: PLC0415 - slow to import
    from tamis_workload import events as text  # noqa: PLC0415

    wanted = declared["events"]
    options: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in declared["filters"].items()
    }
    seed = options.pop("seed", 0) + declared["repetition"] + 1
    workload = EventWorkload(**options, seed=seed)
    table = workload.table()
    number = wanted["number"]
    batches = {
        "events": workload.events(number),
        "warmup": workload.events(wanted.get("warmup", WARMUP), first=number),
    }
    target = folder / "events"
    target.mkdir(parents=True)
    save(target / "filters.npz", table)
    for name, batch in batches.items():
        save(target / f"{name}.npz", batch)
    if wanted.get("text"):
        _write(target / "subscriptions.tsv", text.subscription_lines(table))
        _write(target / "interfaces.tsv", text.interface_lines(table))
        for name, batch in batches.items():
            _write(target / f"{name}.ndjson", text.event_lines(batch, table.names))
            _write_arrow(target / f"{name}.ndjson")
    return {"events": number, "filters": table.filters, "seed": seed}


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(pieces)


def _write_arrow(events: Path) -> None:
    """The events of a file of NDJSON as record batches, a column each name."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import json as pa_json  # noqa: PLC0415
    except ImportError:
        return
    table = pa_json.read_json(events)
    path = str(events.with_suffix(".arrow"))
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1 << 16)


def save(path: Path, what: FilterTable | EventBatch) -> None:
    """Write the arrays of a table or a batch without errors, and names as UTF-8."""
    fields = what._asdict()
    fields.pop("errors", None)
    if "names" in fields and isinstance(fields["names"], tuple):
        fields["names"] = np.array(fields["names"])
    np.savez(path, **fields)


def load_filters(folder: str) -> FilterTable:
    """The filters of a workload."""
    from tamis.events.model import FilterTable  # noqa: PLC0415 - slow to import

    fields = _read(Path(folder, "filters.npz"))
    names, count = tuple(fields.pop("names").tolist()), int(fields.pop("interface_count"))
    return FilterTable(**fields, names=names, interface_count=count)


def load_batch(folder: str, name: str) -> EventBatch:
    """Its "events", or those to warm up with ("warmup")."""
    from tamis.events.model import EventBatch  # noqa: PLC0415 - slow to import

    return EventBatch(**_read(Path(folder, f"{name}.npz")), errors={})


def _read(path: Path) -> dict[str, Any]:
    with np.load(path) as arrays:
        fields = {name: arrays[name] for name in arrays.files}
    for array in fields.values():
        array.flags.writeable = False
    return fields


def main() -> None:
    declared, folder = sys.argv[1:]
    made = make(json.loads(declared), Path(folder))
    os.sync()  # or the disk is busy with them while the first program is measured
    print(json.dumps(made))


if __name__ == "__main__":
    main()
