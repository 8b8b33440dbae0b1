"""Signatures: the public package verifies them, and refuses forged and old ones."""

from __future__ import annotations

import base64
import json
import time

import orjson
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tamis.broker.delivery.signing import decode_secret, envelope, headers_of, new_secret
from tamis.core.errors import UsageError


def now() -> int:
    return int(time.time())


def of_bytes(count: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(count))).decode()


def test_the_public_package_verifies_a_signature() -> None:
    secret, body = new_secret(), envelope("tamis.match", 0, {"é": [1]})
    assert Webhook(secret).verify(body, headers_of("msg_1", now(), body, [secret])) == {
        "type": "tamis.match",
        "timestamp": "1970-01-01T00:00:00.000Z",
        "data": {"é": [1]},
    }


def test_the_signature_is_that_of_the_public_example() -> None:
    """Of the specification's own test vector."""
    headers = headers_of(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_secret_verifies_during_rotation() -> None:
    old, new, other = new_secret(), new_secret(), new_secret()
    headers = headers_of("msg_1", now(), b"{}", [new, old])
    assert Webhook(old).verify(b"{}", headers) == Webhook(new).verify(b"{}", headers) == {}
    with pytest.raises(WebhookVerificationError, match="No matching"):
        Webhook(other).verify(b"{}", headers)


@pytest.mark.parametrize("changed", ["id", "timestamp", "body", "old"])
def test_what_was_changed_or_is_old_is_refused(changed: str) -> None:
    secret, body = new_secret(), b'{"a":1}'
    headers = headers_of("msg_1", now() - 600 * (changed == "old"), body, [secret])
    match changed:
        case "id":
            headers["webhook-id"] = "msg_2"
        case "timestamp":
            headers["webhook-timestamp"] = str(now() + 1)
        case "body":
            body = b'{"a":2}'
    with pytest.raises(WebhookVerificationError, match="too old" if changed == "old" else "No "):
        Webhook(secret).verify(body, headers)


def test_secrets_are_random() -> None:
    assert len({new_secret() for _ in range(100)}) == 100


@pytest.mark.parametrize("count", [24, 64])
def test_secrets_of_permitted_lengths(count: int) -> None:
    assert decode_secret(of_bytes(count)) == bytes(range(count))


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        (of_bytes(23), "24 to 64 bytes, not 23"),
        (of_bytes(65), "24 to 64 bytes, not 65"),
        (of_bytes(32).removeprefix("whsec_"), "begins with whsec_"),
        (of_bytes(32).rstrip("="), "Base64 with padding"),
        (of_bytes(32).replace("A", "-"), "Base64 with padding"),
        (of_bytes(32).replace("A", "A\n", 1), "Base64 with padding"),
        ("whsec_" + "é" * 44, "Base64 with padding"),
        ("whsec_", "not 0"),
    ],
)
def test_bad_secrets_are_refused_and_not_shown(secret: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        headers_of("msg_1", 0, b"", [secret])
    assert "give none, and the broker makes one" in str(caught.value)
    assert len(secret) < 10 or secret[6:] not in str(caught.value)


@pytest.mark.parametrize("id", ["", "a.1", "a b", "a\r\nx: y", "é", "a" * 257])
def test_bad_ids_are_refused(id: str) -> None:
    with pytest.raises(UsageError, match="webhook id"):
        headers_of(id, 0, b"", [new_secret()])


@pytest.mark.parametrize("count", [0, 9])
def test_the_number_of_secrets_is_limited(count: int) -> None:
    with pytest.raises(UsageError, match="1 to 8 secrets"):
        headers_of("msg_1", 0, b"", [new_secret()] * count)


def test_an_envelope_embeds_what_is_json_already() -> None:
    data = {"event": orjson.Fragment(b'{"price":1.50}')}
    assert b'"event":{"price":1.50}' in envelope("tamis.match", 1_700_000_000.25, data)
    assert json.loads(envelope("t", 1_700_000_000.25, 1))["timestamp"] == "2023-11-14T22:13:20.250Z"
