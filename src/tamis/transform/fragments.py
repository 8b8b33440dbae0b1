"""The nodes of a document as text: each is serialised once, and shared by all messages.

An element of a plain document (:mod:`tamis.documents.rewrite`) is a slice of its bytes. It only
needs the declarations of namespaces that are in scope there and stand further out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from weakref import proxy

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.errors import MessageLimitError
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.documents.batch import ATTRIBUTE, ELEMENT, KIND_BITS, MISC, TEXT, DocumentBatch
from tamis.documents.offsets import ATTRIBUTE_PATTERN, TAG_PATTERN, partners
from tamis.documents.parser import parse
from tamis.documents.rewrite import IN_TEXT, is_plain, plain
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.transform.strategy import GroupReader, Groups

_KIND = (1 << KIND_BITS) - 1
_NAME = lazy_pattern(rb"<[^ \t\r\n/>]++")
_SPECIAL = lazy_pattern(rb"[&<>\r]")
_ESCAPES = {bytes([code]): escape.encode() for code, escape in IN_TEXT.items()}

_CACHE_BYTES = 1 << 24

Scope = dict[bytes, bytes]
"""Prefix (empty for the default) → URI as it is written, in its quotes."""


class Fragments:
    """The nodes of a document, for messages of at most ``bytes_max`` bytes.

    The batch is of the document alone, parsed with offsets, and with the prefixes of attributes if
    these are copied.

    Attributes:
        copies: by node reference, each node as content of a constructed element: first without a
            default namespace around, then with one.
    """

    def __init__(
        self, batch: DocumentBatch, source: Source, vocabulary: Vocabulary, bytes_max: int
    ) -> None:
        self.batch = batch
        self.bytes_max = bytes_max
        self.vocabulary = vocabulary
        self._source = source
        self._weak: Fragments = proxy(self)  # a cycle would outlive the document
        self.copies = self._copies(False), self._copies(True)
        self._texts: dict[tuple[GroupReader, bool], dict[int, bytes]] = {}
        self._scopes: dict[int, Scope] = {}
        self._cache_left = _CACHE_BYTES

    def texts(self, reader: GroupReader, has_default: bool) -> dict[int, bytes]:
        """All lists as content of a constructed element, by ``path << 32 | bound event``.

        Read it with ``[]``: texts may be made then.
        """
        key = reader, has_default
        found = self._texts.get(key)
        if found is None:
            found = None if has_default else self._slices(reader.groups)
            if found is None:
                weak, copies = self._weak, self.copies[has_default]
                found = _Cache(weak, lambda key: weak._list_text(reader, copies, key))
            self._texts[key] = found
        return found

    def _slices(self, groups: Groups) -> dict[int, bytes] | None:
        """All lists, where they are slices of the document and not too long to keep."""
        if self._has_namespaces or (groups.nodes & _KIND != ELEMENT).any():
            return None
        events = groups.nodes >> KIND_BITS
        offsets = self._plain[1]
        starts, ends = offsets[events], offsets[self._end_events[events]]
        size = 2 * int((ends - starts).sum())
        if not self.has_room(size):
            return None
        data = self._data
        copies = [
            data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        lists = zip(groups.list_starts.tolist(), groups.list_ends.tolist(), strict=True)
        texts = [
            copies[first] if last - first == 1 else b"".join(copies[first:last])
            for first, last in lists
        ]
        paths = np.repeat(np.arange(len(groups.of_path) - 1), np.diff(groups.of_path))
        keys = (paths << 32 | groups.list_bound).tolist()
        return defaultdict(bytes, zip(keys, texts, strict=True))

    def too_long(self) -> MessageLimitError:
        """The error of a message that is longer than is allowed."""
        return MessageLimitError(
            f"the message is longer than the limit message_bytes = {self.bytes_max:,}"
        )

    def has_room(self, size: int) -> bool:
        """Whether there is room to cache a text, which is then taken.

        Copies of elements in each other may be much longer than the document.
        """
        has_room = size <= self._cache_left
        self._cache_left -= has_room * size
        return has_room

    def _copies(self, has_default: bool) -> _Cache:
        weak = self._weak
        return _Cache(weak, lambda node_ref: weak._copy(node_ref, has_default))

    def _copy(self, node_ref: int, has_default: bool) -> bytes:
        kind, number = node_ref & _KIND, node_ref >> KIND_BITS
        if kind == ELEMENT:
            return self._element(number, has_default)
        value = self.string(node_ref)
        if kind == TEXT:
            return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], value)
        assert kind == MISC, "attributes are copied into tags"
        target = int(self.batch.misc_name[number])
        if target < 0:
            return b"<!--%s-->" % value
        return b"<?%s %s?>" % (self.vocabulary.expanded(target)[1].encode(), value)

    def _list_text(self, reader: GroupReader, copies: _Cache, key: int) -> bytes:
        """The copies of a list, unless they are longer than a message may be."""
        number = reader.lists(key >> 32).get(key & 0xFFFFFFFF)
        if number is None:
            return b""
        nodes = reader.nodes(number)
        if len(nodes) == 1:
            return copies[nodes[0]]
        bytes_left = self.bytes_max
        texts = []
        for node_ref in nodes:
            texts.append(copies[node_ref])
            bytes_left -= len(texts[-1])
            if bytes_left < 0:
                raise self.too_long()
        return b"".join(texts)

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
        if not self._has_namespaces and not has_default:
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
    def _plain(self) -> tuple[bytes, Int64]:
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
        return self._plain[0]

    # Number by number, Python reads lists much faster than arrays.

    @cached_property
    def _offsets(self) -> list[int]:
        offsets: list[int] = self._plain[1].tolist()
        return offsets

    @cached_property
    def _ends(self) -> list[int]:
        ends: list[int] = self._end_events.tolist()
        return ends

    @cached_property
    def _end_events(self) -> Int64:
        return partners(self.batch.tags)

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
    def _has_namespaces(self) -> bool:
        return b"xmlns" in self._data

    def _declared(self, event: int) -> Scope:
        if not self._has_namespaces:
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


class _Cache(dict[int, bytes]):
    """Texts that are made when they are looked up, and kept while there is room."""

    def __init__(self, fragments: Fragments, make: Callable[[int], bytes]) -> None:
        super().__init__()
        self._fragments = fragments
        self._make = make

    def __missing__(self, key: int) -> bytes:
        text = self._make(key)
        if text and self._fragments.has_room(len(text)):
            self[key] = text
        return text
