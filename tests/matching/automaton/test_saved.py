"""Saved programs and caches: what was written comes back, and nothing else is taken."""

from __future__ import annotations

import json
import logging
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tamis.core import array_file
from tamis.core.errors import DamagedProgram, OtherVersion, ProgramError, UnreadableProgram
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.parser import Parser
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.language.xpath import parse
from tamis.matching.engines.automaton import compile_queries
from tamis.matching.engines.automaton import save as saved
from tamis.matching.engines.automaton.cache import CACHE_PARTS
from tamis.matching.engines.automaton.check import PARTS, fault_of_program
from tamis.matching.engines.automaton.execute import Automaton
from tamis.matching.engines.automaton.layout import COUNT, CacheArrays, dtypes
from tamis.matching.engines.automaton.program import AutomatonProgram, ProgramArrays
from tamis.matching.engines.automaton.save import load_cache, load_program, save_cache, save_program
from tests.matching.automaton.compare import drawn
from tests.matching.automaton.comparison import answers
from tests.matching.automaton.mutated_programs import ask_caches, ask_programs, said, sample
from tests.support.processes import output, start

UNLIMITED = 1 << 40
HEADER = 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the sample in it."""
    path = tmp_path / "sample.tamis"
    save_program(path, sample().program)
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """As small as they come."""
    path = tmp_path / "small.tamis"
    save_program(path, compile_queries([parse("//a[b = 'x']"), parse("//a[b[2]]/@c")]))
    return path


# -- round trips -----------------------------------------------------------------------------------


def same(one: AutomatonProgram, other: AutomatonProgram) -> None:
    for name, array in one.arrays._asdict().items():
        read = getattr(other.arrays, name)
        assert read.dtype == array.dtype
        assert read.size == array.size
        assert np.array_equal(read.reshape(array.shape), array), name
        assert not read.flags.writeable
        assert not read.size or read.__array_interface__["data"][0] % 64 == 0
    assert one[1:] == other[1:]


def test_a_program_comes_back(path: Path) -> None:
    loaded = load_program(path)
    same(sample().program, loaded.program)
    assert all(array.size for array in loaded.program.arrays), "the sample has something of all"
    expected = said(Automaton(sample().program, UNLIMITED), sample())
    assert any(expected)
    assert not all(len(numbers) == loaded.program.queries for numbers in expected)
    for cache_bytes in (1, UNLIMITED):
        assert said(Automaton(loaded.program, cache_bytes), sample()) == expected


def test_drawn_programs_come_back(tmp_path: Path) -> None:
    for number in range(40):
        asked = drawn(7, number)
        program = compile_queries(list(asked.queries.values()))
        save_program(tmp_path / "drawn", program)
        loaded = load_program(tmp_path / "drawn")
        same(program, loaded.program)
        parser = Parser(Vocabulary(), program.projection, DEFAULT_LIMITS)
        sources = [Source(d.encode() if isinstance(d, str) else d) for d in asked.documents]
        automaton = Automaton(program, UNLIMITED)
        expected = answers(automaton, parser, sources)
        save_cache(tmp_path / "drawn.cache", automaton.cache, loaded.identity)
        cache = load_cache(tmp_path / "drawn.cache", loaded)
        assert cache is not None
        for known in (None, cache):
            opened = Automaton(loaded.program, UNLIMITED, known)
            assert answers(opened, parser, sources) == expected


def test_what_else_is_saved_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "more"
    ids = np.frombuffer(b"onetwo", np.uint8)
    save_program(path, sample().program, {"ids": ids}, {"engine": "automaton", "é": [None, 1.5]})
    loaded = load_program(path)
    assert loaded.arrays.keys() == {"ids"}
    assert loaded.arrays["ids"].tobytes() == b"onetwo"
    assert loaded.metadata == {"engine": "automaton", "é": [None, 1.5]}
    other = save_program(path, sample().program, {"ids": ids}, {"engine": "other"})
    assert other != loaded.identity
    assert said(Automaton(loaded.program, UNLIMITED), sample())  # of the file that is replaced


def test_a_second_process(path: Path) -> None:
    automaton = Automaton(sample().program, UNLIMITED)
    expected = said(automaton, sample())
    cache = path.with_suffix(".cache")
    save_cache(cache, automaton.cache, load_program(path).identity)
    states = int(automaton.cache.states.counts[COUNT])
    module = "tests.matching.automaton.answer_saved"
    processes = [start(module, str(path)), start(module, str(path), str(cache))]
    cold, warm = (json.loads(output(process)) for process in processes)
    assert cold[0] == warm[0] == expected
    assert warm[1:] == [states, states]
    assert cold[1] < cold[2] == states


# -- caches ----------------------------------------------------------------------------------------

HALF = 3


def learned(path: Path, documents: int) -> Automaton:
    """An automaton that knows some of the documents, and has saved it beside the program."""
    asked = sample()
    automaton = Automaton(asked.program, UNLIMITED)
    few = asked.batch._replace(
        document_starts=asked.batch.document_starts[: documents + 1],
        misc_starts=asked.batch.misc_starts[: documents + 1],
    )
    automaton.match(few, asked.vocabulary)
    save_cache(path.with_suffix(".cache"), automaton.cache, load_program(path).identity)
    return automaton


def test_what_is_learned_later_stays_out_of_the_file(path: Path) -> None:
    learned(path, HALF)
    beside = path.with_suffix(".cache")
    before = beside.read_bytes()
    expected = said(Automaton(sample().program, UNLIMITED), sample())
    loaded = load_program(path)
    for _ in range(2):
        automaton = Automaton(loaded.program, UNLIMITED, load_cache(beside, loaded))
        known = int(automaton.cache.states.counts[COUNT])
        assert said(automaton, sample()) == expected
        assert automaton.cache.states.counts[COUNT] > known > 3
    assert beside.read_bytes() == before


def test_a_cache_too_large_is_left_out(path: Path) -> None:
    learned(path, HALF)
    loaded = load_program(path)
    cache = load_cache(path.with_suffix(".cache"), loaded)
    automaton = Automaton(loaded.program, 1_000, cache)
    assert automaton.cache is not cache
    assert said(automaton, sample()) == said(Automaton(sample().program, UNLIMITED), sample())
    assert automaton.cleared > 0


def test_a_cache_can_be_forgotten(path: Path) -> None:
    """Its arrays are mapped, the new ones are not."""
    automaton = learned(path, HALF)
    loaded = load_program(path)
    cache = load_cache(path.with_suffix(".cache"), loaded)
    size = automaton.memory_usage() - sum(array.nbytes for array in automaton._scratch)
    other = Automaton(loaded.program, size, cache)
    assert other.cache is cache
    expected = said(Automaton(sample().program, UNLIMITED), sample())
    assert said(other, sample()) == expected == said(other, sample())
    assert other.cleared > 0


def test_a_cache_of_another_program_is_left_out(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    learned(path, HALF)
    other = tmp_path / "other"
    save_program(other, sample().program, metadata={"more": 1})
    assert load_cache(path.with_suffix(".cache"), load_program(other)) is None
    assert "another program" in caplog.text


def test_a_cache_in_which_anything_was_changed_is_left_out(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = load_program(path)
    beside = path.with_suffix(".cache")
    with caplog.at_level(logging.INFO, "tamis"):
        assert load_cache(beside, loaded) is None
    assert [record.levelname for record in caplog.records] == ["INFO"]  # there is none
    learned(path, 1)
    assert load_cache(beside, loaded) is not None
    content = beside.read_bytes()
    draw = Random(1)
    for place in [*range(HEADER + 100), *(draw.randrange(len(content)) for _ in range(500))]:
        with flipped(beside, place, 1 << draw.randrange(8)):
            assert load_cache(beside, loaded) is None, place
    assert load_cache(path, loaded) is None
    assert "it has a program in it, not a cache" in caplog.text


# -- damage ----------------------------------------------------------------------------------------


@contextmanager
def flipped(path: Path, place: int, bits: int) -> Iterator[None]:
    """A file with some bits of one byte the other way round, for a while."""
    with path.open("r+b", buffering=0) as file:
        (byte,) = os.pread(file.fileno(), 1, place)
        os.pwrite(file.fileno(), bytes([byte ^ bits]), place)
        try:
            yield
        finally:
            os.pwrite(file.fileno(), bytes([byte]), place)


def test_every_byte_flipped(small: Path) -> None:
    draw = Random(0)
    for place in range(small.stat().st_size):
        with flipped(small, place, draw.randrange(1, 256)), pytest.raises(ProgramError) as caught:
            load_program(small)
        assert isinstance(caught.value, DamagedProgram | OtherVersion)
    load_program(small)


def test_every_length(small: Path) -> None:
    content = small.read_bytes()
    for length in range(len(content)):
        os.truncate(small, len(content) - 1 - length)
        with pytest.raises(DamagedProgram):
            load_program(small)
    for more in (b"\0", b"\0" * 64, content):
        small.write_bytes(content + more)
        with pytest.raises(DamagedProgram):
            load_program(small)


def test_sections_swapped(small: Path) -> None:
    """Those of the same size, with the checksums where they were."""
    arrays = array_file.open_arrays(small, "program", saved.PROGRAM_VERSION).arrays
    content = bytearray(small.read_bytes())
    places = {name: content.find(array.tobytes()) for name, array in arrays.items() if array.size}
    one, other = "automaton.rules", "automaton.nodes"
    size = min(arrays[one].nbytes, arrays[other].nbytes)
    first, second = (slice(places[name], places[name] + size) for name in (one, other))
    content[first], content[second] = content[second], content[first]
    small.write_bytes(content)
    with pytest.raises(DamagedProgram, match="was changed since it was written"):
        load_program(small)


def test_another_version(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "PROGRAM_VERSION", saved.PROGRAM_VERSION + 1)
    with pytest.raises(OtherVersion, match="make it again") as caught:
        load_program(small)
    assert caught.value.code == "program-version"
    monkeypatch.undo()
    content = bytearray(small.read_bytes())
    content[8] += 1  # of the format
    small.write_bytes(content)
    with pytest.raises(OtherVersion):
        load_program(small)


@pytest.mark.parametrize("what", ["nothing", "folder", "pipe", "link to nothing"])
def test_no_file(tmp_path: Path, what: str) -> None:
    path = tmp_path / "it"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "link to nothing":
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UnreadableProgram, match=re.escape(str(path))):
        load_program(path)


@pytest.mark.parametrize("content", [b"", b"x", b"id\t//a\n" * 100, b"\0" * 4096])
def test_other_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "it"
    path.write_bytes(content)
    with pytest.raises(DamagedProgram):
        load_program(path)


def test_a_file_is_written_whole_or_not_at_all(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = small.read_bytes()

    def fail(_: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        save_program(small, sample().program)
    assert small.read_bytes() == before
    assert list(small.parent.iterdir()) == [small]


# -- tables with right checksums -------------------------------------------------------------------


def rewritten(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the table of a file, and make its checksum right again."""
    content = path.read_bytes()
    _, _, _, table_bytes, _ = array_file._HEADER.unpack_from(content)
    table = change(content[HEADER : HEADER + table_bytes].rstrip())
    table += b" " * (-(HEADER + len(table)) % 64)
    rest = content[HEADER + table_bytes :]
    size = HEADER + len(table) + len(rest)
    checksum = zlib.crc32(array_file._header(0, len(table), size) + table)
    path.write_bytes(array_file._header(checksum, len(table), size) + table + rest)


def of_section(number: int, **changes: Any) -> Callable[[Any], None]:
    return lambda table: table["sections"][number].update(changes)


def of_columns(change: Any) -> Any:
    """Changes the columns of names."""

    def changing(table: Any) -> None:
        table["metadata"]["names"] = change(*table["metadata"]["names"])

    return changing


def of_metadata(**changes: Any) -> Callable[[Any], None]:
    return lambda table: table["metadata"].update(changes)


TABLES: dict[str, Callable[[Any], Any]] = {
    "kind": lambda table: table.update(kind="other"),
    "kind is no text": lambda table: table.update(kind=["program"]),
    "no metadata": lambda table: table.pop("metadata"),
    "more": lambda table: table.update(more=1),
    "no sections": lambda table: table.update(sections=[]),
    "sections": lambda table: table.update(sections={}),
    "one section less": lambda table: table["sections"].pop(),
    "two swapped": lambda table: table["sections"].insert(0, table["sections"].pop(1)),
    "one twice": lambda table: table["sections"].append(table["sections"][0]),
    "no row": lambda table: table["sections"].append(1),
    "a row of less": lambda table: table["sections"][0].pop("checksum"),
    "name": of_section(0, name="automaton.other"),
    "name is no text": of_section(0, name=None),
    "objects": of_section(0, dtype="|O"),
    "no type": of_section(0, dtype="x"),
    "another type": of_section(0, dtype="<i8"),
    "other bytes": of_section(0, dtype=">i4"),
    "type is a list": of_section(0, dtype=["<i4"]),
    "no shape": of_section(0, shape=[]),
    "flat": of_section(0, shape=[8]),
    "deep": of_section(0, shape=[1, 1, 1]),
    "negative": of_section(0, shape=[-1, 8]),
    "huge": of_section(0, shape=[(1 << 31) - 1, (1 << 31) - 1]),
    "more than huge": of_section(0, shape=[1 << 70, 8]),
    "empty and huge": of_section(2, shape=[(1 << 31) - 1, 0]),
    "true": of_section(0, shape=[True, 8]),
    "fractions": of_section(0, shape=[1.0, 8]),
    "checksum": of_section(0, checksum="0"),
    "queries": of_metadata(queries=-1),
    "many queries": of_metadata(queries=1 << 31),
    "no number of queries": of_metadata(queries=True),
    "fewer queries": of_metadata(queries=1),
    "no names": of_metadata(names=[]),
    "one name more": of_columns(
        lambda kinds, *names: [[*kinds, 0], *([*each, "zz"] for each in names)]
    ),
    "kinds of names": of_metadata(names=[[2], [""], ["a"]]),
    "a name twice": of_columns(lambda *columns: [each[:1] * 3 for each in columns]),
    "names of different lengths": of_columns(lambda kinds, *names: [[*kinds, 0], *names]),
    "names of nothing": of_metadata(names=[[]]),
    "names of numbers": of_metadata(names=[[0], [1], [2]]),
    "names of text": of_metadata(names="abc"),
    "names of any kind": of_metadata(names=[[0], [None], [None]]),
    "local names of numbers": of_metadata(names=[[0], [None], [2]]),
    "projection": of_metadata(projection={}),
    "projection of numbers": lambda table: table["metadata"]["projection"].update(misc=0),
    "projection of text": lambda table: table["metadata"]["projection"].update(text="all"),
    "projection of half names": lambda table: table["metadata"]["projection"].update(text=[["a"]]),
    "other metadata": of_metadata(other=1),
    "more metadata": of_metadata(more=[]),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_with_right_checksums(small: Path, name: str) -> None:
    def change(table: bytes) -> bytes:
        described = json.loads(table)
        TABLES[name](described)
        return json.dumps(described).encode()

    rewritten(small, change)
    with pytest.raises(DamagedProgram):
        load_program(small)


@pytest.mark.parametrize(
    "table",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"kind":"program","kind":"program","version":1,"metadata":{},"sections":[]}',
        b'{"kind":"program","version":1,"metadata":{"queries":NaN},"sections":[]}',
        b'{"kind":"program","version":' + b"1" * 10_000 + b',"metadata":{},"sections":[]}',
    ],
)
def test_tables_that_are_none(small: Path, table: bytes) -> None:
    rewritten(small, lambda _: table)
    with pytest.raises(DamagedProgram):
        load_program(small)


def test_a_table_rewritten_as_it_was_is_taken(small: Path) -> None:
    """So what is refused above is refused for what was changed."""
    rewritten(small, lambda table: json.dumps(json.loads(table)).encode())
    load_program(small)


# -- changed numbers -------------------------------------------------------------------------------


def faults(became: Counter[str]) -> set[str]:
    """What was found faulty; each check has something to find."""
    return {what.split(": ")[1] for what in became if ": " in what}


def test_programs_with_changed_numbers() -> None:
    became = ask_programs(1, 3_000)
    assert became["refused"] > 500
    assert became["answered"] > 500
    assert faults(became) >= {*PARTS, "the types of its arrays", "the lengths of its arrays"}


def test_caches_with_changed_numbers() -> None:
    became = ask_caches(1, 3_000)
    assert became["refused"] > 500
    assert became["answered"] > 500
    assert faults(became) >= {*CACHE_PARTS, "the lengths of its arrays"}


def test_a_file_with_changed_numbers(path: Path) -> None:
    """One that has right checksums for what nobody would compile."""
    file = array_file.open_arrays(path, "program", saved.PROGRAM_VERSION)
    rules = file.arrays["automaton.rules"].copy()
    rules[0, 5] = 1 << 30
    arrays = {**file.arrays, "automaton.rules": rules}
    array_file.write_arrays(path, "program", saved.PROGRAM_VERSION, arrays, file.metadata)
    with pytest.raises(DamagedProgram, match="the rules cannot be right"):
        load_program(path)


def test_empty_arrays() -> None:
    """One array is cut to nothing: refused, where it was not empty, or nobody needs it."""
    asked = sample()
    arrays = asked.program.arrays._asdict()
    for name, array in arrays.items():
        changed = {**arrays, name: array[:0]}
        fault = fault_of_program(changed, asked.program.queries, asked.symbols)
        assert fault or not array.size or name == "constant_bytes", name


def test_the_version_is_of_these_arrays() -> None:
    """What has to be raised when this changes: PROGRAM_VERSION, and what is expected here."""
    said = repr([(name, kind) for name, kind in dtypes(ProgramArrays).items()])
    caches = repr([(name, kind) for name, kind in dtypes(CacheArrays).items()])
    assert (saved.CACHE_VERSION, zlib.crc32(caches.encode())) == (4, 1834863925)
    assert (saved.PROGRAM_VERSION, zlib.crc32(said.encode())) == (10, 1107065748)
