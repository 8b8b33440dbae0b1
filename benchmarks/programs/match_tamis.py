"""Tamis's engine, its phases one after the other as a matcher goes through them.

    python -m benchmarks.programs.match_tamis DOCUMENTS WARMUP SUBSCRIPTIONS [ENGINE [TAG]]

With a tag, records are answered.

Kernels are loaded before (``load``), with subscriptions and a document of their own, so ``cold`` is
the pass over the first documents with an engine that has learned nothing; what it learned of them
is known in the pass that is measured, over others.
"""

from __future__ import annotations

import sys

from benchmarks.programs.protocol import Phases, answer, read_folder, read_subscriptions

_ANY = [("a", "//a[b]/c"), ("b", "/a//*[not(b)]"), ("c", "//a[b = 'x']")]


def main() -> None:
    documents, warmup, subscriptions, *more = sys.argv[1:]
    name, tag = [*more, *["auto", ""][len(more) :]]
    measured, before = read_folder(documents), read_folder(warmup)
    pairs = read_subscriptions(subscriptions)
    phases = Phases()
    with phases("import"):
        from benchmarks.programs.tamis_matching import Matching  # noqa: PLC0415
        from tamis import __version__  # noqa: PLC0415
    with phases("load"):
        Matching(_ANY, name, Phases()).answer([b"<a><b>x</b><c/></a>"], Phases())
    work = Matching(pairs, name, phases)
    cold = Phases()
    work.answer(before, cold, tag)
    phases.times["cold"] = seconds = cold.times["parse"] + cold.times["match"]
    size = sum(map(len, before)) / 1e6
    learned = work.memory()
    counts, digest = work.answer(measured, phases, tag)
    answer(
        phases,
        counts,
        version=f"tamis {__version__}",
        engine=work.engine,
        digest=str(digest),
        note=f"cold {size:.1f} MB at {size / seconds:.3g} MB/s ({learned}); then {work.memory()}",
    )


if __name__ == "__main__":
    main()
