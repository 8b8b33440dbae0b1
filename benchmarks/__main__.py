"""Tamis and a loop over lxml's compiled XPath, on the same documents: ``make bench``.

For each number of subscriptions, each contender parses and answers the same documents, which no run
has seen before; the contenders take turns, and the answers must be equal. Prints medians of the
rounds, and how many times as fast as lxml Tamis is.

    python -m benchmarks [ROUNDS]
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

from lxml import etree

import tamis
from tamis.language.xpath import parse_for_slow_lane

DOCUMENTS = 100
RECORDS = 20  # of each document
SUBSCRIPTIONS = (10, 100, 1000)
_NAMES = [f"field{number}" for number in range(40)]


def document(draw: random.Random) -> bytes:
    """Some 4 KB: records of named fields, some of them nested, with small values."""
    records = []
    for _ in range(RECORDS):
        fields = "".join(
            f"<{name} n='{draw.randrange(50)}'><value>{draw.randrange(1000)}</value></{name}>"
            for name in draw.sample(_NAMES, 4)
        )
        records.append(f"<record id='{draw.randrange(10**6)}'>{fields}</record>")
    return f"<records>{''.join(records)}</records>".encode()


def subscription(draw: random.Random) -> str:
    """A path, a twig or a value, about a third of which are true of a document."""
    name, other = draw.sample(_NAMES, 2)
    return draw.choice(
        [
            f"/records/record/{name}[@n = {draw.randrange(50)}]",
            f"//record[{name}]/{other}/value",
            f"//{name}[value > {draw.randrange(1000)}]",
            f"//record[{name} and not({other})]",
            f"//{name}//value[starts-with(., '{draw.randrange(100)}')]",
        ]
    )


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
    draw = random.Random(count)
    expressions = [subscription(draw) for _ in range(count)]
    contenders = {"tamis": answer_with_tamis(expressions), "lxml": answer_with_lxml(expressions)}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    size = 0
    for _ in range(rounds):
        documents = [document(draw) for _ in range(DOCUMENTS)]
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
