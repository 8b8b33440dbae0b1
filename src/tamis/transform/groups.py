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

    Nodes are *places*, ``number << KIND_BITS | kind`` as in :mod:`tamis.documents.batch`. What
    answers have in common is there once: ranges of groups, lists of a path for these, and lists.

    Attributes:
        documents: int32[a]; the document of each answer, ascending.
        transformations: int32[a]; its transformation, ascending within a document.
        group_starts, group_ends: int64[a]; the groups of each answer, a range of ``bound``.
        bound: int64[g]; the start event of each group's bound element, in document order.
        column_starts: int64[a]; for each path of answer i, from ``columns[column_starts[i]]`` on,
            where its lists begin in ``lists``, one for each group.
        columns: int64[c].
        lists: int32[]; the numbers of lists.
        list_starts: int64[l + 1]; list i is ``nodes[list_starts[i]:list_starts[i + 1]]``.
        nodes: int64[]; places.
    """

    documents: Int32
    transformations: Int32
    group_starts: Int64
    group_ends: Int64
    bound: Int64
    column_starts: Int64
    columns: Int64
    lists: Int32
    list_starts: Int64
    nodes: Int64

    def of(self, answer: int, paths: int) -> Iterator[tuple[int, list[Int64]]]:
        """The groups of an answer: each bound event, with the places in its lists.

        Args:
            paths: how many lists each group has.
        """
        first, last = int(self.group_starts[answer]), int(self.group_ends[answer])
        start = int(self.column_starts[answer])
        columns = self.columns[start : start + paths].tolist()
        for group in range(last - first):
            numbers = [int(self.lists[column + group]) for column in columns]
            yield (
                int(self.bound[first + group]),
                [
                    self.nodes[self.list_starts[number] : self.list_starts[number + 1]]
                    for number in numbers
                ],
            )
