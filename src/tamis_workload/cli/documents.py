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
    dtd: Annotated[Path, f"The DTD of the documents. {DTD_HELP}"],
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
    """Generate valid documents with a limited depth and size.

    A document does not depend on --count: the seventh of ten is the seventh of a thousand.
    Documents declare the prefixes of the DTD. They leave out a default namespace that the DTD
    fixes, so that queries can use the element names of the DTD.

    Options:
        output: A folder for the documents (000000.xml, …), or for one document a file whose name
            has a suffix. Default: one document on standard output.
        depth: The largest depth of elements.
        size: The largest size of a document, such as 800, 64KB or 1GB.
        fill: Repeat the outermost repeatable element until the document reaches --size.
        records: Repeat the outermost repeatable element N times.
        repeats: The number of repetitions of a repeatable element: up to N, or N..M.
        repeat: The same for one element name. Repeatable.
        optional: The probability that an optional part is present.
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
    """Generate a bibliography of any size, with realistic text.

    The document is valid by DBLP's DTD, with about 16 bytes per start or end tag. The command
    writes it while it generates it, so memory does not grow with the size.

    Options:
        size: The size of the document, such as 24MB or 10GB.
        records: The number of publications, instead of a size.
    """
    from tamis_workload.documents import dblp as bibliography  # noqa: PLC0415 - keeps --help fast

    if (size is None) == (records is None):
        raise UsageError("give either --size or --records")
    total = None if size is None else parse_bytes(size)
    with open_results(output) as results:
        for piece in bibliography.dblp(total, records, seed):
            results.write_bytes(piece)
