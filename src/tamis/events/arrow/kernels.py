"""From columns, some of whose values are null, to rows, which have only the others."""

from __future__ import annotations

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import kernel


@kernel
def find_ones(bitmap: Bytes, start: int, rows: Int64) -> int:
    """Where the ones are among as many bits of a bitmap, from a bit on, as there are rows.

    Returns:
        How many there are; so many of ``rows`` are written.
    """
    count = 0
    total = len(rows)
    row = 0
    while row < total:
        bit = start + row
        byte = bitmap[bit >> 3] >> (bit & 7)
        size = min(8 - (bit & 7), total - row)
        if byte:  # mostly there are few
            for place in range(size):
                rows[count] = row + place
                count += (byte >> place) & 1
        row += size
    return count


@kernel
def join_columns(
    columns: Int64,
    rows: Int64,
    names: Int32,
    kinds: Bytes,
    bits: Int64,
    is_bad: Bytes,
    starts: Int64,
    row_names: Int32,
    row_kinds: Bytes,
    row_bits: Int64,
) -> int:
    """Put the values of columns into their rows; the order of the columns stays.

    Args:
        columns: where the values of each column begin, and the end.
        rows, kinds, bits: of all values.
        names: of the columns.
        is_bad: rows whose values are left out.
        starts: zeros; gets where each row begins, and the end.
        row_names, row_kinds, row_bits: get the values by rows.

    Returns:
        How many values there are.
    """
    for place in range(len(rows)):
        if not is_bad[rows[place]]:
            starts[rows[place]] += 1
    total = 0
    for row in range(len(starts)):
        size = starts[row]
        starts[row] = total
        total += size
    for column in range(len(names)):
        for place in range(columns[column], columns[column + 1]):
            row = rows[place]
            if not is_bad[row]:
                target = starts[row]  # and at last, where the next row begins
                starts[row] += 1
                row_names[target] = names[column]
                row_kinds[target] = kinds[place]
                row_bits[target] = bits[place]
    for row in range(len(starts) - 1, 0, -1):
        starts[row] = starts[row - 1]
    starts[0] = 0
    return total
