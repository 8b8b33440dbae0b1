"""Signatures of webhooks as https://www.standardwebhooks.com defines them, and their envelope.

A secret is ``whsec_`` and the Base64 form of 24 to 64 random bytes. The signature is the
HMAC-SHA256 of ``id.timestamp.body``. While a secret rotates, a webhook has a signature for each.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets as random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from tamis.core.errors import UsageError

PREFIX = "whsec_"
_BYTES_MIN, _BYTES_MAX, _BYTES_NEW = 24, 64, 32
_SECRETS_MAX = 8  # keeps the header small
_ID = re.compile(r"[!-\-/-~]{1,256}")  # visible ASCII without the full stop
_HINT = "give none, and the broker makes one"


def new_secret() -> str:
    """Returns a new random secret.

    >>> len(decode_secret(new_secret()))
    32
    """
    return PREFIX + base64.b64encode(random.token_bytes(_BYTES_NEW)).decode()


def decode_secret(secret: str) -> bytes:
    """Returns the key that a secret holds.

    Raises:
        UsageError: the secret has another form. The message does not contain the secret.
    """
    if not secret.startswith(PREFIX):
        raise UsageError(f"a webhook secret begins with {PREFIX}: {_HINT}")
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise UsageError(f"a webhook secret is {PREFIX} and Base64 with padding: {_HINT}") from None
    if not _BYTES_MIN <= len(key) <= _BYTES_MAX:
        raise UsageError(
            f"a webhook secret has {_BYTES_MIN} to {_BYTES_MAX} bytes, not {len(key)}: {_HINT}"
        )
    return key


def headers_of(id: str, timestamp: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Returns the three headers of Standard Webhooks for one attempt.

    Args:
        id: of the message, the same for all its attempts. It has no full stop, since full stops
            separate the signed fields: ``a.1`` at 2 and ``a`` at 1 would share a signature.
        timestamp: of the attempt, in seconds since 1970.
        body: the bytes of the request body.
        secrets: the current one first; more than one while a secret rotates.

    Raises:
        UsageError: the id or a secret cannot be used, or there is no secret.
    """
    if not _ID.fullmatch(id):
        raise UsageError("a webhook id is 1 to 256 visible ASCII characters without a full stop")
    if not 1 <= len(secrets) <= _SECRETS_MAX:
        raise UsageError(f"a webhook has 1 to {_SECRETS_MAX} secrets: {_HINT}")
    if timestamp < 0:
        raise UsageError("a webhook timestamp is in seconds since 1970")
    signed = b"%b.%d.%b" % (id.encode(), timestamp, body)
    digests = (hmac.digest(decode_secret(each), signed, "sha256") for each in secrets)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(int(timestamp)),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(each).decode()}" for each in digests),
    }


def envelope(type: str, timestamp: float, data: Any) -> bytes:
    """Returns the JSON payload that Standard Webhooks recommends.

    Args:
        type: what happened, with full stops between its parts: ``tamis.match``.
        timestamp: when it happened, in seconds since 1970.
        data: what ``orjson`` can write; ``orjson.Fragment`` embeds JSON that is already written.

    >>> envelope("tamis.match", 1.5, {"topic": "news"}).decode()
    '{"type":"tamis.match","timestamp":"1970-01-01T00:00:01.500Z","data":{"topic":"news"}}'
    """
    at = datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds")
    return orjson.dumps({"type": type, "timestamp": at.replace("+00:00", "Z"), "data": data})
