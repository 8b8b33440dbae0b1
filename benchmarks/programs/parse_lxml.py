"""A tree of lxml for each document.

python -m benchmarks.programs.parse_lxml DOCUMENTS WARMUP
"""

from __future__ import annotations

import sys

from benchmarks.programs.protocol import Phases, answer, load, parse_each


def main() -> None:
    phases = Phases()
    etree = load("lxml.etree", phases)
    count = etree.XPath("count(//*)")
    counts = parse_each(
        etree.fromstring, lambda root: int(count(root.getroottree())), phases, sys.argv[1:]
    )
    libxml = ".".join(map(str, etree.LIBXML_VERSION))
    answer(phases, counts, version=f"lxml {etree.__version__}, libxml2 {libxml}", engine="tree")


if __name__ == "__main__":
    main()
