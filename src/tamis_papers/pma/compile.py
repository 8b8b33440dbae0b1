"""Queries → ``PmaProgram``: pruned, divided into keywords, refused where a ``*`` is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.core.arrays import distinct, freeze
from tamis.language.filters import ANY, Labels, is_open
from tamis.language.model import Query
from tamis.matching.filters import Filters, filters_of, refusal
from tamis.schema.prune import Pruner
from tamis_papers.pma.program import Instances, PmaOptions, PmaProgram

DEFAULT_OPTIONS = PmaOptions()

_NOT_LINEAR = (
    "it is more than child and descendant steps to elements: it has predicates, or the like; leave "
    "it out, or name another engine"
)


def refuses(query: Query) -> str | None:
    """Why a query cannot be run without a DTD, or None where it can.

    >>> from tamis.language.xpath import parse
    >>> refuses(parse("//a/b")), refuses(parse("//a/*"))
    (None, 'it has a *, and there is no DTD that says what it may be: give one')
    """
    labels = Labels()
    found = labels.filters(query)
    if found is None:
        return _NOT_LINEAR
    codes = [code for filter in found for code in filter]
    return _of_labels({code >> 1 for code in codes}, labels.names, has_dtd=False)


def _of_labels(labels: set[int], names: Sequence[str], has_dtd: bool) -> str | None:
    """Why a filter with these labels cannot be run."""
    if ANY in labels:
        if has_dtd:
            return "it has a * that would become too many filters: name elements, or another engine"
        return "it has a *, and there is no DTD that says what it may be: give one"
    if any(is_open(names[label]) for label in labels):
        return "it has a * in a namespace"
    return None


def compile_queries(
    queries: Sequence[Query],
    pruner: Pruner | None = None,
    options: PmaOptions = DEFAULT_OPTIONS,
) -> PmaProgram:
    """Build the automata.

    Raises:
        EngineRefused: a query is more than a filter, or has a ``*`` that no DTD resolves.

    >>> from tamis.language.xpath import parse
    >>> program = compile_queries([parse("/a/b//c/d"), parse("//b/c")])
    >>> program.multi.sizes, program.instances.first
    (Sizes(states=8, edges=7, instances=3), array([0, 2, 3], dtype=int32))
    """
    filters, others = filters_of(queries, pruner)
    refused = [(number, _NOT_LINEAR) for number in others]
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
    from tamis_papers.pma.building import build, keywords_of  # noqa: PLC0415 - imports kernels

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
