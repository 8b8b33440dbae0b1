"""``SffProgram``: filters as an index of the constraints that they share, in frozen arrays."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64

NUMBERS, STRINGS, BOOLEANS, CLASSES = range(4)
"""What is compared with each other: classes of values."""

PREFIXES, SUFFIXES, CONTAINED, PARTS = range(4)
"""The operators on parts of strings."""


class Index(NamedTuple):
    """Constraints that are equal are one *node*, which has the filters that share it.

    Nodes follow each other in this order: those of sections; one for each part; one for ``exists``
    of each name; those of ``in``. A *domain* is the constants that values of a class are compared
    with under one name, and of name n and class c has the number ``CLASSES * n + c``.

    Attributes:
        constant_starts: int64[domains + 1]; the constants of domain i, each once and ascending, are
            from ``constant_starts[i]`` on, up to ``constant_starts[i + 1]``.
        constant_kinds: uint8[]; constant_values: int64[]; strings are those of this index.
        section_starts: int64[domains + 1]; the sections of domain i, one for each operator of
            ``= != < <= > >=`` that it has, are from ``section_starts[i]`` on.
        section_operators: uint8[]; section_nodes: int64[]; the first node of a section, which has
            one for each constant of the domain, in their order.
        in_starts: int64[constants + 1]; in_nodes: int32[]; the nodes of ``in`` that have a constant
            among their items.
        part_starts: int64[names * PARTS + 1]; the parts that are looked for under name n by the
            operator p are from ``part_starts[PARTS * n + p]`` on; of ``prefix`` in their order, of
            ``suffix`` in the order that they have when read from the end.
        part_strings: int32[]; strings of this index.
        part_shorter: int32[]; of ``prefix`` and ``suffix``, the longest one of the same name and
            operator that the part begins (or ends) with itself; or -1.
        string_starts: int64[s + 1]; string_bytes: uint8[]; strings, each once, in order.
        posting_starts: int64[nodes + 1]; the filters of node i are
            ``postings[posting_starts[i]:posting_starts[i + 1]]``.
        postings: int32[]; *places* of filters: see ``SffProgram``.
        block_sizes: int32[]; how many different constraints each filter of a block has.
    """

    constant_starts: Int64
    constant_kinds: Bytes
    constant_values: Int64
    section_starts: Int64
    section_operators: Bytes
    section_nodes: Int64
    in_starts: Int64
    in_nodes: Int32
    part_starts: Int64
    part_strings: Int32
    part_shorter: Int32
    string_starts: Int64
    string_bytes: Bytes
    posting_starts: Int64
    postings: Int32
    block_sizes: Int32


class SffProgram(NamedTuple):
    """Compiled filters.

    Filters have *places* in blocks of ``1 << shift``: those of a block are of the same size and of
    the same interface, so that what is known of a block need not be kept for each filter. Some
    places are empty.

    Attributes:
        constraints: the index of them.
        filters: int32[places]; the number of the filter at each place; of empty ones, 0.
        always: int32[]; the filters without constraints.
        shift: the logarithm of the size of blocks.
        size_max: of all filters.
        part_node, exists_node: the first node of a part, and of ``exists``.
    """

    constraints: Index
    filters: Int32
    always: Int32
    shift: int
    size_max: int
    part_node: int
    exists_node: int

    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in (*self.constraints, self.filters, self.always))
