"""Expands a template at random, byte by byte: within a depth and a size, always.

``costs`` says for each node how few bytes it takes on so many levels. ``write`` then has at each
node a *slack*: how many bytes more than that may be spent there. Where there is a choice, what the
slack does not pay for is not taken. A sequence shares its slack out among the parts that can grow,
and what one of them leaves goes to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.kernel import inlined, kernel
from tamis.core.kernel.declare import Rows
from tamis_workload.kernels import Words, below, draw

Ints = NDArray[np.int64]
Table = Rows[np.int64]
Bytes = NDArray[np.uint8]


class Options(NamedTuple):
    """What is the same for the whole of a document.

    Attributes:
        ids: how many IDs it has, if that is known, else 0.
        id_digits: digits of an ID.
        records: how often the outermost growing loops go round; 0: as the others.
        fill: whether these go round until the slack is spent.
    """

    ids: int
    id_digits: int
    records: int
    fill: bool


# Kinds of nodes (template.Kind; plain numbers, since Numba reads them as constants).
TEXT, VALUE, ID, REFERENCE, SEQUENCE, CHOICE, LOOP, OPTIONAL, ELEMENT = range(9)
# Columns of Template.nodes, .parts, .values and .tables; all but parts begin with START, END.
START, END, KIND, LEAST, LOW, HIGH, GROWS, NODE_COLUMNS = range(8)
PART, SHARES, PART_COLUMNS = range(3)
THRESHOLD, ALIAS, VALUE_COLUMNS = 2, 3, 4
SHORTEST, TABLE_COLUMNS = 2, 3

IMPOSSIBLE = 1 << 50
"""The cost of what cannot be written at all: more than any document may have."""

EMPTY_ROUNDS = 64
"""An outermost loop ends after so many rounds that write nothing, one after the other."""

# What ``write`` returns.
DONE, FULL = 0, 1

# Columns of a frame: a sequence or loop that is being written.
NODE, NEXT, LEFT, LEVELS, SLACK, INSIDE, MARK, EXPECTED, EMPTY, EMPTY_MAX, COLUMNS = range(11)

# Places in the state.
TOP, WRITTEN, IDS, REFERENCES, STATES = range(5)


class Template(NamedTuple):
    """A grammar of texts as arrays, made by ``template.TemplateBuilder``.

    Attributes:
        nodes: int64[n, NODE_COLUMNS]. START and END: of TEXT its bytes in ``texts``, of VALUE its
            table as START, of the others their range in ``parts``; KIND; of LOOP what it must go
            round, LEAST, and from LOW to HIGH what it does if there is room; of OPTIONAL its
            probability times 2**32 as LOW; GROWS, whether a LOOP has no bound of its own.
        parts: int64[p, PART_COLUMNS]. PART, a node; SHARES, into how many shares a SEQUENCE divides
            its slack at this part: one for it, and one for each part behind it that can grow.
        values: int64[v, VALUE_COLUMNS]. START and END in ``texts``; THRESHOLD and ALIAS, for
            drawing one by its probability (Walker's method).
        tables: int64[t, TABLE_COLUMNS]. START and END in ``values``; SHORTEST, one of them.
        texts: uint8, all bytes.
        root: the node to expand.
        nesting: the most nodes inside each other on one level.
    """

    nodes: Rows[np.int64]
    parts: Rows[np.int64]
    values: Rows[np.int64]
    tables: Rows[np.int64]
    texts: NDArray[np.uint8]
    root: int
    nesting: int

    def of_kind(self, kind: int) -> NDArray[np.int64]:
        """The rows of ``nodes`` of a kind."""
        rows: NDArray[np.int64] = self.nodes[self.nodes[:, KIND] == kind]
        return rows


@kernel
def costs(template: Template, id_digits: int, without_references: bool, table: Table) -> int:
    """Fill ``table[levels, node]`` with the fewest bytes, row by row; the number of rows filled.

    After the last row nothing changes any more. Levels are those that elements below may take.
    """
    nodes, parts = template.nodes, template.parts
    for levels in range(len(table)):
        for node in range(len(nodes)):  # an element may be in what is made before it
            if nodes[node, KIND] == ELEMENT:
                inside = parts[nodes[node, START], PART]
                table[levels, node] = table[levels - 1, inside] if levels > 0 else IMPOSSIBLE
        changed = levels == 0
        for node in range(len(nodes)):
            if nodes[node, KIND] != ELEMENT:
                cost = _cost(template, node, id_digits, without_references, table, levels)
                table[levels, node] = min(cost, IMPOSSIBLE)
            changed |= table[levels, node] != table[levels - 1, node]
        if not changed:
            return levels
    return len(table)


@inlined
def _cost(
    template: Template,
    node: int,
    id_digits: int,
    without_references: bool,
    table: Table,
    levels: int,
) -> int:
    """The cost of a node that is no element, given those of its parts."""
    nodes, parts = template.nodes, template.parts
    kind, start, end = nodes[node, KIND], nodes[node, START], nodes[node, END]
    if kind == TEXT:
        return end - start
    if kind == VALUE:
        value = template.tables[start, SHORTEST]
        return template.values[value, END] - template.values[value, START]
    if kind == ID or (kind == REFERENCE and not without_references):
        return id_digits
    if kind == REFERENCE:
        return IMPOSSIBLE
    if kind == OPTIONAL or (kind == LOOP and nodes[node, LEAST] == 0):
        return 0
    if kind == LOOP:
        return nodes[node, LEAST] * table[levels, parts[start, PART]]
    cost = 0 if kind == SEQUENCE else IMPOSSIBLE
    for index in range(start, end):
        part = table[levels, parts[index, PART]]
        cost = min(cost, part) if kind == CHOICE else min(cost + part, IMPOSSIBLE)
    return cost


@inlined
def _copy(source: Bytes, start: int, end: int, buffer: Bytes, position: int) -> int:
    for i in range(end - start):
        buffer[position + i] = source[start + i]
    return position + end - start


@inlined
def _write_number(number: int, digits: int, buffer: Bytes, position: int) -> int:
    for digit in range(digits - 1, -1, -1):
        buffer[position + digit] = 48 + number % 10
        number //= 10
    return position + digits


@inlined
def _write_leaf(
    template: Template, node: int, slack: int, options: Options, random: Words, state: Ints,
    buffer: Bytes, position: int,
) -> int:  # fmt: skip
    """Write a node without parts; the new position."""
    nodes, values = template.nodes, template.values
    kind, start = nodes[node, KIND], nodes[node, START]
    if kind == TEXT:
        return _copy(template.texts, start, nodes[node, END], buffer, position)
    if kind == ID:
        state[IDS] += 1
        return _write_number(state[IDS], options.id_digits, buffer, position)
    if kind == REFERENCE:
        state[REFERENCES] += 1
        number = 1 + below(random, max(options.ids, 1))
        return _write_number(number, options.id_digits, buffer, position)
    first, shortest = template.tables[start, START], template.tables[start, SHORTEST]
    bits = draw(random)
    count = np.uint64(template.tables[start, END] - first)
    value = first + np.int64(((bits >> np.uint64(32)) * count) >> np.uint64(32))
    if np.int64(bits & np.uint64(0xFFFFFFFF)) > values[value, THRESHOLD]:
        value = first + values[value, ALIAS]
    allowed = slack + values[shortest, END] - values[shortest, START]
    if values[value, END] - values[value, START] > allowed:
        value = shortest
    return _copy(template.texts, values[value, START], values[value, END], buffer, position)


@inlined
def _choose(
    template: Template, node: int, allowed: int, fewest: Table, row: int, random: Words
) -> int:  # fmt: skip
    """A part of a choice that costs no more than is allowed, each of them as likely."""
    nodes, parts = template.nodes, template.parts
    first = nodes[node, START]
    count = nodes[node, END] - first
    for _ in range(4):  # mostly all parts will do
        part = parts[first + below(random, count), PART]
        if fewest[row, part] <= allowed:
            return part
    possible = 0
    for index in range(first, first + count):
        possible += fewest[row, parts[index, PART]] <= allowed
    chosen = below(random, possible)
    for index in range(first, first + count):
        if fewest[row, parts[index, PART]] <= allowed:
            if chosen == 0:
                return parts[index, PART]
            chosen -= 1
    return parts[first, PART]


@inlined
def _times(nodes: Ints, node: int, inside: int, options: Options, random: Words) -> int:
    """How often a loop is to go round."""
    low, high = nodes[node, LOW], nodes[node, HIGH]
    if nodes[node, GROWS] and not inside:
        if options.fill:
            return np.int64(1) << 60
        if options.records > 0:
            return max(options.records, nodes[node, LEAST])
    return low + below(random, high - low + 1)


@inlined
def _enter(
    template: Template, fewest: Table, frames: Table, node: int, levels: int, slack: int,
    inside: int, options: Options, random: Words, state: Ints, buffer: Bytes, position: int,
) -> int:  # fmt: skip
    """Write a node if that needs no frame, else put it on the stack; the new position.

    ``slack`` is what may be spent beyond the cost of the node.
    """
    nodes, parts = template.nodes, template.parts
    while True:
        kind = nodes[node, KIND]
        row = min(levels, len(fewest) - 1)
        if kind < SEQUENCE:
            return _write_leaf(template, node, slack, options, random, state, buffer, position)
        if kind == CHOICE:
            allowed = fewest[row, node] + slack
            node = _choose(template, node, allowed, fewest, row, random)
            slack = allowed - fewest[row, node]
        elif kind == OPTIONAL:
            wanted = np.int64(draw(random) >> np.uint64(32)) < nodes[node, LOW]
            node = parts[nodes[node, START], PART]
            if not wanted or fewest[row, node] > slack:
                return position
            slack -= fewest[row, node]
        elif kind == ELEMENT:
            levels -= 1
            node = parts[nodes[node, START], PART]
        else:
            state[TOP] += 1
            top = state[TOP]
            frames[top, NODE] = node
            frames[top, NEXT] = 0
            frames[top, LEVELS] = levels
            frames[top, SLACK] = slack
            frames[top, INSIDE] = inside
            frames[top, MARK] = -1
            if kind == LOOP:
                frames[top, EMPTY] = 0
                # Loops inside loops that write nothing would go round for ever.
                frames[top, EMPTY_MAX] = 1 if inside else EMPTY_ROUNDS
                frames[top, LEFT] = _times(nodes, node, inside, options, random)
                frames[top, INSIDE] = max(inside, nodes[node, GROWS])
            return position


@inlined
def _next_part(template: Template, fewest: Table, frames: Table, top: int) -> tuple[int, int]:
    """The next part of what is on top of the stack, with its slack; -1 where there is none."""
    nodes, parts = template.nodes, template.parts
    node, slack = frames[top, NODE], frames[top, SLACK]
    row = min(frames[top, LEVELS], len(fewest) - 1)
    if nodes[node, KIND] == SEQUENCE:
        index = nodes[node, START] + frames[top, NEXT]
        if index == nodes[node, END]:
            return np.int64(-1), slack
        part = parts[index, PART]
        share = slack // parts[index, SHARES]
        frames[top, EXPECTED] = fewest[row, part]
    else:
        part = parts[nodes[node, START], PART]
        if frames[top, LEFT] == 0 or frames[top, EMPTY] >= frames[top, EMPTY_MAX]:
            return np.int64(-1), slack
        frames[top, EXPECTED] = fewest[row, part]
        if frames[top, NEXT] >= nodes[node, LEAST]:  # the loop's cost has no more than those
            frames[top, EXPECTED] = 0
            slack -= fewest[row, part]
            if slack < 0:
                return np.int64(-1), slack
        # One time round may not take all, even where nobody knows how many there will be.
        share = slack // min(frames[top, LEFT], 8)
        frames[top, LEFT] -= 1
    frames[top, NEXT] += 1
    return part, share


@kernel
def write(
    template: Template, fewest: Table, frames: Table, options: Options, longest: int, random: Words,
    state: Ints, buffer: Bytes,
) -> int:  # fmt: skip
    """Write on until the template is expanded or the buffer might be too small for another leaf.

    Args:
        template: a ``Template``.
        fewest: of :func:`costs`.
        frames: int64[frames, COLUMNS], the stack; kept between calls.
        options: what is the same for the whole document.
        longest: bytes of the longest leaf.
        random: uint64[1], the state of the random draws; kept between calls.
        state: int64[STATES]; kept between calls. WRITTEN grows by what was written.
        buffer: uint8, to write into from its beginning.

    Returns:
        DONE or FULL.
    """
    position = 0
    before = state[WRITTEN]
    while state[TOP] >= 0:
        if position + longest > len(buffer):
            state[WRITTEN] = before + position
            return FULL
        top = state[TOP]
        written = before + position
        if frames[top, MARK] >= 0:  # what the last part took beyond what was expected
            frames[top, SLACK] -= written - frames[top, MARK] - frames[top, EXPECTED]
            frames[top, EMPTY] = frames[top, EMPTY] + 1 if written == frames[top, MARK] else 0
        part, slack = _next_part(template, fewest, frames, top)
        if part < 0:
            state[TOP] -= 1
            continue
        frames[top, MARK] = written
        position = _enter(
            template, fewest, frames, part, frames[top, LEVELS], slack, frames[top, INSIDE],
            options, random, state, buffer, position,
        )  # fmt: skip
    state[WRITTEN] = before + position
    return DONE


@kernel
def start(
    template: Template, fewest: Table, frames: Table, levels: int, slack: int, options: Options,
    random: Words, state: Ints, buffer: Bytes,
) -> int:  # fmt: skip
    """Put the root on the stack, or write it if it is a leaf; how many bytes were written."""
    state[TOP] = -1
    state[WRITTEN] = 0
    state[IDS] = 0
    state[REFERENCES] = 0
    position = _enter(
        template, fewest, frames, np.int64(template.root), levels, slack, np.int64(0), options,
        random, state, buffer, 0,
    )  # fmt: skip
    state[WRITTEN] = position
    return position
