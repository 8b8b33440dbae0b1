"""Compare the reference engine with lxml on every corpus; write the committed record.

    python -m tests.matching.compare_corpora [SUBSCRIPTIONS [CORPUS…]]

For each corpus, random subscriptions drawn from its documents are answered by Tamis and by lxml on
every document. The record says how many matched, and that no answer differed but for one fault of
lxml's that real documents run into: it reads ``1e-9`` as a number, which XPath 1.0 (section 4.4)
does not. A difference counts as that fault only where lxml agrees once the exponents are spoilt.
Subscriptions that take lxml longer than a second on a document are left out, and others drawn.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lxml import etree

import tamis
from tamis.documents.source import Source
from tamis.matching.engines.lxml.execute import lxml_tree
from tamis_workload.observed.generator import draw_from_documents
from tamis_workload.queries.queries import Queries
from tests.support.corpora import CORPORA, ROOT
from tests.support.oracles import lxml_xpath, read

RECORD = Path(__file__).parent / "compare_corpora.json"
SEED = 20261122
LXML_SECONDS = 1.0  # for one subscription on one document
EXPONENT = re.compile(rb"&#x\w+;|[0-9][eE](?=[-+]?[0-9])")


def draw(paths: list[Path], count: int, seed: int = SEED) -> tuple[dict[Path, bytes], Queries]:
    """The documents that lxml can read, and subscriptions drawn from them: some to spare."""
    documents = {path: data for path in paths if (data := read(path)) is not None}
    return documents, draw_from_documents(documents.values(), count + count // 4, seed=seed)


def digest(drawn: Queries) -> str:
    """A hash of what was drawn: another one, and a record is of other subscriptions."""
    return hashlib.sha256("\n".join(drawn).encode()).hexdigest()[:16]


def compare(paths: list[Path], count: int, seed: int = SEED) -> dict[str, object]:
    """Answers of Tamis and lxml for ``count`` subscriptions on some documents."""
    documents, found = draw(paths, count, seed)
    trees = {path: lxml_tree(Source(data)) for path, data in documents.items()}
    drawn, namespaces = list(found), found.namespaces
    matcher = tamis.compile(enumerate(drawn), namespaces=namespaces)
    oracles = [lxml_xpath(text, namespaces) for text in drawn]
    started = time.perf_counter()
    answers = {
        path: set(match)
        for path, match in zip(documents, matcher.match_many(list(documents)), strict=True)
    }
    tamis_seconds = time.perf_counter() - started
    expected, too_slow = ask_lxml(oracles, trees)
    compared = [number for number in range(len(drawn)) if number not in too_slow][:count]
    differences, faults = [], []
    for path, data in documents.items():
        for number in set(compared) & (expected[path] ^ answers[path]):
            oracle = lxml_xpath(_spoilt(drawn[number].encode()).decode(), namespaces)
            is_fault = oracle(lxml_tree(Source(_spoilt(data)))) == (number in answers[path])
            (faults if is_fault else differences).append(
                {"document": path.name, "subscription": drawn[number]}
            )
    return {
        "drawn": digest(found),
        "documents": len(documents),
        "unparsed": sorted(path.name for path in paths if path not in documents),
        "subscriptions": len(compared),
        "distinct": len({drawn[number] for number in compared}),
        "matched": len(set(compared) & set().union(*answers.values())),
        "documents_matched": sum(bool(answer) for answer in answers.values()),
        "matches": sum(len(answer.intersection(compared)) for answer in answers.values()),
        "answers_compared": len(compared) * len(documents),
        "differences": differences,
        "lxml_reads_exponents": faults,
        "left_out_as_lxml_took_too_long": len(too_slow),
        "seconds_tamis": round(tamis_seconds, 2),
        "seconds_both": round(time.perf_counter() - started, 2),
    }


def ask_lxml(
    oracles: list[etree.XPath], trees: Mapping[Path, etree._ElementTree]
) -> tuple[dict[Path, set[int]], set[int]]:
    """The numbers of what is true of each document, and of what takes lxml too long on one.

    libxml2 is quadratic in the nodes for expressions such as ``//a//b``, and cannot be interrupted:
    a child process asks, and the alarm clock ends it.
    """
    true: dict[Path, set[int]] = {}
    too_slow: set[int] = set()
    for path, tree in trees.items():
        answers: dict[int, bool] = {}
        while True:
            left = [n for n in range(len(oracles)) if n not in too_slow and n not in answers]
            if not left:
                break
            said = _in_child(lambda: ((n, oracles[n](tree)) for n in left))  # noqa: B023
            answers |= said
            if len(said) < len(left):
                too_slow.add(left[len(said)])
        true[path] = {number for number, answer in answers.items() if answer}
    return true, too_slow


def _in_child(questions: Callable[[], Iterator[tuple[int, bool]]]) -> dict[int, bool]:
    """The answers that a child process gives until one takes longer than ``LXML_SECONDS``."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, LXML_SECONDS)
            for number, answer in questions():
                signal.setitimer(signal.ITIMER_REAL, LXML_SECONDS)
                os.write(writing, b"%d %d\n" % (number, answer))
            status = 0
        finally:  # whatever happens, a child must not go on as if it were the parent
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as lines:
        said = [line.split() for line in lines]
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGALRM), f"lxml's process ended with {status}"
    return {int(number): answer == "1" for number, answer in said}


def _spoilt(text: bytes) -> bytes:
    """A document or an expression in which no number has an exponent."""
    return EXPONENT.sub(
        lambda match: match[0] if match[0].startswith(b"&") else match[0][:1] + b"x", text
    )


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
