"""``Groups``: what transformations found in documents, in the format between matching and messages.

It is the groupSequence–listSequence format of Diao and Franklin (*Query Processing for High-Volume
XML Message Brokering*, VLDB 2003, section 2.2): for each transformation a sequence of groups, one
for each bound node; in a group a list for each of its paths; in a list the selected nodes, in
document order. It is the waist between the strategies, which all write it, and the factory, which
makes messages of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tamis.documents.batch import Int32, Int64


class Groups(NamedTuple):
    """The answers of a batch: for each document, the transformations that have a message.

    Nodes are *places*, ``number << KIND_BITS | kind`` as in :mod:`tamis.documents.batch`. Lists are
    shared by reference: those of different answers may be the same range of ``nodes``.

    Attributes:
        documents: int32[a]; the document of each answer, ascending.
        transformations: int32[a]; its transformation, ascending within a document.
        group_starts: int64[a + 1]; the groups of answer i are ``starts[i]:starts[i + 1]``.
        bound: int64[g]; the start event of each group's bound element, in document order.
        list_starts, list_ends: int64[l]; ranges of ``nodes``. The lists of answer i begin at
            ``first_list[i]``, group after group, and in each in the order of the paths.
        first_list: int64[a].
        nodes: int64[]; places.
    """

    documents: Int32
    transformations: Int32
    group_starts: Int64
    bound: Int64
    first_list: Int64
    list_starts: Int64
    list_ends: Int64
    nodes: Int64

    def of(self, answer: int, paths: int) -> Iterator[tuple[int, list[Int64]]]:
        """The groups of an answer: each bound event, with the places in its lists.

        Args:
            paths: how many lists each group has.
        """
        first, last = self.group_starts[answer : answer + 2].tolist()
        at = int(self.first_list[answer])
        for group in range(first, last):
            ranges = zip(
                self.list_starts[at : at + paths], self.list_ends[at : at + paths], strict=True
            )
            yield int(self.bound[group]), [self.nodes[start:end] for start, end in ranges]
            at += paths
