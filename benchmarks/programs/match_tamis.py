"""Tamis's engine, its phases one after the other as a matcher goes through them.

    python -m benchmarks.programs.match_tamis DOCUMENTS WARMUP SUBSCRIPTIONS [ENGINE [first|all]]

Kernels are loaded before (``load``), with subscriptions and a document of their own, so ``cold`` is
the pass over the first documents with an engine that has learned nothing; what it learned of them
is known in the pass that is measured, over others.
"""

from __future__ import annotations

import sys

from benchmarks.programs.protocol import Phases, answer, read_folder, read_subscriptions

_ANY_ENGINE = [("a", "//a[b]/c"), ("b", "/a//*[not(b)]")]
_VALUES = [("c", "//a[b = 'x']")]


def main() -> None:
    documents, warmup, subscriptions, *others = sys.argv[1:]
    name = others[0] if others else "auto"
    nodes = others[1] if len(others) > 1 else None
    measured, before = read_folder(documents), read_folder(warmup)
    pairs = read_subscriptions(subscriptions)
    phases = Phases()
    with phases("import"):
        from benchmarks.programs.tamis_matching import Matching  # noqa: PLC0415
        from tamis import __version__  # noqa: PLC0415
    with phases("load"):
        first = _ANY_ENGINE if name == "automaton" else _ANY_ENGINE + _VALUES
        Matching(first, name, Phases(), nodes).answer([b"<a><b>x</b><c/></a>"], Phases())
    work = Matching(pairs, name, phases, nodes)
    cold = Phases()
    work.answer(before, cold)
    phases.times["cold"] = seconds = cold.times["parse"] + cold.times["match"]
    size = sum(map(len, before)) / 1e6
    learned = work.memory()
    counts, digest = work.answer(measured, phases)
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
