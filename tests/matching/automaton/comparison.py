"""The automaton, asked in many ways, compared with the reference engine, asked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from random import Random
from unittest.mock import patch

import numpy as np

from tamis.core.errors import SubscriptionError
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.parser import Parser
from tamis.documents.source import Source
from tamis.documents.vocabulary import ALL_NAMES, Projection, Vocabulary
from tamis.language.lower import Lowering
from tamis.language.model import Query
from tamis.language.plain.reader import PlainReader
from tamis.language.printer import print_query
from tamis.language.queries import ParseOptions, Queries
from tamis.language.xpath import parse
from tamis.matching.engine import Searcher, reason_of
from tamis.matching.engines import reference
from tamis.matching.engines.automaton import ENGINE, compile_queries, execute
from tamis.matching.engines.automaton.compile import arrays, freeze
from tamis.matching.engines.automaton.execute import Automaton
from tests.support.bulk import read_in_bulk

STRUCTURE = Projection(attributes=ALL_NAMES, text=ALL_NAMES, misc=True, prefixes=True)
"""More than any query asks for that the automaton answers."""

PLAIN, INDEXED, SPARSE = PROGRAMS = ("plain", "indexed", "sparse")
"""All nodes of the second have their rules indexed, and all that can be are in grids; facts of the
third stay outside of sets wherever they can. What is plain is compiled in bulk, in both."""
Answers = list[set[int]]
"""By document: the queries that are true of it."""


@dataclass(frozen=True)
class Way:
    """How documents are handed to an automaton.

    Attributes:
        cache_bytes: what it may learn.
        order: the documents' numbers; some may come again.
        cuts: where a batch ends.
        is_lean: parse what the program projections, and not all.
        program: of which of the ``PROGRAMS``.
        retire_after: see ``Automaton``; how many times as many have to be open before.
    """

    name: str
    cache_bytes: int
    order: tuple[int, ...]
    cuts: tuple[int, ...] = ()
    is_lean: bool = False
    program: str = PLAIN
    retire_after: tuple[int, int] = (1 << 30, 2)

    def batches(self) -> Iterator[tuple[int, ...]]:
        """The documents' numbers, batch after batch."""
        ends = sorted({0, *self.cuts, len(self.order)})
        for start, end in pairwise(ends):
            yield self.order[start:end]

    def without(self, document: int) -> Way:
        """The same where one document is not there."""
        order = [number - (number > document) for number in self.order if number != document]
        gone = [place for place, number in enumerate(self.order) if number == document]
        cuts = [cut - sum(place < cut for place in gone) for cut in self.cuts]
        return replace(self, order=tuple(order), cuts=tuple(cuts))


def ways(documents: int, draw: Random) -> list[Way]:
    """All at once; one by one; shuffled and cut anywhere, some twice; caches of three sizes."""
    all_of_them = tuple(range(documents))
    shuffled = [*all_of_them, *all_of_them[: documents // 2]]
    draw.shuffle(shuffled)
    middle = draw.choice([12_000, 20_000, 40_000])
    cuts = tuple(sorted(draw.sample(range(len(shuffled)), min(4, len(shuffled)))))
    several = [
        Way("all at once", 1 << 28, all_of_them, is_lean=True),
        Way("all at once, forgetting", 1, all_of_them, program=INDEXED),
        Way("all at once, sparse", draw.choice([1, 1 << 28]), all_of_them, program=SPARSE),
        Way("backwards, in batches", middle, all_of_them[::-1], cuts),
        Way("one by one, forgetting", 1, all_of_them[::-1], all_of_them, is_lean=True),
        Way(
            "shuffled, in batches",
            draw.choice([1, 15_000, 1 << 28]),
            tuple(shuffled),
            cuts,
            program=draw.choice([INDEXED, SPARSE]),
        ),
    ]
    often = [(1 << 30, 2), (1, 1), (3, 1), (20, 1), (5, 2)]
    return [replace(way, retire_after=draw.choice(often)) for way in several]


@dataclass(frozen=True)
class Difference:
    """Where an automaton says something else.

    Attributes:
        got: whether the automaton says that the query is true.
    """

    way: Way
    query: int
    document: int
    got: bool


class Comparison:
    """Compares the automaton with the reference engine, asked the same in many ways.

    Attributes:
        comparisons: answers that were compared.
        true: those of the reference engine that were true, each once.
        cleared: how often automata cleared their cache.
        retired: how often queries were left out of the rest of a document.
        plain: queries that were compiled in bulk.
        sliced: those that were in grids, by node.
        sparse: facts that stayed outside of sets.
    """

    def __init__(self) -> None:
        self.comparisons = self.true = self.cleared = self.retired = 0
        self.plain = self.sliced = self.sparse = 0
        self._parser = Parser(Vocabulary(), STRUCTURE, DEFAULT_LIMITS)

    def difference(
        self, queries: Sequence[Query], documents: Sequence[str | bytes], several: Sequence[Way]
    ) -> Difference | None:
        """Where the engines differ first."""
        sources = [Source(d.encode() if isinstance(d, str) else d) for d in documents]
        if self._parser.is_full:
            self._parser = Parser(Vocabulary(), STRUCTURE, DEFAULT_LIMITS)
        oracle = reference.ENGINE.searcher(reference.compile_queries(queries), 1 << 28)
        expected = answers(oracle, self._parser, sources)
        self.true += sum(map(len, expected))
        program = compile_queries(queries)
        with (
            patch.object(freeze, "MANY_RULES", 0),
            patch.multiple(arrays, GRID_RULES=1, SPARSEST=1 << 40),
        ):
            bulk, numbers = in_bulk(queries)
            self.plain += read_in_bulk(bulk)
            indexed = compile_queries(bulk)
        with patch.multiple(arrays, MANY_CONSTANTS=1, POPULAR=1 << 30):
            sparse_program = compile_queries(bulk)
        programs = dict(zip(PROGRAMS, (program, indexed, sparse_program), strict=True))
        self.sliced += len(indexed.arrays.sliced)
        self.sparse += int(np.bitwise_count(sparse_program.arrays.sparse).sum())
        lean = Parser(Vocabulary(), program.projection, DEFAULT_LIMITS)
        for way in several:
            automaton = Automaton(programs[way.program], way.cache_bytes)
            automaton.retire_after, share = way.retire_after
            for batch in way.batches():
                parser = lean if way.is_lean else self._parser
                with patch.object(execute, "SHARE", share):
                    found = answers(automaton, parser, [sources[number] for number in batch])
                if way.program != PLAIN:
                    found = [{i for i, n in enumerate(numbers) if n in got} for got in found]
                for number, got in zip(batch, found, strict=True):
                    self.comparisons += len(queries)
                    for query in sorted(got ^ expected[number]):
                        return Difference(way, query, number, query in got)
            self.cleared += automaton.cleared
            self.retired += automaton.retired
        return None


def answers(matching: Searcher, parser: Parser, sources: Sequence[Source]) -> Answers:
    """What is true of some documents; none may be in error."""
    batch, errors = parser.parse(sources)
    assert not errors, errors
    matches = matching.match(batch, parser.vocabulary)
    return [set(matches.numbers(number).tolist()) for number in range(len(sources))]


def in_bulk(queries: Sequence[Query]) -> tuple[Queries, list[int]]:
    """The same queries, those that are plain read in bulk; and their numbers in the result."""
    namespaces = dict(pair for query in queries for pair in query.namespaces)
    texts = [print_query(query) for query in queries]
    data = [text.encode() for text in texts]
    ends = np.cumsum(list(map(len, data)))
    starts = ends - np.array(list(map(len, data)))
    reader = PlainReader(namespaces)
    read = reader.read(np.frombuffer(b"".join(data), np.uint8), starts, ends).tolist()
    plain = reader.queries()
    others = [place for place, number in enumerate(read) if number < 0]
    lowering = Lowering(plain)
    for place in others:
        lowering.append(queries[place])
    behind = count(len(plain))
    numbers = [next(behind) if number < 0 else number for number in read]
    examples = np.array([*map(read.index, range(len(plain))), *others], np.int32)
    known = {numbers[place]: queries[place] for place in others}
    options = ParseOptions(namespaces, "refuse", DEFAULT_LIMITS)
    return Queries(texts, examples, options, known, lowering.table()), numbers


def supported(texts: Sequence[str], namespaces: Mapping[str, str]) -> dict[str, Query]:
    """Of some expressions, those that the automaton answers, each once."""
    result: dict[str, Query] = {}
    for text in texts:
        try:
            query = parse(text, namespaces)
        except SubscriptionError:
            continue
        if reason_of(ENGINE, query) is None:
            result[text] = query
    return result
