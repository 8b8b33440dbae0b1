"""``tamis workload documents``: valid documents of a DTD."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tamis.cli.arguments import DTD_HELP, CatalogFolders, RootNames
from tamis.cli.console import open_results, progress, warn
from tamis.cli.options import Option
from tamis.core.errors import UsageError
from tamis_workload.cli.options import (
    Count,
    Seed,
    ValueCount,
    ValueKind,
    ValueSkew,
    chosen_values,
    parse_bytes,
    parse_range,
    read_one_root,
)

EXAMPLES = """\b
Examples:
  tamis workload documents --dtd book.dtd --count 1000 --output books/
  tamis workload documents --dtd bib.dtd --repeat book=20..20 --repeat author=5 > bib.xml
  tamis workload documents --dtd auction.dtd --size 1GB --fill > auctions.xml
"""


def documents(  # noqa: PLR0913, PLR0917 - one for each option
    dtd: Annotated[
        Path, Option("--dtd", metavar="FILE", help=f"What they are valid by. {DTD_HELP}")
    ],
    count: Count = 1,
    output: Annotated[
        Path | None,
        Option(
            metavar="PATH",
            help="A folder for the documents (000000.xml, …); or, for one document, a file (its "
            "name has a suffix). Without it, one document goes to standard output.",
        ),
    ] = None,
    seed: Seed = 0,
    root: RootNames = None,
    catalog: CatalogFolders = None,
    depth: Annotated[int, Option(metavar="N", help="Elements inside each other, at most.")] = 12,
    size: Annotated[
        str, Option(metavar="BYTES", help="Of each document, at most: 800, 64KB, 1GB.")
    ] = "64KB",
    fill: Annotated[
        bool,
        Option("--fill", help="Repeat what is outermost and may repeat until the size is reached."),
    ] = False,
    records: Annotated[
        int,
        Option(metavar="N", help="Repeat what is outermost and may repeat so many times."),
    ] = 0,
    repeats: Annotated[
        str,
        Option(metavar="N", help="How often what may repeat does: up to N, or from N..M."),
    ] = "3",
    repeat: Annotated[
        list[str] | None,
        Option(metavar="NAME=N", help="The same for an element of this name."),
    ] = None,
    optional: Annotated[
        float, Option(metavar="P", help="The probability of what may be left out.")
    ] = 0.5,
    values: ValueCount = 10,
    values_skew: ValueSkew = 0.0,
    values_kind: ValueKind = "numbers",
) -> None:
    """Generate valid documents, within a depth and a size.

    Each is the same whatever the count is: the seventh of ten is the seventh of a thousand.
    Prefixes are declared as the DTD has them; a default namespace that it fixes is left out, so
    that queries name the elements as the DTD does.
    """
    from tamis_workload.documents.generator import Documents  # noqa: PLC0415 - keeps --help fast
    from tamis_workload.documents.grammar import DocumentOptions  # noqa: PLC0415

    options = DocumentOptions(
        repeats=parse_range(repeats, 0),
        repeats_of=dict(_named_range(text) for text in repeat or ()),
        optional=optional,
        values=chosen_values(values, values_skew, values_kind),
    )
    made = Documents(
        read_one_root(dtd, catalog, root),
        options=options,
        depth=depth,
        size=parse_bytes(size),
        records=records,
        fill=fill,
        seed=seed,
    )
    folder = None
    if output is not None and (
        count != 1 or output.is_dir() or not (output.suffix or output.exists())
    ):
        folder = output
        _make_folder(folder)
        if any(folder.iterdir()):
            warn(f"{folder} is not empty: what has other names stays there")
    elif count != 1:
        raise UsageError("several documents need a folder: give --output FOLDER")
    with progress(count, output_is_terminal=output is None) as advance:
        for number in range(count):
            path = output if folder is None else folder / f"{number:06}.xml"
            with open_results(path) as results:
                for piece in made.pieces(number):
                    results.write_bytes(piece)
            advance()


def _named_range(text: str) -> tuple[str, tuple[int, int]]:
    name, equals, repeats = text.partition("=")
    if not equals:
        raise UsageError(f"expected NAME=N or NAME=N..M, not {text!r}")
    return name, parse_range(repeats, 0)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}") from None
