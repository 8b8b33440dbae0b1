# amaranth: UnusedElaboratable=no
"""Subscriptions → a circuit and its manifest, in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tamis import __version__
from tamis.core.errors import SubscriptionId, UsageError
from tamis.hardware import tools
from tamis.hardware.circuit import DEFAULT, READOUT_MIN, Circuit, Options
from tamis.hardware.parser import STATUSES
from tamis.hardware.read import Name, read_queries
from tamis.language.subscriptions import Subscriptions


class Generated:
    """A circuit, and what its match bits mean.

    Attributes:
        circuit: what matches.
        ids: for each position of the read-out the subscriptions that match; for each output.
        refused: the subscriptions that are not in the circuit, and why.

    >>> generated = Generated({"q": "//a/b", "p": "//a[2]", "r": "/descendant::a/b"})
    >>> generated.ids, generated.refused
    ([['q', 'r']], {'p': 'it asks for a position, or for the first of several nodes'})
    """

    def __init__(
        self,
        subscriptions: Subscriptions | Mapping[str, str],
        alphabet: Iterable[Name] = (),
        prefixes: Mapping[str, str] = {},
        options: Options = DEFAULT,
    ) -> None:
        if not isinstance(subscriptions, Subscriptions):
            subscriptions = Subscriptions(subscriptions)
        self.subscriptions = subscriptions
        # With eight bytes a cycle, a document with a namespace gets a status.
        prefixes = {} if options.bytes > 1 else prefixes
        self.prefixes = {prefix: uri for prefix, uri in prefixes.items() if prefix != "xml"}
        self.refused: dict[SubscriptionId, str] = {}
        ids: list[SubscriptionId] = []
        queries = []
        for subscription in subscriptions:
            query = subscription.query
            if query is None or query.unstreamed is not None:
                self.refused[subscription.id] = "it needs lxml"
            else:
                ids.append(subscription.id)
                queries.append(query)
        self.tables = read_queries(queries, alphabet, self.prefixes, options.bytes == 1)
        self.refused |= {ids[number]: why for number, why in self.tables.refused.items()}
        if not self.tables.bit_count:
            reasons = "".join(f"; {id}: {why}" for id, why in [*self.refused.items()][:3])
            raise UsageError(f"there is no subscription for a circuit{reasons}")
        by_bit: list[list[SubscriptionId]] = [[] for _ in range(self.tables.bit_count)]
        for id, bit in zip(ids, self.tables.bits, strict=True):
            if bit >= 0:
                by_bit[bit].append(id)
        self.circuit = Circuit(self.tables, options, self.prefixes)
        self.ids = [by_bit[bit] for part in self.circuit.bits for bit in part]

    def manifest(self) -> dict[str, Any]:
        """What a host needs to know of the circuit, for JSON."""
        options = self.circuit.options
        return {
            "tamis": __version__,
            "options": options._asdict(),
            "tags": self.tables.tags,
            "attributes": [
                {"names": fact.names, "value": None if fact.value is None else fact.value.decode()}
                for fact in self.tables.facts
            ],
            "prefixes": self.prefixes,
            "statuses": STATUSES,
            "clusters": [len(part) for part in self.circuit.bits],
            "readout_min": READOUT_MIN,
            "matches": self.ids,
            "software": [{"id": id, "reason": reason} for id, reason in self.refused.items()],
        }

    def write(self, folder: Path) -> None:
        """Write ``tamis.il``, ``tamis.v`` and the manifest, unless the same ones are there."""
        text = json.dumps(self.manifest(), indent=1, ensure_ascii=False) + "\n"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").write_text(text, encoding="utf-8")
        circuit, verilog = folder / "tamis.il", folder / "tamis.v"
        rtlil = self.circuit.rtlil().encode()
        if verilog.exists() and circuit.exists() and circuit.read_bytes() == rtlil:
            return
        for old in (verilog, folder / "netlist.json", folder / "netlist.v"):
            old.unlink(missing_ok=True)
        circuit.write_bytes(rtlil)
        tools.write_verilog(folder)
