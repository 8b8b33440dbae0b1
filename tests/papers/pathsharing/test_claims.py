"""The broker paper's claims, held against the tuples of drawn paths in drawn documents."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tamis.core.errors import UsageError
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.filters import Codes, Labels
from tamis.schema.graph import ExpandedGraph, SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_papers.pathsharing.claims import Claims
from tamis_workload.documents.grammar import Documents
from tests.support.strategies import dtds
from tests.support.tuples import PathTuples, path_tuples

BOOK = """<!ELEMENT book (title, section+)> <!ELEMENT title (#PCDATA)>
<!ELEMENT section (title, (p | figure | section)*)> <!ELEMENT p (#PCDATA)>
<!ELEMENT figure (title, image)> <!ELEMENT image EMPTY>"""


def tuples(path: str, documents: list[str]) -> PathTuples:
    """The path-tuples of a path in some documents."""
    vocabulary = Vocabulary()
    batch, errors = parse_documents(
        [Source(text.encode()) for text in documents], vocabulary, Projection(), DEFAULT_LIMITS
    )
    assert not errors
    (found,) = path_tuples([path], batch, vocabulary)
    return found


SEEN: Counter[tuple[str, int]] = Counter()


def check(claims: Claims, labels: Labels, codes: Codes, documents: list[str]) -> None:
    """What is claimed of a path is true of its tuples, and its canonical form has the same ends."""
    path = labels.written(codes)
    nodes = tuples(path, documents).nodes
    note(path)
    claim = claims.without_duplicates(codes)
    SEEN["without_duplicates", claim] += 1
    assert not claim or len(np.unique(nodes[:, -1])) == len(nodes)
    for step in range(1, len(codes)):
        claim = claims.without_duplicate_pairs(codes, step)
        pairs = nodes[:, [step - 1, -1]]
        assert not claim or len(np.unique(pairs, axis=0)) == len(nodes)
        claim = claims.in_order(codes, step)
        SEEN["in_order", claim] += 1
        assert not claim or (np.diff(nodes[:, step - 1]) >= 0).all()
    canonical = claims.canonical(codes)
    SEEN["canonical", canonical != codes] += 1
    ends = np.unique(tuples(labels.written(canonical), documents).nodes[:, -1])
    assert ends.tolist() == np.unique(nodes[:, -1]).tolist()


@settings(
    max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(
    dtds(),
    st.sampled_from("abcdef"),
    st.integers(0, 1 << 32),
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["/", "//", "//"]), st.sampled_from("abcdef*")),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_claims_hold(dtd: str, root: str, seed: int, paths: list[list[tuple[str, str]]]) -> None:
    note(dtd)
    graph = SchemaGraph.of(parse_dtd(dtd), [root])
    try:
        made = Documents(graph, depth=8, size=1_500, seed=seed)
        documents = [made.document(number).decode() for number in range(3)]
    except UsageError:  # there is no valid document, or none so small
        return
    labels = Labels()
    expanded = ExpandedGraph(graph)
    for path in paths:
        codes = labels.read("".join(map("".join, path)))
        check(Claims(labels, expanded), labels, codes, documents)
        check(Claims(labels, None), labels, codes, documents)


def test_they_say_something() -> None:
    """The canary: each claim is made, and each is not."""
    SEEN.clear()
    test_claims_hold()
    assert {claim for kind, claim in SEEN if kind == "without_duplicates"} == {0, 1, 2}
    assert {claim for kind, claim in SEEN if kind == "in_order"} == {0, 4, 5}
    assert {claim for kind, claim in SEEN if kind == "canonical"} == {False, True}


@pytest.mark.parametrize(
    ("path", "duplicates", "order", "canonical"),
    [
        # The paper's queries 2 and 3 (its sections 3 and 4).
        ("//section//figure", 0, 0, "//section//figure"),
        ("//section", 1, 0, "//section"),
        ("//section//section//title", 0, 0, "//section//section//title"),
        ("/book//figure//image", 2, 4, "/book//figure/image"),
        ("//figure//title", 2, 5, "//figure/title"),
        ("//book//image", 2, 5, "/book//image"),
        ("/book//*//title", 0, 4, "/book//*//title"),
    ],
)
def test_the_papers_paths(path: str, duplicates: int, order: int, canonical: str) -> None:
    labels = Labels()
    claims = Claims(labels, ExpandedGraph(SchemaGraph.of(parse_dtd(BOOK))))
    codes = labels.read(path)
    assert claims.without_duplicates(codes) == duplicates
    assert claims.in_order(codes, 1) == order
    assert labels.written(claims.canonical(codes)) == canonical
    assert claims.in_order(labels.read("//section//figure"), 2) == 5  # as for Query 2
