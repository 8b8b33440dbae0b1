"""``DocumentTransformer``: what makes messages of documents; ``Snapshot``: a set as it was once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from threading import Lock
from typing import Any, NamedTuple, overload

from tamis.core.arguments import check_many
from tamis.core.arrays import Int32
from tamis.core.errors import (
    DocumentError,
    DocumentLimitError,
    MessageError,
    SubscriptionId,
    UnknownSubscription,
    UsageError,
)
from tamis.core.index.columns import Ids
from tamis.core.index.segments import Segment, SnapshotIds
from tamis.core.limits import Limits
from tamis.documents.batch import DocumentBatch
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.documents.parser import Parser
from tamis.documents.rewrite import is_plain
from tamis.documents.source import Document, Source, read
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.flwr import Transformation
from tamis.transform.factory import FoundMessages, Made, taken_writer
from tamis.transform.fragments import Fragments
from tamis.transform.planner import Planner, Plans
from tamis.transform.shapes import task_of
from tamis.transform.templates import Template, Templates, template_of


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


class TransformingSubscription:
    """A subscription, as its messages are made."""

    def __init__(
        self, id: SubscriptionId, transformation: Transformation, is_text: bool = True
    ) -> None:
        self.id = id
        self.transformation = transformation
        self.is_text = is_text  # else the caller parsed it

    @property
    def expression(self) -> str:
        """As it was given."""
        return self.transformation.text

    @cached_property
    def template(self) -> Template:
        """Made for the first message: most subscriptions seldom have one."""
        return template_of(self.transformation)


_REFUSED_MAX = 64
"""After so many documents in a row that kernels alone could not answer, it is not tried again."""

Answer = tuple[TransformingSubscription, Made | FoundMessages, int]
"""A subscription, and what has its message by a number."""


class Messages(Sequence[Message]):
    """The messages of one document, in the order of the subscriptions; or its error.

    Those that the document gives nothing to have none. Messages that are long, or many, are made
    when they are asked for; until then there are only numbers of nodes.

    Attributes:
        error: why the document cannot be answered, or None.
        version: of the transformer that they are of.
    """

    def __init__(
        self, version: int, found: Sequence[Answer] = (), error: DocumentError | None = None
    ) -> None:
        self.version, self.error = version, error
        self._answers = found

    @property
    def subscriptions(self) -> list[SubscriptionId]:
        """The ids of those that have a message, or whose message cannot be made."""
        return [subscription.id for subscription, _, _ in self._found()]

    def _found(self) -> Sequence[Answer]:
        if self.error is not None:
            raise self.error
        return self._answers

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
        subscription, made, answer = self._answers[number]
        try:
            content = made.message(answer)
        except MessageError as error:
            return Message(subscription.id, b"", error)
        return Message(subscription.id, content)

    def __repr__(self) -> str:
        what = repr(self.error) if self.error is not None else f"{len(self._answers):,} messages"
        return f"<Messages: {what}>"


# -- compiled subscriptions ------------------------------------------------------------------------


class CompiledTransformations:
    """Subscriptions, compiled together: immutable.

    Attributes:
        ids: of the subscriptions.
        plans: of the subscriptions, by the same numbers; they belong to one thread at a time.
    """

    def __init__(self, planner: Planner, subscriptions: Sequence[TransformingSubscription]) -> None:
        self.planner = planner
        self.subscriptions = subscriptions
        self.ids = Ids.of(subscription.id for subscription in subscriptions)
        self.plans = Plans(planner, [task_of(each.transformation) for each in subscriptions])
        self.templates = Templates(len(subscriptions), lambda number: self.entry(number).template)

    def entry(self, number: int) -> TransformingSubscription:
        """The subscription of a number."""
        return self.subscriptions[number]


Segments = Sequence[Segment[CompiledTransformations]]


def subscriptions_of(segments: Segments) -> list[TransformingSubscription]:
    """What is left of some segments."""
    return [each.compiled.entry(number) for each in segments for number in each.left().tolist()]


class SharedParser:
    """The parser of all snapshots of a set.

    Attributes:
        lock: held while a document is parsed, and while its nodes are found.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.lock = Lock()
        self._parser: Parser | None = None

    def parser(self, projection: Projection) -> Parser:
        """The parser, or a new one where that has met many names, or reads something else."""
        parser = self._parser
        if parser is None or parser.projection != projection or parser.is_full:
            parser = self._parser = Parser(Vocabulary(), projection, self.limits)
        return parser

    def parse(self, source: Source, projection: Projection) -> tuple[DocumentBatch, Vocabulary]:
        """A document as a batch of its own, or its error."""
        parser = self.parser(projection)
        batch, errors = parser.parse([source])
        for error in errors.values():
            raise error
        return batch, parser.vocabulary


class DocumentTransformer:
    """The methods of all transformers; each call uses the subscriptions as they are then."""

    def snapshot(self) -> Snapshot:
        """The present subscriptions, compiled; later changes do not touch them."""
        raise NotImplementedError

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
        messages_of = self.snapshot().messages_of
        return (messages_of(document, declared) for document in documents)

    def explain(self, id: SubscriptionId) -> str:
        """How a subscription is answered: the strategy, and if it is one of the paper's, the plan.

        Raises:
            UsageError: there is none with this id.

        >>> import tamis
        >>> transformer = tamis.Transformer(
        ...     {"t": "<r>{ for $b in /bib/book return $b/title }</r>"}, strategy="path-sharing-fw"
        ... )
        >>> print(transformer.explain("t"))
        strategy: path-sharing-fw
        Return-Select, tree search: ./title
        └─ stream of /bib/book
        for /bib/book: no DupElim (claim 1: the path has at most one //)
        """
        snapshot = self.snapshot()
        index, number = snapshot.ids.segment_of(id)
        if number < 0:
            raise UnknownSubscription(id=id)
        compiled = snapshot.segments[index].compiled
        return compiled.planner.explain(task_of(compiled.entry(number).transformation))

    def __reduce__(self) -> tuple[Any, ...]:
        raise UsageError("a transformer cannot be pickled: pickle its transformations")


class Snapshot(DocumentTransformer):
    """Subscriptions as they were at one time: immutable; threads may share it.

    Attributes:
        version: of the transformer that it is of.
        segments: what it is made of.
        ids: of the subscriptions, in the order of the messages.
    """

    def __init__(self, segments: Segments, parser: SharedParser, version: int) -> None:
        self.version = version
        self.ids = SnapshotIds(segments)
        self.segments = segments
        self._parser = parser
        self._refused = 0  # documents in a row that kernels alone could not answer
        self._projection = Projection()
        for segment in segments:
            self._projection |= segment.compiled.plans.projection

    def snapshot(self) -> Snapshot:
        """The same: its subscriptions do not change."""
        return self

    def messages_of(
        self, document: Document | DocumentError, declared: DeclaredEncoding
    ) -> Messages:
        """The messages of a document, or its error."""
        try:
            if isinstance(document, DocumentError):
                raise document
            source = read(document, self._parser.limits, declared)
            with self._parser.lock:
                found = self._found_one(source)
                if found is None:
                    found = self._found(source)
        except DocumentError as error:
            return Messages(self.version, error=error)
        return Messages(self.version, found)

    def _found_one(self, source: Source) -> list[Answer] | None:
        """What is found in a small document, with all messages; None: not by kernels alone."""
        data = source.data
        if type(data) is not bytes or self._refused >= _REFUSED_MAX:
            return None
        if b"xmlns" in data or not is_plain(source):
            return None
        limits, parser = self._parser.limits, self._parser.parser(self._projection)
        recorded = parser.read_one(source)
        if recorded is None:
            return None
        self._refused += 1  # unless it is answered
        answers: list[Answer] = []
        nodes_left = limits.transformed_nodes
        for segment in self.segments:
            compiled = segment.compiled
            found = compiled.plans.find_one(recorded, parser.vocabulary)
            if found is None:
                return None
            nodes_left -= found.nodes
            writer = taken_writer(compiled.templates, limits.message_bytes)
            made = writer.write_one(recorded, data, found)
            compiled.templates.writers.append(writer)
            if made is None or nodes_left < 0:
                return None
            answers += _answers(segment, found.transformations, made)
        self._refused = 0
        return answers

    def _found(self, source: Source) -> list[Answer]:
        """What each segment finds; or, beyond the limit, what all find when compiled together.

        A list that segments share is in each of them, and removed subscriptions have lists too.
        """
        limits = self._parser.limits
        batch, vocabulary = self._parser.parse(source, self._projection)
        fragments = Fragments(batch, source, vocabulary, limits.message_bytes)
        found: list[Answer] = []
        nodes_left = limits.transformed_nodes
        for segment in self.segments:
            try:
                own, nodes = _found_in(segment, fragments)
            except DocumentLimitError:
                if segment.is_removed is None:  # others only add to the lists of these
                    raise
                break
            nodes_left -= nodes
            if nodes_left < 0:
                break
            found += own
        else:
            return found
        return _found_in(self._together, fragments)[0]

    @cached_property
    def _together(self) -> Segment[CompiledTransformations]:
        planner = self.segments[0].compiled.planner
        return Segment(CompiledTransformations(planner, subscriptions_of(self.segments)))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Snapshot: {len(self):,} subscriptions>"


def _found_in(
    segment: Segment[CompiledTransformations], fragments: Fragments
) -> tuple[list[Answer], int]:
    """What a segment finds in a document, and how many nodes are in its lists."""
    compiled = segment.compiled
    found = compiled.plans.find_groups(fragments.batch, fragments.vocabulary)
    answers: list[tuple[int, Answer]] = []
    for numbers, groups in found:
        messages = FoundMessages(compiled.templates, groups, numbers, fragments)
        own = _answers(segment, numbers, messages)
        answers += [(numbers[answer[2]], answer) for answer in own]
    if len(found) > 1:
        answers.sort(key=itemgetter(0))
    return [answer for _, answer in answers], sum(len(groups.nodes) for _, groups in found)


def _answers(
    segment: Segment[CompiledTransformations], numbers: Int32, made: Made | FoundMessages
) -> list[Answer]:
    """The answers of a segment's subscriptions that are left."""
    subscriptions, is_removed = segment.compiled.subscriptions, segment.is_removed
    return [
        (subscriptions[number], made, answer)
        for answer, number in enumerate(numbers.tolist())
        if is_removed is None or not is_removed[number]
    ]
