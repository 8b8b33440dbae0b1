"""The library: matching, errors beside answers, pickling, threads, live changes, explanations."""

from __future__ import annotations

import io
import logging
import mmap
import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.core.errors import EngineRefused, MissingExtra, SubscriptionSyntaxError, UsageError
from tamis.core.index import matches as matches_module
from tamis.documents import parser as parser_module
from tamis.matching import batches

ORDERS = {"big": "//order[total > 100]", "any": "//order", 7: "//order/item[@sku = 'x']"}


def test_ids_keep_their_type_and_order() -> None:
    match = tamis.compile(ORDERS).match(b"<order><total>200</total><item sku='x'/></order>")
    assert list(match) == ["big", "any", 7]
    assert match.indices.dtype == np.int32
    assert match.indices.tolist() == [0, 1, 2]
    assert not match.indices.flags.writeable
    assert repr(match) == "<Match: 3 of 3>"


def test_no_subscriptions_and_no_documents() -> None:
    matcher = tamis.compile({})
    assert not matcher.match(b"<a/>")
    assert list(matcher.match_many([])) == []


def test_errors_stand_beside_answers() -> None:
    matcher = tamis.compile(ORDERS)
    matches = list(matcher.match_many([b"<order/>", b"<order>", Path("no such file"), "<order/>"]))
    assert [match.error and match.error.code for match in matches] == [
        None,
        "document-malformed",
        "document-unreadable",
        None,
    ]
    assert list(matches[3]) == ["any"]
    for use in (bool, len, list, lambda match: match.indices):
        with pytest.raises(tamis.DocumentError, match="line 1, column 8"):
            use(matches[1])
    with pytest.raises(tamis.DocumentError):
        matcher.match(b"<order>")


def test_more_documents_than_a_batch() -> None:
    count = batches.BATCH_DOCUMENTS * 3 + 5
    documents = (f"<a n='{n}'/>" if n % 7 else "<a" for n in range(count))
    matcher = tamis.compile({n: f"/a[@n = {n}]" for n in range(count)})
    for number, match in enumerate(matcher.match_many(documents)):
        assert match.error is not None if number % 7 == 0 else list(match) == [number]


def test_reads_ahead_no_further_than_it_says() -> None:
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield b"<a/>"

    matches = tamis.compile({"a": "//a"}).match_many(endless())
    assert next(matches)
    assert taken <= batches.BATCH_DOCUMENTS


def test_large_documents_are_matched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 10)
    documents = ["<a><b/></a>", "<a/>", "<b/>", "<a><b/></a>"]
    found = [list(m) for m in tamis.compile({"b": "//b"}).match_many(documents)]
    assert found == [["b"], [], ["b"], ["b"]]


def test_every_kind_of_source(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(b"<a/>")
    matcher = tamis.compile({"a": "/a"})
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        sources = [b"<a/>", bytearray(b"<a/>"), memoryview(b"<a/>"), "<a/>", path, file, mapped]
        assert [list(match) for match in matcher.match_many(sources)] == [["a"]] * len(sources)
    with path.open(encoding="utf-8") as text:
        assert matcher.match(text)
    with pytest.raises(UsageError, match="not int"):
        matcher.match(3)  # type: ignore[arg-type]
    with pytest.raises(tamis.DocumentError, match=r"a file is named by a pathlib.Path"):
        matcher.match(str(path))
    for one_document in ("<a/>", b"<a/>", path):
        with pytest.raises(UsageError, match=r"give one to match\(\)"):
            matcher.match_many(one_document)  # type: ignore[arg-type]


def test_a_stream_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that no subscription knows are forgotten, all at once where they are many."""
    most = 500
    monkeypatch.setattr(parser_module, "NAMES_MAX", most)
    matcher = tamis.compile({"a": "//a", "p": "//*[local-name() = 'n7']"})
    caches, names = [], []
    for round in range(3):
        numbers = range(1000 * round, 1000 * round + 1000)
        documents = (f"<n{n}><a/></n{n}>" for n in numbers)
        found = [list(match) for match in matcher.match_many(documents)]
        assert found == [["a", "p"] if n == 7 else ["a"] for n in numbers]
        caches.append(matcher.memory_usage()["warm"])
        (parsers,) = matcher._batches.parsers
        names += [parser.vocabulary.size for parser in parsers.values()]
    assert caches[0] == caches[1] == caches[2] > 0
    assert max(names) <= most + batches.BATCH_DOCUMENTS + 2
    assert min(names) < 1000


def test_what_failed_half_way_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = tamis.compile({"a": "//a"})
    assert matcher.match("<a/>")
    (worker,) = matcher.programs.workers

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        for name in ("match", "match_one"):
            patched.setattr(worker.searchers[0], name, fail)
        with pytest.raises(MemoryError):
            matcher.match("<a/>")
    assert matcher.match("<a/>")
    assert worker not in matcher.programs.workers


def test_pickled_where_it_was() -> None:
    matcher = pickle.loads(pickle.dumps(tamis.compile(ORDERS, engine="reference")))
    assert list(matcher.match("<order/>")) == ["any"]
    error = SubscriptionSyntaxError("m", "/a", 1, "h", "id", 3)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    error = tamis.DocumentError("m", 1, 2)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_shared_by_threads() -> None:
    matcher = tamis.compile({n: f"//n{n % 50}[@x = {n}]" for n in range(500)})
    documents = [f"<d><n{n % 50} x='{n}'/><new{n}/></d>" for n in range(500)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: list(matcher.match(text)), documents))
    assert found == [[n] for n in range(500)]


def test_engines_are_used_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    named = {"name": "//order[name() = 'x']", "or": "//order[name() = 'x' or a]"}
    reading = {**named, "any": "//order", "many": "count(/order) > 5000"}
    with caplog.at_level(logging.INFO, "tamis"):
        assert tamis.compile(ORDERS, engine="reference").engine == "reference"
        assert tamis.compile({"any": "//order"}, engine="automaton").engine == "automaton"
        assert tamis.compile({"any": "//order"}).engine == "automaton"
        assert tamis.compile(reading).engine == "automaton and reference"
        assert tamis.compile({"name": named["name"]}).engine == "reference"
    assert [record.message for record in caplog.records] == [
        "engine reference: named by the caller",
        "engine automaton: named by the caller",
        "engine automaton: 1 of 1 queries",
        "engine automaton: 1 of 4 queries",
        "engine automaton does not run 2 of them: it calls name()",
        "engine automaton does not run 1 of them: a count is compared with 4096 or more",
        "engine reference: 3 of 4 queries",
        "engine automaton does not run 1 of them: it calls name()",
        "engine reference: 1 of 1 queries",
    ]
    with pytest.raises(
        EngineRefused,
        match="auto, automaton, reference, nfa, stacks, stacks-cuda, pma, twigstacks, twigstacks-c",
    ):
        tamis.compile(ORDERS, engine="warp")
    message = re.escape("automaton does not: //order[name(.) = 'x']: it calls name()")
    with pytest.raises(EngineRefused, match=message):
        tamis.compile(named, engine="automaton")
    with pytest.raises(EngineRefused, match="automaton does not"):
        tamis.Matcher(engine="automaton").add("name", named["name"])


# -- answered by lxml ---------------------------------------------------------------------------


def test_lxml_starts_from_the_document_node() -> None:
    expressions = {"b": "a/b", "l": "lang('en')", "p": "position() = last()", "n": "string() = 'x'"}
    expressions |= {"s": "sum(a/b) > 0"}
    matcher = tamis.compile(expressions, unsupported="slow")
    assert list(matcher.match("<a xml:lang='en'><b>7</b></a>")) == ["b", "p", "s"]


ODD = {
    "odd": "//b/parent::a[last()]",
    "plain": "//b",
    "relative": "a[count(//b) = 1]",
    "no": "//b[last() = 2]",
}


def test_lxml_answers_in_order(caplog: pytest.LogCaptureFixture) -> None:
    given = tamis.Subscriptions(ODD, unsupported="slow")
    matcher = tamis.compile(given)
    assert "3 of 4 subscriptions go through lxml" in caplog.text
    matches = list(matcher.match_many([b"<a><b/></a>", b"<a>", "<c/>", "<a><b/></a>"]))
    assert [list(match) if match.error is None else None for match in matches] == [
        ["odd", "plain", "relative"],
        None,
        [],
        ["odd", "plain", "relative"],
    ]
    with pytest.raises(UsageError, match="cannot explain itself"):
        matcher.explain("<a/>", "odd")


def test_failure_of_lxml_is_the_subscriptions() -> None:
    """libxml2's own limit on depth, 2048, fails what it has to answer, and nothing beside that."""
    expressions = {"plain": "//a/a", "x": "//a[last()]", "none": "//b", 7: "//a[last() = 2]"}
    given = tamis.Subscriptions(expressions, unsupported="slow")
    matcher = tamis.compile(given, limits=tamis.Limits(depth=5000))
    deep = b"<a>" * 3000 + b"</a>" * 3000
    before, match, after, bad = matcher.match_many([b"<a/>", deep, b"<a/>", b"<a"])
    assert (match.error, list(match), list(match.failed)) == (None, ["plain"], ["x", 7])
    assert {error.code for error in match.failed.values()} == {"document-lxml"}
    assert "lxml cannot parse the document: " in str(match.failed[7])
    assert repr(match) == "<Match: 1 of 4, 2 failed>"
    assert [list(before), list(after), before.failed, bad.failed] == [["x"], ["x"], {}, {}]
    assert list(matcher.match(deep).failed) == ["x", 7]


def test_what_lxml_refuses_is_refused() -> None:
    """lxml knows the names of XML 1.0's fourth edition only."""
    given = tamis.Subscriptions({"x": "//\u0132[last()]"}, unsupported="slow")
    with pytest.raises(tamis.BadSubscriptions, match="subscription 'x': lxml refuses it"):
        tamis.compile(given)


def test_unsupported_slow_needs_lxml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tamis\[slow\]'"):
        tamis.compile(tamis.Subscriptions(ODD, unsupported="slow"))


# -- records -----------------------------------------------------------------------------------


def test_records_are_documents(tmp_path: Path) -> None:
    matcher = tamis.compile({"root": "/r[@n]", "inside": "//r/r", "outside": "/x"})
    document = "<x><r n='1'/><y><r><r/></r></y><r/></x>"
    path = tmp_path / "x.xml"
    path.write_text(document)
    for given in (document, document.encode(), path, io.BytesIO(document.encode())):
        found = list(matcher.match_records(given, "r"))
        assert [match.record for match in found] == [0, 1, 2]
        assert [list(match) for match in found] == [["root"], ["inside"], []]
    assert matcher.match(document).record is None
    live = tamis.Matcher()
    live.add("s", "/r/r")
    assert [bool(match) for match in live.match_records(document, "r")] == [False, True, False]


def test_records_before_an_error_are_answered() -> None:
    matcher = tamis.compile({"x": "/r"})
    *good, bad = matcher.match_records("<x><r/><r/></y>", "r")
    assert [list(match) for match in good] == [["x"], ["x"]]
    assert (bad.record, str(bad.error)) == (
        2,
        "line 1, column 14: mismatched tag: <x> is open; the rest was not read",
    )
    (bad,) = matcher.match_records(Path("no such file"), "r")
    assert (bad.record, bad.error.code) == (0, "document-unreadable")


def test_what_no_records_can_be_made_of() -> None:
    matcher = tamis.compile({"x": "/r"})
    with pytest.raises(UsageError, match="is no tag"):
        matcher.match_records("<r/>", "<r>")
    with pytest.raises(UsageError, match="not int"):
        list(matcher.match_records(1, "r"))  # type: ignore[arg-type]


def test_a_file_is_closed_with_its_records(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_bytes(b"<x>" + b"<r/>" * 200_000 + b"</x>")
    matches = tamis.compile({"x": "/r"}).match_records(path, "r")
    assert next(matches)
    matches.close()
    assert not [link for link in os.scandir("/proc/self/fd") if os.path.realpath(link) == str(path)]


# -- live subscriptions ------------------------------------------------------------------------


def test_live_changes() -> None:
    live = tamis.Matcher(namespaces={"p": "urn:p"})
    live.add("s", "//p:a")
    live.add(2, "//b")
    running = live.match_many(["<b/>", "<a xmlns='urn:p'/>"])
    live.remove(2)
    assert [list(match) for match in running] == [[2], ["s"]]
    assert not live.match("<b/>")
    assert (len(live), "s" in live, 2 in live) == (1, True, False)
    with pytest.raises(tamis.SubscriptionError, match="no such subscription"):
        live.remove(2)
    with pytest.raises(tamis.SubscriptionError, match="taken"):
        live.add("s", "//c")
    with pytest.raises(SubscriptionSyntaxError):
        live.add("t", "//c[")
    assert live.explain("<b/>", "s").matched is False


def test_live_changes_while_documents_flow() -> None:
    live = tamis.Matcher()
    live.add("always", "//a")
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            live.add(number, f"//n{number}")
            live.remove(number)
            number += 1

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(200):
            assert list(live.match("<a/>")) == ["always"]
    finally:
        stop.set()
        changer.join()


# -- explanations ------------------------------------------------------------------------------

ORDER = """<orders>
  <order><total>7</total><item/></order>
  <order n="2"><total>40</total></order>
</orders>"""

EXPLAINED = {
    "//order[total > 100]//item": """\
false: //order[total > 100]//item
  //order        2 nodes, lines 2, 3
  [total > 100]  none of 2  ← fails here
      found: '7', '40'""",
    "/orders/order[2]/item": """\
false: /orders/order[2]/item
  /orders  1 node, line 1
  /order   2 nodes, lines 2, 3
  [2]      1 node, line 3
  /item    none  ← fails here""",
    "//order[@n = 2] and not(//item)": """\
false: //order[@n = 2] and not(//item)
  true: //order[@n = 2]
    //order   2 nodes, lines 2, 3
    [@n = 2]  1 node, line 3
  false: not(//item)
    true: //item
      //item  1 node, line 2""",
    "//order[@n = 3 and total]": """\
false: //order[@n = 3 and total]
  //order             2 nodes, lines 2, 3
  [@n = 3 and total]  none of 2  ← fails here
      false at all of them: @n = 3
        found: '2'""",
    "count(orders/order) > 2": """\
false: count(orders/order) > 2
  found: 2""",
    "contains(//total, '4')": """\
false: contains(//total, '4')
  found: '7'""",
    "//nothing | //item": """\
true: //nothing | //item
  //nothing
    //nothing  none  ← fails here
  //item
    //item  1 node, line 2""",
    "/Orders": """\
false: /Orders
  /Orders  none  ← fails here
      the document has a 'orders' in no namespace""",
    "//order[@x = 1]": """\
false: //order[@x = 1]
  //order   2 nodes, lines 2, 3
  [@x = 1]  none of 2  ← fails here
      found: no such node""",
}


@pytest.mark.parametrize("expression", EXPLAINED)
def test_explanations(expression: str) -> None:
    explanation = tamis.compile({"s": expression}).explain(ORDER, "s")
    assert str(explanation) == EXPLAINED[expression]
    assert bool(explanation) == bool(tamis.compile({"s": expression}).match(ORDER))


def test_explain_refuses() -> None:
    matcher = tamis.compile({"s": "//a"})
    with pytest.raises(UsageError, match="subscription 't': there is no such subscription"):
        matcher.explain("<a/>", "t")
    with pytest.raises(tamis.DocumentError):
        matcher.explain("<a", "s")


def test_explanations_know_other_namespaces() -> None:
    explanation = tamis.compile({"s": "//entry"}).explain("<a><entry xmlns='urn:f'/></a>", "s")
    assert explanation.lines[-1].strip() == "the document has a 'entry' in the namespace 'urn:f'"


def test_constants_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    tamis.Subscriptions({"q": "'//a'", "f": "//a > 'x'"})
    assert [record.message for record in caplog.records] == [
        "subscription 'q' is always true: '//a'",
        "subscription 'f' is always false: //a > 'x'",
    ]


# -- the package -------------------------------------------------------------------------------


def test_public_names() -> None:
    assert len(set(tamis.__all__) - {"__version__"}) <= 16
    assert all(hasattr(tamis, name) for name in tamis.__all__)


def test_silent_by_default() -> None:
    code = "import tamis; tamis.compile({1: '//a[last()]'}, unsupported='slow').match('<a/>')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_import_is_light() -> None:
    code = (
        "import sys, tamis; print([m for m in ('numba', 'pyspark', 'click') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("count", [1_024, 1_025, 5_000])
def test_a_single_document_has_more_matches_than_there_was_room_for(count: int) -> None:
    live = tamis.Matcher({f"a{n}": "//a" for n in range(count)} | {"b": "//b"})
    with_a, with_b = b"<r><a/></r>", b"<r><b/></r>"
    for matcher in (live.compiled(), live):
        matcher.match(with_a)  # what nobody asks for leaves nothing
        assert list(matcher.match(with_b)) == ["b"]
        matcher.match(with_a)
        assert list(matcher.match(with_b)) == ["b"]
        assert len(list(matcher.match(with_a))) == count
    live.add("c", "//c")
    assert len(list(live.match(with_a))) == count
    assert list(live.match(with_b)) == ["b"]


def test_what_one_document_matched_is_listed_before_the_searcher_is_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = matches_module._have_found

    def slowly(*given: Any) -> bool:
        found = find(*given)
        sleep(0)  # another thread goes on
        return found

    monkeypatch.setattr(matches_module, "_have_found", slowly)
    matcher = tamis.compile({n: f"//a{n}" for n in range(8)}, engine="automaton")
    asked = [[n for n in range(8) if number >> n & 1] for number in range(256)]
    documents = ["<r>" + "".join(f"<a{n}/>" for n in names) + "</r>" for names in asked]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            found = pool.map(lambda text: list(matcher.match(text)), documents)
            assert list(found) == asked
