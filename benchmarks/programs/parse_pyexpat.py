"""libexpat without a handler: nothing less can be called parsing. It counts no elements.

python -m benchmarks.programs.parse_pyexpat DOCUMENTS WARMUP
"""

from __future__ import annotations

import sys

from benchmarks.programs.protocol import Phases, answer, load, parse_each


def main() -> None:
    phases = Phases()
    expat = load("pyexpat", phases)

    def parse(data: bytes) -> None:
        expat.ParserCreate().Parse(data, True)

    counts = parse_each(parse, None, phases, sys.argv[1:])
    answer(phases, counts, version=expat.EXPAT_VERSION, engine="no handlers")


if __name__ == "__main__":
    main()
