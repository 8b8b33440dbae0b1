"""What is compared: answers of this process, and those that Spark wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq

import tamis

Answers = set[tuple[object, object, object]]
"""(document, subscription, None) for each match, (document, None, message) for each error."""


def in_process(matcher: tamis.CompiledMatcher, given: Mapping[object, str | Path]) -> Answers:
    answers: Answers = set()
    for document, found in zip(given, matcher.match_many(given.values()), strict=True):
        if found.error is not None:
            answers.add((document, None, found.error.message))
        else:
            answers.update((document, id, None) for id in found)
    return answers


def answers_in(folder: Path) -> Answers:
    found: Answers = set()
    for name in ("matches", "errors"):
        rows = pq.read_table(folder / name).to_pylist()
        said = {(row["document"], row.get("subscription"), row.get("message")) for row in rows}
        assert len(said) == len(rows)
        found |= said
    return found
