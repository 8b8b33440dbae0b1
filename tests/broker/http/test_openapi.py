"""The OpenAPI document says what the broker does: schemathesis sends what it permits, and more."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.broker.http.process import BrokerProcess

SETTINGS = settings(
    max_examples=8,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
    database=None,
)


@schemathesis.serializer(
    "application/x-ndjson",
    "multipart/mixed",
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
)
def in_bytes(_: Any, value: Any) -> bytes:
    # not orjson, which refuses integers of more than 64 bits: the broker must take them
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "replace")


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
"""What is refused without a token, and which bodies are, other tests know better."""
NAMES = {"topic": "fuzzed", "id": "a", "number": 1}


@pytest.fixture(scope="module")
def described(broker: BrokerProcess) -> Any:
    topic = broker.new_topic("fuzzed")
    broker.subscribe(topic, "a", "//*", payload="document")
    broker.publish(topic, "<a/>")
    return schemathesis.openapi.from_url(f"{broker.url}/openapi.json").exclude(
        path_regex="/events$"
    )


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("named", [False, True], ids=["any-names", "names-that-exist"])
def test_the_document_is_true(
    broker: BrokerProcess, described: Any, mode: GenerationMode, named: bool
) -> None:
    failures: dict[str, str] = {}
    count = 0

    def check(case: Case) -> None:
        nonlocal count
        count += 1
        if named:
            case.path_parameters |= {
                name: value for name, value in NAMES.items() if name in case.path_parameters
            }
        try:
            headers = {"authorization": f"Bearer {broker.token}"}
            case.call_and_validate(headers=headers, checks=CHECKS)
        except (Failure, FailureGroup) as failure:
            failures.setdefault(f"{case.method} {case.path}", str(failure))

    for each in described.get_all_operations():
        operation = each.ok()
        if named and "{topic}" not in operation.path:
            continue
        with suppress(Unsatisfiable):  # of a route without parameters nothing can be wrong
            SETTINGS(given(case=operation.as_strategy(generation_mode=mode))(check))()
    assert count > 50
    assert not failures, "\n\n".join(failures.values())
