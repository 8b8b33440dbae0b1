"""``tamis workload dblp``: a bibliography like DBLP's."""

from __future__ import annotations

from typing import Annotated

from tamis.cli.console import open_results
from tamis.cli.options import Option
from tamis.core.errors import UsageError
from tamis_workload.cli.options import Output, Seed, parse_bytes

EXAMPLES = """\b
Examples:
  tamis workload dblp --size 24MB --output dblp.xml
  tamis workload dblp --records 100 | tamis match --subscriptions filters.tsv -
"""


def dblp(
    size: Annotated[
        str | None, Option(metavar="BYTES", help="Of the document: 24MB, 10GB.")
    ] = None,
    records: Annotated[
        int | None, Option(metavar="N", min=0, help="Publications, instead of a size.")
    ] = None,
    seed: Seed = 0,
    output: Output = None,
) -> None:
    """Generate a bibliography: realistic text, some 16 bytes an event, of any size.

    An event is the start or the end of an element. The document is valid by DBLP's DTD, and written
    as it is made: it takes no more memory if it is larger.
    """
    from tamis_workload.documents import dblp as bibliography  # noqa: PLC0415 - keeps --help fast

    if (size is None) == (records is None):
        raise UsageError("give either --size or --records")
    total = None if size is None else parse_bytes(size)
    with open_results(output) as results:
        for piece in bibliography.dblp(total, records, seed):
            results.write_bytes(piece)
