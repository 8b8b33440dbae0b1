"""Tamis from files to the events of records, with the texts of elements of some names.

python -m benchmarks.programs.records_tamis DOCUMENTS WARMUP TAG NAME,NAME
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.programs.protocol import Phases, answer


def main() -> None:
    documents, warmup, tag, names = sys.argv[1:]
    phases = Phases()
    with phases("import"):
        from benchmarks.programs.tamis_records import records  # noqa: PLC0415
        from tamis import __version__  # noqa: PLC0415
    with phases("cold"):
        records(sorted(Path(warmup).glob("*.xml")), tag, names.split(","))
    with phases("parse"):
        counts = records(sorted(Path(documents).glob("*.xml")), tag, names.split(","))
    answer(phases, counts, version=f"tamis {__version__}", engine="tokenizer")


if __name__ == "__main__":
    main()
