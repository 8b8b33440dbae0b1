"""``tamis select``, and ``tamis match --nodes``: what expressions select, and where it stands."""

from collections.abc import Callable

import pytest
from lxml import etree

from tamis.core import arguments as checks
from tamis.core.limits import Limits
from tamis.matching import matcher as matcher_module
from tests.support.running import run, run_process

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
        "document": "in/1.xml", "start": start, "end": start + 5, "line": 2, "text": "n='1'",
        "value": "1",
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


VALUES = "<order n=' 1'>\n<total>250</total><item>a\nb&amp;</item><item>\u00e9<b/>d</item></order>"
EVALUATED = {
    "normalize-space(//item)": "a b&",
    "string(//item)": "a\nb&",
    "name(/*)": "order",
    "count(//item)": 2,
    "count(//*)": 5,
    "count(/order/item/node())": 4,
    "string-length(//item[2])": 2,
    "//total = 250": True,
    "count(//item) = 3": False,
    "contains(//item, '&')": True,
    "boolean(//nothing)": False,
    "string(//nothing)": "",
    "not(//item/b)": False,
    "//item and //order[total > 300]": False,
    "'x'": "x",
    "2.50": 2.5,
    "1000000000000000000000": 10**21,
}


def as_text(value: object) -> str:
    return {"True": "true", "False": "false"}.get(str(value), str(value))


@pytest.mark.parametrize("expression", EVALUATED)
def test_an_expression_that_selects_no_nodes_is_evaluated(write: Write, expression: str) -> None:
    """Strings, numbers and booleans, as XPath writes them and as lxml evaluates them."""
    expected = EVALUATED[expression]
    oracle = etree.fromstring(VALUES).getroottree().xpath(expression)
    assert (oracle, type(oracle) is bool) == (expected, type(expected) is bool)
    write({"in/1.xml": VALUES, "in/2.xml": "<order>"})
    outcome = run("select", expression, "in/1.xml")
    assert (outcome.status, outcome.out) == (0, f"{as_text(expected)}\n")
    outcome = run("select", expression, "in")
    assert (outcome.status, outcome.out) == (3, f"in/1.xml:{as_text(expected)}\n")
    outcome = run("select", "--json", expression, "in")
    assert outcome.results[0] == {"document": "in/1.xml", "value": expected}
    assert outcome.results[1]["error"].startswith("the document ends")
    write({"all.xml": f"<all>{VALUES}<order/>{VALUES}</all>"})
    outcome = run("select", "--json", expression, "--record", "order", "all.xml")
    assert [found["value"] for found in outcome.results[::2]] == [expected] * 2
    assert [found["record"] for found in outcome.results] == [0, 1, 2]


def test_values_of_nodes(write: Write) -> None:
    write({"in/1.xml": VALUES, "in/2.xml": "<item>&#x3c;<![CDATA[&]]></item>"})
    outcome = run("select", "--value", "//item | //@n", "in/1.xml")
    assert (outcome.status, outcome.out) == (0, " 1\na\nb&\n\u00e9d\n")
    outcome = run("select", "--value", "--null", "//item", "in")
    assert outcome.out == "in/1.xml:2:a\nb&\0in/1.xml:3:\u00e9d\0in/2.xml:1:<&\0"
    assert run("select", "-0", "//total", "in/1.xml").out == "<total>250</total>\0"
    outcome = run("select", "--json", "//item", "in/2.xml")
    (found,) = outcome.results
    assert (found["text"], found["value"]) == ("<item>&#x3c;<![CDATA[&]]></item>", "<&")
    outcome = run("select", "--json", "--null", "//item", "in/2.xml")
    assert (outcome.status, outcome.out) == (2, "")
    assert "--null is for text" in outcome.err
    write({"all.xml": f"<all>{VALUES}{VALUES}</all>"})
    outcome = run("select", "--value", "//total", "--record", "order", "all.xml")
    assert outcome.out == "250\n250\n"


def test_bad_expressions_show_their_place(write: Write) -> None:
    write({"1.xml": "<a/>"})
    for expression in ("//a[", "//a[last()]"):
        outcome = run("select", expression, "1.xml")
        assert (outcome.status, outcome.out) == (2, "")
        assert "^" in outcome.err


def test_a_limit_is_told(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "DEFAULT_LIMITS", Limits(matched_nodes=2))
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
        "nodes": {"large": [order], "urgent": [order], "5": [{"start": 38, "end": 45, "line": 1}]},
    }
    assert "nodes" not in error
    assert nothing == {"document": "in/3.xml", "matches": [], "nodes": {}}


@pytest.mark.usefixtures("orders")
def test_nodes_with_values() -> None:
    outcome = run("match", "--subscriptions", "orders.tsv", "--values", "--matching-only", "in")
    (first,) = (found for found in outcome.results if "error" not in found)
    plain = run("match", "--subscriptions", "orders.tsv", "--nodes", "--matching-only", "in")
    (same,) = (found for found in plain.results if "error" not in found)
    values = {id: [node.pop("value") for node in nodes] for id, nodes in first["nodes"].items()}
    assert first == same
    assert values == {"large": ["250"], "urgent": ["250"], "5": [""]}


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


def test_lxml_selects_nodes_and_values(write: Write) -> None:
    xml = "<l><r><a>1</a><a b='2'>3</a></r>\n<r><a>4<!--c--></a></r></l>"
    write({"s": "last\t//a[last()]\nall\t//a", "1.xml": xml})
    outcome = run("match", "--subscriptions", "s", "--unsupported", "slow", "--nodes", "1.xml")
    assert outcome.status == 0
    assert [node["start"] for node in outcome.results[0]["nodes"]["last"]] == [14, 36]
    options = ("1.xml", "--value", "--unsupported", "slow")
    assert run("select", "//a[last()]/node() | //a[last()]/@*", *options).out == "2\n3\n4\nc\n"
    assert run("select", "sum(//a)", *options).out == "8\n"
    assert run("select", "string(//a[last()]/@b)", *options).out == "2\n"
    outcome = run("select", "//a[last()]", *options, "--record", "r")
    assert (outcome.status, outcome.out) == (0, "3\n4\n")
    outcome = run("select", "//namespace::*", "--json", *options)
    assert (outcome.status, "namespace nodes" in outcome.results[0]["error"]) == (3, True)
    refused = run("select", "//a[last()]", "1.xml")
    assert refused.status == 2
    assert "--unsupported slow evaluates unsupported expressions with lxml" in refused.err


DEFAULT = "give --default-ns"
POM = (
    "<project xmlns='urn:pom' xmlns:x='http://www.w3.org/1999/xlink' x:href='h'>"
    "<version>1</version><e:build xmlns:e='urn:e&amp;f'/></project>"
)


def test_a_name_in_no_namespace_is_told() -> None:
    outcome = run("select", "//b", "--default-ns", "u", "-", stdin=b"<a><b/></a>")
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == (
        "tamis: warning: nothing was found: the documents have 'b' in no namespace, and it was "
        "asked for in the namespace u: leave out --default-ns, or write Q{}b\n"
    )
    outcome = run("select", "//m:b", "--ns", "m=u", "-", stdin=b"<a b='1'/>")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


@pytest.mark.parametrize(
    ("options", "asked", "advice"),
    [
        (["//version"], "none", f"{DEFAULT} urn:pom; or give --ns p=urn:pom and write p:version"),
        (["/project/version[last()]", "--unsupported", "slow"], "none", f"{DEFAULT} urn:pom; or"),
        (["version", "--record", "version"], "none", f"{DEFAULT} urn:pom; or give --ns p=urn:pom"),
        (["//version", "--ns", "m=urn:pom"], "none", "write m:version"),
        (["//m:version", "--ns", "m=u"], "the namespace u", "give --ns m=urn:pom"),
        (["//version", "--default-ns", "u"], "the namespace u", "give --ns p=urn:pom and write"),
        (["//Q{}version"], "none", "write Q{urn:pom}version"),
        (["//build"], "none", f"{DEFAULT} 'urn:e&f'; or give --ns p='urn:e&f' and write p:build"),
        (["//m:version[build]", "--ns", "m=urn:pom"], "none", f"{DEFAULT} 'urn:e&f'; or"),
    ],
)
def test_a_name_in_another_namespace_is_told(options: list[str], asked: str, advice: str) -> None:
    outcome = run("select", *options, "-", stdin=POM.encode())
    assert (outcome.status, outcome.out) == (0, "")
    *_, line = outcome.err.splitlines()
    assert line.startswith("tamis: warning: nothing was found: the documents have '")
    assert " in the namespace urn:" in line
    assert f", and it was asked for in {asked}: {advice}" in line
    assert outcome.err.count("nothing was found") == 1


@pytest.mark.parametrize(
    "options",
    [
        ["//version", "--default-ns", "urn:pom"],
        ["//other"],
        ["//href"],
        ["//*:version"],
        ["//*[version] | /*"],
        ["//m:version[. = 2]", "--ns", "m=urn:pom"],
        ["count(//version)"],
        ["//@version"],
    ],
)
def test_nothing_is_told_of_other_names(options: list[str]) -> None:
    outcome = run("select", *options, "-", stdin=POM.encode())
    assert (outcome.status, outcome.err) == (0, "")
