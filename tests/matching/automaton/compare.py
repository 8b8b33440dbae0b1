"""Compare the automaton with the reference engine on drawn documents and subscriptions.

    python -m tests.matching.automaton.compare [--rounds N] [--seed S] [--first N]

A round is some dozen documents and subscriptions, asked in several ways. Where an answer differs,
what is not needed is taken away, the rest printed, with the command that draws the round again, and
the program ends with 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from tamis.core.errors import UsageError
from tamis.language.model import Query
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload.documents.grammar import DocumentOptions, Documents
from tamis_workload.draws import Values
from tamis_workload.queries.paths import QueryOptions, queries_from_dtd
from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd
from tests.matching.automaton.comparison import Comparison, Difference, Way, supported, ways
from tests.matching.automaton.trees import NAMESPACES, Shape, document, expression
from tests.support.replay import command

_ELEMENTS = "abcdef"
DEPTHS_MAX = (4, 8, 20)


@dataclass(frozen=True)
class Round:
    """What is asked.

    Attributes:
        queries: by their text.
        ways: how documents are handed over.
    """

    queries: Mapping[str, Query]
    documents: Sequence[str | bytes]
    ways: Sequence[Way]


def drawn(seed: int, number: int) -> Round:
    """A round, the same whenever it is drawn."""
    draw = Random(f"{seed} {number}")
    documents: list[str | bytes] = []
    texts: list[str] = []
    if draw.random() < 0.15:
        documents, texts = _of_dtd(draw)
    shape = Shape.drawn(draw)
    count = draw.choice([1, 5, 30, 80])
    documents += [document(draw, shape) for _ in range(draw.choice([1, 5, 20]))]
    texts += [expression(draw, shape) for _ in range(count)]
    queries = supported(texts, NAMESPACES)
    return Round(queries, documents, ways(len(documents), draw))


def _of_dtd(draw: Random) -> tuple[list[str | bytes], list[str]]:
    """Documents, queries and twigs of a random DTD; none where it permits none."""
    graph = SchemaGraph.of(parse_dtd(_dtd(draw)), ["a"])
    seed = draw.randrange(1 << 32)
    values = Values(3)
    documents: list[str | bytes] = []
    texts: list[str] = []
    with suppress(UsageError):  # there is no valid document, or none so small
        made = Documents(
            graph,
            options=DocumentOptions(values=values),
            depth=draw.choice(DEPTHS_MAX),
            size=2000,
            seed=seed,
        )
        documents += [made.document(number) for number in range(8)]
    if not documents:
        return [], []
    options = QueryOptions(
        wildcard=draw.choice([0, 0.3]), descendant=draw.choice([0, 0.3]), nested=draw.randint(0, 2)
    )
    with suppress(UsageError):  # nothing to draw from
        texts += queries_from_dtd(graph, 15, options=options, seed=seed)
    twigs = TwigOptions(
        nodes=draw.choice([5, 8, 12]), splits=2, wildcard=options.wildcard,
        descendant=options.descendant,
    )  # fmt: skip
    with suppress(UsageError):  # no room
        texts += twigs_from_dtd(graph, 15, options=twigs, seed=seed)
    return documents, texts


def _dtd(draw: Random) -> str:
    """Elements a to f: what is in one may be in itself."""
    declared = []
    for name in _ELEMENTS:
        inside = draw.sample(_ELEMENTS, draw.randint(0, 4))
        mixed = draw.random() < 0.4
        if not inside:
            model = draw.choice(["EMPTY", "(#PCDATA)", "ANY"])
        elif mixed:
            model = f"(#PCDATA | {' | '.join(inside)})*"
        else:
            separator = draw.choice([", ", " | "])
            model = (
                f"({separator.join(n + draw.choice('?*?*+') for n in inside)}){draw.choice('*?')}"
            )
        declared.append(f"<!ELEMENT {name} {model}>")
        if draw.random() < 0.4:
            declared.append(f"<!ATTLIST {name} x CDATA #IMPLIED y CDATA #REQUIRED>")
    return "\n".join(declared)


# -- what differs ----------------------------------------------------------------------------------


def shrunk(asked: Round, found: Difference) -> tuple[Round, Difference]:
    """A round that still differs, with fewer subscriptions and documents, asked in one way."""
    comparison = Comparison()
    asked = Round(asked.queries, asked.documents, [found.way])
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(asked):
            difference = comparison.difference(
                list(smaller.queries.values()), smaller.documents, smaller.ways
            )
            if difference is not None:
                asked, found, is_smaller = smaller, difference, True
                break
    return asked, found


def _smaller(asked: Round) -> list[Round]:
    """Rounds with one thing less."""
    (way,) = asked.ways
    result = []
    for text in asked.queries:
        queries = {other: query for other, query in asked.queries.items() if other != text}
        result.append(Round(queries, asked.documents, asked.ways))
    for number in range(len(asked.documents)):
        documents = [*asked.documents[:number], *asked.documents[number + 1 :]]
        result.append(Round(asked.queries, documents, [way.without(number)]))
    return result


def described(asked: Round, found: Difference) -> str:
    """What differs, and all that is needed for it."""
    lines = [f"{found.way}"]
    lines += [f"subscription {number}: {text}" for number, text in enumerate(asked.queries)]
    lines += [f"document {number}: {_text(text)}" for number, text in enumerate(asked.documents)]
    query = list(asked.queries)[found.query]
    lines.append(
        f"subscription {found.query} on document {found.document}: "
        f"the automaton says {found.got}, the reference engine {not found.got}"
    )
    lines.append(command(query, _text(asked.documents[found.document]), NAMESPACES))
    return "\n".join(lines)


def _text(document: str | bytes) -> str:
    return document if isinstance(document, str) else document.decode()


def compare(seed: int, first: int, rounds: int, comparison: Comparison) -> str | None:
    """Ask rounds: what differs first, described, or None."""
    for number in range(first, first + rounds):
        asked = drawn(seed, number)
        found = comparison.difference(list(asked.queries.values()), asked.documents, asked.ways)
        if found is not None:
            again = f"python -m tests.matching.automaton.compare --seed {seed} --first {number}"
            return f"{again} --rounds 1\n{described(*shrunk(asked, found))}"
    return None


def main() -> int:
    """Compare, and say how much was compared."""
    parser = argparse.ArgumentParser(description=compare.__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    comparison = Comparison()
    started = time.monotonic()
    difference = compare(given.seed, given.first, given.rounds, comparison)
    print(
        f"{comparison.comparisons:,} comparisons, {comparison.true:,} answers true, "
        f"{comparison.cleared:,} times cleared, {comparison.retired:,} times retired, "
        f"{comparison.plain:,} queries in bulk, "
        f"{comparison.sliced:,} in grids, {comparison.sparse:,} sparse facts, "
        f"{time.monotonic() - started:.0f} s"
    )
    if difference is not None:
        print(difference)
    return int(difference is not None)


if __name__ == "__main__":
    sys.exit(main())
