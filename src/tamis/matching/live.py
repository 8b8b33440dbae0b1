"""Live subscriptions: added and removed while documents flow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tamis.core.errors import (
    BadSubscriptions,
    OtherVersion,
    SubscriptionError,
    SubscriptionId,
    UsageError,
)
from tamis.core.index.columns import Ids, Texts
from tamis.core.index.durable import DurableSet
from tamis.core.index.segments import Segment
from tamis.core.index.store import read_texts
from tamis.core.limits import Limits
from tamis.documents.vocabulary import Projection
from tamis.language.events import reads_as_xpath
from tamis.language.model import Constant
from tamis.language.subscriptions import Subscription, SubscriptionItems, Subscriptions, Unsupported
from tamis.matching.batches import BatchMatcher
from tamis.matching.conformance import schema_arguments, schema_settings
from tamis.matching.matcher import CompiledMatcher, compile_subscriptions, load_matcher
from tamis.matching.snapshot import DocumentMatcher, Snapshot
from tamis.schema.graph import SchemaGraph

_Segments = Sequence[Segment[CompiledMatcher]]


class Matcher(DurableSet[Subscription, CompiledMatcher, Snapshot], DocumentMatcher):
    """The same as :func:`tamis.compile` gives, with subscriptions that come and go.

    See :class:`tamis.core.index.live.LiveSet` for how they change, and
    :class:`tamis.core.index.durable.DurableSet` for how a folder keeps them. Arguments and errors
    are those of :func:`tamis.compile`; ``add_many`` and ``update`` also take a set that was parsed
    with the same namespaces and limits.

    >>> live = Matcher({"s1": "//a"})
    >>> live.add("s2", "//a/b")
    >>> live.update({"s1": "//c", "s3": "//a"})
    >>> list(live.match(b"<a><b/></a>")), live.ids, live.get("s1")
    (['s2', 's3'], ('s2', 's1', 's3'), '//c')
    >>> live.remove("s2")
    >>> list(live.match(b"<a><b/></a>"))
    ['s3']
    """

    KIND = "xpath"

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
        self._engine, self._limits, self._schema = engine, compiled.limits, compiled.schema
        self._none = compiled.subscriptions.with_entries([])
        self._parsers: list[Any] = []
        super().__init__(compiled)

    def _parsed(self, id: SubscriptionId, expression: str) -> Subscription | None:
        if self._engine != "auto" or type(expression) is not str:
            return None
        query = self._none.queries.parse(expression)
        is_odd = query.unstreamed is not None or isinstance(query.expression, Constant)
        if is_odd or reads_as_xpath(expression, self._none.limits):  # which is warned of
            return None
        return Subscription(id, expression, query)

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
        elif given.options == rules:
            new = given
        else:
            raise UsageError(
                "the subscriptions were parsed with other namespaces, limits or unsupported than "
                "the others: give them as id → expression"
            )
        errors = () if new is given else new.errors
        if self._engine != "auto" or new.slow:  # else some engine takes each of them
            try:
                self._compiled(new)
            except BadSubscriptions as several:
                errors += several.errors
        return new, errors

    def _settings(self) -> dict[str, Any]:
        rules = self._none
        return {
            "engine": self._engine,
            **schema_settings(self._schema),
            "namespaces": dict(rules.namespaces),
            "default_namespace": rules.default_namespace,
            "unsupported": rules.options.unsupported,
            "limits": self._limits.changed(),
        }

    @classmethod
    def _arguments(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {**schema_arguments(settings), "limits": Limits(**settings["limits"])}

    def _again(self, pairs: list[tuple[SubscriptionId, Any]]) -> Subscriptions:
        ids, texts = Ids.of(id for id, _ in pairs), Texts.of(text for _, text in pairs)
        return self._none.with_entries([], [(ids, texts)])

    def _write_segment(self, path: Path, compiled: CompiledMatcher) -> None:
        if self._schema is None:
            compiled.save(path)
        else:  # what was pruned cannot be saved
            super()._write_segment(path, compiled)

    def _read_segment(self, path: Path) -> CompiledMatcher:
        if self._schema is not None:
            return super()._read_segment(path)
        try:
            matcher = load_matcher(path)
        except OtherVersion:
            return self._compiled_again(path, *read_texts(path, "program"))
        matcher.loaded_from = None  # a pickle has the subscriptions: the file may be deleted
        return matcher

    @property
    def subscriptions(self) -> Subscriptions:
        """The present subscriptions, parsed; they are not compiled together."""
        return self._joined(*self._present())

    def _joined(self, old: _Segments, new: Sequence[Subscription]) -> Subscriptions:
        if len(old) == 1 and old[0].is_removed is None and not new:
            return old[0].compiled.subscriptions
        before = [
            (each.ids(), each.compiled.subscriptions.columns.texts.part(each.left()))
            for each in old
        ]
        return self._none.with_entries(new, before)

    def _compile(self, old: _Segments, new: Sequence[Subscription]) -> CompiledMatcher:
        return self._compiled(self._joined(old, new))

    def _compiled(self, subscriptions: Subscriptions) -> CompiledMatcher:
        return CompiledMatcher(subscriptions, self._engine, self._limits, None, self._schema)

    def _snapshot_of(self, segments: _Segments, version: int) -> Snapshot:
        programs = [Segment(each.compiled.programs, each.is_removed) for each in segments]
        return Snapshot(BatchMatcher(programs, self._limits, Projection(), self._parsers, version))
