"""Seeded generators of documents, events and subscriptions: one seed, the same bytes everywhere.

>>> import tamis_workload as workload
>>> from tamis.schema.graph import SchemaGraph
>>> from tamis.schema.reader import parse_dtd
>>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT bib (book*)> <!ELEMENT book (#PCDATA)>"))
>>> list(workload.queries_from_dtd(graph, 3))
['/bib/book', '/bib/book', '/bib/*']
>>> workload.Documents(graph, records=2, seed=1).document(0)
b'<bib><book>1</book><book>7</book></bib>'
"""

from typing import TYPE_CHECKING

from tamis.core.lazy import importing

if TYPE_CHECKING:
    from tamis_workload.documents.dblp import dblp
    from tamis_workload.documents.grammar import DocumentOptions, Documents
    from tamis_workload.draws import Values
    from tamis_workload.events import EventWorkload
    from tamis_workload.observed.generator import draw_from_documents
    from tamis_workload.queries.paths import QueryOptions, queries_from_dtd
    from tamis_workload.queries.queries import Queries
    from tamis_workload.queries.transformations import (
        TransformationOptions,
        transformations_from_dtd,
    )
    from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd

__all__ = [
    "DocumentOptions",
    "Documents",
    "EventWorkload",
    "Queries",
    "QueryOptions",
    "TransformationOptions",
    "TwigOptions",
    "Values",
    "dblp",
    "draw_from_documents",
    "queries_from_dtd",
    "transformations_from_dtd",
    "twigs_from_dtd",
]

__getattr__ = importing(
    __name__,
    {
        "DocumentOptions": "documents.grammar",
        "Documents": "documents.grammar",
        "EventWorkload": "events",
        "Queries": "queries.queries",
        "QueryOptions": "queries.paths",
        "TransformationOptions": "queries.transformations",
        "TwigOptions": "queries.twigs",
        "Values": "draws",
        "dblp": "documents.dblp",
        "draw_from_documents": "observed.generator",
        "queries_from_dtd": "queries.paths",
        "transformations_from_dtd": "queries.transformations",
        "twigs_from_dtd": "queries.twigs",
    },
)
