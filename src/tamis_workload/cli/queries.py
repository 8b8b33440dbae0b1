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
    dtd: Annotated[Path | None, f"The DTD of the queries. {DTD_HELP}"] = None,
    documents: Annotated[
        list[str] | None,
        Option(
            metavar="DOCUMENT",
            help="Draw queries from the paths and values of these documents instead of a DTD. "
            f"About half of the queries match none of them. {DOCUMENT_HELP}",
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

    With --dtd, draws queries as YFilter's generator does. Comparisons use the values of documents
    that tamis workload documents generates with the same --values options.

    Options:
        matching: With --documents, the exact share of queries that match a document. This takes
            longer, because Tamis matches the documents.
        depth: The largest number of steps, or a range such as 2..4.
        skew: Zipf's exponent for the choice among child elements.
        nested: The number of paths in brackets per query.
        nested_depth: The largest number of steps of such a path.
        inconsistent: Use the names of the DTD, but ignore its structure.
        namespaces: Write the prefixes of the queries to this file, for match --namespaces.
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
    dtd: Annotated[Path, f"The DTD of the twigs. {DTD_HELP}"],
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

    Twigs follow the nesting of elements in the DTD. A twig may require two elements that the DTD
    permits only as alternatives. No valid document matches such a twig.

    Options:
        nodes: The number of steps per twig.
        splits: The number of nodes with more than one child.
        children: The largest number of children of such a node.
        namespaces: Write the prefixes of the twigs to this file, for match --namespaces.
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
    dtd: Annotated[Path, f"The DTD of the transformations. {DTD_HELP}"],
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
    """Generate transformations, one object {"id": …, "query": …} per line.

    Uses the parameters of the broker paper (Diao and Franklin, VLDB 2003). Comparisons use the
    values of documents that tamis workload documents generates with the same --values options.

    Options:
        binding_depth: D1, the number of steps of a binding path.
        depth: D2, the largest number of steps of the other paths.
        predicates: PP, the number of predicate paths per transformation.
        returns: RP, the number of return paths per transformation.
        namespaces: Write the prefixes of the transformations to this file, for transform
            --namespaces.
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
