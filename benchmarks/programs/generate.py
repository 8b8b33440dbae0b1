"""How fast Tamis makes workloads, and reads DTDs; what is made is counted and thrown away.

    python -m benchmarks.programs.generate WORKLOAD DATA

Queries are of a DTD with 22 elements, many of them recursive. ``WORKLOAD`` is one of those below;
``DATA`` is the folder of real documents, for ``DTDs``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter

from benchmarks.programs.protocol import Phases, answer, skip
from tamis.core.errors import SchemaError
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd, read_dtd
from tamis_workload import (
    Documents,
    QueryOptions,
    TwigOptions,
    Values,
    dblp,
    queries_from_dtd,
    twigs_from_dtd,
)

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
TWIG = TwigOptions(nodes=15, splits=6, wildcard=0.5, descendant=0.5)
DIFFERENT = QueryOptions(predicates=2, values=Values(100))


def count_queries(made: Callable[[], Iterable[str]], phases: Phases) -> dict[str, int]:
    """Count queries while they are made."""
    with phases("make"):
        count = sum(1 for _ in made())
    return {"queries": count}


def count_documents(made: Callable[[], Iterable[bytes]], phases: Phases) -> dict[str, int]:
    """Count the bytes of documents while they are made: nearly all that were asked for."""
    with phases("make"):
        size = sum(map(len, made()))
    assert 0.8 * BYTES < size <= BYTES, f"{size:,} bytes"
    return {"bytes": size}


def of_queries(workload: str, phases: Phases) -> dict[str, int]:
    graph = SchemaGraph.of(parse_dtd(MANUAL))
    made: dict[str, Callable[[], Iterable[str]]] = {
        "paths": lambda: queries_from_dtd(graph, QUERIES),
        "compared-paths": lambda: queries_from_dtd(
            graph, QUERIES, options=QueryOptions(predicates=1)
        ),
        "distinct-paths": lambda: queries_from_dtd(
            graph, QUERIES, options=DIFFERENT, distinct=True
        ),
        "twigs": lambda: twigs_from_dtd(graph, QUERIES, options=TWIG),
    }
    return count_queries(made[workload], phases)


def of_documents(workload: str, phases: Phases) -> dict[str, int]:
    graph = SchemaGraph.of(parse_dtd(MANUAL))
    small = Documents(graph, size=10_000, fill=True)
    made: dict[str, Callable[[], Iterable[bytes]]] = {
        "bibliography": lambda: dblp(size=BYTES),
        "one-document": lambda: Documents(graph, size=BYTES, fill=True).pieces(0),
        "small-documents": lambda: (small.document(n) for n in range(BYTES // 10_000)),
    }
    return count_documents(made[workload], phases)


def of_dtds(data: Path, phases: Phases) -> tuple[dict[str, int], str]:
    """The time is that of the slowest DTD; gives the counts, and which one it was."""
    seconds = {}
    for path in sorted(data.rglob("*.dtd")):
        start = perf_counter()
        try:
            read_dtd(path)
        except SchemaError:
            continue  # some are broken
        seconds[path.relative_to(data).as_posix()] = perf_counter() - start
    if not seconds:
        skip(f"there are no DTDs in {data.name}/")
    slowest = max(seconds, key=seconds.__getitem__)
    phases.times["make"] = seconds[slowest]
    return {"DTDs": len(seconds)}, f"the slowest of {len(seconds)} is {slowest}"


def main() -> None:
    workload, data = sys.argv[1:]
    phases = Phases()
    note = ""
    if workload == "DTDs":
        counts, note = of_dtds(Path(data), phases)
    elif workload in ("bibliography", "one-document", "small-documents"):
        counts = of_documents(workload, phases)
    else:
        counts = of_queries(workload, phases)
    answer(phases, counts, note=note)


if __name__ == "__main__":
    main()
