"""What a matcher of Tamis does, its phases timed apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.programs.protocol import Digest, Phases
from benchmarks.programs.tamis_parsing import OpenParser, groups
from tamis.core.index.matches import Listing, Matches
from tamis.core.index.matchset import checked_nodes
from tamis.core.threads import Flush
from tamis.documents.batch import DocumentBatch
from tamis.documents.record_reader import parse_records
from tamis.documents.source import open_stream
from tamis.documents.vocabulary import Vocabulary
from tamis.language.subscriptions import Subscriptions
from tamis.matching.conformance import Schema
from tamis.matching.matcher import CompiledMatcher


class Searcher:
    """A matcher taken apart: the same queries, programs and results, one thread.

    Equal queries of several subscriptions are compiled once, as in ``tamis.compile``.

    Args:
        pairs: subscriptions, as (id, expression).
        engine: "auto", or the one to use.
        phases: gets the times of ``expressions``, which are parsed, and of ``compile``.
        nodes: note what it takes to tell which nodes were selected: the "first", or "all".
        schema: what documents are promised to keep to.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]],
        engine: str,
        phases: Phases,
        nodes: str | None = None,
        schema: Schema | None = None,
    ) -> None:
        with phases("expressions"):
            subscriptions = Subscriptions(pairs)
            len(subscriptions.queries)
        with phases("compile"):
            limits = subscriptions.limits
            self.matcher = CompiledMatcher(subscriptions, engine, limits, None, schema)
        self.ids = np.array(list(self.matcher.ids), dtype=object)
        bytes_max = self.matcher.limits.cache_bytes
        self.searchers = [
            share.engine.searcher(program, bytes_max)
            for share, program in self.matcher._batches.assignments
        ]
        self.listing = Listing(self.matcher.programs.answered, None, len(self.ids))
        self.vocabulary = Vocabulary()
        self.nodes, _ = checked_nodes(nodes, False)
        projection = self.matcher._batches.projected(self.nodes, False)
        self.parser = OpenParser("default", self.vocabulary, projection)

    @property
    def engine(self) -> str:
        """What has matched, or several."""
        return self.matcher.engine

    def memory(self) -> str:
        """What programs and caches take now."""
        program = self.matcher.memory_usage()["program"]
        warm = sum(matching.memory_usage() for matching in self.searchers)
        caches = [getattr(matching, "cached", matching) for matching in self.searchers]
        cleared = sum(getattr(matching, "cleared", 0) for matching in caches)
        return (
            f"program {program / 1e6:.3g} MB, cache {warm / 1e6:.3g} MB, "
            f"cleared its cache {cleared} times"
        )

    def answer(
        self, documents: Sequence[bytes], phases: Phases, tag: str = ""
    ) -> tuple[dict[str, int], Digest]:
        """Answer documents, or the records of a tag; gives what was counted, and the answers' hash.

        The cache is warm from earlier documents.
        """
        answered, elements = ("records", "record_elements") if tag else ("documents", "elements")
        counts = {answered: 0, elements: 0, "matches": 0}
        digest = Digest()
        batches = self._records(documents, tag) if tag else self._batches(documents)
        while True:
            with phases("parse"):
                found = next(batches, None)
            if found is None:
                return {**counts, "documents": len(documents)}, digest
            batch, vocabulary = found
            with phases("match"):
                matches = self._match(batch, vocabulary)
            with phases("report"):
                answers = [self.ids[matches.numbers(number)] for number in range(batch.documents)]
            counts[elements] += len(batch.tags) // 2
            for ids in answers:
                digest.add(" ".join([str(counts[answered]), *ids]))
                counts[answered] += 1
                counts["matches"] += len(ids)

    def _batches(self, documents: Sequence[bytes]) -> Iterator[tuple[DocumentBatch, Vocabulary]]:
        for group in groups(documents):
            yield self.parser.parse(group), self.vocabulary

    def _records(
        self, documents: Sequence[bytes], tag: str
    ) -> Iterator[tuple[DocumentBatch, Vocabulary]]:
        for document in documents:
            stream = open_stream(document)
            projection, limits = self.matcher._batches.projection, self.matcher.limits
            for records in parse_records(stream, tag, self.vocabulary, projection, limits):
                if isinstance(records, Flush):
                    continue
                if records.stream_error is not None:
                    raise records.stream_error
                yield records.batch, records.vocabulary

    def _match(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Matches[Any]:
        found = [each.match(batch, vocabulary, self.nodes) for each in self.searchers]
        return Matches(self.listing, found)
