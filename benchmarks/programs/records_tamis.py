"""Tamis from files to the events of records, with the texts of elements of some names.

python -m benchmarks.programs.records_tamis DOCUMENTS WARMUP TAG NAME,NAME
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.programs.protocol import Phases, answer, skip


def main() -> None:
    documents, warmup, tag, names = sys.argv[1:]
    phases = Phases()
    with phases("import"):
        from tamis import __version__  # noqa: PLC0415
    with phases("cold"):
        records(sorted(Path(warmup).glob("*.xml")), tag, names.split(","))
    with phases("parse"):
        counts = records(sorted(Path(documents).glob("*.xml")), tag, names.split(","))
    answer(phases, counts, version=f"tamis {__version__}", engine="tokenizer")


def records(paths: Sequence[Path], tag: str, names: Sequence[str]) -> dict[str, int]:
    """Read and parse files; gives the counts.

    Returns:
        ``documents``: files. ``records``: outermost elements ``tag``. ``record_elements``: elements
        in records, these included. ``value_bytes``: UTF-8 of all texts that were recorded.
    """
    # To be written when the parser has records and its Demand has names. records_lxml.py counts the
    # same things, so the run verifies what is written here.
    del paths, tag, names
    skip("Tamis cannot split documents into records yet")


if __name__ == "__main__":
    main()
