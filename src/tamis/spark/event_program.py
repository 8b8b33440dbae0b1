"""Subscriptions of events as data: filters in a file, sent to the workers, compiled once by each.

Programs of the engines of events are not saved, since filters are compiled faster than most
programs would be read: a quarter of a million in a fraction of a second.
"""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from tamis.core.array_file import open_arrays, write_arrays
from tamis.core.errors import OtherVersion, SubscriptionId, UsageError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.events.matcher import EventMatcher
from tamis.events.model import By, FilterTable
from tamis.events.subscriptions import EventSubscriptions
from tamis.language.columns import Ids
from tamis.language.entries import SubscriptionItems
from tamis.spark.artifacts import artifacts_folder, in_worker, sent
from tamis.spark.program import PROGRAMS_KEPT, id_type
from tamis.spark.subscriptions import frame_items, is_table, table_items

EventSubscriptionSet = (
    EventMatcher | EventSubscriptions | SubscriptionItems | DataFrame | str | os.PathLike[str]
)
"""What may be given as subscriptions of events; a ``str`` or path names a file of them."""

_KIND, _VERSION = "filters of events", 1
_COLUMNS = ("ids", "interface_ids")


@dataclass(frozen=True, slots=True)
class EventProgram:
    """Subscriptions of events in a file that workers can map.

    Attributes:
        path: the file, where this process has it.
        identity: a hash of what is in it.
        set_version: a hash of the subscriptions, whatever engine compiles them.
        names: the attributes that they name.
    """

    path: str = field(compare=False)
    identity: str
    set_version: str = field(compare=False)
    names: tuple[str, ...] = field(compare=False, repr=False)

    @classmethod
    def of(cls, given: EventMatcher | EventSubscriptions) -> EventProgram:
        """What workers need of subscriptions, in a file named after what is in it."""
        engine, limits = "auto", DEFAULT_LIMITS
        if isinstance(given, EventMatcher):
            engine, limits = given.named_engine, given.limits
        arrays, version = _arrays(given.table), hashlib.sha256()
        for name, ids in zip(_COLUMNS, (given.ids, given.interface_ids), strict=True):
            column = ids.packed()
            arrays[f"{name}_bytes"] = np.frombuffer(column.data, np.uint8)
            ends = np.asarray(column.ends, np.int64)
            arrays[f"{name}_bounds"] = np.concatenate([np.zeros(1, np.int64), ends])
        for name, array in arrays.items():
            version.update(f"{name} {len(array)} ".encode())
            version.update(array.data)
        version.update(ascii(given.table.names).encode())
        said = {
            "names": list(given.table.names),
            "interface_count": int(given.table.interface_count),
            "engine": engine,
            "limits": asdict(limits),
        }
        path = artifacts_folder() / f"{os.urandom(8).hex()}.new"
        identity = write_arrays(path, _KIND, _VERSION, arrays, said)
        path = path.rename(path.with_name(_file_name(identity)))
        return cls(str(path), identity, version.hexdigest()[:16], given.table.names)

    def matcher(self) -> EventMatcher:
        """The matcher, in a worker or in the driver; compiled the first time."""
        return _compiled(self)


def _file_name(identity: str) -> str:
    return f"tamis-{identity[:32]}.events"


def _arrays(table: FilterTable) -> dict[str, NDArray[Any]]:
    return {name: value for name, value in table._asdict().items() if isinstance(value, np.ndarray)}


def event_subscriptions(
    subscriptions: EventSubscriptionSet,
    interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
) -> EventMatcher | EventSubscriptions:
    """Subscriptions of any kind; for the arguments see :func:`tamis.spark.match_events`."""
    if isinstance(subscriptions, EventMatcher | EventSubscriptions):
        if interfaces is not None:
            raise UsageError("give interfaces to EventSubscriptions, which has them already")
        return subscriptions
    if isinstance(subscriptions, str | os.PathLike):
        path = Path(subscriptions)
        if not is_table(path):
            return EventSubscriptions.from_file(path, interfaces=interfaces)
        subscriptions = table_items(path)
    # Not isinstance(): the DataFrames of Spark Connect are of a class of their own.
    elif hasattr(subscriptions, "toArrow"):
        subscriptions = frame_items(subscriptions)
    return EventSubscriptions(subscriptions, interfaces=interfaces)


def ids_type(given: EventMatcher | EventSubscriptions, by: By) -> str:
    """The type of the column of what is reported: see :class:`tamis.spark.Program`.

    Raises:
        UsageError: the ids cannot be told apart in a column.
    """
    if by == "filter":
        return "bigint"
    return id_type(given.ids if by == "subscription" else given.interface_ids)


# -- in the workers --------------------------------------------------------------------------------


@lru_cache(maxsize=PROGRAMS_KEPT)
def _compiled(program: EventProgram) -> EventMatcher:
    """The matcher, with its kernels compiled: by one process of a machine, for all."""
    path = Path(sent(_file_name(program.identity)) or program.path)
    arrays, said, identity = open_arrays(path, _KIND, _VERSION)
    if identity != program.identity:
        raise OtherVersion("it is not what the driver sent", str(path))
    ids, interface_ids = (
        Ids(arrays.pop(f"{name}_bytes").data, bounds[:-1], bounds[1:])
        for name in _COLUMNS
        for bounds in [arrays.pop(f"{name}_bounds")]
    )
    table = FilterTable(
        names=tuple(said["names"]), interface_count=said["interface_count"], **arrays
    )
    limits = Limits(**said["limits"])
    matcher = EventMatcher(ids, interface_ids, table, said["engine"], limits)
    if in_worker():
        gc.freeze()  # Spark collects garbage after each task, and all that is here is none
    return matcher
