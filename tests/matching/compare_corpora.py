"""Compare the reference engine with lxml on every corpus; write the committed record.

    python -m tests.matching.compare_corpora [SUBSCRIPTIONS [CORPUS…]]

For each corpus, random subscriptions drawn from its documents are answered by Tamis and by lxml on
every document. The record says how many matched and that no answer differed, but for the faults of
the oracle that are listed in ``oracle_faults.toml``.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import tamis
from tamis.documents.source import Source
from tamis.matching.slow import lxml_tree
from tests.corpora import CORPORA, ROOT
from tests.draws import Draw
from tests.oracles import lxml_xpath, read

RECORD = Path(__file__).parent / "compare_corpora.json"
SEED = 20261122
EXPONENT = re.compile(rb"&#x\w+;|[0-9][eE](?=[-+]?[0-9])")


def compare(paths: list[Path], count: int, seed: int = SEED) -> dict[str, object]:
    """Answers of Tamis and lxml for ``count`` subscriptions on some documents."""
    documents = {path: data for path in paths if (data := read(path)) is not None}
    trees = {path: lxml_tree(Source(data)) for path, data in documents.items()}
    draw = Draw(list(trees.values()), seed)
    expressions = dict(enumerate(draw.subscriptions(count)))
    matcher = tamis.compile(tamis.Subscriptions(expressions, namespaces=draw.namespaces))
    oracles = [lxml_xpath(text, draw.namespaces) for text in expressions.values()]
    differences, faults = [], []
    matched: set[int] = set()
    documents_matched = pairs = 0
    started = time.perf_counter()
    answers = [set(match) for match in matcher.match_many(documents)]
    tamis_seconds = time.perf_counter() - started
    for path, answer in zip(documents, answers, strict=True):
        tree = trees[path]
        expected = {i for i, oracle in enumerate(oracles) if oracle(tree)}
        spoilt = None
        for number in sorted(expected ^ answer):
            if spoilt is None:
                spoilt = lxml_tree(Source(EXPONENT.sub(_without_exponent, documents[path])))
            is_fault = oracles[number](spoilt) == (number in answer)
            (faults if is_fault else differences).append(
                {"document": path.name, "subscription": expressions[number]}
            )
        matched |= answer
        documents_matched += bool(answer)
        pairs += len(answer)
    return {
        "documents": len(documents),
        "unparsed": sorted(path.name for path in paths if path not in documents),
        "subscriptions": count,
        "distinct": len(set(expressions.values())),
        "matched": len(matched),
        "documents_matched": documents_matched,
        "matches": pairs,
        "answers_compared": count * len(documents),
        "differences": differences,
        "lxml_reads_exponents": faults,
        "seconds_tamis": round(tamis_seconds, 2),
        "seconds_both": round(time.perf_counter() - started, 2),
    }


def _without_exponent(match: re.Match[bytes]) -> bytes:
    return match[0] if match[0].startswith(b"&") else match[0][:1] + b"x"


def main() -> None:
    """Compare the corpora that are named (all of them if none is) and update the record."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for name in sys.argv[2:] or CORPORA:
        result = compare(sorted((ROOT / name).glob(CORPORA[name])), count)
        print(name, json.dumps(result, indent=1), flush=True)
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        if count >= 2000:
            record[name] = {"seed": SEED, **result}
            RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
