"""``tamis workload documents`` and ``dblp``: valid documents of a DTD, and a bibliography."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tamis.cli.arguments import DTD_HELP
from tamis.cli.console import open_results, progress, warn
from tamis.cli.options import Option
from tamis.core.errors import UsageError
from tamis_workload.cli import (
    Count,
    DtdOptions,
    Output,
    Seed,
    ValueOptions,
    make_folder,
    parse_bytes,
    parse_range,
)

EXAMPLES = {
    "documents": """\b
Examples:
  tamis workload documents --dtd book.dtd --count 1000 --output books/
  tamis workload documents --dtd bib.dtd --repeat book=20..20 --repeat author=5 > bib.xml
  tamis workload documents --dtd auction.dtd --size 1GB --fill > auctions.xml
""",
    "dblp": """\b
Examples:
  tamis workload dblp --size 24MB --output dblp.xml
  tamis workload dblp --records 100 | tamis match --subscriptions filters.tsv -
""",
}


def documents(  # noqa: PLR0913, PLR0917 - one for each option
    dtd: Annotated[Path, f"What they are valid by. {DTD_HELP}"],
    count: Count = 1,
    output: Annotated[Path | None, Option(metavar="PATH")] = None,
    seed: Seed = 0,
    of_dtd: DtdOptions = DtdOptions(),
    depth: Annotated[int, Option(metavar="N")] = 12,
    size: Annotated[str, Option(metavar="BYTES")] = "64KB",
    fill: bool = False,
    records: Annotated[int, Option(metavar="N")] = 0,
    repeats: Annotated[str, Option(metavar="N")] = "3",
    repeat: Annotated[list[str] | None, Option(metavar="NAME=N")] = None,
    optional: Annotated[float, Option(metavar="P")] = 0.5,
    values: ValueOptions = ValueOptions(),
) -> None:
    """Generate valid documents, within a depth and a size.

    Each is the same whatever the count is: the seventh of ten is the seventh of a thousand.
    Prefixes are declared as the DTD has them; a default namespace that it fixes is left out, so
    that queries name the elements as the DTD does.

    Options:
        output: A folder for the documents (000000.xml, …); or, for one document, a file (its name
            has a suffix). Without it, one document goes to standard output.
        depth: Elements inside each other, at most.
        size: Of each document, at most: 800, 64KB, 1GB.
        fill: Repeat what is outermost and may repeat until the size is reached.
        records: Repeat what is outermost and may repeat so many times.
        repeats: How often what may repeat does: up to N, or from N..M.
        repeat: The same for an element of this name.
        optional: The probability of what may be left out.
    """
    from tamis_workload.documents.grammar import DocumentOptions, Documents  # noqa: PLC0415 - keeps --help fast

    options = DocumentOptions(
        repeats=parse_range(repeats, 0),
        repeats_of=dict(_named_range(text) for text in repeat or ()),
        optional=optional,
        values=values.values(),
    )
    made = Documents(
        of_dtd.graph(dtd),
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
        make_folder(folder)
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


def dblp(
    size: Annotated[str | None, Option(metavar="BYTES")] = None,
    records: Annotated[int | None, Option(metavar="N", min=0)] = None,
    seed: Seed = 0,
    output: Output = None,
) -> None:
    """Generate a bibliography: realistic text, some 16 bytes an event, of any size.

    An event is the start or the end of an element. The document is valid by DBLP's DTD, and written
    as it is made: it takes no more memory if it is larger.

    Options:
        size: Of the document: 24MB, 10GB.
        records: Publications, instead of a size.
    """
    from tamis_workload.documents import dblp as bibliography  # noqa: PLC0415 - keeps --help fast

    if (size is None) == (records is None):
        raise UsageError("give either --size or --records")
    total = None if size is None else parse_bytes(size)
    with open_results(output) as results:
        for piece in bibliography.dblp(total, records, seed):
            results.write_bytes(piece)
