"""Plain expressions, lines of files and ids, read from bytes by kernels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, freeze
from tamis.core.index.columns import Ids
from tamis.core.kernel.record import register
from tamis.core.kernel.table import fill_slots
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import XML_NAMESPACE, is_ncname
from tamis.language.model import KindTest, NameTest, NodeTest
from tamis.language.plain import layout as at
from tamis.language.plain.kernels import expressions, lines
from tamis.language.table import WORDS_MAX, QueryTable

# Of hashes. Random once a process: whoever writes expressions cannot know which collide.
MULTIPLIER = np.frombuffer(os.urandom(8), np.uint64) | np.uint64(1)


class PlainReader:
    """Reads plain expressions, of a set with its namespaces and limits.

    >>> reader = PlainReader({"p": "urn:p"})
    >>> text = b"/a/p:b  //a[last()]  /a/p:b"
    >>> data = np.frombuffer(text, np.uint8)
    >>> reader.read(data, np.array([0, 8, 21]), np.array([6, 19, 27])).tolist()
    [0, -1, 0]
    >>> len(reader.queries())
    1
    """

    def __init__(self, namespaces: Mapping[str, str], limits: Limits = DEFAULT_LIMITS) -> None:
        self._namespaces = {"xml": XML_NAMESPACE, **namespaces}
        self._tests: dict[tuple[bool, NodeTest], int] = {}
        self._tables = {field: _empty() for field in _ROOM}
        self._tests_of_names = np.full(1 << 10, at.UNKNOWN, np.int32)
        self._frames = np.zeros(at.FRAMES_MAX * at.FRAME_COLUMNS, np.int64)
        self._state = np.zeros(at.STATE_SIZE, np.int64)
        self._state[at.STEPS_MAX] = limits.subscription_steps
        self._state[at.PREDICATES_MAX] = limits.subscription_predicates
        self._state[at.NESTED_MAX] = limits.subscription_nesting
        self._state[at.CHARS_MAX] = limits.subscription_chars
        self._state[at.MULTIPLIER : at.MULTIPLIER + 1] = MULTIPLIER.view(np.int64)

    def read(self, data: Bytes, starts: Int64, ends: Int64) -> Int32:
        """The number of each expression's query, or -1 where it is not plain.

        Expression i is ``data[starts[i]:ends[i]]``, UTF-8 if it is text.
        """
        state = self._state
        task = at.Task(data, starts, ends, np.empty(len(starts), np.int32))
        state[at.EXPRESSION] = 0
        self._register(task)
        while (status := expressions.read(state)) != at.DONE:
            if status == at.NEW_NAME:
                self._add_name()
            else:
                number = state[at.EXPRESSION]
                self._grow(int(ends[number] - starts[number]))
                self._register(task)
        return task.queries

    def queries(self) -> QueryTable:
        """All queries that were read."""
        starts, code = _interned(self._tables[at.QUERIES])
        string_starts, string_bytes = _interned(self._tables[at.STRINGS])
        _, numbers = _interned(self._tables[at.NUMBERS])
        result = QueryTable(
            starts=starts // 4,
            code=code.view(np.int32),
            tests=tuple(self._tests),
            string_starts=string_starts,
            string_bytes=string_bytes,
            numbers=numbers.view(np.float64),
        )
        freeze(*(array for array in result if isinstance(array, np.ndarray)))
        return result

    def _register(self, task: at.Task) -> None:
        register(self._state, at.TASK[0], task)
        for field, table in self._tables.items():
            register(self._state, field[0], table)
        work = at.Work(
            tests=self._tests_of_names,
            code=self._tables[at.QUERIES].data.view(np.int32),
            numbers=self._tables[at.NUMBERS].data.view(np.float64),
            frames=self._frames,
        )
        register(self._state, at.WORK[0], work)

    def _add_name(self) -> None:
        names = self._tables[at.NAMES]
        number = int(names.counts[0]) - 1
        name = names.data[names.starts[number] : names.starts[number + 1]].tobytes()
        is_attribute = name.startswith(b"@")
        test = self._test(name.removeprefix(b"@"), is_attribute)
        new = at.DECLINED
        if test is not None:
            new = self._tests.setdefault((is_attribute, test), len(self._tests))
        self._tests_of_names[number] = new

    def _test(self, name: bytes, is_attribute: bool) -> NodeTest | None:
        """The test of a name as it is written, or None where the parser has to say what is wrong.

        The kernel sees to it that it is one in ASCII.
        """
        if name == b"text()":
            return KindTest.TEXT
        try:
            prefix, colon, local = name.decode().rpartition(":")
        except UnicodeDecodeError:
            return None
        if not all(part.isascii() or is_ncname(part) for part in (prefix, local)):
            return None
        wanted = None if local == "*" else local
        if not colon:
            default = "" if is_attribute else self._namespaces.get("", "")
            return NameTest(None if wanted is None else default, wanted)
        uri = self._namespaces.get(prefix)
        return None if uri is None else NameTest(uri, wanted, prefix)

    def _grow(self, length: int) -> None:
        """Give each table room for what the next expression may need at least."""
        for field, (size, count) in _ROOM.items():
            self._tables[field] = _grown(self._tables[field], size or length, count)
        missing = len(self._tables[at.NAMES].starts) - len(self._tests_of_names)
        if missing > 0:
            new = np.full(missing, at.UNKNOWN, np.int32)
            self._tests_of_names = np.concatenate([self._tests_of_names, new])


# What an expression may need of each table: bytes (0: as many as it has itself), and strings.
_ROOM = {
    at.NAMES: (at.NAME_BYTES_MAX, 1),
    at.STRINGS: (0, WORDS_MAX),
    at.NUMBERS: (8 * WORDS_MAX, WORDS_MAX),
    at.QUERIES: (4 * at.WORDS_ROOM, 1),
}


def _empty() -> at.Interned:
    return at.Interned(
        data=np.zeros(1 << 14, np.uint8),
        starts=np.zeros(1 << 10, np.int64),
        hashes=np.zeros(1 << 10, np.uint64),
        slots=np.zeros(1 << 11, np.int32),
        counts=np.zeros(1, np.int64),
    )


def _interned(table: at.Interned) -> tuple[Int64, Bytes]:
    """Where the strings of a table begin, and their bytes, without the room behind them."""
    count = int(table.counts[0])
    used = int(table.starts[count])
    return table.starts[: count + 1].copy(), table.data[:used].copy()


def _grown(table: at.Interned, size: int, count: int) -> at.Interned:
    """A table with room for so many more bytes and strings; by halves, so as not to come often."""
    used_count = int(table.counts[0])
    used = int(table.starts[used_count])
    if used + size > len(table.data):
        # The memory is moved by the system, not copied. Nobody else looks at it by now.
        table.data.resize((used + size) * 3 // 16 * 8, refcheck=False)
    if used_count + count >= len(table.starts):
        more = (used_count + count) * 3 // 2 + 1
        table.starts.resize(more, refcheck=False)
        table.hashes.resize(more, refcheck=False)
    if 2 * (used_count + count) > len(table.slots):
        slots = np.zeros(2 * len(table.slots), np.int32)
        fill_slots(table.hashes, used_count, slots)
        table = table._replace(slots=slots)
    return table


# -- lines and ids ---------------------------------------------------------------------------------


class Lines(NamedTuple):
    """Lines that hold something: their numbers, from 1, and where they are, without their ends.

    A tab is where the first one of the line is; ``NUMBERED`` if there is none and the line is an
    expression; ``ODD`` if Python has to look at it.
    """

    lines: Int64
    starts: Int64
    tabs: Int64
    ends: Int64


def found_lines(data: bytes) -> Lines:
    r"""The lines of a file; comments and blank lines are left out.

    >>> found_lines(b"x\t//a\n# comment\n\n//b\r\n")
    Lines(lines=array([1, 4]), starts=array([ 0, 17]), tabs=array([ 1, -1]), ends=array([ 5, 20]))
    """
    room = data.count(b"\n") + 1
    result = Lines(*(np.empty(room, np.int64) for _ in Lines._fields))
    count = lines.find_lines(np.frombuffer(data, np.uint8), *result)
    return Lines(*(array[:count] for array in result))


def ids_of_lines(data: bytes, found: Lines) -> Ids:
    """What is before the tabs of lines, and the numbers of those that have none."""
    lengths = np.where(found.tabs >= 0, found.tabs - found.starts, 20)
    ids = np.empty(int(lengths.sum()), np.uint8)
    bounds = np.zeros(len(lengths) + 1, np.int64)
    written = np.frombuffer(data, np.uint8)
    lines.write_ids(written, found.lines, found.starts, found.tabs, ids, bounds[1:])
    return Ids(ids[: bounds[-1]].tobytes(), bounds[:-1], bounds[1:])


def suspect_ids(ids: Ids) -> tuple[Int32, Bytes]:
    """For each id the number of the first that equals it, or -1; and where they may be no good."""
    first, is_odd = np.empty(len(ids), np.int32), np.empty(len(ids), np.uint8)
    slots = np.zeros(1 << (2 * len(ids)).bit_length(), np.int32)
    data = np.frombuffer(ids.data, np.uint8)
    lines.check_ids(data, ids.starts, ids.ends, MULTIPLIER[0], slots, first, is_odd)
    return first, is_odd
