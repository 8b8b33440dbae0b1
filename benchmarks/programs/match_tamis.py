"""Tamis's engine, its phases one after the other as a matcher goes through them.

    python -m benchmarks.programs.match_tamis DOCUMENTS WARMUP SUBSCRIPTIONS
        [--engine NAME] [--record TAG] [--nodes first|all] [--twigstacks OPTIONS]

Kernels are loaded before (``load``), with subscriptions and a document of their own, so ``cold`` is
the pass over the first documents with an engine whose cache is empty; what it cached of them
is known in the pass that is measured, over others.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser

from benchmarks.programs.protocol import Phases, answer, read_folder, read_subscriptions, skip

_ANY = [("a", "//a[b]/c")]


def main() -> None:
    parser = ArgumentParser()
    for name in ("documents", "warmup", "subscriptions"):
        parser.add_argument(name)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--record", default="")
    parser.add_argument("--nodes", choices=("first", "all"))
    parser.add_argument("--twigstacks", type=json.loads, help="of twigstacks-cuda: TwigOptions")
    options = parser.parse_args()
    measured, before = read_folder(options.documents), read_folder(options.warmup)
    pairs = read_subscriptions(options.subscriptions)
    phases = Phases()
    with phases("import"):
        from benchmarks.programs.tamis_matching import Searcher  # noqa: PLC0415
        from tamis import __version__  # noqa: PLC0415
    if options.engine.endswith("-cuda"):
        from tamis.core.gpu import has_gpu  # noqa: PLC0415 - imports CUDA

        if not has_gpu():
            skip("there is no CUDA GPU")
    if options.twigstacks:
        from tamis_papers import twigstacks  # noqa: PLC0415

        twigstacks.CUDA = twigstacks.twigstacks_cuda(twigstacks.TwigOptions(**options.twigstacks))
    known = _ANY[: 1 if options.engine.startswith("twigstacks") else None]
    with phases("load"):
        Searcher(known, options.engine, Phases(), options.nodes).answer(
            [b"<a><b>x</b><c/></a>"], Phases(), options.record
        )
    work = Searcher(pairs, options.engine, phases, options.nodes)
    cold = Phases()
    work.answer(before, cold, options.record)
    phases.times["cold"] = seconds = cold.times["parse"] + cold.times["match"]
    size = sum(map(len, before)) / 1e6
    was = work.memory()
    counts, digest = work.answer(measured, phases, options.record)
    answer(
        phases,
        counts,
        version=f"tamis {__version__}",
        engine=work.engine,
        digest=str(digest),
        note=f"cold {size:.1f} MB at {size / seconds:.3g} MB/s ({was}); then {work.memory()}",
    )


if __name__ == "__main__":
    main()
