"""Live subscriptions: added and removed while documents flow."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping

from tamis.documents.source import Document
from tamis.errors import BadSubscriptions, SubscriptionId, SubscriptionIdError
from tamis.language.subscriptions import Subscription, Subscriptions, Unsupported
from tamis.limits import DEFAULT_LIMITS, Limits
from tamis.matching.explain import Explanation
from tamis.matching.matcher import CompiledMatcher, Match
from tamis.matching.matchset import Which
from tamis.matching.promise import read_schema
from tamis.schema.graph import SchemaGraph


class Matcher:
    """The same as :func:`tamis.compile` gives, with subscriptions that come and go.

    Every call sees the set as it was when the call began; all methods may be called from any
    thread, and changes never wait for a match. The first match after a change compiles the whole
    set again, so changes in large sets are best made together.

    Args:
        engine, dtd, root, dtd_trust, namespaces, default_namespace, unsupported: as for
            :func:`tamis.compile`.
        limits: bounds on each document and expression.

    >>> live = Matcher()
    >>> live.add("s2", "//a")
    >>> list(live.match(b"<a/>"))
    ['s2']
    >>> live.remove("s2")
    >>> list(live.match(b"<a/>"))
    []
    """

    def __init__(
        self,
        *,
        engine: str = "auto",
        dtd: str | os.PathLike[str] | SchemaGraph | None = None,
        root: str | None = None,
        dtd_trust: bool = False,
        namespaces: Mapping[str, str] | None = None,
        default_namespace: str | None = None,
        unsupported: Unsupported = "refuse",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._engine = engine
        self._schema = read_schema(dtd, root, dtd_trust)
        self._unsupported: Unsupported = unsupported
        self._limits = limits
        self._none = Subscriptions(
            {},
            namespaces=namespaces,
            default_namespace=default_namespace,
            unsupported=unsupported,
            limits=limits,
        )
        self._compile(self._none)  # refuses an engine that does not exist
        self._lock = threading.Lock()
        self._entries: dict[SubscriptionId, Subscription] = {}
        self._changes = 0
        self._compiled: CompiledMatcher | None = None

    def add(self, id: SubscriptionId, expression: str) -> None:
        """Add a subscription.

        Raises:
            SubscriptionError: the expression cannot be used, or the id is taken.
            EngineRefused: the engine that was named cannot run it.
        """
        try:
            (new,) = Subscriptions(
                {id: expression},
                namespaces=self._none.namespaces,
                default_namespace=self._none.default_namespace,
                unsupported=self._unsupported,
                limits=self._limits,
            )
            self._compile(self._none.with_entries([new]))
        except BadSubscriptions as several:
            raise several.errors[0] from None
        with self._lock:
            if id in self._entries:
                raise SubscriptionIdError("the id is taken", id=id)
            self._entries[id] = new
            self._changed()

    def remove(self, id: SubscriptionId) -> None:
        """Remove a subscription.

        Raises:
            SubscriptionIdError: there is no such subscription.
        """
        with self._lock:
            if id not in self._entries:
                raise SubscriptionIdError("there is no such subscription", id=id)
            del self._entries[id]
            self._changed()

    def _changed(self) -> None:
        self._changes += 1
        self._compiled = None

    def compiled(self) -> CompiledMatcher:
        """The present set, compiled; later changes do not touch it."""
        with self._lock:
            if self._compiled is not None:
                return self._compiled
            entries = list(self._entries.values())
            changes = self._changes
        compiled = self._compile(self._none.with_entries(entries))
        with self._lock:
            if self._changes == changes:
                self._compiled = compiled
        return compiled

    def _compile(self, subscriptions: Subscriptions) -> CompiledMatcher:
        return CompiledMatcher(subscriptions, self._engine, self._limits, None, self._schema)

    def match(
        self, document: Document, *, nodes: Which | None = None, values: bool = False
    ) -> Match:
        """See :meth:`CompiledMatcher.match`."""
        return self.compiled().match(document, nodes=nodes, values=values)

    def match_many(
        self,
        documents: Iterable[Document],
        threads: int = 1,
        *,
        nodes: Which | None = None,
        values: bool = False,
    ) -> Iterator[Match]:
        """See :meth:`CompiledMatcher.match_many`; the set stays as it is at the call."""
        return self.compiled().match_many(documents, threads, nodes=nodes, values=values)

    def match_records(
        self,
        document: Document,
        tag: str,
        threads: int = 1,
        *,
        nodes: Which | None = None,
        values: bool = False,
    ) -> Iterator[Match]:
        """See :meth:`CompiledMatcher.match_records`; the set stays as it is at the call."""
        return self.compiled().match_records(document, tag, threads, nodes=nodes, values=values)

    def explain(self, document: Document, id: SubscriptionId) -> Explanation:
        """See :meth:`CompiledMatcher.explain`."""
        return self.compiled().explain(document, id)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, id: object) -> bool:
        return id in self._entries
