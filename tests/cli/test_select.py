"""``tamis select``, and ``tamis match --nodes``: what expressions select, and where it stands."""

from collections.abc import Callable

import pytest

from tamis.limits import Limits
from tamis.matching import matcher as matcher_module
from tests.cli.running import run, run_process

Write = Callable[[dict[str, str | bytes]], None]

ORDER = "<order>\n<total>250</total><item n='1'>a\nb</item><item/></order>\n"


def test_fragments_of_one_document_stand_alone(write: Write) -> None:
    write({"1.xml": ORDER})
    outcome = run_process("select", "//order[total > 100]/item | //@n | //total/text()", "1.xml")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == "250\n<item n='1'>a\nb</item>\nn='1'\n<item/>\n"
    outcome = run("select", "--first", "//item", "-", stdin=ORDER.encode())
    assert outcome.out == "<item n='1'>a\nb</item>\n"
    outcome = run("select", "//nothing", "1.xml")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


def test_of_several_documents_the_name_and_the_line_come_first(write: Write) -> None:
    write({"in/1.xml": ORDER, "in/2.xml": "<order>", "in/3.xml": "<item>é</item>"})
    outcome = run("select", "//item", "in")
    assert outcome.status == 3
    assert outcome.out == (
        "in/1.xml:2:<item n='1'>a\nb</item>\nin/1.xml:3:<item/>\nin/3.xml:1:<item>é</item>\n"
    )
    assert outcome.err == (
        "tamis: in/2.xml: line 1, column 8: the document ends inside <order>: no element found\n"
    )
    assert run("select", "//item", "in/3.xml", "in/3.xml").out == (
        "in/3.xml:1:<item>é</item>\n" * 2
    )


def test_json_has_the_place_and_errors_too(write: Write) -> None:
    write({"in/1.xml": ORDER, "in/2.xml": "<order>"})
    outcome = run("select", "--json", "--first", "//item/@n", "in")
    assert outcome.status == 3
    start = ORDER.index("n='1'")
    found, error = outcome.results
    assert found == {
        "document": "in/1.xml", "start": start, "end": start + 5, "line": 2, "text": "n='1'"
    }  # fmt: skip
    assert error["error"].startswith("the document ends inside <order>")
    assert outcome.err == ""


def test_records_have_numbers_and_places_in_the_whole(write: Write) -> None:
    text = f"<orders>{ORDER}{ORDER}</orders>"
    write({"1.xml": text, "ns": "p\turn:p"})
    outcome = run("select", "--json", "/order/item[@n]", "1.xml", "--record", "order")
    assert [(found["record"], found["line"]) for found in outcome.results] == [(0, 2), (1, 5)]
    for found in outcome.results:
        assert text[found["start"] : found["end"]] == found["text"] == "<item n='1'>a\nb</item>"
    outcome = run("select", "//p:x", "-", "--namespaces", "ns", stdin=b"<a xmlns='urn:p'><x/></a>")
    assert outcome.out == "<x/>\n"


@pytest.mark.parametrize("expression", ["/a = 3", "count(/a) > 1", "boolean(//a)"])
def test_what_selects_nothing_is_refused(write: Write, expression: str) -> None:
    write({"1.xml": "<a/>"})
    outcome = run("select", expression, "1.xml")
    assert (outcome.status, outcome.out) == (2, "")
    assert "selects no nodes: it is true or false" in outcome.err


def test_bad_expressions_show_their_place(write: Write) -> None:
    write({"1.xml": "<a/>"})
    for expression in ("//a[", "//a[last()]"):
        outcome = run("select", expression, "1.xml")
        assert (outcome.status, outcome.out) == (2, "")
        assert "^" in outcome.err


def test_a_limit_is_told(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher_module, "DEFAULT_LIMITS", Limits(matched_nodes=2))
    write({"1.xml": "<a><b/><b/><b/></a>", "s": "x\t//b\n"})
    outcome = run("select", "//b", "1.xml")
    assert outcome.out == "<b/>\n<b/>\n"
    assert "1.xml: only the first 2 nodes: the limit matched_nodes" in outcome.err


# -- tamis match --nodes -----------------------------------------------------------------------


@pytest.mark.usefixtures("orders")
def test_nodes_of_what_matched() -> None:
    outcome = run("match", "--subscriptions", "orders.tsv", "--nodes", "in")
    first, error, nothing = outcome.results
    order = {"start": 0, "end": 53, "line": 1}
    assert first == {
        "document": "in/1.xml",
        "matches": ["large", "urgent", "5"],
        "nodes": {
            "large": [order],
            "urgent": [order],
            "5": [{"start": 38, "end": 45, "line": 1}],
        },
    }
    assert "nodes" not in error
    assert nothing == {"document": "in/3.xml", "matches": [], "nodes": {}}


def test_nodes_of_records_and_of_booleans(write: Write) -> None:
    write({"s": "b\t//b\nt\t/a/b = 1\n", "1.xml": "<r>\n<a><b>1</b></a><a/></r>"})
    outcome = run("match", "--subscriptions", "s", "--nodes", "--record", "a", "1.xml")
    assert [found["nodes"] for found in outcome.results] == [
        {"b": [{"start": 7, "end": 15, "line": 2}], "t": []},
        {},
    ]


def test_nodes_that_are_cut_are_named(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"s": "b\t//b\nc\t//c\n", "1.xml": "<a><b/><b/><b/><c/></a>"})
    matcher = matcher_module.CompiledMatcher
    monkeypatch.setattr(
        matcher_module,
        "CompiledMatcher",
        lambda subscriptions, engine, *_: matcher(subscriptions, engine, Limits(matched_nodes=1)),
    )
    (found,) = run("match", "--subscriptions", "s", "--nodes", "1.xml").results
    assert found["cut"] == ["b"]
    assert [len(found["nodes"][id]) for id in "bc"] == [1, 1]


def test_ids_must_differ_as_names(write: Write) -> None:
    write(
        {
            "s.ndjson": '{"id": 7, "expression": "//a"}\n{"id": "7", "expression": "//a"}\n',
            "1.xml": "<a/>",
        }
    )
    outcome = run("match", "--subscriptions", "s.ndjson", "--nodes", "1.xml")
    assert (outcome.status, outcome.out) == (2, "")
    assert "no id may be a number" in outcome.err


def test_the_slow_lane_has_no_nodes(write: Write) -> None:
    write({"s": "//a[last()]", "1.xml": "<a/>"})
    outcome = run("match", "--subscriptions", "s", "--unsupported", "slow", "--nodes", "1.xml")
    assert (outcome.status, outcome.out) == (2, "")
    assert "of subscriptions that go through lxml nodes cannot be told" in outcome.err
