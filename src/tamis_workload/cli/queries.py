"""``tamis workload queries``, ``twigs`` and ``transformations``: drawn from a DTD or documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from tamis.cli.arguments import DTD_HELP
from tamis.cli.documents import DOCUMENT_HELP, Documents
from tamis.cli.options import Option
from tamis.core.errors import DocumentError, UsageError
from tamis_workload.cli import (
    Count,
    Descendant,
    Distinct,
    DtdOptions,
    Output,
    PredicateCount,
    Seed,
    Selectivity,
    ValueOptions,
    Wildcard,
    parse_range,
    write_queries,
    write_transformations,
)

EXAMPLES = {
    "queries": """\b
Examples:
  tamis workload queries --dtd dblp.dtd --count 1000000 --output filters.tsv
  tamis workload queries --dtd book.dtd --predicates 1 --values 100 --selectivity 0.1
  tamis workload queries --documents incoming/ --matching 0.5 --output questions.ndjson
""",
    "twigs": """\b
Examples:
  tamis workload twigs --dtd dblp.dtd --count 2048 --nodes 15 --splits 6 --output twigs.tsv
""",
    "transformations": """\b
Examples:
  tamis workload transformations --dtd bib.dtd --count 5000 --distinct --output queries.ndjson
  tamis workload transformations --dtd book.dtd --binding-depth 3 --values 100 > queries.ndjson
""",
}


def queries(  # noqa: PLR0913, PLR0917 - one for each option
    dtd: Annotated[Path | None, f"Walk over its elements. {DTD_HELP}"] = None,
    documents: Annotated[
        list[str] | None,
        Option(
            metavar="DOCUMENT",
            help="Draw from these documents instead: paths that are there and values they have, "
            "with all that subscriptions may say; about half with a fault. "
            f"{DOCUMENT_HELP}",
        ),
    ] = None,
    count: Count = 1000,
    seed: Seed = 0,
    distinct: Distinct = False,
    matching: Annotated[float | None, Option(metavar="SHARE")] = None,
    of_dtd: DtdOptions = DtdOptions(),
    depth: Annotated[str, Option(metavar="N")] = "6",
    wildcard: Wildcard = 0.2,
    descendant: Descendant = 0.2,
    skew: Annotated[float, Option(metavar="S")] = 0.0,
    predicates: PredicateCount = 0,
    nested: Annotated[int, Option(metavar="N")] = 0,
    nested_depth: Annotated[int, Option(metavar="N")] = 2,
    inconsistent: bool = False,
    values: ValueOptions = ValueOptions(),
    selectivity: Selectivity = None,
    namespaces: Path | None = None,
    output: Output = None,
) -> None:
    """Generate path queries, as a file of subscriptions.

    From a DTD they are drawn as YFilter's generator draws them. The values are those of documents
    that tamis workload documents makes with the same --values options.

    Options:
        matching: Of --documents: the share of the queries that are true of some of them, exactly.
            It takes longer, since the documents are matched.
        depth: Steps, at most; or from and to, as 2..4.
        skew: Zipf's exponent of the choice among children.
        nested: Paths inside brackets, in each query.
        nested_depth: Steps of these, at most.
        inconsistent: Do not follow the DTD, only use its names.
        namespaces: Write the prefixes that the queries use, for match --namespaces.
    """
    if (dtd is None) == (not documents):
        raise UsageError("give either --dtd or --documents")
    if documents:
        _refuse_those_of_dtds()
        _from_documents(documents, count, seed, distinct, matching, namespaces, output)
        return
    if matching is not None:
        raise UsageError("--matching is for --documents: what matches is not known without any")
    assert dtd is not None
    from tamis_workload.queries.paths import QueryOptions, queries_from_dtd  # noqa: PLC0415 - --help is fast

    graph = of_dtd.graph(dtd)
    options = QueryOptions(
        depth=parse_range(depth, 1),
        wildcard=wildcard,
        descendant=descendant,
        skew=skew,
        predicates=predicates,
        nested=nested,
        nested_depth=nested_depth,
        consistent=not inconsistent,
        values=values.values(),
        selectivity=selectivity,
    )
    drawn = queries_from_dtd(graph, count, options=options, distinct=distinct, seed=seed)
    write_queries(drawn, output, namespaces, count)


def _refuse_those_of_dtds() -> None:
    """Raise UsageError for options that say nothing of documents."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name)
        if given is not None and given.name == "COMMANDLINE" and name not in _OF_DOCUMENTS:
            raise UsageError(f"{parameter.opts[-1]} is for --dtd, not for --documents")


_OF_DOCUMENTS = ("documents", "count", "seed", "distinct", "matching", "namespaces", "output")


def _from_documents(
    documents: list[str],
    count: int,
    seed: int,
    distinct: bool,
    matching: float | None,
    namespaces: Path | None,
    output: Path | None,
) -> None:
    from tamis_workload.observed.generator import draw_from_documents  # noqa: PLC0415 - keeps --help fast

    found = []
    for target in Documents(documents):
        if isinstance(target.document, DocumentError):
            raise target.document
        found.append(target.document)
    drawn = draw_from_documents(
        found,
        count,
        seed=seed,
        matching=matching,
        distinct=distinct,
        one_line=output is None or output.suffix != ".ndjson",
    )
    write_queries(drawn, output, namespaces, count)


def twigs(  # noqa: PLR0913, PLR0917 - one for each option
    dtd: Annotated[Path, f"What the twigs grow in. {DTD_HELP}"],
    count: Count = 1000,
    seed: Seed = 0,
    distinct: Distinct = False,
    of_dtd: DtdOptions = DtdOptions(),
    nodes: Annotated[int, Option(metavar="N")] = 15,
    splits: Annotated[int, Option(metavar="N")] = 6,
    children: Annotated[int, Option(metavar="N")] = 4,
    wildcard: Wildcard = 0.1,
    descendant: Descendant = 0.1,
    predicates: PredicateCount = 0,
    values: ValueOptions = ValueOptions(),
    selectivity: Selectivity = None,
    namespaces: Path | None = None,
    output: Output = None,
) -> None:
    """Generate twigs (queries with branches), as a file of subscriptions.

    Each follows the DTD in what may stand in what; elements of which the DTD permits only one may
    both be asked for, and then no valid document matches.

    Options:
        nodes: Steps of a twig, all together.
        splits: Nodes with more than one child.
        children: Of these nodes, at most.
        namespaces: Write the prefixes that the twigs use, for match --namespaces.
    """
    from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd  # noqa: PLC0415

    graph = of_dtd.graph(dtd)
    options = TwigOptions(
        nodes=nodes,
        splits=splits,
        children=children,
        wildcard=wildcard,
        descendant=descendant,
        predicates=predicates,
        values=values.values(),
        selectivity=selectivity,
    )
    drawn = twigs_from_dtd(graph, count, options=options, distinct=distinct, seed=seed)
    write_queries(drawn, output, namespaces, count)


def transformations(  # noqa: PLR0913, PLR0917 - one for each option
    dtd: Annotated[Path, f"Whose elements are taken. {DTD_HELP}"],
    count: Count = 1000,
    seed: Seed = 0,
    distinct: Distinct = False,
    of_dtd: DtdOptions = DtdOptions(),
    binding_depth: Annotated[int, Option(metavar="N")] = 2,
    depth: Annotated[int, Option(metavar="N")] = 2,
    predicates: Annotated[int, Option(metavar="N")] = 1,
    returns: Annotated[int, Option(metavar="N")] = 2,
    descendant: Descendant = 0.2,
    values: ValueOptions = ValueOptions(),
    namespaces: Path | None = None,
    output: Output = None,
) -> None:
    """Generate transforming subscriptions, an object {"id": …, "query": …} a line.

    They are drawn with the parameters of the broker paper (Diao and Franklin, VLDB 2003). The
    values are those of documents that tamis workload documents makes with the same options.

    Options:
        binding_depth: D1: steps of a binding path.
        depth: D2: steps of the other paths, at most.
        predicates: PP: predicate paths, in each.
        returns: RP: return paths, in each.
        namespaces: Write the prefixes that they use, for transform --namespaces.
    """
    from tamis_workload.queries.transformations import (  # noqa: PLC0415 - keeps --help fast
        TransformationOptions,
        transformations_from_dtd,
    )

    graph = of_dtd.graph(dtd)
    options = TransformationOptions(
        binding_depth=binding_depth,
        depth=depth,
        predicates=predicates,
        returns=returns,
        descendant=descendant,
        values=values.values(),
    )
    drawn = transformations_from_dtd(graph, count, options=options, distinct=distinct, seed=seed)
    write_transformations(drawn, output, namespaces)
