"""What the generators are asked in the same words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tamis.cli.arguments import read_graph
from tamis.cli.console import Results, open_results, progress, warn
from tamis.cli.options import Option
from tamis.core.errors import UsageError

if TYPE_CHECKING:
    from tamis.schema.graph import SchemaGraph
    from tamis_workload.queries.queries import Queries
    from tamis_workload.values import Values

Seed = Annotated[
    int, Option("--seed", help="Another one makes another workload, the same everywhere.")
]
Count = Annotated[int, Option("--count", min=0, help="How many.")]
Output = Annotated[
    Path | None,
    Option("--output", metavar="FILE", help="Write to this file instead of standard output."),
]
Wildcard = Annotated[
    float, Option("--wildcard", metavar="P", help="P(*): of a step to name no element.")
]
Descendant = Annotated[
    float, Option("--descendant", metavar="P", help="P(//): of a step to be written //.")
]
Distinct = Annotated[bool, Option("--distinct", help="No two alike.")]
PredicateCount = Annotated[
    int, Option("--predicates", metavar="N", help="Comparisons with values, in each.")
]
Selectivity = Annotated[
    float | None,
    Option(
        "--selectivity",
        metavar="SHARE",
        help="The share of values that a comparison is true of; by default it is left to chance.",
    ),
]
ValueCount = Annotated[
    int, Option("--values", metavar="N", help="How many different values there are.")
]
ValueSkew = Annotated[
    float,
    Option("--values-skew", metavar="S", help="Zipf's exponent of the values; 0: all as likely."),
]
ValueKind = Annotated[
    Literal["numbers", "words"],
    Option("--values-kind", help="Numbers from 1, or words."),
]


def chosen_values(count: int, skew: float, kind: Literal["numbers", "words"]) -> Values:
    """The values that the options describe."""
    from tamis_workload.values import Values  # noqa: PLC0415 - keeps --help fast

    return Values(count, skew, kind)


def read_one_root(
    file: Path, catalog: Sequence[Path] | None, roots: Sequence[str] | None
) -> SchemaGraph:
    """The DTD of a file; says with which root workloads begin, where that is not plain."""
    graph = read_graph(file, catalog, roots)
    if len(graph.roots) > 1:
        some = ", ".join(graph.roots[:5]) + (", …" if len(graph.roots) > 5 else "")
        warn(
            f"{file} has several roots ({some}): <{graph.root}> is taken, name another with --root"
        )
    return graph


def parse_range(text: str, lowest: int) -> tuple[int, int]:
    """``N`` (up to N, from the lowest) or ``N..M``.

    >>> parse_range("6", 1), parse_range("2..4", 1)
    ((1, 6), (2, 4))
    """
    match = re.fullmatch(r"(?:(\d{1,9})\.\.)?(\d{1,9})", text.strip())
    if match is None:
        raise UsageError(f"expected a number or a range such as 2..4, not {text!r}")
    return int(match[1] or lowest), int(match[2])


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(text: str) -> int:
    """A number of bytes, with a unit if it is large.

    >>> parse_bytes("24MB"), parse_bytes("1.5 GB"), parse_bytes("64KiB"), parse_bytes("800")
    (24000000, 1500000000, 65536, 800)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgt]?i?)b?", text.strip(), re.IGNORECASE)
    unit = (_UNITS | _BINARY).get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise UsageError(f"expected a number of bytes such as 64KB, 24MB or 1GB, not {text!r}")
    return int(Decimal(match[1]) * unit)


def write_queries(
    queries: Queries, output: Path | None, namespaces: Path | None, count: int
) -> None:
    """Write a file of subscriptions, whose ids are q1, q2, …, and that of their prefixes.

    Args:
        count: how many there are, of which those that are written are shown on a terminal.

    Raises:
        UsageError: they need prefixes, and no file is named for these.
    """
    _write_prefixes(queries.namespaces, namespaces)
    as_json = output is not None and output.suffix == ".ndjson"
    with (
        open_results(output) as results,
        progress(count, results.is_terminal, "queries") as advance,
    ):
        lines: list[str] = []
        for number, expression in enumerate(queries, start=1):
            if as_json:
                results.write({"id": f"q{number}", "expression": expression})
            else:
                lines.append(f"q{number}\t{expression}\n")
            if number % _LINES == 0:
                _write_lines(results, lines)
                advance(_LINES)
        _write_lines(results, lines)


def write_transformations(queries: Queries, output: Path | None, namespaces: Path | None) -> None:
    """Write transforming subscriptions as NDJSON, whose ids are q1, q2, …, and their prefixes.

    Raises:
        UsageError: they need prefixes, and no file is named for these.
    """
    _write_prefixes(queries.namespaces, namespaces)
    with open_results(output) as results:
        for number, query in enumerate(queries, start=1):
            results.write({"id": f"q{number}", "query": query})


def _write_prefixes(prefixes: Mapping[str, str], file: Path | None) -> None:
    if file is not None:
        with open_results(file) as results:
            results.write_bytes("".join(f"{p} {uri}\n" for p, uri in prefixes.items()).encode())
    elif prefixes:
        raise UsageError(
            f"the queries may use prefixes ({', '.join(list(prefixes)[:5])}): name a file to write "
            "them to, with --namespaces FILE"
        )


def _write_lines(results: Results, lines: list[str]) -> None:
    results.write_bytes("".join(lines).encode())
    lines.clear()


_LINES = 1000
