"""Tamis's parser: documents to batches of events, without values.

python -m benchmarks.programs.parse_tamis DOCUMENTS WARMUP [--parser expat] [--threads N]
"""

from __future__ import annotations

import argparse

from benchmarks.programs.protocol import Phases, answer, read_folder


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("documents")
    parser.add_argument("warmup")
    parser.add_argument("--parser", choices=("default", "expat"), default="default")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    documents, warmup = read_folder(options.documents), read_folder(options.warmup)
    phases = Phases()
    with phases("import"):
        from benchmarks.programs.tamis_parsing import Parsing  # noqa: PLC0415
        from tamis import __version__  # noqa: PLC0415
    with phases("cold"):
        work = Parsing(options.parser, options.threads)
        work.parse(warmup)
    with phases("parse"):
        counts = work.parse(documents)
    answer(phases, counts, version=f"tamis {__version__}", engine=work.engine)


if __name__ == "__main__":
    main()
