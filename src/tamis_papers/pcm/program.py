"""``PcmProgram``: filters as the paper's tables, in frozen arrays."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64

UInt64 = NDArray[np.uint64]

KIND_SHIFT = 4
"""In ``constr_op``, the operator is the lower half byte, the constant's kind the upper one."""

PADDING = 8
"""Items behind those of ``vectors`` and ``constr_bf``, which mean nothing: so many are read at
once."""


class PcmOptions(NamedTuple):
    """The variants that the paper compares.

    Attributes:
        name_vector_bits: of how many bits NameVectors are, 1 to 64.
        filter_selection: whether there is a table for each NameVector, or a single one.
        parallel: what the threads of OCM share: the "tables" of one event after the other (Section
            3.2), or all "events" (Appendix B.3), which is faster.
        events_at_once: how many events CCM matches with one launch of its kernel, at most: each has
            its own copy of ``FiltersCount`` and ``Interfaces``.
    """

    name_vector_bits: int = 32
    filter_selection: bool = True
    parallel: Literal["tables", "events"] = "events"
    events_at_once: int = 64


class Tables(NamedTuple):
    """All *Filters* tables, one behind the other, and how they are found.

    Filters have new numbers here: those of a table follow each other. Filters without constraints
    are in none.

    Attributes:
        vector_bits: uint64[names]; the bit of each name in NameVectors.
        bloom_bits: uint64[names]; its bit in Bloom filters.
        slots: uint64[]; an open hash table of NameVectors: at even places a NameVector, or 0 where
            there is none, behind each where the table's rows are, as ``low << 32 | high``. How many
            pairs there are is a power of two.
        vectors: uint64[t + PADDING]; the NameVector of each table.
        row_first: int32[t + 1]; the rows of table i are those from ``row_first[i]`` on, up to
            ``row_first[i + 1]``.
        rows: int64[r + 1]; ``name << 32 | start`` of each row, by ascending names in a table: its
            constraints are those from there on, up to the start of the next row. The paper's
            ``NumConstr`` is the difference.
        constr_op: uint8[c]; operator and kind (see ``KIND_SHIFT``).
        constr_val: int64[c]; as in ``FilterTable``.
        constr_filter_id: int32[c].
        constr_bf: uint64[c + PADDING]; the Bloom filter of all names of the constraint's filter.
        sizes: int32[f]; how many constraints each filter has.
        list_starts, list_kinds, list_values, string_starts, string_bytes: those of the
            ``FilterTable``.
    """

    vector_bits: UInt64
    bloom_bits: UInt64
    slots: UInt64
    vectors: UInt64
    row_first: Int32
    rows: Int64
    constr_op: Bytes
    constr_val: Int64
    constr_filter_id: Int32
    constr_bf: UInt64
    sizes: Int32
    list_starts: Int64
    list_kinds: Bytes
    list_values: Int64
    string_starts: Int64
    string_bytes: Bytes

    @property
    def total(self) -> int:
        """How many tables there are."""
        return len(self.row_first) - 1


class PcmProgram(NamedTuple):
    """Compiled filters.

    Attributes:
        tables: what they became.
        numbers: int32[f]; the number that each filter had before.
        empty: int32[]; the numbers of filters without constraints.
        size_max: how many constraints the largest filter has.
        options: how it was compiled.
    """

    tables: Tables
    numbers: Int32
    empty: Int32
    size_max: int
    options: PcmOptions

    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in (*self.tables, self.numbers, self.empty))
