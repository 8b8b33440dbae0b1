"""Filters → keywords → ``Pma``, in bulk.

Queries → ``PmaProgram``: pruned, divided into keywords, refused where a ``*`` is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64, distinct, flat_indices, freeze, starts_of
from tamis.core.kernel import ahocorasick
from tamis.language.filters import WILDCARD, Labels, is_open
from tamis.language.model import Query
from tamis.language.queries import Queries
from tamis.matching.engine import refusal
from tamis.matching.filters import Filters, filters_of
from tamis.schema.prune import Pruner
from tamis_papers.pma.program import FULL_GOTO_MAX, Instances, Pma, PmaOptions, PmaProgram

# -- keywords and their automaton ------------------------------------------------------------------


class Keywords(NamedTuple):
    """Keywords: the maximal parts of filters without ``//`` inside.

    Attributes:
        starts, ends: int64[k]; keyword k is ``codes[starts[k]:ends[k]]``, with ``#`` before it if
            its first step does not descend.
        codes: int32[]; of all filters.
    """

    starts: Int64
    ends: Int64
    codes: Int32

    def part(self, chosen: NDArray[np.bool_]) -> Keywords:
        """Some of them, in order."""
        return Keywords(self.starts[chosen], self.ends[chosen], self.codes)


def keywords_of(filters: Filters) -> tuple[Keywords, Int64]:
    """All keywords, in the order of the filters; and int64[f + 1], where those of each begin.

    >>> from tamis.language.xpath import parse
    >>> from tamis.language.lower import lowered
    >>> from tamis.matching.filters import filters_of
    >>> keywords, first = keywords_of(filters_of(lowered([parse("/a/b//c/d"), parse("//b")]))[0])
    >>> keywords.starts, keywords.ends, first
    (array([0, 2, 4]), array([2, 4, 5]), array([0, 2, 3]))
    """
    begins = (filters.codes & 1).astype(np.bool_)
    begins[filters.starts[:-1]] = True
    starts = np.flatnonzero(begins).astype(np.int64)
    ends = np.append(starts[1:], len(filters.codes))[: len(starts)]
    first = np.searchsorted(starts, filters.starts).astype(np.int64)
    return Keywords(starts, ends, filters.codes), first


def build(keywords: Keywords, width: int, full_goto: bool) -> tuple[Pma, Int32]:
    """The automaton of some keywords; and int32[k], the state that each of them is.

    Args:
        width: how many symbols there are.
        full_goto: whether goto is to be total, if that stays small.
    """
    starts, symbols = _strings(keywords)
    roots = np.zeros(len(starts) - 1, np.int32)
    trie, state_of = ahocorasick.build(1, roots, starts, symbols)
    states = len(trie.parent)
    output = np.argsort(state_of, kind="stable").astype(np.int32)
    counts = np.bincount(state_of, minlength=states)
    output_starts = starts_of(counts)
    _, output_fail = ahocorasick.outputs_of(trie, counts.astype(np.int32) - np.int32(1))
    is_full = full_goto and states * width <= FULL_GOTO_MAX
    # No element has the symbol "#": its column is for elements without a label.
    full = ahocorasick.rows_of(trie, states if is_full else 0, width, trie.symbol)
    edges = ahocorasick.edges_of(trie, np.arange(1, states))
    pma = Pma(
        full, edges, trie.parent, trie.symbol, trie.failures, trie.depth, output_starts, output,
        output_fail,
    )  # fmt: skip
    return pma, state_of


def _strings(keywords: Keywords) -> tuple[Int64, Int32]:
    """The symbols of keywords, with ``#`` before those whose first step does not descend."""
    is_rooted = keywords.codes[keywords.starts] & 1 == 0
    lengths = keywords.ends - keywords.starts
    starts = starts_of(lengths + is_rooted)
    symbols = np.zeros(starts[-1], np.int32)
    places = flat_indices(starts[:-1] + is_rooted, lengths)
    symbols[places] = keywords.codes[flat_indices(keywords.starts, lengths)] >> 1
    return starts, symbols


# -- filters ---------------------------------------------------------------------------------------


DEFAULT_OPTIONS = PmaOptions()

_NOT_LINEAR = (
    "it is more than child and descendant steps to elements: it has predicates, or the like; leave "
    "it out, or name another engine"
)


def refuses(queries: Queries) -> dict[int, str]:
    """Which queries cannot be run without a DTD, and why.

    >>> from tamis.language.xpath import parse
    >>> refuses(Queries.of([parse("//a/b"), parse("//a/*")]))
    {1: 'it has a *, and there is no DTD that says what it may be: give one'}
    """
    labels = Labels()
    refused: dict[int, str] = {}
    for number, found in enumerate(labels.each(queries.table)):
        used = {code >> 1 for filter in found or () for code in filter}
        reason = _of_labels(used, labels.names, has_dtd=False) if found else _NOT_LINEAR
        if reason is not None:
            refused[number] = reason
    return refused


def _of_labels(labels: set[int], names: Sequence[str], has_dtd: bool) -> str | None:
    """Why a filter with these labels cannot be run."""
    if WILDCARD in labels:
        if has_dtd:
            return "it has a * that would become too many filters: name elements, or another engine"
        return "it has a *, and there is no DTD that says what it may be: give one"
    if any(is_open(names[label]) for label in labels):
        return "it has a * in a namespace"
    return None


def compile_queries(
    queries: Sequence[Query], pruner: Pruner | None = None, options: PmaOptions = DEFAULT_OPTIONS
) -> PmaProgram:
    """Build the automata.

    Raises:
        EngineRefused: a query is more than a filter, or has a ``*`` that no DTD resolves.

    >>> from tamis.language.xpath import parse
    >>> program = compile_queries([parse("/a/b//c/d"), parse("//b/c")])
    >>> program.multi.sizes, program.instances.first
    (Sizes(states=8, edges=7, instances=3), array([0, 2, 3], dtype=int32))
    """
    filters, others = filters_of(Queries.of(queries).table, pruner)
    refused = [(number, _NOT_LINEAR) for number in others.tolist()]
    refused += _with_wildcards(filters, has_dtd=pruner is not None)
    if refused:
        number, reason = min(refused)
        raise refusal("pma", queries[number], reason)
    return _program(filters, options)


def _with_wildcards(filters: Filters, has_dtd: bool) -> list[tuple[int, str]]:
    """The first query of which a filter has a ``*``, if there is one, and why it is refused."""
    are_open = np.array([is_open(name) for name in filters.names])
    at = np.flatnonzero(are_open[filters.codes >> 1])
    if not len(at):
        return []
    refused = distinct(np.searchsorted(filters.starts, at, side="right") - 1)
    firsts = filters.queries[filters.query_starts[refused]]  # they ascend, of each filter
    number, filter = min(zip(firsts.tolist(), refused.tolist(), strict=True))
    codes = filters.codes[filters.starts[filter] : filters.starts[filter + 1]]
    reason = _of_labels({code >> 1 for code in codes.tolist()}, filters.names, has_dtd)
    assert reason is not None, "it has a label that is open"
    return [(number, reason)]


def _program(filters: Filters, options: PmaOptions) -> PmaProgram:
    keywords, first = keywords_of(filters)
    width = len(filters.names)
    counts = np.diff(first)
    of_filter = np.repeat(np.arange(len(filters), dtype=np.int32), counts)
    two_passes = options.passes == 2 or not (counts > 1).any()
    is_multi = counts > 1 if two_passes else np.ones(len(filters), np.bool_)
    number = np.flatnonzero(is_multi).astype(np.int32)
    in_multi = is_multi[of_filter]
    single, _ = build(keywords.part(~in_multi | two_passes), width, options.full_goto)
    multi, state = build(keywords.part(in_multi), width, options.full_goto)
    if two_passes:  # then the instances of ``single`` are all that there are
        rank = np.cumsum(is_multi, dtype=np.int32) - 1
        reported = np.where(in_multi, -1 - rank[of_filter], of_filter)
        single = single._replace(output=reported[single.output].astype(np.int32))
    own_first = np.concatenate([[0], np.cumsum(counts[is_multi])]).astype(np.int32)
    own_filter = np.repeat(np.arange(len(number), dtype=np.int32), counts[is_multi])
    instances = Instances(own_filter, state, own_first, number)
    freeze(*single, *multi, *instances)
    return PmaProgram(filters, single, multi, instances, options)
