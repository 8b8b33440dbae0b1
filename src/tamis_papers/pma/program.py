"""``PmaProgram``: filters as pattern-matching automata, in frozen arrays."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tamis.core.arrays import Int32, Int64
from tamis.documents.vocabulary import Projection
from tamis.matching.filters import Filters


class PmaOptions(NamedTuple):
    """The variants that the paper compares.

    Attributes:
        outputs: of filters of several keywords: whether the output sets are "static", and each
            instance in them is compared with the frontier; or "dynamic", and hold only what is
            waited for.
        passes: 1, or 2: a first one that finds filters of one keyword, and those of several of
            which all keywords occur somewhere; a second one for these alone.
        full_goto: whether the function goto is made total, where that table stays small (see
            ``FULL_GOTO_MAX``), so that fail is not needed any more.
    """

    outputs: Literal["static", "dynamic"] = "dynamic"
    passes: Literal[1, 2] = 1
    full_goto: bool = True


FULL_GOTO_MAX = 1 << 22
"""Of how many entries the full goto may be: 16 MB."""


class Sizes(NamedTuple):
    """What an automaton consists of.

    Attributes:
        states: with the initial state.
        edges: of goto.
        instances: keywords of filters; in all output sets together there are as many.
    """

    states: int
    edges: int
    instances: int


class Pma(NamedTuple):
    """A pattern-matching automaton of keywords.

    States are prefixes of keywords; the initial state is 0. Symbols are ``#``, which is 0, and the
    labels of elements. One edge leads to each state but the initial one. The automaton is built by
    :mod:`tamis.core.kernel.ahocorasick`.

    Attributes:
        full_goto: int32[states * width] or []; in row q where each symbol leads from state q, fail
            included. Column 0 is for elements without a label, which lead to the initial state.
        edges: int64[]; goto as a pair table, by state and symbol.
        parent, symbol: int32[states]; where the edge to a state comes from, and its symbol.
        fail: int32[states]; the longest proper suffix that is a state.
        depth: int32[states]; the length of the prefix.
        output_starts: int64[states + 1]; output: int32[instances]; which keywords a state is: that
            of q is ``output[output_starts[q]:output_starts[q + 1]]``.
        output_fail: int32[states]; the next state on the fail path with an output, or 0.
    """

    full_goto: Int32
    edges: Int64
    parent: Int32
    symbol: Int32
    fail: Int32
    depth: Int32
    output_starts: Int64
    output: Int32
    output_fail: Int32

    @property
    def sizes(self) -> Sizes:
        """Of what it consists."""
        return Sizes(len(self.fail), len(self.fail) - 1, len(self.output))


class Instances(NamedTuple):
    """The keywords of filters of several keywords: those of a filter follow each other.

    Attributes:
        filter: int32[k]; which filter instance k is of.
        state: int32[k]; the state that its keyword is: there is exactly one.
        first: int32[f + 1]; the instances of filter i are from ``first[i]`` on, up to
            ``first[i + 1]``.
        number: int32[f]; which of all filters it is.
    """

    filter: Int32
    state: Int32
    first: Int32
    number: Int32


class PmaProgram(NamedTuple):
    """Compiled filters.

    Attributes:
        filters: what they are, and the queries that they answer.
        single: the automaton of Section 3; or one without keywords, where ``multi`` does all in one
            pass. Its output has the numbers of filters of one keyword; of the others, which are
            counted as ``instances`` has them, ``-1 - i``.
        multi: the automaton of Section 4, whose output has the numbers of ``instances``: of all
            filters, or, in two passes, of those of several keywords.
        instances: what ``multi`` is made of.
        options: how it was compiled.
    """

    filters: Filters
    single: Pma
    multi: Pma
    instances: Instances
    options: PmaOptions

    @property
    def projection(self) -> Projection:
        """Tags alone."""
        return Projection()

    @property
    def sizes(self) -> Sizes:
        """Of both automata together."""
        return Sizes(*map(sum, zip(self.single.sizes, self.multi.sizes, strict=True)))

    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        filters = (self.filters.starts, self.filters.codes)
        queries = (self.filters.query_starts, self.filters.queries)
        parts = (filters, queries, self.single, self.multi, self.instances)
        return sum(array.nbytes for part in parts for array in part)
