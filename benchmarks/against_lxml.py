"""Tamis and a loop over lxml's compiled XPath, on the same documents.

For each number of subscriptions, each contender parses and answers the same documents, which no run
has seen before; the contenders take turns, and the answers must be equal. Prints medians of the
rounds, and how many times as fast as lxml Tamis is.

    python -m benchmarks.against_lxml [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from lxml import etree

import tamis
from tamis.language.xpath import parse_for_slow_lane
from tamis.workload.documents.dblp import dblp
from tamis.workload.observed.generator import draw_from_documents

DOCUMENTS = 100
RECORDS = 10  # of each document: some 4 KB
SUBSCRIPTIONS = (10, 100, 1000)
MATCHING = 0.3  # of the subscriptions are true of some of the documents they are drawn from


def documents_of(first_seed: int) -> list[bytes]:
    return [b"".join(dblp(records=RECORDS, seed=first_seed + n)) for n in range(DOCUMENTS)]


def answer_with_tamis(expressions: list[str]) -> Callable[[list[bytes]], list[list[int]]]:
    matcher = tamis.compile(enumerate(expressions))
    return lambda documents: [match.indices.tolist() for match in matcher.match_many(documents)]


def answer_with_lxml(expressions: list[str]) -> Callable[[list[bytes]], list[list[int]]]:
    compiled = [etree.XPath(f"boolean({parse_for_slow_lane(text)})") for text in expressions]

    def answer(documents: list[bytes]) -> list[list[int]]:
        trees = (etree.fromstring(data).getroottree() for data in documents)
        return [[n for n, xpath in enumerate(compiled) if xpath(tree)] for tree in trees]

    return answer


def measure(count: int, rounds: int) -> None:
    """Time both on the same documents, in turns."""
    source = documents_of(0)[:20]
    expressions = draw_from_documents(source, count, matching=MATCHING).expressions
    contenders = {"tamis": answer_with_tamis(expressions), "lxml": answer_with_lxml(expressions)}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    size = 0
    for turn in range(1, rounds + 1):
        documents = documents_of(turn * DOCUMENTS)
        size = sum(map(len, documents))
        answers = []
        for name, answer in contenders.items():
            start = time.perf_counter()
            answers.append(answer(documents))
            seconds[name].append(time.perf_counter() - start)
        assert answers[0] == answers[1], "the answers differ"
        assert any(answers[0]), "nothing matches"
    median = {name: statistics.median(times) for name, times in seconds.items()}
    spread = max(max(times) / min(times) for times in seconds.values())
    print(
        f"{count:>6,} subscriptions, {size / 1e6:.1f} MB in {DOCUMENTS} documents: "
        f"tamis {size / 1e6 / median['tamis']:6.2f} MB/s, lxml {size / 1e6 / median['lxml']:6.2f} "
        f"MB/s, ratio {median['lxml'] / median['tamis']:.1f} (spread {spread:.2f})"
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print("ratio: how many times as fast as lxml Tamis is; spread: slowest round / fastest round")
    for count in SUBSCRIPTIONS:
        measure(count, rounds)


if __name__ == "__main__":
    main()
