"""Give the automaton programs and caches in which numbers were changed: refused, or harmless.

    python -m tests.matching.automaton.mutated_programs [--seed S] [--programs N] [--caches N]

A file can be made with right checksums and any numbers in it. Each time some numbers of one array
are changed. Either that is refused, or what is left is matched, which has to end and, with
NUMBA_BOUNDSCHECK=1, to find nothing outside of its array; the answers may be any. Lest that be in
vain, one that is refused is matched all the same where indices are checked: it does reach out.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numba
import numpy as np
import pytest

from tamis.core.kernel import ahocorasick
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.batch import DocumentBatch
from tamis.documents.expat import parse as parse_documents
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.language.xpath import parse
from tamis.matching.engines.automaton import compile_queries
from tamis.matching.engines.automaton.cache import cache_of, fault_of_cache, named_arrays
from tamis.matching.engines.automaton.check import fault_of_program
from tamis.matching.engines.automaton.compile import arrays as compiled_arrays
from tamis.matching.engines.automaton.compile import freeze
from tamis.matching.engines.automaton.execute import Automaton
from tamis.matching.engines.automaton.layout import CacheArrays
from tamis.matching.engines.automaton.program import AutomatonProgram, ProgramArrays
from tests.matching.automaton.comparison import STRUCTURE
from tests.matching.automaton.trees import NAMESPACES

SECONDS_MAX = 20
"""One match takes less than a millisecond."""

EXPRESSIONS = [
    "/r/a/b", "//a//b", "//*[a]/b", "//p:*", "//p:a/@x", "//@p:*", "/node()[a]", "//a/text()",
    "//a[b and c]", "//a[b or not(c)]", "//a[.//b][c]//d", "//*[self::a or self::p:a][b]",
    "not(//zz)", "//a[not(b[c] or d) and (e or not(.//b))]", "count(r/a/b) = 1", "//a | //p:a/b",
    "//a[count(b) = 2]", "//a[count(b/c) > 1]", "//r[count(a) < 3][b]", "//a[count(*) != 1]",
    "//a[2]", "//a[b][2][c]/d", "//a[b][2]/c", "//r/a[1][b]", "//node()[3]", "//a[b[2][. = 'x']]",
    "//a[b = 'x']", "//a[b != 'xy']", "//a[@x = 'one']", "//b[. = 'xyz']", "//b[. = '']",
    "//a[starts-with(b, 'x')]", "//b[starts-with(., 'xy')]", "//b[starts-with(@x, 'on')]",
    "//a[contains(., 'she')]", "//a[contains(., 'he')]", "//b[contains(., 'hers')]",
    "//*[contains(., 'e')]", "//b[contains(., 'hersx')]", "//b[contains(., 'hersy')]",
    "//a[contains(., 'ushersz')]", "//a[b > 7]", "//a[b <= 7.5]", "//b[. = 8]", "//b[@x != 3]",
    "//b[normalize-space(.) = 'x y']", "//b[string-length(.) > 2]", "//a[string-length(b) = 0]",
    *(f"//a[b = 'c{n}']" for n in range(20)), *(f"//c[a{n} and b]" for n in range(20)),
    *(f"//d[b > {n}]" for n in range(0, 30, 3)),
    *(f"//d[b > {n}][f < {m}]" for n in range(0, 30, 6) for m in range(0, 30, 5)),
    *(f"//*[b = '{n}'][c > {m}]" for n in range(3) for m in range(9)),
    "//r[.//b = 'c7'][a]", "//d[b = 'c7' and f > 3]", "//a[b = 'c7' or c]",
    "//r[a/b = 'c1'][a > 2]",
]  # fmt: skip
"""All that programs have arrays for."""
DECLARED = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
DOCUMENTS = [
    f"<r{DECLARED}><a><b>x</b><b>xyz</b><c/></a><a x='one'><b>8</b><d/></a><p:a x='3' p:y=''/></r>",
    f"<r{DECLARED}><a><b><c/><c/></b><b>ushers</b><c><a1/><a7/><b/></c></a><!--c-->t<a/><a/></r>",
    "<r><a><b/><c/><a><b><c/></b><d><b>13</b></d></a></a><a><b> x  y</b><c/><d/><e/></a></r>",
    "<a><b x='3'>she c7</b><d><b>c7</b><b>29.5</b><f>4</f></d><c><a3/><b>he</b></c></a>",
    "<a><a><a><b>x</b><b>x</b><c/><d/></a><b/></a><b><c><d><b>-4</b></d></c></b></a>",
    "<d><b>13</b><b>20</b><f>14</f><f>27</f></d>",
    "<r><d><b>29</b><f>6</f><c>4</c></d><a><b>1</b><c>7</c><d><b>5</b><f>-1</f></d></a></r>",
    "<zz/>",
]


@dataclass(frozen=True)
class Sample:
    """What is changed, and asked."""

    program: AutomatonProgram
    batch: DocumentBatch
    vocabulary: Vocabulary

    @property
    def symbols(self) -> int:
        return len(self.program.arrays.wildcards)

    def learned(self) -> CacheArrays:
        automaton = Automaton(self.program, 1 << 28)
        automaton.match(self.batch, self.vocabulary)
        return automaton.cache


@functools.cache
def sample() -> Sample:
    """A small program with something in all of its arrays."""
    queries = [parse(text, NAMESPACES) for text in EXPRESSIONS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(freeze, "MANY_RULES", 3)
        patch.setattr(compiled_arrays, "MANY_CONSTANTS", 8)
        patch.setattr(compiled_arrays, "GRID_RULES", 12)
        patch.setattr(ahocorasick, "NEAR_CELLS", 0)
        program = compile_queries(queries)
    assert (program.arrays.searched_links & 256).any(), "a search without branches"
    assert program.arrays.searched_edges.any(), "a search without edges"
    vocabulary = Vocabulary()  # and expat, for which nothing is compiled
    sources = [Source(text.encode()) for text in DOCUMENTS]
    batch, errors = parse_documents(sources, vocabulary, STRUCTURE, DEFAULT_LIMITS)
    assert not errors
    return Sample(program, batch, vocabulary)


def said(automaton: Automaton, asked: Sample) -> list[list[int]]:
    """By document: the queries that are true of it."""
    matches = automaton.match(asked.batch, asked.vocabulary)
    return [sorted(matches.numbers(n).tolist()) for n in range(asked.batch.documents)]


# -- changes ---------------------------------------------------------------------------------------


def changed(draw: Random, arrays: Mapping[str, np.ndarray]) -> tuple[str, dict[str, np.ndarray]]:
    """The arrays with some numbers of one changed, and a word on it."""
    result = {name: array.copy() for name, array in arrays.items()}
    name = draw.choice([name for name, array in result.items() if array.size])
    array = result[name]
    kind = draw.random()
    if kind < 0.05:
        result[name] = array[: draw.randrange(len(array))]
    elif kind < 0.08:
        result[name] = np.concatenate([array, array[-1:]])
    elif kind < 0.13:
        others = [other for other in result if result[other].dtype == array.dtype]
        other = draw.choice(others)
        result[name], result[other] = result[other], array
    else:
        flat = array.reshape(-1)
        for _ in range(draw.choice([1, 1, 1, 2, 5])):
            place = draw.randrange(len(flat))
            flat[place] = number(draw, flat, place)
    return name, result


def number(draw: Random, flat: np.ndarray, place: int) -> Any:
    """Another number for a place: one that is near, or that is elsewhere, or none that fits."""
    old, information = flat[place], np.iinfo(flat.dtype) if flat.dtype.kind in "iu" else None
    if information is None:
        return draw.choice([old + 1, -old, float("nan"), float("inf"), float(flat[0])])
    kind = draw.random()
    value = int(old)
    if kind < 0.3:
        value += draw.choice([-1, 1, 1, 2, -2, 64, -64])
    elif kind < 0.6:
        value = int(flat[draw.randrange(len(flat))])
    elif kind < 0.7:
        value ^= 1 << draw.randrange(information.bits)
    elif kind < 0.9:
        value = draw.randrange(-2, 200)
    else:
        value = draw.choice([information.min, information.max, 1 << 30, 0])
    span = int(information.max) - int(information.min) + 1
    return (value - int(information.min)) % span + int(information.min)


def changed_programs(seed: int) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    draw = Random(f"program {seed}")
    arrays = sample().program.arrays._asdict()
    while True:
        yield changed(draw, arrays)


def changed_caches(seed: int) -> Iterator[tuple[str, CacheArrays | None]]:
    draw = Random(f"cache {seed}")
    arrays = named_arrays(sample().learned())
    while True:
        name, others = changed(draw, arrays)
        yield name, cache_of(others)


# -- matching ------------------------------------------------------------------------------------


def ask(program: AutomatonProgram, cache: CacheArrays | None = None) -> None:
    """Match with what was changed."""
    asked = sample()
    faulthandler.dump_traceback_later(SECONDS_MAX, exit=True)
    automaton = Automaton(program, 1 << 28, cache)
    for _ in range(2):
        automaton.match(asked.batch, asked.vocabulary)
    if cache is None:
        Automaton(program, 1).match(asked.batch, asked.vocabulary)
    faulthandler.cancel_dump_traceback_later()


def ask_programs(seed: int, count: int) -> Counter[str]:
    """What became of programs that were changed."""
    became: Counter[str] = Counter()
    asked = sample()
    for (name, arrays), _ in zip(changed_programs(seed), range(count), strict=False):
        fault = fault_of_program(arrays, asked.program.queries, asked.symbols)
        became["answered" if fault is None else "refused"] += 1
        became[f"{name}: {fault or 'answered'}"] += 1
        if fault is None:
            ask(asked.program._replace(arrays=ProgramArrays(**arrays)))
    return became


def ask_caches(seed: int, count: int) -> Counter[str]:
    """What became of caches that were changed."""
    became: Counter[str] = Counter()
    program = sample().program
    for (name, cache), _ in zip(changed_caches(seed), range(count), strict=False):
        fault = "types"
        if cache is not None:
            fault = fault_of_cache(cache, program.arrays, program.queries) or "answered"
        became["answered" if fault == "answered" else "refused"] += 1
        became[f"{name}: {fault}"] += 1
        if fault == "answered":
            ask(program, cache)
    return became


def reaches_out() -> bool:
    """Whether a program that is refused, matched all the same, reaches out of an array.

    It is only asked where indices are checked.
    """
    assert numba.config.BOUNDSCHECK
    asked = sample()
    arrays = {name: array.copy() for name, array in asked.program.arrays._asdict().items()}
    arrays["accepts"][:] = 1 << 20
    assert fault_of_program(arrays, asked.program.queries, asked.symbols) is not None
    try:
        ask(asked.program._replace(arrays=ProgramArrays(**arrays)))
    except IndexError:
        return True
    return False


def main(given: Sequence[str] | None = None) -> None:
    """Ask, and say what became of what was changed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--caches", type=int, default=10_000)
    parser.add_argument("--all", action="store_true", help="say it of each array")
    options = parser.parse_args(given)
    sample().learned()  # compiles, which takes its time
    if numba.config.BOUNDSCHECK:
        print("reaches-out", reaches_out())
    for name, became in (
        ("programs", ask_programs(options.seed, options.programs)),
        ("caches", ask_caches(options.seed, options.caches)),
    ):
        print(name, "refused", became["refused"], "answered", became["answered"])
        if options.all:
            for what, count in sorted(became.items()):
                print("   ", what, count)


if __name__ == "__main__":
    main()
