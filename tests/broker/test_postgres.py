"""``PostgresStore`` on a real server: histories, kills of both sides, owners, what is refused."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

from tamis.broker.core.model import (
    Counters,
    Matched,
    Message,
    NameTaken,
    StoredMessage,
    Subscription,
    TopicOptions,
    Transaction,
)
from tamis.broker.store.postgres import PostgresStore
from tamis.broker.store.queries import Queries, checksums, place_of
from tamis.broker.store.sqlite import SqliteStore
from tamis.broker.store.writing import Store
from tamis.core.errors import StoreError
from tests.broker.publish import opened_broker, publish_some
from tests.broker.simulation import Schedule
from tests.broker.stores import Answered, BothStores, kill_publishers, publisher
from tests.support.postgres import PostgresServer, postgres_server

pytestmark = pytest.mark.spark  # the tier that has PostgreSQL
NOTHING = Transaction({}, {}, {}, {}, {}, {}, [])


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> str:
    """Of an empty database."""
    execute(server.url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return server.url


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def messages(first: int, *bodies: bytes) -> Transaction:
    """Messages of the topic, numbered from the first one."""
    every = [
        StoredMessage(number, 0.1 + number / 3, Message(body, id="é\n"), Matched(1, [1, 1 << 30]))
        for number, body in enumerate(bodies, first)
    ]
    counters = {"t/a": Counters(every[-1].number, 0, 0, 0)}
    return NOTHING._replace(messages={"t/a": every}, counters=counters)


# -- histories and kills ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_histories_are_those_of_the_model(seed: int, url: str) -> None:
    store = BothStores(url)
    Schedule(seed, store).run(250)
    store.real.close()


def test_values_come_back_as_from_sqlite(url: str, tmp_path: Path) -> None:
    stores: list[Store] = [PostgresStore(url), SqliteStore(tmp_path / "broker.db")]
    found = []
    for store in stores:
        store.create("t/a", TopicOptions())
        store.write(messages(1, bytes(range(256)) * 40, b"", "ü".encode()))
        found.append((store.messages("t/a", 1, 9, 9), list(store.read("t/a").matches)))
        store.close()
    assert found[0] == found[1]


def test_what_was_answered_survives_kills(url: str) -> None:
    kill_publishers(url, 8)


def test_what_was_answered_survives_kills_of_the_server(server: PostgresServer, url: str) -> None:
    def kill(process: subprocess.Popen[str]) -> None:
        server.stop()
        process.wait(20)  # it does not go on without a server
        server.start()

    kill_publishers(url, 3, kill)


def test_a_topic_is_deleted(url: str) -> None:
    store = PostgresStore(url)
    store.create("t/a", TopicOptions())
    store.write(messages(1, b"1", b"2", b"3"))
    store.delete("t/a")
    assert store.topics() == {}
    assert store.own() == {}
    store.create("t/a", TopicOptions())
    store.write(messages(1, b"4"))
    turns = 0
    while store.delete_rest(2):
        turns += 1
    assert turns == 3
    (kept,) = store.messages("t/a", 1, 9, 9)
    assert kept.message.body == b"4"
    store.close()


# -- owners ----------------------------------------------------------------------------------------


def take_over(url: str, *options: str) -> str:
    """A publisher stops for longer than its lease, and another one publishes; what the first says.

    Raises:
        StoreError: the second one cannot store what it publishes.
    """
    answered = Answered()
    with (
        closing(PostgresStore(url, lease_s=60.0)) as second,
        publisher(url, "0.5", *options) as first,
    ):
        try:
            answered.read_lines(first, 10)
            if not options:
                first.send_signal(signal.SIGSTOP)
            end = time.monotonic() + 20
            while not second.acquire():
                assert time.monotonic() < end
                time.sleep(0.05)
            broker = opened_broker(second)
            first.send_signal(signal.SIGCONT)
            time.sleep(1.0)
            for _ in range(5):
                some = publish_some(broker, second)
                answered.read(f"{number} {body}" for number, body in some.items())
        finally:
            first.kill()
            said = answered.read_rest(first)
        answered.check(second)
    return said


def test_another_process_takes_over(url: str) -> None:
    assert "StoreError" in take_over(url)


def test_a_late_write_is_refused(url: str) -> None:
    assert "does not own the topic 't/a'" in take_over(url, "stops")


def test_without_fencing_a_late_write_is_stored(url: str) -> None:
    with pytest.raises((StoreError, AssertionError), match=r"wrote the same|same number"):
        take_over(url, "stops", "unfenced")


def stop_in_a_transaction(first: PostgresStore, second: PostgresStore) -> None:
    with first._changing():
        first._fence(["t/a"])
        first._write_messages(1, messages(1, b"late").messages["t/a"])
        time.sleep(0.3)
        assert second.acquire() == {}
        time.sleep(0.8)  # the lease ends
        assert second.acquire().keys() == {"t/a"}
        assert second.read("t/a").last == 0
        second.write(messages(1, b"good"))


def test_nobody_waits_for_a_process_that_stands_still(url: str) -> None:
    """It has locked a row that all need: its lease ends, and then its connection."""
    second = PostgresStore(url)
    first = PostgresStore(url, lease_s=0.5)
    short = f"{url}{'&' if '?' in url else '?'}options=-c%20lock_timeout%3D1s"
    with suppress(StoreError), first._changing(), ThreadPoolExecutor() as pool:
        first._one("UPDATE process SET epoch = epoch RETURNING epoch")
        waiting = pool.submit(second.create, "t/a", TopicOptions())
        time.sleep(0.7)
        assert not waiting.done()
        second.renew()  # as a thread does each second
        waiting.result(5)
    first.close()
    first = PostgresStore(url, lease_s=0.5)
    with suppress(StoreError), first._changing():
        first._one("UPDATE process SET epoch = epoch RETURNING epoch")
        third = PostgresStore(short)  # nobody has renewed a lease meanwhile
    assert third.epoch > second.epoch
    for store in (first, second, third):
        store.close()


def test_a_process_that_stops_in_a_transaction(url: str) -> None:
    first = PostgresStore(url, lease_s=0.6)
    first.create("t/a", TopicOptions())
    second = PostgresStore(url)
    with pytest.raises(StoreError, match=r"another process took over|the connection is lost"):
        stop_in_a_transaction(first, second)
    assert [each.message.body for each in second.messages("t/a", 1, 9, 9)] == [b"good"]
    first.close()
    second.close()


def test_a_lease(url: str) -> None:
    first = PostgresStore(url, address="http://first", lease_s=0.5)
    second = PostgresStore(url, address="http://second", lease_s=30.0)
    first.create("t/a", TopicOptions())
    first.create("t/b", TopicOptions())
    first.renew()
    assert {*first.owned} == {"t/a", "t/b"}
    assert second.acquire() == {}
    assert (second.owner("t/a"), second.owner("t/none")) == ("http://first", None)
    assert first.holds("t/a")
    time.sleep(0.6)
    assert not first.holds("t/a")
    assert second.owner("t/a") is None
    assert second.acquire(most=1).keys() == {"t/a"}
    first.renew()
    assert {*first.owned} == {"t/b"}  # nobody had taken it
    assert second.acquire(most=1) == {}
    (other,) = second.owned.values()
    assert other > first.owned["t/b"]
    second.release()
    first.close()
    first = PostgresStore(url)
    assert min(first.acquire().values()) > other
    with pytest.raises(StoreError, match="does not own the topic 't/b', or not any more: nothing"):
        second.set_indexed("t/b", 1)
    first.close()
    assert second.acquire().keys() == {"t/a", "t/b"}  # it has let them go
    second.close()


def test_the_next_store_of_a_process(url: str) -> None:
    first = PostgresStore(url, process="one")
    first.create("t/a", TopicOptions())
    subscription = {("t/a", 1): (Subscription("s", "//a"), 1)}
    first.write(NOTHING._replace(put=subscription, counters={"t/a": Counters(0, 1, 1, 0)}))
    first.set_indexed("t/a", 1)
    second = PostgresStore(url, process="one")
    assert second.acquire().keys() == {"t/a"}  # at once
    assert list(second.changes("t/a")) == []  # its folder has all of them
    with pytest.raises(StoreError, match="another process took over, and nobody knows"):
        first.write(messages(1, b"late"))
    second.release()
    third = PostgresStore(url, process="other")
    third.acquire()
    assert [each.number for each in third.changes("t/a")] == [1]
    for store in (first, second, third):
        store.close()


def test_topics_that_two_processes_make(url: str) -> None:
    first, second = PostgresStore(url), PostgresStore(url)
    first.create("t/a", TopicOptions())
    with pytest.raises(NameTaken, match="there is a topic 'a'"):
        second.create("t/a", TopicOptions())
    second.create("t/b", TopicOptions())
    assert list(first.topics()) == ["t/a", "t/b"]
    assert (list(first.owned), list(second.owned)) == (["t/a"], ["t/b"])
    first.close()
    second.close()


# -- readers that follow ---------------------------------------------------------------------------


def follow(reader: Queries, ends: threading.Event) -> list[int]:
    """The numbers of the messages, as one sees them who asks for those beyond the last one."""
    found: list[int] = []
    while True:
        is_over = ends.is_set()
        last = found[-1] if found else 0
        found += [each.number for each in reader.messages("t/a", last + 1, 1 << 39, 50)]
        if is_over and (not found or found[-1] == last):
            reader.close()
            return found


def test_a_reader_misses_no_late_commit(url: str) -> None:
    stores = [PostgresStore(url), PostgresStore(url)]
    stores[0].create("t/a", TopicOptions())
    ends, count = threading.Event(), 0
    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(follow, store.reader(), ends) for store in stores]
        try:
            for turn in range(8):
                store = stores[turn % 2]
                store.acquire()
                broker = opened_broker(store)
                for _ in range(10):
                    count += len(publish_some(broker, store))
                store.release()
        finally:
            ends.set()
        for reader in readers:
            assert reader.result() == list(range(1, count + 1))
    for store in stores:
        store.close()


def test_with_a_sequence_a_reader_misses_a_late_commit(url: str) -> None:
    """Why a topic has an owner: numbers that several processes draw are not committed in order."""
    store = PostgresStore(url)
    store.create("t/a", TopicOptions())
    execute(url, "CREATE SEQUENCE numbers")
    place = "1::bigint << 40 | nextval('numbers')"

    def insert(number: int) -> str:
        crcs = checksums(place_of(1, number), 0, b"", Message(b"", ""))
        values = f"{place}, 0, 0, '', '', '', '', 0, '', {crcs[0]}, {crcs[1]}, ''"
        return f"INSERT INTO messages VALUES ({values})"

    ends = threading.Event()
    with psycopg.connect(url) as late, ThreadPoolExecutor() as pool:
        late.execute(insert(1))
        execute(url, insert(2))
        reader = pool.submit(follow, store.reader(), ends)
        time.sleep(0.3)
        late.commit()
        ends.set()
        assert reader.result() == [2]
    assert [each.number for each in store.messages("t/a", 1, 9, 9)] == [1, 2]
    store.close()


# -- what is refused -------------------------------------------------------------------------------


def test_no_server() -> None:
    for url in ("postgresql://tamis@127.0.0.1:1/x", "postgresql://tamis@nowhere.invalid/x"):
        with pytest.raises(StoreError, match="no server answers: check that it runs, its host"):
            PostgresStore(url)
    with pytest.raises(StoreError, match="it is no URL of PostgreSQL") as refused:
        PostgresStore("postgresql://tamis:secret word@@@/x")
    assert "secret" not in str(refused.value)


def test_who_is_refused(server: PostgresServer, url: str) -> None:
    rules = server.data / "pg_hba.conf"
    rules.write_text(f"host all secured 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    execute(
        url, "DROP ROLE IF EXISTS secured", "CREATE ROLE secured LOGIN PASSWORD 'right'",
        "SELECT pg_reload_conf()",
    )  # fmt: skip
    time.sleep(0.5)
    for user, why in {
        "secured:wrong": "the server refuses the user: check the name, the password, and pg_hba",
        "secured": "the server refuses the user",
        "nobody": "the server refuses the user",
        "secured:right": "the user has no rights: let it own the tables, and GRANT ALL",
    }.items():
        with pytest.raises(StoreError, match=why) as refused:
            PostgresStore(url.replace("tamis@", f"{user}@"))
        assert "wrong" not in str(refused.value)
        assert "right@" not in str(refused.value)
    with pytest.raises(StoreError, match="no such database: make it with createdb"):
        PostgresStore(url.replace("/postgres", "/none"))


@pytest.mark.parametrize(("setting", "value"), [("synchronous_commit", "off"), ("fsync", "off")])
def test_a_server_that_does_not_sync(setting: str, value: str, url: str) -> None:
    execute(url, f"ALTER SYSTEM SET {setting} = {value}", "SELECT pg_reload_conf()")
    try:
        time.sleep(0.5)
        with pytest.raises(
            StoreError, match=f"{setting} is {value}.* could be lost: it has to be on"
        ):
            PostgresStore(url)
    finally:
        execute(url, f"ALTER SYSTEM RESET {setting}", "SELECT pg_reload_conf()")
        time.sleep(0.5)


def test_the_schema(url: str) -> None:
    with ThreadPoolExecutor() as pool:  # several make it at once
        stores = list(pool.map(PostgresStore, [url] * 4))
    assert {store.epoch for store in stores} == {1, 2, 3, 4}
    for store in stores:
        store.close()
    execute(url, "UPDATE schema_version SET version = 99")
    with pytest.raises(StoreError, match=r"a newer Tamis wrote it \(its schema has version 99\)"):
        PostgresStore(url)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("53100", "the disk of the server is full: make room"),
        ("53300", "not enough connections or memory"),
        ("40001", "other transactions were in the way: try again"),
        ("57P01", "the server stops, or another process took over, and nobody knows"),
        ("58030", "does not write or read"),
        ("XX001", "it is damaged: restore the last backup"),
        ("25006", "it is a standby: name the primary"),
    ],
)
def test_advice(code: str, advice: str, url: str) -> None:
    store = PostgresStore(url)
    execute(
        url,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE 'no' USING ERRCODE = '{code}'; END $$",
        "CREATE TRIGGER fails BEFORE INSERT ON topics EXECUTE FUNCTION fail()",
    )
    with pytest.raises(StoreError, match=advice):
        store.create("t/a", TopicOptions())
    assert store.topics() == {}
    assert store.owned == {}
    store.close()


def test_a_reader_comes_back(server: PostgresServer, url: str) -> None:
    store = PostgresStore(url)
    store.create("t/a", TopicOptions())
    reader = store.reader()
    server.stop()
    lost = "the connection is lost, and nobody knows whether"
    for queries, said in (store, lost), (reader, "no server answers"):
        with pytest.raises(StoreError, match=said):
            queries.topics()
    server.start()
    assert list(reader.topics()) == ["t/a"]
    with pytest.raises(StoreError, match="the connection is lost"):
        store.write(messages(1, b"a"))
    reader.close()
    store.close()
