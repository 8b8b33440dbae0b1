"""Crashes of a store: power cuts that are simulated, and processes that are killed.

``python -m tests.core.index.crash --kills 1000 --power-cuts 1000 --seed 7``
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from tamis.core.errors import SubscriptionId
from tamis.core.index import live as live_module
from tamis.core.index import store as store_module
from tests.core.index.toy import Words, contents

Model = dict[SubscriptionId, str]
SECTOR = 512


# -- random changes --------------------------------------------------------------------------------


class Change(NamedTuple):
    """A call of a set, and what is in the set then."""

    method: str
    arguments: tuple[Any, ...]
    after: Model

    def make(self, words: Words, durable: bool) -> None:
        getattr(words, self.method)(*self.arguments, durable=durable)


def some_change(rng: random.Random, model: Model) -> Change:
    id: SubscriptionId = rng.choice([rng.randrange(40), f"w{rng.randrange(40)}"])
    word = rng.choice(["ape", "bee", "cat", "y" * rng.randrange(1, 900)])
    kind = rng.randrange(4)
    if kind == 0:
        many = {rng.randrange(40): word + "s" for _ in range(rng.randrange(5))}
        return Change("update", (many,), {k: v for k, v in model.items() if k not in many} | many)
    if id in model:
        return Change("remove", (id,), {k: v for k, v in model.items() if k != id})
    if kind == 1:
        return Change("add_many", ({id: word},), {**model, id: word})
    return Change("add", (id, word), {**model, id: word})


# -- power cuts ------------------------------------------------------------------------------------


class Disk:
    """What of a folder is durable, as it follows from the calls of ``os.fsync``.

    Files are known by inode; ``keep`` has a link of each, so that no number is used twice.
    """

    def __init__(self, folder: Path, keep: Path) -> None:
        self.folder, self.keep = folder, keep
        self.names: dict[str, int] = {}
        self.bytes: dict[int, bytes] = {}

    def current(self) -> dict[str, int]:
        found = {}
        for path in self.folder.iterdir():
            number = path.stat().st_ino
            if not (self.keep / str(number)).exists():
                os.link(path, self.keep / str(number))
            found[path.name] = number
        return found

    def fsync(self, descriptor: int) -> None:
        number = os.fstat(descriptor).st_ino
        current = self.current()
        if number == self.folder.stat().st_ino:
            self.names = current
        elif (self.keep / str(number)).exists():
            self.bytes[number] = (self.keep / str(number)).read_bytes()

    def image(self, rng: random.Random, folder: Path) -> None:
        """A folder as it may be after a power cut now."""
        current = self.current()
        folder.mkdir()
        for name in {*current, *self.names}:
            both = {self.names.get(name), current.get(name)}
            number = rng.choice(sorted(both, key=str))
            if number is not None:
                (folder / name).write_bytes(self._bytes(rng, number))

    def _bytes(self, rng: random.Random, number: int) -> bytes:
        """What is durable of a file, and some of what is behind."""
        durable = self.bytes.get(number, b"")
        now = (self.keep / str(number)).read_bytes()
        if len(now) < len(durable):
            return rng.choice([now, durable])
        found = bytearray(now[: rng.choice([len(durable), rng.randint(len(durable), len(now))])])
        if rng.random() < 0.5:  # sectors are written in any order
            for start in range(0, len(found), SECTOR):
                first, end = max(start, len(durable)), min(start + SECTOR, len(found))
                if first < end and rng.random() < 0.4:
                    found[first:end] = bytes(end - first)
        return bytes(found)


class Image(NamedTuple):
    """A folder after a power cut, and what the set in it may be."""

    folder: Path
    allowed: list[Model]


class PowerCuts:
    """A random history of a set, with a power cut now and then at the steps of its store."""

    def __init__(self, seed: int, folder: Path, chance: float = 0.03) -> None:
        self.rng, self.chance = random.Random(seed), chance
        self.folder = folder
        (folder / "store").mkdir(parents=True)
        (folder / "keep").mkdir()
        self.disk = Disk(folder / "store", folder / "keep")
        self.images: list[Image] = []
        self.states: list[Model] = [{}]  # from what is durable on to what is under way
        self.is_made = False
        self.lock = threading.RLock()

    @contextmanager
    def simulated(self) -> Iterator[None]:
        with ExitStack() as stack:
            for name in ("fsync", "replace", "unlink", "ftruncate", "write"):
                stack.enter_context(mock.patch.object(os, name, self.hooked(name)))
            stack.enter_context(mock.patch.object(store_module, "_JOURNAL_MAX", 4_000))
            stack.enter_context(mock.patch.object(live_module, "NEWEST_MAX", 8))
            yield

    def hooked(self, name: str) -> Any:
        real = getattr(os, name)

        def call(*given: Any, **named: Any) -> Any:
            with self.lock:  # a thread may be at a checkpoint
                self.cut()
                result = self.disk.fsync(*given) if name == "fsync" else real(*given, **named)
                self.cut()
                return result

        return call

    def cut(self) -> None:
        if self.is_made and self.rng.random() < self.chance:
            folder = self.folder / f"image{len(self.images)}"
            self.disk.image(self.rng, folder)
            self.images.append(Image(folder, [dict(state) for state in self.states]))

    def opened(self) -> Words:
        """The set, which is changed while a checkpoint writes a segment."""
        words = Words.open(self.disk.folder)
        write_segment = words._write_segment

        def write(path: Path, compiled: Any) -> None:
            if self.rng.random() < 0.5:
                self.change(words, durable=False)
            write_segment(path, compiled)

        words._write_segment = write  # type: ignore[method-assign]
        return words

    def change(self, words: Words, durable: bool) -> None:
        change = some_change(self.rng, self.states[-1])
        with self.lock:
            self.states.append(change.after)
            place = len(self.states) - 1
        change.make(words, durable)
        if durable:
            del self.states[:place]

    def run(self, changes: int) -> None:
        with self.simulated():
            words = self.opened()
            self.is_made = True
            for _ in range(changes):
                self.change(words, durable=self.rng.random() < 0.2)
                if words._checkpointer is not None:
                    words._checkpointer.join()
                step, place = self.rng.random(), len(self.states) - 1
                if step < 0.05:
                    words.flush()
                elif step < 0.10:
                    words.compact()
                elif step < 0.12:
                    words.close()
                    words = self.opened()
                elif step < 0.2:
                    words.snapshot()
                if step < 0.12:
                    del self.states[:place]
            words.close()

    def check(self) -> int:
        """Open all images: each has all that is durable, and changes in their order."""
        for image in self.images:
            with mock.patch.object(os, "fsync"):  # it takes most of the time
                check_image(image)
            shutil.rmtree(image.folder)
        return len(self.images)


def check_image(image: Image) -> None:
    """Open a store after a crash, see what is in it, and that it goes on."""
    with Words.open(image.folder, read_only=True) as words:
        found = contents(words)
    assert found in image.allowed, (image.folder, found, image.allowed)
    with Words.open(image.folder) as words:
        assert contents(words) == found
        words.update({"new": "ape"})
    with Words.open(image.folder) as words:
        assert contents(words) == {**found, "new": "ape"}
        words.compact()
    with Words.open(image.folder) as words:
        assert contents(words) == {**found, "new": "ape"}


# -- kills -----------------------------------------------------------------------------------------


def write_until_killed(folder: Path, seed: int, first: Model, told: int) -> None:
    """Change a set as the seed says, and tell of each change when it was made."""
    rng, model = random.Random(seed), first
    words = Words.open(folder)
    while True:
        change = some_change(rng, model)
        change.make(words, durable=rng.random() < 0.1)
        model = change.after
        step = rng.random()
        if step < 0.05:
            words.snapshot()
        elif step < 0.07:
            words.compact()
        os.write(told, b".")


def kill_one(folder: Path, seed: int, before: Model) -> Model:
    """Have a process write, kill it, and return what the set has then."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ours)
            write_until_killed(folder, seed, before, theirs)
        finally:
            os._exit(1)
    os.close(theirs)
    rng = random.Random(-seed - 1)
    count = len(os.read(ours, 1))
    deadline = time.monotonic() + rng.random() * 0.03
    while time.monotonic() < deadline:
        count += len(os.read(ours, 1 << 16))
    os.kill(child, signal.SIGKILL)
    while more := os.read(ours, 1 << 16):
        count += len(more)
    os.close(ours)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    states, rng = [before], random.Random(seed)
    for _ in range(count + 1):  # one more may have been made, and not told
        states.append(some_change(rng, states[-1]).after)
        rng.random(), rng.random()
    with Words.open(folder) as words:
        found = contents(words)
    assert found in states[-2:], (seed, found, states[-2:])
    return found


def kill_many(kills: int, seed: int, folder: Path) -> None:
    """Kill one writer after the other, in the same folder."""
    state: Model = {}
    with (
        mock.patch.object(store_module, "_JOURNAL_MAX", 4_000),
        mock.patch.object(live_module, "NEWEST_MAX", 8),
    ):
        for number in range(kills):
            state = kill_one(folder, seed + number, state)


# -- the program -----------------------------------------------------------------------------------


def cut_power(cuts: int, seed: int, folder: Path) -> None:
    """Histories until there were so many power cuts."""
    while cuts > 0:
        history = PowerCuts(seed, folder / str(seed))
        try:
            history.run(60)
            cuts -= history.check()
        except BaseException:
            print(f"seed {seed}", file=sys.stderr)
            raise
        shutil.rmtree(folder / str(seed))
        seed += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--power-cuts", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kill_many(given.kills, given.seed, Path(folder) / "kills")
        cut_power(given.power_cuts, given.seed, Path(folder) / "cuts")
    print(f"{given.kills} kills and {given.power_cuts} power cuts: nothing was lost")


if __name__ == "__main__":
    main()
