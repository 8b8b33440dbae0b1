"""Live subscriptions: added and removed while documents flow."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping

from tamis.core.errors import (
    BadSubscriptions,
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    UnknownSubscription,
    UsageError,
)
from tamis.core.limits import Limits
from tamis.language.subscriptions import SubscriptionItems, Subscriptions, Unsupported
from tamis.matching.matcher import CompiledMatcher, DocumentMatcher, compile_subscriptions
from tamis.schema.graph import SchemaGraph


class Matcher(DocumentMatcher):
    """The same as :func:`tamis.compile` gives, with subscriptions that come and go.

    Every call sees the set as it was when the call began; all methods may be called from any
    thread, and changes never wait for a match. The first match after a change compiles the whole
    set again, so changes in large sets are best made together: ``add_many`` and ``update`` change
    all or, where one subscription cannot be used, nothing.

    Arguments and errors are those of :func:`tamis.compile`.

    >>> live = Matcher({"s1": "//a"})
    >>> live.add("s2", "//a/b")
    >>> live.update({"s1": "//c", "s3": "//a"})
    >>> list(live.match(b"<a><b/></a>")), live.ids, live.get("s1")
    (['s2', 's3'], ('s1', 's2', 's3'), '//c')
    >>> live.remove("s2")
    >>> list(live.match(b"<a><b/></a>"))
    ['s3']
    """

    def __init__(  # noqa: PLR0913 - as compile has them
        self,
        subscriptions: Subscriptions | SubscriptionItems = (),
        *,
        engine: str = "auto",
        dtd: str | os.PathLike[str] | SchemaGraph | None = None,
        root: str | None = None,
        dtd_trust: bool = False,
        namespaces: Mapping[str, str] | None = None,
        default_namespace: str | None = None,
        unsupported: Unsupported = "refuse",
        limits: Limits | None = None,
    ) -> None:
        compiled = compile_subscriptions(
            subscriptions,
            engine=engine,
            dtd=dtd,
            root=root,
            dtd_trust=dtd_trust,
            namespaces=namespaces,
            default_namespace=default_namespace,
            unsupported=unsupported,
            limits=limits,
        )
        self._compiled: CompiledMatcher | None = compiled
        self._engine, self._limits, self._schema = engine, compiled.limits, compiled.schema
        self._none = compiled.subscriptions.with_entries([])
        self._lock = threading.Lock()
        self._entries = {entry.id: entry for entry in compiled.subscriptions}
        self._changes = 0

    def add(self, id: SubscriptionId, expression: str) -> None:
        """Add a subscription.

        Raises:
            SubscriptionError: the expression cannot be used, or the id is taken.
            EngineRefused: the engine that was named cannot run it.
        """
        try:
            self.add_many([(id, expression)])
        except BadSubscriptions as several:
            raise several.errors[0] from None

    def add_many(self, subscriptions: Subscriptions | SubscriptionItems) -> None:
        """Add subscriptions, all of them or none.

        They are id → expression, pairs, the path of a file with these, or a set that was parsed
        with the same namespaces and limits.

        Raises:
            BadSubscriptions: some cannot be used, or their ids are taken; it lists all of them.
            EngineRefused: the engine that was named cannot run them.
        """
        self._change(subscriptions, may_replace=False)

    def update(self, subscriptions: Subscriptions | SubscriptionItems) -> None:
        """Add subscriptions, and replace those whose ids are there, which keep their places.

        All of them are changed, or none. They are given as for :meth:`add_many`.

        Raises:
            BadSubscriptions: some cannot be used; it lists all of them.
            EngineRefused: the engine that was named cannot run them.
        """
        self._change(subscriptions, may_replace=True)

    def remove(self, id: SubscriptionId) -> None:
        """Remove a subscription.

        Raises:
            UnknownSubscription: there is none with this id.
        """
        with self._lock:
            if id not in self:
                raise UnknownSubscription(id=id)
            del self._entries[id]
            self._changed()

    @property
    def ids(self) -> tuple[SubscriptionId, ...]:
        """The ids as they are now, in the order of the results."""
        with self._lock:
            return tuple(self._entries)

    def get(self, id: SubscriptionId) -> str | None:
        """The expression of a subscription, or None where there is none with this id."""
        entry = self._entries.get(id) if id in self else None
        return None if entry is None else entry.expression

    def _change(self, given: Subscriptions | SubscriptionItems, *, may_replace: bool) -> None:
        new, errors = self._read(given)
        if self._engine != "auto" or new.slow:  # else some engine takes each of them
            try:
                self._compile(new)
            except BadSubscriptions as several:
                errors += several.errors
        entries = {entry.id: entry for entry in new}
        with self._lock:
            if not may_replace:
                taken = [id for id in entries if id in self._entries]
                errors += tuple(SubscriptionIdError("the id is taken", id=id) for id in taken)
            if errors:
                raise BadSubscriptions(errors)
            self._entries.update(entries)
            self._changed()

    def _read(
        self, given: Subscriptions | SubscriptionItems
    ) -> tuple[Subscriptions, tuple[SubscriptionError, ...]]:
        """Subscriptions, parsed as the others were, and the errors of bad ones."""
        rules = self._none.options
        if not isinstance(given, Subscriptions):
            new = Subscriptions(
                given,
                namespaces=self._none.namespaces,
                default_namespace=self._none.default_namespace,
                unsupported=rules.unsupported,
                skip_bad=True,
                limits=rules.limits,
            )
            return new, new.errors
        if given.options != rules:
            raise UsageError(
                "the subscriptions were parsed with other namespaces, limits or unsupported than "
                "the others: give them as id → expression"
            )
        return given, ()

    def _changed(self) -> None:
        self._changes += 1
        self._compiled = None

    def compiled(self) -> CompiledMatcher:
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

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, id: object) -> bool:
        is_id = isinstance(id, str | int) and not isinstance(id, bool)  # as True would be 1
        return is_id and id in self._entries

    def __iter__(self) -> Iterator[SubscriptionId]:
        return iter(self.ids)

    def __repr__(self) -> str:
        return f"<Matcher: {len(self):,} subscriptions, engine {self._engine}>"
