"""``tamis workload transformations``: FLWR expressions of a DTD."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tamis.cli.arguments import DTD_HELP, CatalogFolders, RootNames
from tamis.cli.options import Option
from tamis_workload.cli.options import (
    Count,
    Descendant,
    Distinct,
    Output,
    Seed,
    ValueCount,
    ValueKind,
    ValueSkew,
    chosen_values,
    read_one_root,
    write_transformations,
)

EXAMPLES = """\b
Examples:
  tamis workload transformations --dtd bib.dtd --count 5000 --distinct --output queries.ndjson
  tamis workload transformations --dtd book.dtd --binding-depth 3 --values 100 > queries.ndjson
"""


def transformations(  # noqa: PLR0913, PLR0917 - one for each option
    dtd: Annotated[
        Path, Option("--dtd", metavar="FILE", help=f"Whose elements are taken. {DTD_HELP}")
    ],
    count: Count = 1000,
    seed: Seed = 0,
    distinct: Distinct = False,
    root: RootNames = None,
    catalog: CatalogFolders = None,
    binding_depth: Annotated[int, Option(metavar="N", help="D1: steps of a binding path.")] = 2,
    depth: Annotated[int, Option(metavar="N", help="D2: steps of the other paths, at most.")] = 2,
    predicates: Annotated[int, Option(metavar="N", help="PP: predicate paths, in each.")] = 1,
    returns: Annotated[int, Option(metavar="N", help="RP: return paths, in each.")] = 2,
    descendant: Descendant = 0.2,
    values: ValueCount = 10,
    values_skew: ValueSkew = 0.0,
    values_kind: ValueKind = "numbers",
    namespaces: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Write the prefixes that they use, for transform --namespaces."
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Generate transforming subscriptions, an object {"id": …, "query": …} a line.

    They are drawn with the parameters of the broker paper (Diao and Franklin, VLDB 2003). The
    values are those of documents that tamis workload documents makes with the same options.
    """
    from tamis_workload.queries.transformations import (  # noqa: PLC0415 - keeps --help fast
        TransformationOptions,
        transformations_from_dtd,
    )

    graph = read_one_root(dtd, catalog, root)
    options = TransformationOptions(
        binding_depth=binding_depth,
        depth=depth,
        predicates=predicates,
        returns=returns,
        descendant=descendant,
        values=chosen_values(values, values_skew, values_kind),
    )
    drawn = transformations_from_dtd(graph, count, options=options, distinct=distinct, seed=seed)
    write_transformations(drawn, output, namespaces)
