"""Tamis's transformations: nodes found, and messages made of them.

    python -m benchmarks.programs.transform DOCUMENTS WARMUP SUBSCRIPTIONS
        [--strategy NAME] [--messages] [--sample N]

``parse`` reads the subscriptions, ``compile`` compiles all of them, and ``add`` adds the last
thousand anew, one by one, each compiled for the next document; the note has how long each took.
``events`` parses the documents, and ``find`` finds the groups of all
transformations: the paper's multi-query processing time. With ``--messages`` all is done together,
from bytes to lines of JSON in a file, and is ``transform``. ``--sample`` takes so many documents
only.
"""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser
from time import perf_counter

import orjson

from benchmarks.programs.protocol import Digest, Phases, answer, read_folder, read_subscriptions
from tamis import Transformer, __version__
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.parser import Parser
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.language.flwr import parse_transformation

_LAST = 1_000


def main() -> None:
    parser = ArgumentParser()
    for name in ("documents", "warmup", "subscriptions"):
        parser.add_argument(name)
    parser.add_argument("--strategy", default="relative")
    parser.add_argument("--messages", action="store_true")
    parser.add_argument("--sample", type=int)
    options = parser.parse_args()
    documents = read_folder(options.documents)[: options.sample]
    warmup = read_folder(options.warmup)[:20]
    pairs = read_subscriptions(options.subscriptions)
    phases = Phases()
    with phases("parse"):
        parsed = [(id, parse_transformation(text)) for id, text in pairs]
    with phases("compile"):
        transformer = Transformer(parsed, strategy=options.strategy)
    for id, _ in parsed[-_LAST:]:
        transformer.remove(id)
    start = perf_counter()
    with phases("add"):
        for id, transformation in parsed[-_LAST:]:
            transformer.add(id, transformation)
            transformer.snapshot()
    each = (perf_counter() - start) / min(len(parsed), _LAST)
    note = f"the last ones took {1e6 * each:.0f} µs each to add and to compile"
    transformer.compiled()
    run = write_messages if options.messages else find
    with phases("cold"):
        run(transformer, warmup, Phases())
    counts, digest = run(transformer, documents, phases)
    counts["documents"] = len(documents)
    answer(phases, counts, version=__version__, engine=options.strategy, digest=digest, note=note)


def find(
    transformer: Transformer, documents: list[bytes], phases: Phases
) -> tuple[dict[str, int], str]:
    """Find the groups of all documents, each by itself."""
    plans = transformer.plans
    parser = Parser(Vocabulary(), plans.projection, DEFAULT_LIMITS)
    digest = Digest()
    counts = {"answers": 0, "groups": 0}
    for document in documents:
        with phases("events"):
            batch, errors = parser.parse([Source(document)])
        assert not errors
        with phases("find"):
            (found,) = plans.find_groups(batch, parser.vocabulary)
        starts, ends = found.groups.group_starts, found.groups.group_ends
        groups = int((ends - starts).sum())
        counts["answers"] += len(found.transformations)
        counts["groups"] += groups
        digest.add(f"{found.transformations.tolist()} {groups}")
    return counts, str(digest)


def write_messages(
    transformer: Transformer, documents: list[bytes], phases: Phases
) -> tuple[dict[str, int], str]:
    """Make the messages of all documents, and write them to a file."""
    digest = Digest()
    counts = {"messages": 0}
    found = []
    with tempfile.TemporaryFile() as file, phases("transform"):
        for number, messages in enumerate(transformer.transform_many(documents)):
            made = list(messages)
            lines = [
                orjson.dumps([number, message.subscription, message.text]) + b"\n"
                for message in made
            ]
            file.writelines(lines)
            counts["messages"] += len(lines)
            found.append(messages.subscriptions)
    for subscriptions in found:
        digest.add(str(subscriptions))
    return counts, str(digest)


if __name__ == "__main__":
    main()
