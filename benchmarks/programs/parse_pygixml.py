"""A tree of pugixml for each document. It takes a str, so decoding the bytes is part of parsing.

python -m benchmarks.programs.parse_pygixml DOCUMENTS WARMUP
"""

from __future__ import annotations

import sys

from benchmarks.programs.protocol import Phases, answer, load, parse_each


def main() -> None:
    phases = Phases()
    pygixml = load("pygixml", phases)
    count = pygixml.XPathQuery("count(//*)")
    counts = parse_each(
        lambda data: pygixml.parse_string(data.decode()),
        lambda document: int(count.evaluate_number(document.root)),
        phases,
        sys.argv[1:],
    )
    answer(phases, counts, version=f"pygixml {pygixml.__version__}", engine="tree")


if __name__ == "__main__":
    main()
