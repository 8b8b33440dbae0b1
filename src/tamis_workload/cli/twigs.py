"""``tamis workload twigs``: tree patterns of a DTD."""

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
    PredicateCount,
    Seed,
    Selectivity,
    ValueCount,
    ValueKind,
    ValueSkew,
    Wildcard,
    chosen_values,
    read_one_root,
    write_queries,
)

EXAMPLES = """\b
Examples:
  tamis workload twigs --dtd dblp.dtd --count 2048 --nodes 15 --splits 6 --output twigs.tsv
"""


def twigs(  # noqa: PLR0913, PLR0917 - one for each option
    dtd: Annotated[
        Path, Option("--dtd", metavar="FILE", help=f"What the twigs grow in. {DTD_HELP}")
    ],
    count: Count = 1000,
    seed: Seed = 0,
    distinct: Distinct = False,
    root: RootNames = None,
    catalog: CatalogFolders = None,
    nodes: Annotated[int, Option(metavar="N", help="Steps of a twig, all together.")] = 15,
    splits: Annotated[int, Option(metavar="N", help="Nodes with more than one child.")] = 6,
    children: Annotated[int, Option(metavar="N", help="Of these nodes, at most.")] = 4,
    wildcard: Wildcard = 0.1,
    descendant: Descendant = 0.1,
    predicates: PredicateCount = 0,
    values: ValueCount = 10,
    values_skew: ValueSkew = 0.0,
    values_kind: ValueKind = "numbers",
    selectivity: Selectivity = None,
    namespaces: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Write the prefixes that the twigs use, for match --namespaces."
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Generate twigs (queries with branches), as a file of subscriptions.

    Each follows the DTD in what may stand in what; elements of which the DTD permits only one may
    both be asked for, and then no valid document matches.
    """
    from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd  # noqa: PLC0415

    graph = read_one_root(dtd, catalog, root)
    options = TwigOptions(
        nodes=nodes,
        splits=splits,
        children=children,
        wildcard=wildcard,
        descendant=descendant,
        predicates=predicates,
        values=chosen_values(values, values_skew, values_kind),
        selectivity=selectivity,
    )
    drawn = twigs_from_dtd(graph, count, options=options, distinct=distinct, seed=seed)
    write_queries(drawn, output, namespaces, count)
