"""``Access``: tokens, and what they permit.

A client sends ``Authorization: Bearer tms_ID_SECRET``. The store has a hash of the secret. A token
belongs to one tenant, and nothing of other tenants can be named with it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from typing import Literal

from tamis.broker.core.model import OverQuota
from tamis.broker.core.queue import BrokerError
from tamis.broker.service import Service
from tamis.broker.store.queries import Queries, Token

Right = Literal["publish", "subscribe", "admin", "operator"]
RIGHTS: tuple[Right, ...] = "publish", "subscribe", "admin", "operator"
_TOKEN = re.compile(r"tms_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_DAY_S = 86_400.0
_TOKENS_MAX = 1_000


class Unauthorized(BrokerError):  # noqa: N818 - says what is the matter
    """No token, or none that is known and has not expired."""

    code = "broker-unauthorized"


class Forbidden(BrokerError):  # noqa: N818 - says what is the matter
    """The token does not have the right."""

    code = "broker-forbidden"


class Access:
    """The tokens of a broker, in memory and in its store."""

    def __init__(self, service: Service) -> None:
        self._service, self._changes = service, 0
        self._tokens = {token.id: token for token in service.tokens()}

    def __len__(self) -> int:
        return len(self._tokens)

    def check(self, authorization: str | None, right: Right | None = None) -> Token:
        """The token that a header has; with a right, only if the token has it.

        Raises:
            Unauthorized: it has none, or the token is not known, or has expired.
            Forbidden: the token does not have the right.
        """
        scheme, _, text = (authorization or "").partition(" ")
        match = _TOKEN.fullmatch(text.strip()) if scheme.lower() == "bearer" else None
        if match is None:
            raise Unauthorized("send a token: Authorization: Bearer tms_…")
        token = self._tokens.get(match[1])
        is_known = hmac.compare_digest(_hash(match[2]), token.secret if token else bytes(32))
        if token is None or not is_known:
            raise Unauthorized("the token is not known: it may have been revoked")
        if token.expires is not None and token.expires <= self._service.clock():
            raise Unauthorized("the token has expired: ask for another one")
        if right is not None and right not in token.rights:
            raise Forbidden(f"the token does not have the right {right!r}")
        return token

    async def create(
        self, tenant: str, rights: Iterable[Right], days: float | None = None
    ) -> tuple[Token, str]:
        """Make a token; it, and the text that a client sends, which is nowhere kept.

        Raises:
            OverQuota: the tenant has too many.
        """
        if len(self.of(tenant)) >= _TOKENS_MAX:
            raise OverQuota(f"the tenant has {_TOKENS_MAX:,} tokens: revoke some")
        id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        now = self._service.clock()
        expires = None if days is None else now + days * _DAY_S
        token = Token(id, tenant, frozenset(rights), _hash(secret), now, expires)
        await self._service.write(lambda store: store.add_token(token))
        self._changes += 1
        self._tokens[id] = token
        return token, f"tms_{id}_{secret}"

    async def remove(self, id: str) -> None:
        """Revoke a token."""
        self._tokens.pop(id, None)
        self._changes += 1
        await self._service.write(lambda store: store.remove_token(id))
        self._tokens.pop(id, None)  # a refresh may have found it again
        self._changes += 1

    async def refresh(self) -> None:
        """Have the tokens that other processes made, and not those that they revoked."""
        before = self._changes
        tokens = await self._service.read(Queries.tokens)
        if self._changes == before:
            self._tokens = {token.id: token for token in tokens}

    def of(self, tenant: str) -> list[Token]:
        """The tokens of a tenant."""
        return [token for token in self._tokens.values() if token.tenant == tenant]


def _hash(secret: str) -> bytes:
    # The secret has 256 random bits: it cannot be guessed, so that the hash need not be slow.
    return hashlib.sha256(secret.encode()).digest()
