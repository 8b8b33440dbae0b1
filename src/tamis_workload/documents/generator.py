"""Valid documents of a DTD, as the IBM XML Generator and ToXgene make them."""

from __future__ import annotations

import operator
from collections.abc import Iterator

from tamis.core.errors import UsageError
from tamis.schema.graph import SchemaGraph
from tamis_workload.documents.expansion import Bounds, Expansion
from tamis_workload.documents.grammar import DocumentOptions, template_of


class Documents:
    """The documents of a DTD: the n-th is the same whatever else is made.

    Args:
        graph: the DTD; documents begin with its ``root``.
        options: how what the DTD leaves open is drawn.
        depth: levels of elements, at most.
        size: bytes of a document, at most (2**40). Where they run short, what the DTD lets be left
            out is: so small documents have more of what comes first.
        records: how often what may repeat without end, and is in nothing else that may, repeats; 0
            leaves that to the options.
        fill: let it repeat until the size is reached, as nearly as can be: what was kept for a part
            at the end that is optional, and then left out, stays unused.
        seed: another one makes others.

    Raises:
        UsageError: no valid document is within the depth and the size.

    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT bib (book*)> <!ELEMENT book (#PCDATA)>"))
    >>> documents = Documents(graph, records=2, seed=1)
    >>> documents.document(0), documents.document(1)
    (b'<bib><book>1</book><book>7</book></bib>', b'<bib><book>2</book><book>4</book></bib>')
    """

    def __init__(
        self,
        graph: SchemaGraph,
        *,
        options: DocumentOptions | None = None,
        depth: int = 12,
        size: int = 65_536,
        records: int = 0,
        fill: bool = False,
        seed: int = 0,
    ) -> None:
        depth, size, records = map(operator.index, (depth, size, records))
        if not 1 <= depth <= 1000:
            raise UsageError(f"the depth of documents is 1 to 1,000, not {depth:,}")
        if not 0 <= records <= 1 << 40:
            raise UsageError(f"the number of records is 0 to {1 << 40:,}, not {records:,}")
        if records and fill:
            raise UsageError("ask for a number of records or for filled documents, not for both")
        height = graph.height(graph.root)
        if height is None:
            raise UsageError(
                f"there is no finite document: what <{graph.root}> has to have in it has to have "
                "itself in it, or what is not declared"
            )
        if height > depth:
            raise UsageError(f"the shallowest document has {height:,} levels, more than {depth:,}")
        template = template_of(graph, options or DocumentOptions())
        self._expansion = Expansion(template, Bounds(depth, size, records, fill))
        self._seed = seed

    def document(self, number: int) -> bytes:
        """One of them, from 0."""
        return self._expansion.document(self._seed, number)

    def pieces(self, number: int) -> Iterator[bytes]:
        """One of them, in pieces of some mebibyte: it need not fit into memory."""
        return self._expansion.pieces(self._seed, number)
