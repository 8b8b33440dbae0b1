"""A whole publish–subscribe system around an engine: the PCM paper's Figure 5.

    python -m benchmarks.programs.event_system EVENTS --engine NAME --rate N
        [--full drop|block] [--queue N] [--at-once N] [the options of match_events]

A client, a process of its own, sends events as NDJSON through a socket, so many a second, and reads
what comes back. A thread reads them from the socket and puts them into a queue of so many events at
most: what does not fit is dropped, or else the thread waits, and in the end the client. The engine
takes what is in the queue (``at-once`` events at most), decodes and matches it, and puts the
results into a queue without bounds; a thread sends these back, a line an event.

``process`` is the time from the first event's arrival to the last one's results, times the events
that were sent and divided by those that were processed: so events a second are those that were
processed. How many were dropped, and how fast the client was, is in the note. Matches are counted
where nothing may be dropped.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter, sleep
from typing import Any

from benchmarks.events import load_batch, load_filters
from benchmarks.programs.match_events import add_engine, chosen, counted, parts, use
from benchmarks.programs.protocol import Phases, answer
from tamis import __version__
from tamis.core.index.matches import Listing, Matches, Subscribers
from tamis.events.encode import Encoder
from tamis.events.planner import Searcher

_READ_BYTES = 4096  # at a time: about as many events as the queue has room for
_TICK_S = 0.0005  # the client sends what is due so often


class Queue:
    """The input queue: events wait here until the engine takes them."""

    def __init__(self, size: int, drops: bool) -> None:
        self.dropped = 0
        self._size, self._drops = size, drops
        self._events: deque[bytes] = deque()
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, events: Sequence[bytes]) -> None:
        """Add events; those that do not fit are dropped, or waited with."""
        placed = 0
        with self._changed:
            while placed < len(events):
                room = self._size - len(self._events)
                self._events.extend(events[placed : placed + room])
                placed += room
                self._changed.notify_all()
                if placed < len(events) and self._drops:
                    self.dropped += len(events) - placed
                    return
                if placed < len(events):
                    self._changed.wait_for(lambda: len(self._events) < self._size)

    def close(self) -> None:
        """Nothing more comes."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def take(self, most: int) -> list[bytes]:
        """Events, as soon as there are any; none after the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._is_closed)
            taken = [self._events.popleft() for _ in range(min(most, len(self._events)))]
            self._changed.notify_all()
            return taken


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("events")
    add_engine(parser)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--full", choices=("drop", "block"), default="drop")
    parser.add_argument("--queue", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=100)
    options = parser.parse_args()
    phases = Phases()
    engine, compile = chosen(options)
    table = load_filters(options.events)
    with phases("load"):
        use(engine, compile, options)
    with phases("compile"):
        program = compile(table)
    owners = table.owners(options.by)
    matching = engine.searcher(program, owners, options.threads)
    listing = Listing([Subscribers()], None, owners.total)
    with phases("cold"):
        for part in parts(load_batch(options.events, "warmup"), options.at_once):
            matching.match(part)
    queue = Queue(options.queue, options.full == "drop")
    found, seconds, client = _serve(options, matching, listing, table.names, queue)
    counts, digest = counted(found, options.by)
    processed, sent = counts["events"], client["sent"]
    assert client["answered"] == processed == sent - queue.dropped
    phases.times["process"] = seconds * sent / processed
    if options.full == "drop":
        counts, digest_text = {"events": sent}, ""
    else:
        digest_text = str(digest)
    answer(
        phases,
        counts,
        version=f"tamis {__version__}",
        engine=engine.name,
        digest=digest_text,
        note=f"sent {sent / client['seconds']:,.0f} a second, "
        f"processed {processed / seconds:,.0f}, dropped {queue.dropped:,}",
    )


def _serve(
    options: Namespace, matching: Searcher, listing: Listing, names: Sequence[str], queue: Queue
) -> tuple[list[Matches[Any]], float, dict[str, Any]]:
    """Answer a client; what matched, in how many seconds, and what the client says."""
    results: SimpleQueue[Matches[Any] | None] = SimpleQueue()
    encoder = Encoder(names)
    found: list[Matches[Any]] = []
    arrived: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        words = [sys.executable, "-m", "benchmarks.programs.event_system", "client", port]
        path = str(Path(options.events, "events.ndjson"))
        client = subprocess.Popen(
            [*words, path, str(options.rate)], stdout=subprocess.PIPE, text=True
        )
        connection, _ = server.accept()
    with connection:
        threads = [
            threading.Thread(target=_receive, args=(connection, queue, arrived)),
            threading.Thread(target=_send, args=(connection, results)),
        ]
        for thread in threads:
            thread.start()
        while events := queue.take(options.at_once):
            batch = encoder.ndjson(b"\n".join(events) + b"\n").batch
            matches: Matches[Any] = Matches(listing, [matching.match(batch)])
            found.append(matches)
            results.put(matches)
        seconds = perf_counter() - arrived[0]
        results.put(None)
        for thread in threads:
            thread.join()
    said, _ = client.communicate()
    return found, seconds, json.loads(said)


def _receive(connection: socket.socket, queue: Queue, arrived: list[float]) -> None:
    """The input connections manager: bytes from the network into the queue, an event a line."""
    rest = b""
    while data := connection.recv(_READ_BYTES):
        if not arrived:
            arrived.append(perf_counter())
        *lines, rest = (rest + data).split(b"\n")
        queue.put(lines)
    queue.close()


def _send(connection: socket.socket, results: SimpleQueue[Matches[Any] | None]) -> None:
    """The output connections manager: of each event a line, the numbers of what matched."""
    while (matches := results.get()) is not None:
        lines = [matches.numbers(number).tolist() for number in range(matches.documents)]
        connection.sendall("".join(f"{line}\n" if line else "\n" for line in lines).encode())
    connection.shutdown(socket.SHUT_WR)


def client(port: str, path: str, rate: str) -> None:
    """The remote client: sends events, and counts what comes back."""
    events = Path(path).read_bytes()
    ends = [0]
    while ends[-1] < len(events):
        ends.append(events.index(b"\n", ends[-1]) + 1)
    answered = 0

    def count() -> None:
        nonlocal answered
        while data := connection.recv(1 << 16):
            answered += data.count(b"\n")

    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        sink = threading.Thread(target=count)
        sink.start()
        start, sent, count_of = perf_counter(), 0, len(ends) - 1
        while sent < count_of:
            due = min(count_of, int((perf_counter() - start) * float(rate)) + 1)
            if due > sent:
                connection.sendall(events[ends[sent] : ends[due]])
                sent = due
            sleep(_TICK_S)
        seconds = perf_counter() - start
        connection.shutdown(socket.SHUT_WR)
        sink.join()
    print(json.dumps({"sent": sent, "answered": answered, "seconds": seconds}))


if __name__ == "__main__":
    if sys.argv[1] == "client":
        client(*sys.argv[2:])
    else:
        main()
