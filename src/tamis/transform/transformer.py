"""``Transformer``: documents → messages, for a set of subscriptions that may change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tamis.core.arguments import checked_limits, checked_path, id_problem
from tamis.core.errors import (
    BadSubscriptions,
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    UsageError,
)
from tamis.core.index.durable import DurableSet
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import declared_namespaces
from tamis.language.entries import given_pairs
from tamis.language.flwr import Transformation, parse_transformation, read_transformations
from tamis.transform.planner import Planner, Plans
from tamis.transform.shapes import task_of
from tamis.transform.snapshot import (
    CompiledTransformations,
    DocumentTransformer,
    Segments,
    SharedParser,
    Snapshot,
    TransformingSubscription,
    subscriptions_of,
)

if TYPE_CHECKING:
    from tamis.schema.graph import SchemaGraph

Text = str | Transformation
Given = (
    Mapping[str, Text]
    | Mapping[int, Text]
    | Mapping[SubscriptionId, Text]
    | Iterable[tuple[SubscriptionId, Text]]
    | os.PathLike[str]
)
"""Subscriptions by id, as texts or read already, or where files of these are."""


class Transformer(
    DurableSet[TransformingSubscription, CompiledTransformations, Snapshot], DocumentTransformer
):
    """Transforms documents for many subscriptions, each a FLWR expression in constant elements.

    Threads may share it; one document is looked at at a time. See
    :class:`tamis.core.index.live.LiveSet` for how subscriptions change, and
    :class:`tamis.core.index.durable.DurableSet` for how a folder keeps them.

    Args:
        subscriptions: id → text, (id, text) pairs, or the :class:`pathlib.Path` of a folder of
            ``ID.xq``, of one such file, or of ``*.ndjson``; by default none.
        namespaces: prefix → URI, of prefixes in the texts that these do not declare.
        default_namespace: the namespace of elements without a prefix, in paths and in constructors,
            where a text does not declare another.
        strategy: how nodes are found: "auto" is "relative" where it supports a subscription, and
            else "reference"; "path-sharing-f", "path-sharing-fw", "path-sharing-fwr" and
            "plan-sharing" are the broker paper's.
        dtd: a file, or its graph, that the paper's strategies may rely on. Documents that do not
            keep to it are answered all the same.
        root: the element that documents begin with, where the DTD does not say it.
        dtd_trust: documents are known to be valid, and are not held against the DTD.
        limits: bounds on subscriptions, documents and messages.

    Raises:
        BadSubscriptions: some cannot be used; with all of these.
        UsageError: there is no such strategy, or it has no use for a DTD.
        SchemaError: the DTD cannot be read.

    >>> transformer = Transformer(
    ...     {"t": "<r>{ for $b in //book where $b/price < 50 return <b>{ $b/title }</b> }</r>"}
    ... )
    >>> found = transformer.transform("<bib><book><title>T</title><price>9</price></book></bib>")
    >>> [(message.subscription, message.text) for message in found]
    [('t', '<r><b><title>T</title></b></r>')]
    >>> transformer.add("n", "<n>{ for $b in //bib return count($b/book) }</n>")
    >>> [message.text for message in transformer.transform("<bib><book/></bib>")]
    ['<n>1</n>']
    """

    KIND = "transform"

    def __init__(
        self,
        subscriptions: Given = (),
        *,
        namespaces: Mapping[str, str] | None = None,
        default_namespace: str | None = None,
        strategy: str = "auto",
        dtd: str | os.PathLike[str] | SchemaGraph | None = None,
        root: str | None = None,
        dtd_trust: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        schema = None
        if dtd is not None or root is not None or dtd_trust:
            from tamis.matching.conformance import read_schema  # noqa: PLC0415 - few have a DTD

            schema = read_schema(dtd, root, dtd_trust)
        self._namespaces = declared_namespaces(namespaces, default_namespace)
        self.limits = limits = checked_limits(limits)
        self.strategy = strategy
        self._schema = schema
        self._planner = Planner(strategy, limits.transformed_nodes, schema)
        self._parser = SharedParser(limits)
        found, errors = self._read(subscriptions)
        if errors:
            raise BadSubscriptions(tuple(errors))
        super().__init__(self._compile((), found))

    def _settings(self) -> dict[str, Any]:
        from tamis.matching.conformance import schema_settings  # noqa: PLC0415 - few sets are kept

        prefixes = dict(self._namespaces)
        return {
            "strategy": self.strategy,
            **schema_settings(self._schema),
            "default_namespace": prefixes.pop("", None),
            "namespaces": prefixes,
            "limits": self.limits.changed(),
        }

    @classmethod
    def _arguments(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        from tamis.matching.conformance import schema_arguments  # noqa: PLC0415 - as before

        return {**schema_arguments(settings), "limits": Limits(**settings["limits"])}

    def _written(self, entry: TransformingSubscription) -> str:
        given = entry.transformation
        if not entry.is_text:
            try:
                is_same = parse_transformation(given.text, self._namespaces, self.limits) == given
            except SubscriptionError:
                is_same = False
            if not is_same:  # it was parsed with other namespaces, which a folder does not keep
                raise UsageError(f"subscription {entry.id!r}: a folder keeps it: give it as text")
        return given.text

    @property
    def transformations(self) -> dict[SubscriptionId, Transformation]:
        """The subscriptions by id, in their order, as they were read."""
        segments, new = self._present()
        return {each.id: each.transformation for each in (*subscriptions_of(segments), *new)}

    @property
    def plans(self) -> Plans:
        """What finds the nodes, of all present subscriptions together; for one thread."""
        return self.compiled().plans

    def _parsed(self, id: SubscriptionId, text: Text) -> TransformingSubscription:
        _check(id, text)
        given = text
        if isinstance(given, str):
            given = parse_transformation(given, self._namespaces, self.limits)
        self._planner.check(task_of(given))
        return TransformingSubscription(id, given, isinstance(text, str))

    def _read(self, given: Given) -> tuple[list[TransformingSubscription], list[SubscriptionError]]:
        """The subscriptions that can be used, and the errors of the others."""
        pairs: Iterable[object]
        errors: list[SubscriptionError] = []
        if isinstance(given, os.PathLike):
            files = read_transformations([checked_path(given)], self._namespaces, self.limits)
            pairs, errors = files.transformations.items(), [each.error for each in files.refused]
        else:
            pairs = given_pairs(given, "transformation")
        found: dict[SubscriptionId, TransformingSubscription] = {}
        for id, text in map(_checked_pair, pairs):
            _check(id, text)
            try:
                twice = "the id is used twice: ids must be unique" if id in found else ""
                if problem := twice or id_problem(id):
                    raise SubscriptionIdError(problem)
                found[id] = self._parsed(id, text)
            except SubscriptionError as error:
                errors.append(error.located(id, None))
        return list(found.values()), errors

    def _compile(
        self, old: Segments, new: Sequence[TransformingSubscription]
    ) -> CompiledTransformations:
        return CompiledTransformations(self._planner, [*subscriptions_of(old), *new])

    def _snapshot_of(self, segments: Segments, version: int) -> Snapshot:
        return Snapshot(segments, self._parser, version)

    __reduce__ = DocumentTransformer.__reduce__

    def _shown(self) -> str:
        return f"{super()._shown()}, strategy {self.strategy}"


def _checked_pair(pair: object) -> tuple[SubscriptionId, Text]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        message = f"a subscription is a pair of an id and a transformation, not {pair!r:.200}"
        hint = ": dict(enumerate(…)) gives ids to transformations" if isinstance(pair, str) else ""
        raise UsageError(message + hint)
    return pair[0], pair[1]


def _check(id: object, transformation: object) -> None:
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise UsageError(f"an id is a str or an int, not {id!r}")
    if not isinstance(transformation, str | Transformation):
        kind = type(transformation).__name__
        raise UsageError(f"subscription {id!r}: a transformation is a str, not {kind}")
