"""``Transformer``: documents → messages, for a set of subscriptions that may change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tamis.documents.demand import Demand
from tamis.documents.parser import Parser
from tamis.documents.source import Document, read
from tamis.documents.vocabulary import Vocabulary
from tamis.errors import (
    BadSubscriptions,
    DocumentError,
    MessageError,
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    UsageError,
)
from tamis.language.flwr import Transformation, parse_transformation
from tamis.limits import DEFAULT_LIMITS, Limits
from tamis.transform.factory import make_message
from tamis.transform.fragments import Fragments
from tamis.transform.groups import Groups
from tamis.transform.plan import Task, demand_of_transformation, task_of
from tamis.transform.reference import find_groups
from tamis.transform.templates import Template, template_of


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


class Messages(Sequence[Message]):
    """The messages of one document, in the order of the subscriptions; or its error.

    Those that the document gives nothing to have none.

    Attributes:
        error: why the document cannot be answered, or None.
    """

    def __init__(self, messages: Sequence[Message], error: DocumentError | None = None) -> None:
        self._messages = messages
        self.error = error

    def _found(self) -> Sequence[Message]:
        if self.error is not None:
            raise self.error
        return self._messages

    def __len__(self) -> int:
        return len(self._found())

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._found()[index]

    def __repr__(self) -> str:
        what = repr(self.error) if self.error is not None else f"{len(self._messages):,} messages"
        return f"<Messages: {what}>"


class Transformer:
    """Transforms documents for many subscriptions, each a FLWR expression in constant elements.

    Args:
        subscriptions: id → text.
        namespaces: prefix → URI, of prefixes in the texts that these do not declare.
        limits: bounds on subscriptions, documents and messages.

    Raises:
        BadSubscriptions: some cannot be used; with all of these.

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
        subscriptions: Mapping[SubscriptionId, str | Transformation] | None = None,
        *,
        namespaces: Mapping[str, str] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.namespaces = dict(namespaces or {})
        self.limits = limits
        self._templates: dict[SubscriptionId, Template] = {}
        self._tasks: list[Task] = []
        self._parser: Parser | None = None
        self._demand = Demand()
        errors: list[SubscriptionError] = []
        for id, text in (subscriptions or {}).items():
            try:
                self.add(id, text)
            except SubscriptionError as error:
                errors.append(error)
        if errors:
            raise BadSubscriptions(tuple(errors))

    def add(self, id: SubscriptionId, transformation: str | Transformation) -> None:
        """Add a subscription, which all documents from now on are transformed for.

        Raises:
            SubscriptionError: it cannot be used, or there is one with this id.
        """
        if id in self._templates:
            raise SubscriptionIdError("the id is there already", id=id)
        if isinstance(transformation, str):
            try:
                transformation = parse_transformation(transformation, self.namespaces, self.limits)
            except SubscriptionError as error:
                raise error.located(id, None) from None
        self._templates[id] = template_of(transformation)
        self._tasks.append(task_of(transformation))
        demand = self._demand | demand_of_transformation(transformation)
        if demand != self._demand:
            self._demand, self._parser = demand, None

    def transform(self, document: Document) -> Messages:
        """The messages of one document.

        Raises:
            DocumentError: it cannot be answered.
        """
        (messages,) = self.transform_many([document])
        if messages.error is not None:
            raise messages.error
        return messages

    def transform_many(self, documents: Iterable[Document | DocumentError]) -> Iterator[Messages]:
        """The messages of documents, in their order; of one in error, the error.

        Raises:
            UsageError: ``documents`` is itself a document.
        """
        if isinstance(documents, str | bytes | bytearray | memoryview | os.PathLike):
            raise UsageError("transform_many() takes many documents: give one to transform()")
        return map(self._transform, documents)

    def _transform(self, document: Document | DocumentError) -> Messages:
        try:
            source = (
                document if isinstance(document, DocumentError) else read(document, self.limits)
            )
        except DocumentError as error:
            source = error
        if isinstance(source, DocumentError):
            return Messages((), source)
        if self._parser is None or self._parser.is_full:
            self._parser = Parser(Vocabulary(), self._demand, self.limits)
        batch, errors = self._parser.parse([source])
        if errors:
            return Messages((), errors[0])
        vocabulary = self._parser.vocabulary
        groups = find_groups(self._tasks, batch, vocabulary)
        return Messages(self._messages(groups, Fragments(batch, 0, source, vocabulary)))

    def _messages(self, groups: Groups, fragments: Fragments) -> list[Message]:
        """The messages of a document."""
        ids, templates = list(self._templates), list(self._templates.values())
        found: list[Message] = []
        for answer, number in enumerate(groups.transformations.tolist()):
            template = templates[number]
            try:
                content = make_message(
                    template,
                    groups.of(answer, template.lists),
                    fragments,
                    self.limits.message_bytes,
                )
            except MessageError as error:
                found.append(Message(ids[number], b"", error))
            else:
                found.append(Message(ids[number], content))
        return found
