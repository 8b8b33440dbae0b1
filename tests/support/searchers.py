"""Ask the NFA, and the reference engine, about documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tamis.core.limits import Limits
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import read
from tamis.documents.vocabulary import EVERYTHING, Vocabulary
from tamis.language.model import Query
from tamis.language.xpath import parse
from tamis.matching.engine import Searcher
from tamis.matching.engines import nfa, reference
from tamis.matching.engines.nfa.execute import NfaSearcher


def queries(expressions: Sequence[str], namespaces: Mapping[str, str] | None = None) -> list[Query]:
    return [parse(expression, namespaces or {}) for expression in expressions]


def opened(expressions: Sequence[str], namespaces: Mapping[str, str] | None = None) -> NfaSearcher:
    return nfa.open_nfa(nfa.compile_queries(queries(expressions, namespaces)), 0)


def batch_of(
    documents: Sequence[str | bytes], vocabulary: Vocabulary, limits: Limits | None = None
) -> DocumentBatch:
    """Everything of some documents; those that are in error are there, without events."""
    sources = [read(document, limits or Limits()) for document in documents]
    return parse_documents(sources, vocabulary, EVERYTHING, limits or Limits())[0]


def asked(matching: Searcher, documents: Sequence[str | bytes]) -> list[list[int]]:
    """The numbers of the queries that are true of each document."""
    vocabulary = Vocabulary()
    matches = matching.match(batch_of(documents, vocabulary), vocabulary)
    return [matches.numbers(number).tolist() for number in range(len(documents))]


def by_reference(given: Sequence[Query], documents: Sequence[str | bytes]) -> list[list[int]]:
    """What the reference engine says."""
    program = reference.compile_queries(given)
    return asked(reference.ENGINE.searcher(program, 0), documents)
