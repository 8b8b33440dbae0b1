"""A tree of xml.etree for each document.

python -m benchmarks.programs.parse_etree DOCUMENTS WARMUP
"""

from __future__ import annotations

import platform
import sys
from typing import Any

from benchmarks.programs.protocol import Phases, answer, load, parse_each


def elements(root: Any) -> int:
    return sum(1 for _ in root.iter())


def main() -> None:
    phases = Phases()
    tree = load("xml.etree.ElementTree", phases)
    counts = parse_each(tree.fromstring, elements, phases, sys.argv[1:])
    answer(phases, counts, version=f"Python {platform.python_version()}", engine="tree")


if __name__ == "__main__":
    main()
