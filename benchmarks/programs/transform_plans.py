"""The broker paper's plans: nodes found by its operators.

    python -m benchmarks.programs.transform_plans DOCUMENTS WARMUP SUBSCRIPTIONS
        [--plans f|fw|fwr|shared] [--known nothing|queries|dtd] [--dtd FILE] [--operators]
        [--sample N]

``parse`` reads the subscriptions; ``add`` plans them, one by one, and the note has how long each of
the last thousand took. ``find`` finds the groups of all: the paper's multi-query processing time.
What is ``--known`` is what its claims may rely on. With ``--operators`` those of a kind are run
together, and each kind has its time.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from time import perf_counter

from benchmarks.programs.protocol import Digest, Phases, answer, read_folder, read_subscriptions
from tamis import __version__
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import Parser
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.filters import Labels
from tamis.language.flwr import parse_transformation
from tamis.schema.graph import ExpandedGraph
from tamis.schema.reader import read_graph
from tamis.transform.layout import DONE, NONE
from tamis.transform.shapes import Shapes, projection_of_tasks, task_of
from tamis_papers.pathsharing import layout
from tamis_papers.pathsharing.claims import Claims
from tamis_papers.pathsharing.execute import PathSharing
from tamis_papers.pathsharing.kernels.run import finish, prepare, run_kind
from tamis_papers.pathsharing.plan import FWR, Planner

_LAST = 1_000
_KINDS = (
    "Selection",
    "DupElim",
    "GroupBy",
    "Semijoin",
    "Where-Filter",
    "Join",
    "shared Selection",
    "shared Selection",
    "Return-Select",
    "OuterJoin-Select",
)
"""The names of kinds of operators, from selections on."""


def main() -> None:
    parser = ArgumentParser()
    for name in ("documents", "warmup", "subscriptions"):
        parser.add_argument(name)
    parser.add_argument("--plans", choices=("f", "fw", "fwr", "shared"), default="fwr")
    parser.add_argument("--known", choices=("nothing", "queries", "dtd"), default="dtd")
    parser.add_argument("--dtd")
    parser.add_argument("--operators", action="store_true")
    parser.add_argument("--sample", type=int)
    options = parser.parse_args()
    documents = read_folder(options.documents)[: options.sample]
    warmup = read_folder(options.warmup)[:20]
    phases = Phases()
    with phases("parse"):
        pairs = read_subscriptions(options.subscriptions)
        tasks = [task_of(parse_transformation(text)) for _, text in pairs]
    shapes = Shapes(Labels())
    strategy = PathSharing(shapes.labels, _planner(shapes.labels, options))
    start = perf_counter()
    with phases("add"):
        for number, task in enumerate(tasks):
            if number == len(tasks) - _LAST:
                start = perf_counter()
            shape = shapes.of(task)
            strategy.add(shape)
        each = (perf_counter() - start) / min(len(tasks), _LAST)
        projection = projection_of_tasks(tasks)
    note = f"{strategy.operators:,} operators; the last ones took {1e6 * each:.0f} µs each to add"
    with phases("cold"):
        find(strategy, projection, warmup, Phases(), options.operators)
    counts, digest = find(strategy, projection, documents, phases, options.operators)
    counts["documents"] = len(documents)
    engine = f"{options.plans}, {options.known}"
    answer(phases, counts, version=__version__, engine=engine, digest=digest, note=note)


def _planner(labels: Labels, options: Namespace) -> Planner:
    graph = None
    if options.known == "dtd":
        graph = ExpandedGraph(read_graph(Path(options.dtd)))
    claims = None if options.known == "nothing" else Claims(labels, graph)
    is_shared = options.plans == "shared"
    return Planner(FWR if is_shared else options.plans, claims, is_shared)


def find(
    strategy: PathSharing,
    projection: Projection,
    documents: list[bytes],
    phases: Phases,
    by_kind: bool,
) -> tuple[dict[str, int], str]:
    """Find the groups of all documents, each by itself."""
    parser = Parser(Vocabulary(), projection, DEFAULT_LIMITS)
    digest = Digest()
    counts = {"answers": 0, "groups": 0}
    for document in documents:
        with phases("events"):
            batch, errors = parser.parse([Source(document)])
        assert not errors
        with phases("find"):
            found = strategy.find_groups(batch, parser.vocabulary)
        if by_kind:
            for name, seconds in profile(strategy, batch, parser.vocabulary).items():
                phases.times[name] = phases.times.get(name, 0.0) + seconds
        groups = int((found.group_ends - found.group_starts).sum())
        counts["answers"] += len(found.transformations)
        counts["groups"] += groups
        digest.add(f"{found.transformations.tolist()} {groups}")
    return counts, str(digest)


def profile(
    strategy: PathSharing, batch: DocumentBatch, vocabulary: Vocabulary
) -> dict[str, float]:
    """The seconds that each kind of operator takes for a document, and path matching.

    The operators of a kind are run together; what reads of shared selections comes last.

    Raises:
        RuntimeError: the document's groups were not found before.
    """
    start = perf_counter()
    strategy.read(batch, vocabulary)
    words = strategy.work.words
    statuses = [prepare(words)]
    seconds = {"path matching": perf_counter() - start}
    for kind, name in enumerate(_KINDS, layout.SELECTION):
        start = perf_counter()
        if kind == layout.OUTER_JOIN_SELECT:
            statuses.append(run_kind(words, NONE))
        statuses.append(run_kind(words, kind))
        seconds[name] = seconds.get(name, 0.0) + perf_counter() - start
    if any(status != DONE for status in (*statuses, finish(words))):
        raise RuntimeError("profile a document after its groups were found")
    return seconds


if __name__ == "__main__":
    main()
