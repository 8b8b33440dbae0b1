"""What stacks say of documents: many twigs, deep documents, names that come with documents."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tracemalloc

import pytest

from tamis.documents.vocabulary import Vocabulary
from tamis.matching.engine import Searcher
from tamis.matching.engines import stacks
from tamis.matching.engines.stacks import execute
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload.documents.grammar import Documents
from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd
from tests.support.searchers import asked, batch_of, by_reference, queries

RECURSIVE = (
    "<!ELEMENT r (a | b)+> <!ELEMENT a (b, c?, a?)> <!ELEMENT b (a | c)*>"
    "<!ELEMENT c (d, b?)?> <!ELEMENT d EMPTY>"
)


def opened(expressions: list[str], namespaces: dict[str, str] | None = None) -> Searcher:
    program = stacks.ENGINE.compile(queries(expressions, namespaces))
    return stacks.ENGINE.searcher(program, 0)


@pytest.mark.parametrize("descendant", [0.1, 0.5])
def test_more_twigs_than_a_block_has(descendant: float) -> None:
    """Groups of many shapes, and a group that is not full."""
    graph = SchemaGraph.of(parse_dtd(RECURSIVE))
    expressions: list[str] = []
    for nodes, splits in ((3, 1), (6, 2), (12, 4)):
        options = TwigOptions(nodes=nodes, splits=splits, wildcard=0.3, descendant=descendant)
        expressions += twigs_from_dtd(graph, 500, options=options, seed=nodes)
    expressions = [*dict.fromkeys(expressions)]
    assert len(expressions) > 1_024
    documents = [Documents(graph, depth=12, size=2_000, seed=7).document(n) for n in range(6)]
    found = asked(opened(expressions), documents)
    assert found == by_reference(queries(expressions), documents)
    assert {len(numbers) for numbers in found} != {0, len(expressions)}


@pytest.mark.parametrize("depth", [1, 2, 60, 61, 62, 63, 64, 65, 1_000])
def test_depth(depth: int) -> None:
    """Room for levels is made while a document is matched: none is lost."""
    expressions = ["//a[b]", "/a//b", "//a[.//c][b]", f"{'/a' * min(depth, 90)}/b", "//a[not(b)]/a"]
    inner = "<a>" * depth + "<b/>" + "</a>" * depth
    documents = [inner, f"<a>{inner}<b/><c/></a>", f"<x>{inner}</x>"]
    assert asked(opened(expressions), documents) == by_reference(queries(expressions), documents)


def test_documents_are_apart() -> None:
    """Nothing of a document is there in the next; documents in error say nothing."""
    expressions = ["/a/b", "//c", "//a[b]", "not(//c)", "//c[. = 't']", "//b[.//d]", "/*[@x]"]
    good = ["<a/>", "<a><b/></a>", "<c>t</c>", "<b/>", "<a x='1'><b/><d/></a>"]
    expected = dict(zip(good, by_reference(queries(expressions), good), strict=True))
    documents = [*good, "<broken>", "<"] * 40
    random.Random(1).shuffle(documents)
    found = asked(opened(expressions), documents)
    assert found == [expected.get(text, []) for text in documents]


def test_names_come_with_documents() -> None:
    """One name may pass several tests; some names come in a later batch."""
    namespaces = {"p": "urn:p", "q": "urn:q"}
    expressions = ["//p:*", "//*[q:a]", "//*:a", "//a", "/p:b[*:c]", "//p:*[not(p:*)]", "//q:*/*"]
    texts = ["<a/>", "<x><a xmlns='urn:p'><a/></a></x>", "<b xmlns='urn:p'><c xmlns=''/></b>"]
    texts += ["<x><a xmlns='urn:q'/></x>", "<y:z xmlns:y='urn:q'><w/></y:z>", "<b><c/></b>"]
    searcher, vocabulary = opened(expressions, namespaces), Vocabulary()
    expected = by_reference(queries(expressions, namespaces), texts)
    for text, numbers in zip(texts, expected, strict=True):
        matches = searcher.match(batch_of([text], vocabulary), vocabulary)
        assert matches.numbers(0).tolist() == numbers
    assert asked(searcher, texts) == expected


def test_rows_of_names_are_in_memory_once() -> None:
    """Those of earlier batches, too; and memory_usage() counts them."""
    expressions = [f"//a{number}[b]//c" for number in range(2_000)]
    searcher, vocabulary = opened(expressions), Vocabulary()
    before = searcher.memory_usage()
    tracemalloc.start()
    for first in range(0, 2_000, 500):
        inner = "".join(f"<a{number}/>" for number in range(first, first + 500))
        batch = batch_of([f"<r>{inner}<a{first}><b/><c/></a{first}></r>"], vocabulary)
        assert searcher.match(batch, vocabulary).numbers(0).tolist() == [first]
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used < 1.5 * (searcher.memory_usage() - before)


def test_empty_children_that_are_alike_count_once() -> None:
    """Only an element with nothing inside is left out as seen before: not one with a value."""
    expressions = ["//a[b = '2']", "//a[b[@x = '2']]", "//a[b][c]", "//a[b/c]"]
    documents = [
        "<a><b/><b>1</b><b>2</b></a>",
        "<a><b/><b x='1'/><b x='2'/><b/></a>",
        "<a><b/><b/><c/><b/></a>",
        "<a><b/><b><c/></b><b/></a>",
    ]
    assert asked(opened(expressions), documents) == by_reference(queries(expressions), documents)


@pytest.mark.parametrize("subtrees", [2, 3, 7, 40])
def test_documents_of_several_segments(subtrees: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment ends anywhere: what open elements have of earlier ones stays theirs, facts too."""
    monkeypatch.setattr(execute, "_LATCHED_BYTES", 0)
    monkeypatch.setattr(execute, "_SUBTREES_MIN", subtrees)
    graph = SchemaGraph.of(parse_dtd(RECURSIVE))
    options = TwigOptions(nodes=6, splits=2, wildcard=0.3, descendant=0.4)
    expressions = list(twigs_from_dtd(graph, 600, options=options, seed=3))
    expressions += [
        "//a[not(b)]",
        "//b[. = '2']",
        "//a[@x or b/c]",
        "//a[@x = '1']//d",
        "//*[*[@x]]",
    ]
    documents = [Documents(graph, depth=9, size=1_500, seed=5).document(n) for n in range(4)]
    texts = [data.decode().replace("<a>", "<a x='1'>", n) for n, data in enumerate(documents)]
    texts += ["<a><b>2</b></a>", "<a x='1'/>", "<", "<a/>", "<a><b>2</b></a>"]
    wide = "".join(f"<b>{'<c/>' * (n % 5)}{'<a/>' * (n % 7)}<d/></b>" for n in range(60))
    texts.append(f"<a x='1'>{wide}</a>")
    expected = [
        by_reference(queries(expressions), [text])[0] if text != "<" else [] for text in texts
    ]
    searcher = opened(expressions)
    assert asked(searcher, texts) == expected
    assert asked(searcher, texts) == expected


def test_many_texts_of_one_element() -> None:
    """A fact that many text nodes, or attributes, state is one."""
    expressions = ["//a[text() = 't']", "//a[text()][b]", "//a[@* = '1']/b", "//a[@*]"]
    attributes = " ".join(f"x{number}='1'" for number in range(200))
    documents = [f"<a {attributes}>{'t<b/>' * 500}</a>", "<a>t<b/></a>", f"<a {attributes}/>"]
    assert asked(opened(expressions), documents) == by_reference(queries(expressions), documents)


def test_without_compiler() -> None:
    """Every line of the kernels runs as Python, too: this file's other tests, uncompiled."""
    if os.environ.get("TAMIS_KERNELS") == "python":
        pytest.skip("this is it")
    test = "-q", "-p", "no:cacheprovider", "-n", "0", __file__, "-k", "apart or come or alike or 7"
    environment = {**os.environ, "TAMIS_KERNELS": "python"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *test],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout
