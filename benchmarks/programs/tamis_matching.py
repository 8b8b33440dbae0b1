"""What a matcher of Tamis does, its phases timed apart."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.programs.protocol import Digest, Phases
from benchmarks.programs.tamis_parsing import OpenParser, groups
from tamis.documents.demand import Demand
from tamis.documents.vocabulary import Vocabulary
from tamis.language.subscriptions import Subscriptions
from tamis.limits import DEFAULT_LIMITS
from tamis.matching.matchset import MatchSet, joined
from tamis.matching.planner import plan


class Matching:
    """Compiled subscriptions, given as (id, expression) pairs."""

    def __init__(self, pairs: Sequence[tuple[str, str]], engine: str) -> None:
        self.ids = [id for id, _ in pairs]
        queries = [entry.query for entry in Subscriptions(pairs) if entry.query is not None]
        assert len(queries) == len(pairs), "subscriptions that no engine takes"
        shares = plan(queries, engine)
        programs = [share.engine.compile(share.queries) for share in shares]
        self.engine = " and ".join(share.engine.name for share in shares)
        self.demand = Demand()
        for program in programs:
            self.demand |= program.demand
        self.lanes = [
            (
                share.engine.open(program, DEFAULT_LIMITS.memo_bytes),
                share.numbers if len(shares) > 1 else None,
            )
            for share, program in zip(shares, programs, strict=True)
        ]

    def answer(self, documents: Sequence[bytes], phases: Phases) -> tuple[dict[str, int], Digest]:
        """Answer documents; gives what was counted, and the hash of the answers."""
        counts = {"documents": 0, "matches": 0}
        digest = Digest()
        vocabulary = Vocabulary()
        with phases("parse"):
            parser = OpenParser("default", vocabulary, self.demand)
        for group in groups(documents):
            with phases("parse"):
                batch = parser.parse(group)
            with phases("match"):
                matches = joined(
                    [(matching.match(batch, vocabulary), own) for matching, own in self.lanes]
                )
            with phases("report"):
                found = [self._reported(matches, number) for number in range(len(group))]
            for ids in found:
                digest.add(" ".join([str(counts["documents"]), *ids]))
                counts["documents"] += 1
                counts["matches"] += len(ids)
        return counts, digest

    def _reported(self, matches: MatchSet, number: int) -> list[str]:
        """The ids of the subscriptions that matched a document."""
        return [self.ids[index] for index in matches.numbers(number).tolist()]
