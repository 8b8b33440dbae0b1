"""A broker for the tests of a module, and a topic for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.broker.http.process import BODY_BYTES, BODY_S, BrokerProcess

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(
        tmp_path_factory.mktemp("broker"),
        *("--allow-http", "--allow-network", "127.0.0.0/8"),
        *("--body-bytes", str(BODY_BYTES), "--body-seconds", str(BODY_S)),
    )
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def topic(broker: BrokerProcess, request: pytest.FixtureRequest) -> str:
    """The path of a topic that no other test has."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name).strip("-")[:100]
    return broker.new_topic(f"{name}-{next(_NUMBERS)}")
