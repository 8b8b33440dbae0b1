"""Sets that are kept in a folder: what was acknowledged is there again, and all of it once."""

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant

from tamis.core.errors import StoreError, UsageError
from tamis.core.index import store as store_module
from tamis.core.index.journal import Journal, read_journal
from tests.core.index import crash
from tests.core.index.toy import Words, contents
from tests.support.live_sets import LiveSetMachine, Model


class LiveWords(LiveSetMachine):
    kind = Words
    expressions = st.sampled_from(["ape", "bee", "é" * 300])
    bad = st.just("1")

    def anew(self, model: Model) -> Any:
        return {id: each.expression for id, each in model.items()}

    def answers(self, matcher: Any, model: Model) -> Any:
        return contents(matcher) if isinstance(matcher, Words) else matcher

    @invariant()
    def is_read_by_others(self) -> None:
        self.read()


TestLiveWords = LiveWords.TestCase
TestLiveWords.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


def test_power_cuts(tmp_path: Path) -> None:
    crash.cut_power(80, 1, tmp_path)


def test_killed_writers() -> None:
    command = [sys.executable, "-m", "tests.core.index.crash", "--kills", "30"]
    subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)


# -- damage ----------------------------------------------------------------------------------------


@contextmanager
def killed(folder: Path) -> Iterator[None]:
    """Leave a folder that was closed as if its process had been killed before."""
    Words.open(folder).close()
    manifest = (folder / "tamis.store").read_bytes()
    yield
    (folder / "tamis.store").write_bytes(manifest)


def written(folder: Path) -> tuple[Path, list[int]]:
    """The journal of a store with three records, and where each begins and the last one ends."""
    with Words.open(folder) as live:
        journal = live._store.journal  # type: ignore[union-attr]
        places = [0]
        for number, word in enumerate(["ape", "bee", "cat"]):
            live.add(number, word)
            places.append(journal.size)
    return journal.path, places


def test_a_torn_tail_is_cut_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with killed(tmp_path):
        journal, (_, _, last, end) = written(tmp_path)
    data = journal.read_bytes()
    for size in range(last, end):
        for tail in (b"", bytes(end - size), bytes(9_000)):
            journal.write_bytes(data[:size] + tail)
            caplog.clear()
            with Words.open(tmp_path, read_only=True) as live:
                assert live.ids == (0, 1)
            assert not caplog.messages
            with caplog.at_level(logging.WARNING), Words.open(tmp_path) as live:
                assert live.ids == (0, 1)
            assert journal.stat().st_size == last
            is_whole = size == last and not tail
            assert is_whole or f"from offset {last}, are no whole record" in caplog.text


def test_other_damage_is_an_error_that_says_where(tmp_path: Path) -> None:
    journal, places = written(tmp_path)
    data = journal.read_bytes()
    for place in range(places[3]):  # of the last record too: the folder was closed
        journal.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        start = max(p for p in places if p <= place)
        for read_only in (True, False):
            with pytest.raises(StoreError, match="was changed since") as caught:
                Words.open(tmp_path, read_only=read_only)
            assert (caught.value.file, caught.value.offset) == (str(journal), start)
    journal.write_bytes(data)
    with Words.open(tmp_path) as live:
        assert live.ids == (0, 1, 2)


def test_a_journal_of_a_closed_folder_has_no_torn_tail(tmp_path: Path) -> None:
    journal, places = written(tmp_path)
    data = journal.read_bytes()
    for size in range(places[3]):
        journal.write_bytes(data[:size])
        for read_only in (True, False):
            with pytest.raises(StoreError, match="was changed since") as caught:
                Words.open(tmp_path, read_only=read_only)
            assert caught.value.offset == max(p for p in places if p <= size)
    journal.unlink()
    with pytest.raises(StoreError, match="No such file"):
        Words.open(tmp_path)
    journal.write_bytes(data)
    Words.open(tmp_path).close()
    assert journal.read_bytes() == data


def test_a_torn_tail_behind_what_was_closed_is_cut(tmp_path: Path) -> None:
    """A process was killed that opened a closed folder: only what it appended may be torn."""
    journal, (*_, last, end) = written(tmp_path)
    with killed(tmp_path), Words.open(tmp_path) as live:
        live.add("new", "ape" * 20)
    data = journal.read_bytes()
    for size in range(end, len(data)):
        journal.write_bytes(data[:size])
        with Words.open(tmp_path, read_only=True) as live:
            assert live.ids == (0, 1, 2)
    for tail in (data[end:], b"", bytes(600)):  # what is before is still known to be whole
        journal.write_bytes(data[: end - 1] + bytes([data[end - 1] ^ 1]) + tail)
        with pytest.raises(StoreError, match=f"offset {last}"):
            Words.open(tmp_path)
    journal.write_bytes(data[:-1])
    with Words.open(tmp_path) as live:
        assert live.ids == (0, 1, 2)
        live.add("new", "bee")
    with Words.open(tmp_path) as live:
        assert live.ids == (0, 1, 2, "new")


def test_all_journals_of_a_closed_folder_are_known_to_be_whole(tmp_path: Path) -> None:
    """A checkpoint that fails leaves a journal that has no record, behind one that has some."""
    journal, (*_, last, _) = written(tmp_path)
    with Words.open(tmp_path) as live:
        store = live._store
        assert store is not None
        store.switch(store.new_journal())
    data = journal.read_bytes()
    journal.write_bytes(data[:-1])
    with pytest.raises(StoreError, match=f"{journal.name}, offset {last}"):
        Words.open(tmp_path)
    journal.write_bytes(data)
    with Words.open(tmp_path) as live:
        live.compact()
        live.add("new", "ape")
    assert not journal.exists()
    with Words.open(tmp_path) as live:
        assert live.ids == (0, 1, 2, "new")


def test_what_a_process_left_is_made_durable_before_more_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _ = written(tmp_path)
    with Words.open(tmp_path) as live:
        store = live._store
        assert store is not None
        other = store.new_journal()
        other.close()
    durable: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: durable.add(os.fstat(descriptor).st_ino))
    with Words.open(tmp_path):
        assert {journal.stat().st_ino, other.path.stat().st_ino} <= durable


def test_nothing_is_written_behind_a_journal_that_may_end_in_a_part_of_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Words.open(tmp_path)
    live.add("x", "ape", durable=True)
    store = live._store
    assert store is not None
    journal = store.new_journal()
    write, left = os.write, iter([30])  # bytes, and then it is interrupted
    with monkeypatch.context() as patched:
        patched.setattr(os, "ftruncate", no_space)
        patched.setattr(os, "write", lambda to, data: write(to, data[: next(left)]))
        with pytest.raises(StopIteration):
            live.add("y", "bee")
    with pytest.raises(StoreError, match="a part of a record cannot be taken back"):
        store.switch(journal)
    live.close()
    for _ in range(2):
        with Words.open(tmp_path) as live:
            assert live.ids == ("x",)


def test_a_manifest_that_cannot_be_written_at_the_end_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Words.open(tmp_path)
    live.add("x", "ape")
    with monkeypatch.context() as patched:
        patched.setattr(store_module, "replacing", no_space)
        live.close()
    with Words.open(tmp_path) as live:
        assert live.ids == ("x",)


def test_a_manifest_without_sizes_is_read(tmp_path: Path) -> None:
    """As those are that were written before there were any."""
    written(tmp_path)
    manifest = json.loads((tmp_path / "tamis.store").read_bytes())
    assert [*manifest.pop("sizes").values()] == [(tmp_path / "000001.journal").stat().st_size]
    del manifest["checksum"]
    manifest["checksum"] = store_module._checksum(manifest)
    (tmp_path / "tamis.store").write_text(json.dumps(manifest))
    with Words.open(tmp_path) as live:
        assert live.ids == (0, 1, 2)


def test_zeros_where_records_were_durable_are_damage(tmp_path: Path) -> None:
    """A hole is a torn tail, unless a record behind it was written when it was durable."""
    for durable in (True, False):
        folder = tmp_path / str(durable)
        with killed(folder), Words.open(folder) as live:
            live.add("x", "y" * 2_000, durable=durable)
            live.add("z", "ape")
            journal = live._store.journal.path  # type: ignore[union-attr]
        data = journal.read_bytes()
        journal.write_bytes(data[:512] + bytes(512) + data[1024:])
        if durable:
            with pytest.raises(StoreError, match="offset 0"):
                Words.open(folder)
        else:
            with Words.open(folder) as live:
                assert not live.ids


def test_damage_elsewhere_names_the_file(tmp_path: Path) -> None:
    with Words.open(tmp_path) as live:
        live.update({"x": "ape", "y": "bee"})
        live.compact()
        live.remove("x")
        live._checkpoint(live._store)  # type: ignore[arg-type]
    (segment,) = tmp_path.glob("*.segment")
    for path in (segment, tmp_path / "tamis.store"):
        data = path.read_bytes()
        named: set[Path] = set()
        for place in range(0, len(data), 3):
            path.write_bytes(data[:place] + bytes([data[place] ^ 0x08]) + data[place + 1 :])
            try:
                Words.open(tmp_path, read_only=True).close()
            except StoreError as error:
                named.add(Path(error.file))
            else:  # white space
                assert json.loads(path.read_bytes()) == json.loads(data)
        assert path in named <= {path, tmp_path}
        path.write_bytes(b"")
        with pytest.raises(StoreError, match=path.name):
            Words.open(tmp_path)
        path.unlink()
        with pytest.raises(StoreError, match=rf"{path.name}|no tamis\.store"):
            Words.open(tmp_path)
        path.write_bytes(data)
    with Words.open(tmp_path) as live:
        assert contents(live) == {"y": "bee"}


def test_a_journal_that_was_finished_has_no_torn_tail(tmp_path: Path) -> None:
    journal, (_, _, last, _) = written(tmp_path)
    with Words.open(tmp_path) as live:
        store = live._store
        assert store is not None
        store.switch(store.new_journal())
        live.add("new", "ape")
    journal.write_bytes(journal.read_bytes()[:-1])
    with pytest.raises(StoreError, match=f"{journal.name}, offset {last}"):
        Words.open(tmp_path)


# -- faults ----------------------------------------------------------------------------------------


def no_space(*_: Any) -> Any:
    raise OSError(28, "No space left on device")


def test_what_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Words.open(tmp_path)
    live.update({"x": "ape"})
    write = os.write
    for part in (0, 1, 30):

        def partly(descriptor: int, data: Any, part: int = part) -> int:
            monkeypatch.setattr(os, "write", no_space)
            return write(descriptor, data[:part])

        for call in (lambda: live.add("y", "bee"), lambda: live.remove("x")):
            monkeypatch.setattr(os, "write", partly)
            with pytest.raises(StoreError, match="No space left on device; nothing was changed"):
                call()
            assert contents(live) == {"x": "ape"}
    monkeypatch.setattr(os, "write", write)
    live.add("y", "bee", durable=True)
    live.close()
    with Words.open(tmp_path) as live:
        assert contents(live) == {"x": "ape", "y": "bee"}


def test_after_a_fault_that_leaves_doubt_changes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fault in ("ftruncate", "fsync"):
        live = Words.open(tmp_path)
        before = contents(live)
        with monkeypatch.context() as patched:
            if fault == "ftruncate":
                patched.setattr(os, "write", no_space)
            patched.setattr(os, fault, no_space)
            with pytest.raises(StoreError, match="No space left"):
                live.add("x", "ape", durable=True)
        with pytest.raises(StoreError, match="open the folder again"):
            live.add("y", "bee")
        if fault == "fsync":
            with pytest.raises(StoreError, match="open the folder again"):
                live.compact()
            with pytest.raises(StoreError, match="open the folder again"):
                live.flush()
        assert contents(live) == (before if fault == "ftruncate" else {"x": "ape"})
        try:
            live.close()
        except StoreError:
            assert fault == "fsync"
        with Words.open(tmp_path) as live:
            live.add("z", "cat")
            live.remove("z")
            if fault == "fsync":
                assert contents(live) == {"x": "ape"}  # here it was written nevertheless


def test_a_checkpoint_that_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_module, "_JOURNAL_MAX", 200)
    live = Words.open(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(store_module, "write_arrays", no_space)
        for number in range(20):
            live.add(number, "ape")
            if live._checkpointer is not None:
                live._checkpointer.join()
        assert "cannot be written as segments" in caplog.text
        with pytest.raises(StoreError, match="No space left"):
            live.compact()
    with Words.open(tmp_path, read_only=True) as other:
        assert contents(other) == contents(live)
    live.compact()
    live.add("x", "bee")
    live.close()
    assert len(list(tmp_path.iterdir())) == 4
    with Words.open(tmp_path) as other:
        assert contents(other) == contents(live)
        assert len(other) == 21


# -- who may write, and what -----------------------------------------------------------------------


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with Words.open(tmp_path / "new" / "store") as live:
        live.add("x", "ape")
        with pytest.raises(StoreError, match="in use by another process"):
            Words.open(tmp_path / "new" / "store")
        other = Words.open(tmp_path / "new" / "store", read_only=True)
        child = os.fork()
        if child == 0:
            try:
                live.add("y", "bee")
            except StoreError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    for closed, why in ((live, "closed"), (other, "read only")):
        assert contents(closed) == {"x": "ape"}
        with pytest.raises(StoreError, match=why):
            closed.add("y", "bee")
        with pytest.raises(StoreError, match=why):
            closed.remove("x")
        with pytest.raises(StoreError, match=why):
            closed.compact()
        closed.flush()
    live.close()
    with Words.open(tmp_path / "new" / "store") as live:
        live.add("y", "bee")


def test_only_a_store_of_the_same_kind_and_settings_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match="no store"):
        Words.open(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()
    Words.open(tmp_path / "store", language="fr").close()
    with Words.open(tmp_path / "store") as live:
        assert live.language == "fr"
        (tmp_path / "store" / "README").touch()
    Words.open(tmp_path / "store", language="fr").close()
    assert (tmp_path / "store" / "README").exists()
    with pytest.raises(UsageError, match="it was made with language='fr', not 'de'"):
        Words.open(tmp_path / "store", language="de")
    with monkeypatch.context() as patched:
        patched.setattr(Words, "KIND", "events")
        with pytest.raises(StoreError, match="of the kind 'words'"):
            Words.open(tmp_path / "store")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "000001.journal").touch()
    with pytest.raises(StoreError, match=r"holds no tamis\.store"):
        Words.open(tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["000001.journal"]
    with pytest.raises(StoreError, match="Not a directory"):
        Words.open(tmp_path / "other" / "000001.journal")
    for wrong in (None, 3, "a\0b"):
        with pytest.raises(UsageError):
            Words.open(wrong)  # type: ignore[arg-type]


def test_a_reader_beside_a_writer_that_compacts(tmp_path: Path) -> None:
    stop = threading.Event()
    live = Words.open(tmp_path)

    def write() -> None:
        number = 0
        while not stop.is_set():
            live.update({number % 7: "ape", "last": "b" * (number % 50 + 1)})
            number += 1
            if number % 5 == 0:
                live.compact()

    with mock.patch.object(os, "fsync"):
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(100):
                with Words.open(tmp_path, read_only=True) as other:
                    assert contents(other).keys() <= {*range(7), "last"}
        finally:
            stop.set()
            writer.join()
    live.close()


def test_durable_changes_of_threads_share_an_fsync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        calls.append(descriptor)
        while len(live) < 8:  # the others write meanwhile
            time.sleep(0.001)
        fsync(descriptor)

    with Words.open(tmp_path) as live:
        monkeypatch.setattr(os, "fsync", slow)

        def add(number: int) -> None:
            live.add(number, "ape", durable=True)

        threads = [threading.Thread(target=add, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(calls) == 2  # what the first one began with, and all others together
        assert len(live) == 8
        calls.clear()
        live.flush()
        assert not calls
        monkeypatch.setattr(os, "fsync", fsync)  # to close, which holds the lock of the set


def test_records_of_any_size(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    many = {"put": [[n, "//a" * 100] for n in range(5_000)], "gone": ["\ud800", 10**40]}
    for change in ({"put": [], "gone": []}, many):
        journal.append(json.dumps(change).encode())
    journal.close()
    assert read_journal(path) == ([{"put": [], "gone": []}, many], journal.size, journal.size)


def test_an_emptied_segment_between_others_doubles_nothing() -> None:
    live = Words()
    for letter, count in (("b", 300), ("e", 140), ("c", 64)):
        live.add_many({f"{letter}{n}": "word" for n in range(count)})
        live.snapshot()
    for number in range(140):
        live.remove(f"e{number}")
    for number in range(180):
        live.remove(f"b{number}")
    live.add_many({f"d{n}": "word" for n in range(64)})
    live.snapshot()
    live.add("z", "word")
    assert len(contents(live)) == len(set(live.ids)) == len(live) == 249


def test_a_relative_folder_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    with Words.open("set") as live:
        live.add("a", "word")
        monkeypatch.chdir(tmp_path / "y")
        live.compact()
    assert not (tmp_path / "y" / "set").exists()
    with Words.open(tmp_path / "x" / "set") as live:
        assert live.ids == ("a",)


def test_a_fork_lets_nobody_in(tmp_path: Path) -> None:
    with Words.open(tmp_path / "set") as live:
        if (child := os.fork()) == 0:
            try:
                live.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(StoreError, match="in use by another process"):
            Words.open(tmp_path / "set")
        live.add("b", "word", durable=True)


def test_a_folder_that_was_replaced_is_not_written_to(tmp_path: Path) -> None:
    live = Words.open(tmp_path / "set")
    live.add("a", "word", durable=True)
    shutil.rmtree(tmp_path / "set")
    with pytest.raises(StoreError):
        live.add("b", "word", durable=True)
    with Words.open(tmp_path / "set") as other:
        other.add("m", "word", durable=True)
        for write in (live.compact, live.flush):
            with pytest.raises(StoreError, match="was replaced"):
                write()
    live.close()
    with Words.open(tmp_path / "set", read_only=True) as other:
        assert other.ids == ("m",)


def test_a_journal_that_no_manifest_names_is_replaced(tmp_path: Path) -> None:
    Words.open(tmp_path / "set").close()
    manifest = json.loads((tmp_path / "set" / "tamis.store").read_bytes())
    (tmp_path / "set" / f"{manifest['next']:06}.journal").write_bytes(b"left there")
    with Words.open(tmp_path / "set") as live:
        live.add("a", "word")
        live.compact()
    with Words.open(tmp_path / "set") as live:
        assert live.ids == ("a",)


def test_open_takes_settings_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="add them to the set"):
        Words.open(tmp_path / "set", subscriptions={"a": "word"})
    with pytest.raises(TypeError):
        Words.open(tmp_path / "set", colour="red")
    assert not (tmp_path / "set").exists()
