"""Tamis with a DTD: what pruning makes of the subscriptions, then as in ``match_tamis``.

    python -m benchmarks.programs.match_schema DOCUMENTS WARMUP SUBSCRIPTIONS
        --engine NAME [--dtd FILE] [--heuristics all|keep-leading|careful] [--trust]
        [--again] [--outputs static|dynamic] [--passes 1|2] [--fail]

``expressions`` are parsed, ``compile`` prunes and compiles. What the subscriptions became is in the
note. ``again`` is matching once more, with a cache warm from these very documents: what a cache
that was grown beforehand could bring at best. The DTD's root is the one that its documents are
drawn from. The last options are those of ``pma``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.programs.protocol import Phases, answer, read_folder, read_subscriptions, skip
from benchmarks.programs.tamis_matching import Searcher
from tamis import __version__
from tamis.core.errors import EngineRefused
from tamis.language.subscriptions import Subscriptions
from tamis.matching import planner
from tamis.matching.conformance import Schema
from tamis.matching.filters import filters_of
from tamis.schema.graph import SchemaGraph
from tamis.schema.prune import Heuristics, Pruner
from tamis.schema.reader import read_graph
from tamis_papers import pma

_ANY = [("a", "//a/c"), ("b", "/a//b")]


def main() -> None:
    parser = ArgumentParser()
    for name in ("documents", "warmup", "subscriptions"):
        parser.add_argument(name)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--dtd", type=Path)
    parser.add_argument("--heuristics", choices=_HEURISTICS)
    parser.add_argument("--trust", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--outputs", choices=("static", "dynamic"), default="dynamic")
    parser.add_argument("--passes", type=int, choices=(1, 2), default=1)
    parser.add_argument("--fail", action="store_true")
    options = parser.parse_args()
    _set_options(pma.PmaOptions(options.outputs, options.passes, not options.fail))
    measured, before = read_folder(options.documents), read_folder(options.warmup)
    pairs = read_subscriptions(options.subscriptions)
    schema = None
    if options.dtd is not None:
        graph = read_graph(options.dtd)
        chosen = _HEURISTICS.get(options.heuristics)
        schema = Schema(SchemaGraph.of(graph.dtd, (graph.root,)), options.trust, chosen)
    phases = Phases()
    with phases("load"):
        Searcher(_ANY, options.engine, Phases()).answer([b"<a><b>x</b><c/></a>"], Phases())
    try:
        work = Searcher(pairs, options.engine, phases, None, schema)
    except EngineRefused as refusal:
        skip(str(refusal))
    cold = Phases()
    work.answer(before, cold)
    phases.times["cold"] = cold.times["parse"] + cold.times["match"]
    counts, digest = work.answer(measured, phases)
    if options.again:
        again = Phases()
        work.answer(measured, again)
        phases.times["again"] = again.times["match"]
    assert work.matcher.schema_violations == 0, "documents of the DTD leave it"
    became = _pruned(pairs, options.engine, schema, phases)
    answer(
        phases,
        counts,
        version=f"tamis {__version__}",
        engine=work.engine,
        digest=str(digest),
        note=f"{became}; {work.memory()}",
    )


_HEURISTICS = {
    "all": Heuristics(filters_max=1 << 14, steps_max=1 << 17),
    "keep-leading": Heuristics(leading=False, filters_max=1 << 14, steps_max=1 << 17),
    "careful": Heuristics(wildcards="only-parent", descendants="single"),
}


def _set_options(options: pma.PmaOptions) -> None:
    """Have pma compile with other options: callers of the library cannot choose them."""
    compile = partial(pma.compile_queries, options=options)
    pma.ENGINE = pma.ENGINE._replace(compile=compile)


def _pruned(
    pairs: Sequence[tuple[str, str]], engine: str, schema: Schema | None, phases: Phases
) -> str:
    """What the linear filters are, and what has become of them; times ``prune``."""
    queries = Subscriptions(pairs).queries
    pruner = None
    if schema is not None:
        of = planner.ENGINES.named(engine).heuristics
        pruner = Pruner(schema.graph, schema.heuristics or of or Heuristics())
    with phases("prune"):
        filters, others = filters_of(queries.table, pruner)
    before = f"{len(queries)} queries"
    if len(others):
        before += f", {len(others)} of them twigs"
    descends = filters.codes & 1
    leading = descends[filters.starts[:-1]] if len(filters.codes) else descends
    return (
        f"{before}: {len(filters)} filters for {len(filters.queries)}, with {descends.sum()} //, "
        f"{leading.sum()} of them leading, and {(filters.codes >> 1 == 0).sum()} *"
    )


if __name__ == "__main__":
    main()
