"""Tamis's matcher on several cores: threads of one process, or processes of their own.

    python -m benchmarks.programs.match_threads DOCUMENTS WARMUP SUBSCRIPTIONS --engine NAME
        [--threads N | --processes N]

Documents are in memory, and parsed in the measured time; answers are counted after it. Each process
compiles the subscriptions, and warms up, before.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import tamis
from benchmarks.programs.protocol import Phases, answer, read_folder, read_subscriptions

_matchers: list[tamis.Matcher] = []
"""Of this process: one, once it is compiled."""


def compile_matcher(subscriptions: str, engine: str) -> None:
    """Compile the matcher of this process."""
    _matchers.append(tamis.Matcher(dict(read_subscriptions(subscriptions)), engine=engine))


def answers_of(documents: Sequence[bytes], threads: int = 1) -> list[tamis.Match]:
    """What matches each document."""
    return list(_matchers[0].match_many(documents, threads=threads))


def matches_in(documents: Sequence[bytes]) -> int:
    """How many matches there are."""
    return sum(map(len, answers_of(documents)))


def main() -> None:
    parser = ArgumentParser()
    for name in ("documents", "warmup", "subscriptions"):
        parser.add_argument(name)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=0)
    options = parser.parse_args()
    documents, warmup = read_folder(options.documents), read_folder(options.warmup)
    phases, count, made_of = Phases(), options.processes, (options.subscriptions, options.engine)
    if count:
        with ProcessPoolExecutor(count, initializer=compile_matcher, initargs=made_of) as pool:
            list(pool.map(matches_in, [warmup] * count))
            with phases("match"):
                shares = [documents[number::count] for number in range(count)]
                found = sum(pool.map(matches_in, shares))
    else:
        compile_matcher(*made_of)
        answers_of(warmup, options.threads)
        with phases("match"):
            answers = answers_of(documents, options.threads)
        found = sum(map(len, answers))
    counts = {"documents": len(documents), "matches": found}
    answer(phases, counts, version=f"tamis {tamis.__version__}", engine=options.engine)


if __name__ == "__main__":
    main()
