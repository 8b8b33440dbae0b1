"""``tamis check``: what is bad, what is slow, and where lxml differs."""

import sys
from collections.abc import Callable

import pytest

import tamis
from tamis.cli.check import AgainstLxml
from tests.support.running import run

Write = Callable[[dict[str, str | bytes]], None]


def test_a_set_that_can_be_used(write: Write) -> None:
    write({"s": "//a\nx\t//b[@c]"})
    outcome = run("check", "--subscriptions", "s")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.results == [{"subscriptions": 2, "ok": 2, "slow": 0, "bad": 0}]


def test_every_bad_one_is_told_and_counted(write: Write) -> None:
    write({"s": "//a\nx\t//b[\ny\t//c[last()]\n"})
    outcome = run("check", "--subscriptions", "s")
    assert outcome.status == 2
    assert outcome.results == [{"subscriptions": 3, "ok": 1, "slow": 0, "bad": 2}]
    assert outcome.err == (
        "tamis: s, line 2: subscription 'x': expected a path, a literal or a function, "
        "found the end\n"
        "  //b[\n"
        "      ^\n"
        "tamis: s, line 3: subscription 'y': last() is not supported: how many siblings follow "
        "is not known when it is read\n"
        "  //c[last()]\n"
        "      ^\n"
        "  hint: --unsupported slow has lxml evaluate it\n"
        "tamis: s: 2 of 3 subscriptions cannot be used\n"
        "tamis: --unsupported slow evaluates unsupported expressions with lxml\n"
    )


def test_slow_ones_are_counted(write: Write) -> None:
    write({"s": "//a\ny\t//c[last()]\n"})
    outcome = run("check", "--subscriptions", "s", "--unsupported", "slow")
    assert (outcome.status, outcome.err) == (
        0,
        "tamis: warning: 1 of 2 subscriptions go through lxml\n",
    )
    assert outcome.results == [{"subscriptions": 2, "ok": 1, "slow": 1, "bad": 0}]


def test_lxml_agrees_on_relative_paths_booleans_and_namespaces(write: Write) -> None:
    write(
        {
            "s": "a/b\n.//b\nnot(//c)\ncount(a) = 1\nname() = ''\n//p:b | @x\n.\n/\n"
            "contains(a, 'x')\n",
            "ns": "p urn:p",
            "in/1.xml": "<a><b/>x</a>",
            "in/2.xml": "<q:b xmlns:q='urn:p'/>",
            "in/3.xml": "<?xml version='1.0' encoding='cp037'?><a>x</a>".encode("cp037"),
        }
    )
    outcome = run("check", "--subscriptions", "s", "--namespaces", "ns", "--against", "lxml", "in")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.results == [
        {"subscriptions": 9, "ok": 9, "slow": 0, "bad": 0}
        | {"documents": 3, "errors": 0, "differences": 0}
    ]


def test_differences_are_printed(write: Write) -> None:
    write({"s": "x\t//a[@n > 5]\n//a", "1.xml": "<a n='1e3'/>", "2.xml": "<a n='6'/>"})
    outcome = run("check", "--subscriptions", "s", "--against", "lxml", "1.xml", "2.xml")
    assert (outcome.status, outcome.err) == (1, "")
    difference, summary = outcome.results
    assert difference == {
        "document": "1.xml",
        "id": "x",
        "expression": "//a[@n > 5]",
        "tamis": False,
        "lxml": True,
    }
    assert summary["differences"] == 1


@pytest.mark.parametrize(
    ("subscriptions", "documents", "status"),
    [
        ("//a[@n > 5]\n//[", ["1.xml", "bad.xml"], 2),
        ("//a[@n > 5]", ["1.xml", "bad.xml"], 1),
        ("//a[@n > 5]", ["bad.xml", "2.xml"], 3),
        ("//a[@n > 5]", ["2.xml"], 0),
    ],
)
def test_the_status_tells_the_worst(
    write: Write, subscriptions: str, documents: list[str], status: int
) -> None:
    write({"s": subscriptions, "1.xml": "<a n='1e3'/>", "2.xml": "<a/>", "bad.xml": "<a"})
    outcome = run("check", "--subscriptions", "s", "--against", "lxml", *documents)
    assert outcome.status == status
    assert outcome.results[-1]["documents"] == len(documents)
    assert outcome.results[-1]["errors"] == documents.count("bad.xml")


def test_what_lxml_cannot_compile_is_not_compared(write: Write) -> None:
    write({"s": "x\t//\u0132\n//a", "1.xml": "<a/>"})  # a name since XML 1.0's fifth edition
    outcome = run("check", "--subscriptions", "s", "--against", "lxml", "1.xml")
    assert (outcome.status, outcome.results[-1]["differences"]) == (0, 0)
    assert outcome.err == (
        "tamis: warning: subscription 'x' is not compared: lxml refuses it: Invalid expression\n"
    )


def test_without_lxml_the_message_says_what_to_install(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    write({"s": "//a", "1.xml": "<a/>"})
    outcome = run("check", "--subscriptions", "s", "--against", "lxml", "1.xml")
    assert (outcome.status, outcome.out) == (2, "")
    assert "pip install 'tamis[slow]'" in outcome.err


@pytest.mark.parametrize(
    "args", [["--against", "lxml"], ["1.xml"], ["--against", "saxon", "1.xml"]]
)
def test_wrong_usage(write: Write, args: list[str]) -> None:
    write({"s": "//a", "1.xml": "<a/>"})
    outcome = run("check", "--subscriptions", "s", *args)
    assert (outcome.status, outcome.out) == (2, "")
    assert "against" in outcome.err


def test_lxml_reads_what_an_external_dtd_could_declare(write: Write) -> None:
    write(
        {
            "s": "//t\n//t[not(text())]\n//text()",
            "in/1.xml": '<!DOCTYPE b SYSTEM "x.dtd" [<!ENTITY u "M">]><b><t>&nbsp;</t></b>',
            "in/2.xml": '<!DOCTYPE b [<!ENTITY c SYSTEM "c.xml">]><b><t/>&c;</b>',
            "in/3.xml": '<!DOCTYPE b [<!ENTITY % p SYSTEM "p"> %p; <!ENTITY x "M">]><b>1&x;</b>',
        }
    )
    outcome = run("check", "--subscriptions", "s", "--against", "lxml", "in")
    assert (outcome.status, outcome.err.count("were left out")) == (0, 3)
    assert outcome.results == [
        {"subscriptions": 3, "ok": 3, "slow": 0, "bad": 0}
        | {"documents": 3, "errors": 0, "differences": 0}
    ]


def test_what_lxml_cannot_answer_is_not_compared() -> None:
    limits = tamis.Limits(depth=5000)
    comparison = AgainstLxml(tamis.Subscriptions({"a": "//a", "b": "//b"}, limits=limits))
    differences, failed = comparison.compare(
        "<a>" * 3000 + "</a>" * 3000
    )  # libxml2's own limit is 2,048
    assert (differences, list(failed)) == ([], ["a", "b"])
    assert comparison.compare("<a/>") == ([], {})
