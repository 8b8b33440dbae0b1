"""``SqliteStore``: the histories that the model has; kills; files that cannot be used."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tamis.broker.core.model import (
    Counters,
    Matched,
    Message,
    StoredMessage,
    Subscription,
    TopicOptions,
    Transaction,
)
from tamis.broker.core.queue import Changes, Failure, Gap
from tamis.broker.store.sqlite import SqliteStore
from tamis.core.errors import StoreError
from tests.broker.simulation import Schedule
from tests.broker.stores import BothStores, kill_publishers


@pytest.mark.parametrize("seed", range(25))
def test_histories_are_those_of_the_model(seed: int, tmp_path: Path) -> None:
    store = BothStores(str(tmp_path / "broker.db"))
    Schedule(seed, store).run(250)
    store.real.close()


def test_what_was_answered_survives_kills(tmp_path: Path) -> None:
    kill_publishers(str(tmp_path / "broker.db"), 12)


def test_a_copy_made_while_it_is_written_is_a_store(tmp_path: Path) -> None:
    """What ``sqlite3 broker.db '.backup copy.db'`` does: see ``docs/broker.md``."""
    store = BothStores(str(tmp_path / "broker.db"))
    Schedule(5, store).run(120)
    with closing(sqlite3.connect(tmp_path / "broker.db")) as other:
        copy = sqlite3.connect(tmp_path / "copy.db")
        with closing(copy):
            other.backup(copy)
    store.real.close()
    store.real = SqliteStore(tmp_path / "copy.db")
    store.compare()
    store.real.close()


# -- files that cannot be used ---------------------------------------------------------------------


def test_one_process_at_a_time(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "broker.db")
    with pytest.raises(StoreError, match="another process has it open"):
        SqliteStore(tmp_path / "broker.db")
    store.close()
    again = SqliteStore(tmp_path / "broker.db")
    assert again.epoch == store.epoch + 1
    again.close()


def test_what_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database of any kind" * 100)
    with pytest.raises(StoreError, match=r"text.db: it is no database of SQLite: name another"):
        SqliteStore(tmp_path / "text.db")
    with pytest.raises(StoreError, match="check that the folder is there"):
        SqliteStore(tmp_path / "none" / "broker.db")


def test_a_newer_schema(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "broker.db").close()
    with sqlite3.connect(tmp_path / "broker.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match=r"a newer Tamis wrote it \(its schema has version 99\)"):
        SqliteStore(tmp_path / "broker.db")


def test_a_damaged_page(tmp_path: Path) -> None:
    path = tmp_path / "broker.db"
    store = BothStores(str(path))
    Schedule(3, store).run(250)
    store.real.close()
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="it is damaged: restore the last backup"):
        SqliteStore(path).read("t/a")


def test_what_a_deleted_topic_had_is_deleted_by_and_by(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "broker.db")
    store.create("t/a", TopicOptions())
    subscription = Subscription("a", "//a")
    changes = Changes(0, {1: Failure(1, 1, None, "no")}, [Gap(2, 3, 2)])
    messages = [StoredMessage(n, 0.0, Message(b"<a/>"), Matched(1, [1])) for n in range(1, 10)]
    store.write(
        Transaction(
            {"t/a": messages}, {("t/a", 1): (subscription, 1)}, {}, {("t/a", 1): changes}, {},
            {"t/a": Counters(9, 1, 1, 0)}, [],
        )
    )  # fmt: skip
    store.delete("t/a")
    assert store.topics() == {}
    store.create("t/a", TopicOptions())
    assert store.read("t/a").last == 0
    turns = 0
    while store.delete_rest(4):
        turns += 1
    assert turns == 4
    for table in ("messages", "subscriptions", "failures", "gaps"):
        assert store._one(f"SELECT count(*) FROM {table}") == (0,)
    assert store._one("SELECT count(*) FROM topics") == (1,)
    store.close()
