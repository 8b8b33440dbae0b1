"""A PostgreSQL of its own, for tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOST = "127.0.0.1"
FIND_POSTGRES = Path(__file__).parents[2] / "scripts" / "find-postgres"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


class PostgresServer:
    """A server, which can be killed and started again.

    Args:
        folder: for its data.
        options: of the program ``postgres``.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        programs = Path(subprocess.check_output([FIND_POSTGRES], text=True).strip())
        self.folder, self.data, self.port = folder, folder / "data", free_port()
        self._programs, self._options = programs, options
        # It refuses to run as root; Debian's package makes a user for it.
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        self._as_user = user if os.geteuid() == 0 else []
        if self._as_user:
            shutil.chown(folder, "postgres", "postgres")
        self._call("initdb", "--pgdata", str(self.data), "--username", "tamis", "--auth", "trust",
                   "--encoding", "UTF8", "--no-locale", "--no-sync")  # fmt: skip

    @property
    def url(self) -> str:
        """The URL of a database that is empty at first."""
        return f"postgresql://tamis@{HOST}:{self.port}/postgres"

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self._as_user, str(self._programs / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def _control(self, action: str, *arguments: str) -> None:
        self._call("pg_ctl", action, "-w", "-s", "-D", str(self.data), *arguments)

    def start(self) -> None:
        options = ["-p", str(self.port), "-h", HOST, "-k", str(self.folder), *self._options]
        log = str(self.folder / "log")
        self._control("start", "-t", "90", "-l", log, "-o", " ".join(options))

    def stop(self) -> None:
        """End it as if it was killed: it recovers at the next start."""
        self._control("stop", "-m", "immediate")


@contextmanager
def postgres_server(*options: str) -> Iterator[PostgresServer]:
    """A server that runs until the end of the ``with`` block, if nobody stops it."""
    with tempfile.TemporaryDirectory(prefix="tamis-postgres-") as folder:
        server = PostgresServer(Path(folder), *options)
        server.start()
        try:
            yield server
        finally:
            if (server.data / "postmaster.pid").exists():
                server.stop()
