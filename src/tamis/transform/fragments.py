"""The nodes of a document as text: each is serialised once, and shared by all messages.

An element of a plain document (:mod:`tamis.documents.rewrite`) is a slice of its bytes. It only
needs the declarations of namespaces that are in scope there and stand further out.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.errors import MessageLimitError
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.documents.batch import ATTRIBUTE, ELEMENT, KIND_BITS, MISC, TEXT, DocumentBatch
from tamis.documents.offsets import ATTRIBUTE_PATTERN, TAG_PATTERN, partners
from tamis.documents.parser import parse
from tamis.documents.rewrite import is_plain, plain
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary

_KIND = (1 << KIND_BITS) - 1
_NAME = lazy_pattern(rb"<[^ \t\r\n/>]++")

Scope = dict[bytes, bytes]
"""Prefix (empty for the default) → URI as it is written, in its quotes."""


class Fragments:
    """The nodes of a document, for messages of at most ``bytes_max`` bytes.

    The batch is of the document alone, parsed with offsets, and with the prefixes of attributes if
    these are copied.
    """

    def __init__(
        self, batch: DocumentBatch, source: Source, vocabulary: Vocabulary, bytes_max: int
    ) -> None:
        self.batch = batch
        self.bytes_max = bytes_max
        self.vocabulary = vocabulary
        self._source = source
        self._scopes: dict[int, Scope] = {}

    def too_long(self) -> MessageLimitError:
        """The error of a message that is longer than is allowed."""
        return MessageLimitError(
            f"the message is longer than the limit message_bytes = {self.bytes_max:,}"
        )

    def copy(self, node_ref: int, has_default: bool) -> bytes:
        """A node as content of a constructed element, with a default namespace around or without.

        The kernel of messages copies text nodes, and elements that are slices of the document.
        """
        kind, number = node_ref & _KIND, node_ref >> KIND_BITS
        if kind == ELEMENT:
            return self._element(number, has_default)
        assert kind == MISC, "attributes are copied into tags"
        value = self.string(node_ref)
        target = int(self.batch.misc_name[number])
        if target < 0:
            return b"<!--%s-->" % value
        return b"<?%s %s?>" % (self.vocabulary.expanded(target)[1].encode(), value)

    def string(self, node_ref: int) -> bytes:
        """The string value of a node."""
        batch = self.batch
        kind, number = node_ref & _KIND, node_ref >> KIND_BITS
        if kind == ATTRIBUTE:
            start, end = batch.value_start[number], batch.value_end[number]
            return batch.attribute_values[start:end].tobytes()
        if kind == TEXT:
            return batch.text_values[batch.text_start[number] : batch.text_end[number]].tobytes()
        if kind == MISC:
            return batch.misc_values[batch.misc_start[number] : batch.misc_end[number]].tobytes()
        first, last = np.searchsorted(batch.text_event, [number, self._ends[number]])
        if first == last:
            return b""
        return batch.text_values[batch.text_start[first] : batch.text_end[last - 1]].tobytes()

    def attribute(self, node_ref: int) -> tuple[str, str, str | None]:
        """The name of an attribute: namespace, local name, and the prefix that was written."""
        number = node_ref >> KIND_BITS
        namespace, local = self.vocabulary.expanded(int(self.batch.attribute_name[number]))
        prefix = int(self.batch.attribute_prefixes[number]) if namespace else -1
        return namespace, local, self.vocabulary.prefix(prefix) if prefix >= 0 else None

    def _element(self, event: int, has_default: bool) -> bytes:
        text = self._data[self._offsets[event] : self._offsets[self._ends[event]]]
        if not self.has_namespaces and not has_default:
            return text
        own = self._declared(event)
        missing = {prefix: uri for prefix, uri in self._scope(event).items() if prefix not in own}
        if has_default and b"" not in own:
            missing.setdefault(b"", b'""')
        elif not has_default and missing.get(b"") in (b'""', b"''"):
            del missing[b""]
        if not missing:
            return text
        name = _NAME.match(text)
        assert name is not None
        added = b"".join(
            b" xmlns%s%s=%s" % (b":" if prefix else b"", prefix, uri)
            for prefix, uri in missing.items()
        )
        return text[: name.end()] + added + text[name.end() :]

    # -- offsets and relations of events -----------------------------------------------------------

    @cached_property
    def plain_data(self) -> tuple[bytes, Int64]:
        """The bytes of the document, made plain if need be, and the offsets of its events."""
        source = self._source
        if is_plain(source):
            return bytes(source.data), self.batch.offsets
        source = plain(source)
        events = len(self.batch.tags)
        limits = Limits(document_bytes=len(source.data), depth=events, attributes=1 << 40)
        batch, errors = parse([source], Vocabulary(), Projection(offsets=True), limits)
        assert not errors, "a document that is written anew is well-formed"
        assert len(batch.tags) == events, "the elements are the same"
        return bytes(source.data), batch.offsets

    @cached_property
    def _data(self) -> bytes:
        return self.plain_data[0]

    # Number by number, Python reads lists much faster than arrays.

    @cached_property
    def _offsets(self) -> list[int]:
        offsets: list[int] = self.plain_data[1].tolist()
        return offsets

    @cached_property
    def _ends(self) -> list[int]:
        ends: list[int] = partners(self.batch.tags).tolist()
        return ends

    @cached_property
    def _parents(self) -> list[int]:
        """For each start event that of the parent, or -1."""
        parents = [-1] * len(self.batch.tags)
        open_events = [-1]
        for event, tag in enumerate(self.batch.tags.tolist()):
            if tag >= 0:
                parents[event] = open_events[-1]
                open_events.append(event)
            else:
                open_events.pop()
        return parents

    # -- namespaces --------------------------------------------------------------------------------

    @cached_property
    def has_namespaces(self) -> bool:
        return b"xmlns" in self._data

    def _declared(self, event: int) -> Scope:
        if not self.has_namespaces:
            return {}
        tag = TAG_PATTERN.match(self._data, self._offsets[event])
        assert tag is not None
        return {
            name[6:]: value
            for name, value in ATTRIBUTE_PATTERN.findall(tag[0])
            if name == b"xmlns" or name.startswith(b"xmlns:")
        }

    def _scope(self, event: int) -> Scope:
        """All that is declared at an element, there or further out."""
        outward: list[int] = []
        while event >= 0 and event not in self._scopes:
            outward.append(event)
            event = self._parents[event]
        scope = self._scopes.get(event, {})
        for inner in reversed(outward):
            own = self._declared(inner)
            scope = self._scopes[inner] = {**scope, **own} if own else scope
        return scope
