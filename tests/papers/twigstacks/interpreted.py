"""The CUDA kernel with its threads in shuffled order (see ``tests/support/simt.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.xpath import parse
from tamis_papers.twigstacks import TwigOptions, cuda
from tamis_papers.twigstacks.compile import compile_queries
from tamis_papers.twigstacks.execute import Encoder
from tests.papers.twigstacks.drawing import LIMITS
from tests.support.simt import Fix, Machine, Memory, interpret


def interpreted(
    twigs: Sequence[str],
    documents: Sequence[str],
    options: TwigOptions,
    draw: Random,
    faults: Sequence[Fix] = (),
    blocks: int = 2,
    first_event: int = 0,
) -> list[set[str]]:
    """By document, the twigs that the kernel finds true.

    Args:
        blocks: of threads.
        first_event: where the documents begin in an array of events that is larger than there is
            memory for.
    """
    program = compile_queries(list(map(parse, twigs)), options)
    vocabulary = Vocabulary()
    sources = [Source(text.encode()) for text in documents]
    batch, _ = parse_documents(sources, vocabulary, Projection(), LIMITS)
    encoded = Encoder(program).encode(batch, vocabulary)
    row, width = program.widest, program.event_width
    deeper = max(0, encoded.depth + 1 - options.levels) * row
    results = np.full((batch.documents, len(program.queries)), 255, np.uint8)
    machine = Machine(draw, -(-row // 32) * 32, blocks, cuda.shared_bytes(options, row))
    starts = encoded.document_starts + first_event
    garbage = np.frombuffer(draw.randbytes(max(deeper * blocks, 1)), np.uint8).copy()
    arguments = (
        *(Memory(encoded.events, machine, first=first_event * width), width, options.stride),
        *(Memory(array, machine) for array in (starts, *program.arrays)),
        *(row, options.levels, Memory(garbage, machine), deeper, Memory(results, machine)),
    )
    kernel = cuda.match_with_atomics if options.has_atomics else cuda.match
    interpret(kernel.py_func, arguments, machine, faults)
    assert set(np.unique(results).tolist()) <= {0, 1}
    return [{twigs[program.queries[n]] for n in np.flatnonzero(row)} for row in results]
