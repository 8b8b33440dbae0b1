"""``Transformer``: documents → messages, for a set of subscriptions that may change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, overload

from tamis.core.arguments import check_many, checked_limits, checked_path
from tamis.core.errors import (
    BadSubscriptions,
    DocumentError,
    MessageError,
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    UnknownSubscription,
    UsageError,
)
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import declared_namespaces
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.documents.parser import Parser
from tamis.documents.source import Document, Source, read
from tamis.documents.vocabulary import Vocabulary
from tamis.language.entries import given_pairs
from tamis.language.flwr import Transformation, parse_transformation, read_transformations
from tamis.transform.factory import Template, make_message, template_of
from tamis.transform.fragments import Fragments
from tamis.transform.planner import Answers, Plans
from tamis.transform.shapes import task_of
from tamis.transform.strategy import GroupReader

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


class Message(NamedTuple):
    """What one subscription makes of one document.

    Attributes:
        subscription: its id.
        content: XML in UTF-8, without an XML declaration; empty where there is an error.
        error: why there is no message, or None.
    """

    subscription: SubscriptionId
    content: bytes
    error: MessageError | None = None

    @property
    def text(self) -> str:
        """The XML as a string.

        Raises:
            MessageError: there is none.
        """
        if self.error is not None:
            raise self.error
        return self.content.decode()


class Planned:
    """A subscription, as its messages are made."""

    def __init__(self, id: SubscriptionId, transformation: Transformation) -> None:
        self.id = id
        self.transformation = transformation

    @cached_property
    def template(self) -> Template:
        """Made for the first message: most subscriptions seldom have one."""
        return template_of(self.transformation)


class Messages(Sequence[Message]):
    """The messages of one document, in the order of the subscriptions; or its error.

    Those that the document gives nothing to have none. A message is made when it is asked for;
    until then there are only numbers of nodes.

    Attributes:
        error: why the document cannot be answered, or None.
    """

    def __init__(
        self,
        planned: Sequence[Planned] = (),
        answers: Answers | None = None,
        fragments: Fragments | None = None,
        error: DocumentError | None = None,
    ) -> None:
        self.error = error
        self._planned = planned
        self._answers = answers
        self._fragments = fragments

    @property
    def subscriptions(self) -> list[SubscriptionId]:
        """The ids of those that have a message, or whose message cannot be made."""
        return [planned.id for planned in self._found()]

    def _found(self) -> Sequence[Planned]:
        if self.error is not None:
            raise self.error
        return self._planned

    def __len__(self) -> int:
        return len(self._found())

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        numbers = range(len(self._found()))[index]
        return self._made(numbers) if isinstance(numbers, int) else list(map(self._made, numbers))

    def __iter__(self) -> Iterator[Message]:
        return map(self._made, range(len(self._found())))

    def _made(self, number: int) -> Message:
        planned, fragments = self._planned[number], self._fragments
        assert fragments is not None
        reader, answer = self._groups[number]
        try:
            content = make_message(planned.template, reader, answer, fragments)
        except MessageError as error:
            return Message(planned.id, b"", error)
        return Message(planned.id, content)

    @cached_property
    def _groups(self) -> list[tuple[GroupReader, int]]:
        found = self._answers
        assert found is not None
        readers = map(found.readers.__getitem__, found.reader_of.tolist())
        return list(zip(readers, found.answers.tolist(), strict=True))

    def __repr__(self) -> str:
        what = repr(self.error) if self.error is not None else f"{len(self._planned):,} messages"
        return f"<Messages: {what}>"


class Transformer:
    """Transforms documents for many subscriptions, each a FLWR expression in constant elements.

    Threads may share it; one document is looked at at a time. Subscriptions are added and removed
    between two documents.

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

    Attributes:
        plans: the transformations, by strategy: what finds the nodes.

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
        self.plans = Plans(strategy, limits.transformed_nodes, schema)
        self._numbers: dict[SubscriptionId, int] = {}
        self._planned: dict[int, Planned] = {}
        self._next = 0  # the number of the next transformation
        self._parser: Parser | None = None
        self._lock = Lock()
        pairs, errors = self._given(subscriptions)
        for id, text in pairs:
            try:
                self.add(id, text)
            except SubscriptionError as error:
                errors.append(error)
        if errors:
            raise BadSubscriptions(tuple(errors))

    def _given(
        self, given: Given
    ) -> tuple[Iterable[tuple[SubscriptionId, Text]], list[SubscriptionError]]:
        """The subscriptions that are given, and the errors of files with others."""
        if isinstance(given, os.PathLike):
            found = read_transformations([checked_path(given)], self._namespaces, self.limits)
            return found.transformations.items(), [refused.error for refused in found.refused]
        return map(_checked_pair, given_pairs(given, "transformation")), []

    @property
    def ids(self) -> tuple[SubscriptionId, ...]:
        """The ids as they are now, in the order of the messages."""
        with self._lock:
            return tuple(planned.id for planned in self._planned.values())

    @property
    def transformations(self) -> dict[SubscriptionId, Transformation]:
        """The subscriptions by id, in their order, as they were read."""
        with self._lock:
            return {planned.id: planned.transformation for planned in self._planned.values()}

    def add(self, id: SubscriptionId, transformation: Text) -> None:
        """Add a subscription, which all documents from now on are transformed for.

        The others are not compiled again.

        Raises:
            SubscriptionError: it cannot be used, or there is one with this id.
            UsageError: what is given is no id, or no transformation.
        """
        _check(id, transformation)
        try:
            if isinstance(transformation, str):
                transformation = parse_transformation(transformation, self._namespaces, self.limits)
            with self._lock:
                if id in self._numbers:
                    raise SubscriptionIdError("the id is taken")
                self.plans.add(task_of(transformation), self._next)
                self._planned[self._next] = Planned(id, transformation)
                self._numbers[id] = self._next
                self._next += 1
        except SubscriptionError as error:
            raise error.located(id, None) from None

    def remove(self, id: SubscriptionId) -> None:
        """Remove a subscription, which no document from now on is transformed for.

        Now and then, when more were removed than are there, all plans are made anew.

        Raises:
            UnknownSubscription: there is none with this id.
        """
        with self._lock:
            if id not in self:
                raise UnknownSubscription(id=id)
            number = self._numbers.pop(id)
            del self._planned[number]
            self.plans.remove(number)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str | int) and id in self._numbers

    def __iter__(self) -> Iterator[SubscriptionId]:
        return iter(self.ids)

    def __repr__(self) -> str:
        return f"<Transformer: {len(self):,} subscriptions, strategy {self.strategy}>"

    def explain(self, id: SubscriptionId) -> str:
        """How a subscription is answered: the strategy, and if it is one of the paper's, the plan.

        Raises:
            UsageError: there is none with this id.

        >>> transformer = Transformer(
        ...     {"t": "<r>{ for $b in /bib/book return $b/title }</r>"}, strategy="path-sharing-fw"
        ... )
        >>> print(transformer.explain("t"))
        strategy: path-sharing-fw
        Return-Select, tree search: ./title
        └─ stream of /bib/book
        for /bib/book: no DupElim (claim 1: the path has at most one //)
        """
        with self._lock:
            if id not in self:
                raise UnknownSubscription(id=id)
            planned = self._planned[self._numbers[id]]
            return self.plans.explain(task_of(planned.transformation))

    def transform(
        self, document: Document, *, declared_encoding: DeclaredEncoding = "check"
    ) -> Messages:
        """The messages of one document.

        Raises:
            DocumentError: it cannot be answered.
        """
        (messages,) = self.transform_many([document], declared_encoding=declared_encoding)
        if messages.error is not None:
            raise messages.error
        return messages

    def transform_many(
        self,
        documents: Iterable[Document | DocumentError],
        *,
        declared_encoding: DeclaredEncoding = "check",
    ) -> Iterator[Messages]:
        """The messages of documents, in their order; of one in error, the error.

        Raises:
            UsageError: ``documents`` is itself a document.
        """
        check_many(documents, "documents", "transform()")
        declared = checked_declared_encoding(declared_encoding)
        return (self._transform(document, declared) for document in documents)

    def _transform(
        self, document: Document | DocumentError, declared: DeclaredEncoding
    ) -> Messages:
        try:
            if isinstance(document, DocumentError):
                raise document
            source = read(document, self.limits, declared)
            with self._lock:
                return self._found_in(source)
        except DocumentError as error:
            return Messages(error=error)

    def _found_in(self, source: Source) -> Messages:
        projection = self.plans.projection
        if self._parser is None or self._parser.projection != projection or self._parser.is_full:
            self._parser = Parser(Vocabulary(), projection, self.limits)
        batch, errors = self._parser.parse([source])
        for error in errors.values():
            raise error
        vocabulary = self._parser.vocabulary
        answers = self.plans.find_groups(batch, vocabulary)
        planned = [self._planned[number] for number in answers.transformations.tolist()]
        fragments = Fragments(batch, source, vocabulary, self.limits.message_bytes)
        return Messages(planned, answers, fragments)


def _checked_pair(pair: object) -> tuple[SubscriptionId, Text]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        message = f"a subscription is a pair of an id and a transformation, not {pair!r:.200}"
        raise UsageError(message)
    return pair[0], pair[1]


def _check(id: object, transformation: object) -> None:
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise UsageError(f"an id is a str or an int, not {id!r}")
    if not isinstance(transformation, str | Transformation):
        kind = type(transformation).__name__
        raise UsageError(f"subscription {id!r}: a transformation is a str, not {kind}")
