"""How fast workloads are made and DTDs are read; writes the committed record.

    python -m benchmarks.workloads [--record]

Queries and documents are made and thrown away. The DTDs are those of ../shared/data, where it is at
hand. The project's own targets: a million queries, and a gigabyte of documents, in 60 s each; any
DTD in 2 s.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numba
import numpy as np

from tamis.errors import SchemaError
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd, read_dtd
from tamis.workload.documents.dblp import dblp
from tamis.workload.documents.generator import Documents
from tamis.workload.queries.paths import QueryOptions, queries_from_dtd
from tamis.workload.queries.twigs import TwigOptions, twigs_from_dtd
from tamis.workload.values import Values

RECORD = Path(__file__).with_suffix(".json")
CORPORA = Path(__file__).parent.parent.parent / "shared" / "data"
ROUNDS = 3
QUERIES = 1_000_000
BYTES = 1_000_000_000
MANUAL = """
<!ELEMENT manual (title, author+, index?, chapter+)>
<!ATTLIST manual id ID #REQUIRED  version CDATA #IMPLIED  status (draft | final) "draft">
<!ELEMENT chapter (title, (para | list | note)*, section*)>  <!ATTLIST chapter id ID #IMPLIED>
<!ELEMENT section (title, (para | list | table | note)*, section*)>
<!ELEMENT title (#PCDATA | emph)*>  <!ELEMENT author (name, email?)>
<!ELEMENT name (#PCDATA)>  <!ELEMENT email (#PCDATA)>
<!ELEMENT para (#PCDATA | emph | code | link)*>  <!ELEMENT emph (#PCDATA | code)*>
<!ELEMENT code (#PCDATA)>  <!ATTLIST code language NMTOKEN #IMPLIED>
<!ELEMENT link (#PCDATA)>  <!ATTLIST link to IDREF #IMPLIED  url CDATA #IMPLIED>
<!ELEMENT list (item+)>  <!ATTLIST list kind (bullets | numbers) #IMPLIED>
<!ELEMENT item (para | list)+>  <!ELEMENT note (para+)>
<!ELEMENT table (row+)>  <!ELEMENT row (cell+)>  <!ELEMENT cell (#PCDATA | emph)*>
<!ELEMENT index (entry+)>  <!ELEMENT entry (#PCDATA)>
"""


def seconds_of(work: Callable[[], object]) -> dict[str, float]:
    """The median and the spread (slowest round / fastest) of a few rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return {
        "seconds": round(statistics.median(times), 2),
        "spread": round(max(times) / min(times), 2),
    }


def counted(texts: Iterable[str], expected: int) -> None:
    assert sum(1 for _ in texts) == expected


def measured(pieces: Iterable[bytes], expected: int) -> None:
    assert 0.8 * expected < sum(map(len, pieces)) <= expected


def of_queries() -> dict[str, object]:
    """Of a million queries each, over a DTD of 22 elements, many of them recursive."""
    graph = SchemaGraph.of(parse_dtd(MANUAL))
    compared = QueryOptions(predicates=1)
    different = QueryOptions(predicates=2, values=Values(100))
    twig = TwigOptions(nodes=15, splits=6, wildcard=0.5, descendant=0.5)
    made: dict[str, Callable[[], Iterable[str]]] = {
        "paths": lambda: queries_from_dtd(graph, QUERIES),
        "distinct paths with two predicates": lambda: queries_from_dtd(
            graph, QUERIES, options=different, distinct=True
        ),
        "paths with a predicate": lambda: queries_from_dtd(graph, QUERIES, options=compared),
        "twigs of 15 nodes": lambda: twigs_from_dtd(graph, QUERIES, options=twig),
    }
    return {name: seconds_of(lambda: counted(draw(), QUERIES)) for name, draw in made.items()}  # noqa: B023


def of_documents() -> dict[str, object]:
    """Of a gigabyte each, as one document and as many."""
    graph = SchemaGraph.of(parse_dtd(MANUAL))
    one = Documents(graph, size=BYTES, fill=True)
    many = Documents(graph, size=10_000, fill=True)
    number = BYTES // 10_000
    return {
        "bibliography": seconds_of(lambda: measured(dblp(size=BYTES), BYTES)),
        "of a DTD, one document": seconds_of(lambda: measured(one.pieces(0), BYTES)),
        "of a DTD, 10 KB each": seconds_of(
            lambda: measured((many.document(n) for n in range(number)), BYTES)
        ),
    }


def of_dtds() -> dict[str, object]:
    """Of each DTD that can be read; the slowest, and the one with the most elements."""
    found = []
    for path in sorted(CORPORA.rglob("*.dtd")):
        try:
            elements = len(read_dtd(path).elements)
        except SchemaError:
            continue
        found.append((seconds_of(lambda: read_dtd(path)), elements, path.name))  # noqa: B023
    if not found:
        return {}
    slowest = max(found, key=lambda entry: entry[0]["seconds"])
    largest = max(found, key=lambda entry: entry[1])
    return {
        "read": len(found),
        "slowest": {"name": slowest[2], "elements": slowest[1], **slowest[0]},
        "largest": {"name": largest[2], "elements": largest[1], **largest[0]},
    }


def processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main() -> None:
    result = {
        "processor": processor(),
        "versions": {
            "python": platform.python_version(),
            "numba": numba.__version__,
            "numpy": np.__version__,
        },
        "a million queries": of_queries(),
        "a gigabyte of documents": of_documents(),
        "DTDs": of_dtds(),
    }
    text = json.dumps(result, indent=1)
    print(text)
    if "--record" in sys.argv:
        RECORD.write_text(text + "\n")


if __name__ == "__main__":
    main()
