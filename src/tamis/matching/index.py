"""Live subscriptions: added and removed while documents flow."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping

from tamis.documents.source import Document
from tamis.errors import BadSubscriptions, SubscriptionId, SubscriptionIdError, UsageError
from tamis.language.subscriptions import Subscription, Subscriptions, Unsupported
from tamis.limits import DEFAULT_LIMITS, Limits
from tamis.matching.explain import Explanation
from tamis.matching.matcher import CompiledMatcher, Match


class Matcher:
    """The same as :func:`tamis.compile` gives, with subscriptions that come and go.

    Every call sees the set as it was when the call began; all methods may be called from any
    thread. The first match after a change compiles the whole set again (expressions stay parsed),
    so changes in large sets are best made together.

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
        namespaces: Mapping[str, str] | None = None,
        unsupported: Unsupported = "refuse",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._engine = engine
        self._unsupported: Unsupported = unsupported
        self._limits = limits
        self._none = Subscriptions(
            {}, namespaces=namespaces, unsupported=unsupported, limits=limits
        )
        self._lock = threading.Lock()
        self._items: dict[SubscriptionId, Subscription] = {}
        self._compiled: CompiledMatcher | None = None

    def add(self, id: SubscriptionId, expression: str) -> None:
        """Add a subscription.

        Raises:
            BadSubscriptions: the expression cannot be used, or the id is taken.
        """
        (new,) = Subscriptions(
            {id: expression},
            namespaces=self._none.namespaces,
            unsupported=self._unsupported,
            limits=self._limits,
        )
        with self._lock:
            if id in self._items:
                raise BadSubscriptions((SubscriptionIdError("the id is taken", id=id),))
            self._items[id] = new
            self._compiled = None

    def remove(self, id: SubscriptionId) -> None:
        """Remove a subscription.

        Raises:
            UsageError: there is no such subscription.
        """
        with self._lock:
            if id not in self._items:
                raise UsageError(f"there is no subscription {id!r}")
            del self._items[id]
            self._compiled = None

    def compiled(self) -> CompiledMatcher:
        """The present set, compiled; later changes do not touch it."""
        with self._lock:
            if self._compiled is None:
                subscriptions = self._none.with_items(list(self._items.values()))
                self._compiled = CompiledMatcher(subscriptions, self._engine, self._limits)
            return self._compiled

    def match(self, document: Document) -> Match:
        """See :meth:`CompiledMatcher.match`."""
        return self.compiled().match(document)

    def match_many(self, documents: Iterable[Document]) -> Iterator[Match]:
        """See :meth:`CompiledMatcher.match_many`; the set stays as it is at the call."""
        return self.compiled().match_many(documents)

    def explain(self, document: Document, id: SubscriptionId) -> Explanation:
        """See :meth:`CompiledMatcher.explain`."""
        return self.compiled().explain(document, id)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, id: object) -> bool:
        return id in self._items
