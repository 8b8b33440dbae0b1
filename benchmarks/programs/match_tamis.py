"""Tamis's engine, its phases one after the other as a matcher goes through them.

python -m benchmarks.programs.match_tamis DOCUMENTS WARMUP SUBSCRIPTIONS [ENGINE]
"""

from __future__ import annotations

import sys

from benchmarks.programs.protocol import Phases, answer, read_folder, read_subscriptions


def main() -> None:
    documents, warmup, subscriptions, *engine = sys.argv[1:]
    measured, before = read_folder(documents), read_folder(warmup)
    pairs = read_subscriptions(subscriptions)
    phases = Phases()
    with phases("import"):
        from benchmarks.programs.tamis_matching import Matching  # noqa: PLC0415
        from tamis import __version__  # noqa: PLC0415
    with phases("compile"):
        work = Matching(pairs, engine[0] if engine else "auto")
    with phases("cold"):
        work.answer(before, Phases())
    counts, digest = work.answer(measured, phases)
    answer(
        phases,
        counts,
        version=f"tamis {__version__}",
        engine=work.engine,
        digest=str(digest),
    )


if __name__ == "__main__":
    main()
