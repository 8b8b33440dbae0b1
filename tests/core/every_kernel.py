"""Uses every kernel, and prints what came of it: ``python -m tests.core.every_kernel``.

For processes that are set up otherwise: another level of processors, or every index checked.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tamis.core.kernel import declare, kernel
from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.documents.parser import parse
from tamis.documents.record_reader import parse_records
from tamis.documents.source import Source, Stream
from tamis.documents.vocabulary import EVERYTHING, Projection, Vocabulary
from tamis.language.subscriptions import Subscriptions
from tamis.language.xpath import parse as parse_query
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_papers.pma import compile_queries, open_pma
from tamis_workload.documents.dblp import dblp
from tamis_workload.documents.grammar import Documents
from tamis_workload.events import EventWorkload
from tests.core.use_everything import use_everything
from tests.matching.automaton.compare import compare
from tests.matching.automaton.comparison import Comparison
from tests.papers.pma.variants import OPTIONS

_PROJECTION = EVERYTHING._replace(lines=False)
_WIDE = [f"//a/b{number}//c" for number in range(1_000)]
"""Filters with more states than the trie has room for at first."""
_DTD = """
    <!ELEMENT a (b | c | a)*> <!ATTLIST a i ID #IMPLIED r IDREFS #IMPLIED>
    <!ELEMENT b (#PCDATA)> <!ELEMENT c (b?, b, (c | b))>"""


def drawn() -> Iterator[object]:
    """Documents of a DTD, of all sizes; filters and events."""
    graph = SchemaGraph.of(parse_dtd(_DTD))
    for size in (40, 1_000, 100_000):
        documents = Documents(graph, size=size, fill=True)
        for number in range(20):
            yield documents.document(number)
    # Of few names, of which nearly all draws are of one.
    workload = EventWorkload(filters=(9, 99), constraints=(4, 6), names=5, skew=16, strings=0.3)
    yield from (*workload.table()[1:6], *workload.events(100)[:4])


def parsed() -> Iterator[object]:
    """A bibliography, as records of a stream in small pieces and as one document."""
    data = b"".join(dblp(records=2_000))
    yield data
    stream = Stream((data[place : place + 3_001] for place in range(0, len(data), 3_001)), None, "")
    for found in parse_records(stream, "article", Vocabulary(), _PROJECTION, Limits()):
        assert not isinstance(found, Flush)
        yield from (*found.batch, *found.offsets[1:4])
    yield from parse([Source(data)], Vocabulary(), _PROJECTION, Limits())[0]


def read() -> Iterator[object]:
    """Subscriptions in bulk, from a file and from Python."""
    expressions = [f"/a[b{n} = '{n}' or c > {n}]//d" for n in range(4_000)] + ["a", "//b"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "subscriptions.tsv")
        lines = "".join(f"s{n}\t{text}\n" for n, text in enumerate(expressions))
        path.write_text(f"{lines}# comment\n\n//c\ns //a\n")
        from_file = Subscriptions.from_file(path, skip_bad=True)
    for given in (from_file, Subscriptions(enumerate(expressions))):
        whole = given.with_entries([*given])
        yield from (whole.query_numbers, *whole.queries.table[:2], *whole.queries.table[3:])
        yield repr([*whole.ids]).encode()


def filtered() -> Iterator[object]:
    """What all variants of the pattern-matching automaton find."""
    filters = ["//a", "/a/b", "//a/a//b", "//a//a//b/a", "//c/b", "/a/c//b", *_WIDE]
    queries = [parse_query(text) for text in filters]
    sources = [Source(document) for document in drawn()]
    vocabulary = Vocabulary()
    batch, _ = parse(sources, vocabulary, Projection(), Limits())
    for options in OPTIONS:
        matching = open_pma(compile_queries(queries, options=options), 0)
        matches = matching.match(batch, vocabulary)
        for document in range(batch.documents):
            yield matches.numbers(document)


def main() -> None:
    use_everything()
    for part in (drawn, parsed, read, filtered):
        digest = hashlib.sha256()
        for values in part():
            digest.update(values)
        print(part.__name__, digest.hexdigest())
    comparison = Comparison()
    print("wrong", compare(7, 0, 40, comparison))
    print("asked", comparison.comparisons)
    if declare.mode() != "jit":
        return
    unused = [each.__name__ for each in declare.KERNELS if not each.signatures]
    print("unused", unused)

    @kernel
    def canary(array, index):
        """What is there; where every index is checked, an exception if nothing is."""
        return array[index]

    try:
        canary(np.zeros(3, np.int64), 5)
        print("canary", "unnoticed")
    except IndexError:
        print("canary", "IndexError")


if __name__ == "__main__":
    main()
