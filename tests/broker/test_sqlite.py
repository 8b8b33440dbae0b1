"""``SqliteStore``: the histories that the model has; kills; files that cannot be used."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tamis.broker.core.model import StoredSubscription, StoredTopic, TopicOptions, Transaction
from tamis.broker.store.queries import StoreCatalog
from tamis.broker.store.sqlite import SqliteStore
from tamis.core.errors import StoreError
from tests.broker.simulation import TOPICS, ModelStore, Schedule

KILLS = 12


class BothStores(ModelStore):
    """A model, and a real store, from which is read."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.real = self.open()
        created = dict.fromkeys(TOPICS, TopicOptions({"p": "urn:p"}))
        self.real.write(Transaction(created, {}, {}, {}, {}, {}, {}, []))

    def open(self) -> SqliteStore:
        return SqliteStore(self.path)

    def write(self, transaction: Transaction) -> None:
        super().write(transaction)
        self.real.write(transaction)

    def read(self) -> dict[str, StoredTopic]:
        self.real.close()
        self.real = self.open()
        self.compare()
        return {topic: self.real.read(topic) for topic in TOPICS}

    def compare(self) -> None:
        """The real store has what the model has."""
        assert list(self.real.topics()) == list(TOPICS)
        for topic, model in super().read().items():
            found = self.real.read(topic)
            assert as_read(found) == as_read(model)
            first = self.forgotten[topic] + 1
            assert [each.message for each in self.real.messages(topic, 1, 1 << 39, 1_000)] == [
                each.message._replace(key=None) for each in self.messages[topic][first - 1 :]
            ]
            for number, of in self.of(topic).items():
                both = self.catalog(topic).get(number), super().catalog(topic).get(number)
                assert sorted_failures(both[0]) == sorted_failures(both[1])
                assert self.real.gaps(topic, number) == sorted(of.gaps)

    def catalog(self, topic: str) -> Any:
        return StoreCatalog(self.real, topic)


def sorted_failures(found: StoredSubscription | None) -> StoredSubscription | None:
    return found and found._replace(failures=sorted(found.failures))


def as_read(topic: StoredTopic) -> StoredTopic:
    matches = [(number, list(of)) for number, of in topic.matches]
    return topic._replace(matches=matches, failing=sorted(topic.failing))


@pytest.mark.parametrize("seed", range(25))
def test_histories_are_those_of_the_model(seed: int, tmp_path: Path) -> None:
    store = BothStores(tmp_path / "broker.db")
    Schedule(seed, store).run(250)
    store.real.close()


# -- kills -----------------------------------------------------------------------------------------


def test_what_was_answered_survives_kills(tmp_path: Path) -> None:
    path, draw, answered = tmp_path / "broker.db", Random(1), 0
    for _ in range(KILLS):
        command = [sys.executable, "-m", "tests.broker.publish", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(draw.randrange(1, 60)):
                answered = max(answered, int(process.stdout.readline()))
            process.kill()
            said = process.stdout.read().split("\n")[:-1]  # the last line may be cut
            answered = max([answered, *map(int, said)])
        store = SqliteStore(path)
        stored = store.read("t/a")
        assert stored.last >= answered
        numbers = [number for number, _ in stored.matches]
        assert numbers == list(range(1, stored.last + 1))
        assert [each.number for each in store.messages("t/a", answered, answered, 1)] == [answered]
        store.close()
    assert answered > KILLS


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
    store = BothStores(path)
    Schedule(3, store).run(250)
    store.real.close()
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="it is damaged: restore the last backup"):
        SqliteStore(path).read("t/a")
