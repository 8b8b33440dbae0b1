"""``tamis workload``: seeded generators of subscriptions, documents and events.

This module has the options of several of its commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from tamis.cli.arguments import CatalogFolders, RootNames, read_graph
from tamis.cli.console import Results, open_results, progress, warn
from tamis.cli.options import Commands, Option
from tamis.core.errors import UnwritableOutput, UsageError

if TYPE_CHECKING:
    from tamis.schema.graph import SchemaGraph
    from tamis_workload.draws import Values
    from tamis_workload.queries.queries import Queries

__all__ = ["commands"]

commands = Commands(
    "workload",
    {
        "queries": "Generate path queries, as a file of subscriptions.",
        "twigs": "Generate twigs: queries with branches.",
        "transformations": "Generate transformations, as a file of subscriptions.",
        "documents": "Generate valid documents with a limited depth and size.",
        "dblp": "Generate a bibliography of any size.",
        "events": "Generate events, and subscriptions with one filter each.",
    },
    package=__name__,
    modules={"twigs": "queries", "transformations": "queries", "dblp": "documents"},
    help="Generate subscriptions, documents and events. A seed gives the same bytes everywhere.",
)

Seed = Annotated[int, "The seed of the random choices. A seed gives the same workload everywhere."]
Count = Annotated[int, Option(min=0, help="The number of results.")]
Output = Annotated[Path | None, "Write to this file instead of standard output."]
Wildcard = Annotated[float, Option(metavar="P", help="The probability that a step is *.")]
Descendant = Annotated[float, Option(metavar="P", help="The probability that a step uses //.")]
Distinct = Annotated[bool, "Generate no result twice."]
PredicateCount = Annotated[int, Option(metavar="N", help="The number of comparisons per query.")]
Selectivity = Annotated[
    float | None,
    Option(
        metavar="SHARE", help="The share of values for which a comparison is true. Default: random."
    ),
]


class DtdOptions(NamedTuple):
    """How a DTD is read."""

    root: RootNames = None
    catalog: CatalogFolders = None

    def graph(self, file: Path) -> SchemaGraph:
        """The DTD of a file; a warning says with which of several roots workloads begin."""
        graph = read_graph(file, self.catalog, self.root)
        if len(graph.roots) > 1:
            some = ", ".join(graph.roots[:5]) + (", …" if len(graph.roots) > 5 else "")
            warn(
                f"{file} has several roots ({some}): <{graph.root}> is taken, name another with "
                "--root"
            )
        return graph


class ValueOptions(NamedTuple):
    """The values in documents and in comparisons.

    Options:
        number: The number of different values.
        skew: Zipf's exponent for the choice of values. 0: all values are equally likely.
        kind: The kind of values: numbers from 1, or words.
    """

    number: Annotated[int, Option("--values", metavar="N")] = 10
    skew: Annotated[float, Option("--values-skew", metavar="S")] = 0.0
    kind: Annotated[Literal["numbers", "words"], Option("--values-kind")] = "numbers"

    def values(self) -> Values:
        """The values that the options describe."""
        from tamis_workload.draws import Values  # noqa: PLC0415 - keeps --help fast

        return Values(*self)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableOutput(f"cannot make the folder {folder}: {error.strerror}") from None


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
    """Write transforming subscriptions as NDJSON, whose ids are q1, q2, …, and their prefixes."""
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
