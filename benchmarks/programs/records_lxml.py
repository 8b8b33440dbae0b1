"""lxml from files to the records in them, and the texts of elements of some names: an oracle.

python -m benchmarks.programs.records_lxml DOCUMENTS WARMUP TAG NAME,NAME
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.programs.protocol import Phases, answer, load


def main() -> None:
    documents, warmup, tag, names = sys.argv[1:]
    phases = Phases()
    etree = load("lxml.etree", phases)
    with phases("cold"):
        records(etree, sorted(Path(warmup).glob("*.xml")), tag, names.split(","))
    with phases("parse"):
        counts = records(etree, sorted(Path(documents).glob("*.xml")), tag, names.split(","))
    libxml = ".".join(map(str, etree.LIBXML_VERSION))
    version = f"lxml {etree.__version__}, libxml2 {libxml}"
    answer(phases, counts, version=version, engine="tree")


def records(etree: Any, paths: Sequence[Path], tag: str, names: Sequence[str]) -> dict[str, int]:
    """Read and parse files; gives the counts, which records_tamis.py explains."""
    outermost = etree.XPath(f"//{tag}[not(ancestor::{tag})]")
    inside = etree.XPath("count(descendant-or-self::*)")
    named = " | ".join(f"descendant-or-self::{name}" for name in names)
    texts = etree.XPath(f"({named})//text()")
    counts = {"documents": len(paths), "records": 0, "record_elements": 0, "value_bytes": 0}
    for path in paths:
        for record in outermost(etree.fromstring(path.read_bytes()).getroottree()):
            counts["records"] += 1
            counts["record_elements"] += int(inside(record))
            counts["value_bytes"] += sum(len(text.encode()) for text in texts(record))
    return counts


if __name__ == "__main__":
    main()
