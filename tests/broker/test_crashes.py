"""A service under load that is killed at random moments."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.broker.crashes import Ledger
from tests.support.postgres import postgres_server

KILLS = 6


@pytest.mark.parametrize("seed", range(2))
def test_what_was_answered_is_delivered_after_kills(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path)


@pytest.mark.spark  # the tier that has PostgreSQL
def test_with_postgresql_whose_server_is_killed_too(tmp_path: Path) -> None:
    with postgres_server() as server:

        def kill() -> None:
            server.stop()
            server.start()

        run(3, tmp_path, server.url, meanwhile=kill)


def run(seed: int, folder: Path, *store: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    draw, ledger = Random(seed), Ledger()
    for number in range(KILLS + 1):
        command = [sys.executable, "-m", "tests.broker.crashes", str(folder)]
        command += [json.dumps(ledger.live), str(number), *store]
        command += ["--to-the-end"] if number == KILLS else []
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            if number < KILLS:
                ledger.read(process.stdout.readline())
                time.sleep(draw.random() * 0.3)
                if number % 2:
                    meanwhile()
                    ledger.read(process.stdout.read1())
                    time.sleep(draw.random() * 0.3)
                process.kill()
            ledger.read(process.stdout.read())
        ledger.killed()
    ledger.finish()
    assert len(ledger.answered) > 100
    assert ledger.replays
