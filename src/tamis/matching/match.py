"""What matched one document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tamis.core.errors import DocumentError, LxmlEvaluationError, SubscriptionId, UsageError
from tamis.core.index.columns import Ids
from tamis.core.index.matches import Matched, Matches
from tamis.core.index.segments import SnapshotIds

if TYPE_CHECKING:
    from tamis.matching.selection import BatchNodes, DocumentNodes, Selection


class Match(Matched[DocumentError]):
    """What matched one document; indices and ids are made only when asked for.

    ``match()`` raises the error of its document. ``match_many()`` and ``match_records()`` go on:
    the match of a document in error has ``error``, and raises this error when its matches are asked
    for, so that it cannot pass for a document without matches.

    Attributes:
        error: the document's error, or None.
        failed: the subscriptions that lxml could not answer, of a document whose others were
            answered: id → :class:`LxmlEvaluationError`; none of a document in error.
        record: the number of the record in its document, from 0; None for a whole document.

    >>> import tamis
    >>> match = tamis.compile({"x": "//a", "y": "//b"}).match(b"<a/>")
    >>> bool(match), len(match), list(match)
    (True, 1, ['x'])
    """

    __slots__ = ("_batch_nodes", "_nodes", "record")

    def __init__(
        self,
        matches: Matches[DocumentError],
        document: int,
        record: int | None = None,
        nodes: BatchNodes | None = None,
    ) -> None:
        super().__init__(matches, document)
        self._batch_nodes = nodes
        self._nodes: DocumentNodes | None = None
        self.record = record

    @property
    def _ids(self) -> Ids | SnapshotIds:
        ids = self._matches.listing.ids
        assert ids is not None
        return ids

    @property
    def failed(self) -> Mapping[SubscriptionId, LxmlEvaluationError]:
        failed = self._matches.failed.get(self._number)
        if not failed:
            return {}
        ids = self._ids.take(np.array(list(failed), np.int32))
        return dict(zip(ids, failed.values(), strict=True))

    def nodes(self, id: SubscriptionId) -> Selection:
        r"""The nodes that a subscription selects, as byte ranges and lines, in document order.

        They are found when they are asked for. An expression that is a boolean, such as
        ``/a/b = 3``, selects nothing. Offsets count bytes of the decompressed document. For a
        ``str``, and for an encoding that is not UTF-8, ASCII or ISO 8859-1, they count bytes of its
        UTF-8 transcoding, which has no byte order mark; likewise for records in ISO 8859-1. Offsets
        and lines of a record are those of the whole document.

        Where values were asked for too, :meth:`Selection.values` has the text of each node.

        Raises:
            DocumentError: the document is in error.
            UnknownSubscription: there is none with this id.
            UsageError: nodes were not asked for when it matched.

        >>> import tamis
        >>> matcher = tamis.compile({"x": "//b | //@n"})
        >>> selection = matcher.match("<a>\n<b n='1'/></a>", nodes="all").nodes("x")
        >>> list(selection), list(selection.fragments())
        ([Node(start=4, end=14, line=2), Node(start=7, end=12, line=2)], ["<b n='1'/>", "n='1'"])
        """
        return self.document_nodes.selection(id)

    @property
    def document_nodes(self) -> DocumentNodes:
        """The finder of nodes in the document; raises as :meth:`nodes` does."""
        if self.error is not None:
            raise self.error
        if self._batch_nodes is None:
            raise UsageError('nodes were not asked for: match(document, nodes="all"), or "first"')
        if self._nodes is None:
            from tamis.matching.selection import DocumentNodes  # noqa: PLC0415 - few ask

            self._nodes = DocumentNodes(self._batch_nodes, self._number)
        return self._nodes

    def __repr__(self) -> str:
        if self.error is not None:
            return f"<Match: {self.error.code}>"
        failed = len(self._matches.failed.get(self._number, ()))
        and_failed = f", {failed:,} failed" if failed else ""
        return f"<Match: {len(self):,} of {len(self._ids):,}{and_failed}>"
