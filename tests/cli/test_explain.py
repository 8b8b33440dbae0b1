"""``tamis explain``: an expression part by part, and its answer to a document."""

from collections.abc import Callable

import pytest

from tests.support.running import run, run_process

Write = Callable[[dict[str, str | bytes]], None]


def test_an_expression_is_shown_part_by_part(write: Write) -> None:
    write({"ns": "p\turn:p"})
    expression = (
        "//p:order[ child::total>100 and not(contains(@id,'x')) ]/item[2][name()='i' or true()]"
    )
    outcome = run("explain", expression, "--namespaces", "ns")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "//p:order[total > 100 and not(contains(@id, 'x'))]/item[2][name(.) = 'i' or true()]\n"
        "some node is selected:\n"
        "├─ descendant-or-self::node()\n"
        "├─ child::p:order\n"
        "│  └─ total > 100 and not(contains(@id, 'x')): all of these are true\n"
        "│     ├─ total > 100: true of some node, as a number\n"
        "│     │  └─ child::total\n"
        "│     └─ not(contains(@id, 'x')): this is false\n"
        "│        └─ contains(@id, 'x')\n"
        "│           └─ the string value of the first node\n"
        "│              └─ attribute::id\n"
        "└─ child::item\n"
        "   ├─ 2: the position, counted for each parent\n"
        "   └─ name(.) = 'i' or true(): some of these is true\n"
        "      ├─ name(.) = 'i': compared as strings\n"
        "      │  └─ the name, as it is written, of the first node\n"
        "      │     └─ self::node()\n"
        "      └─ true()\n"
        "p: urn:p\n"
        "reads: elements, attributes, text, the prefixes of names\n"
        "engine: reference (not automaton: it calls name())\n"
    )


@pytest.mark.parametrize(
    ("expression", "lines"),
    [
        (
            "/",
            [
                "/",
                "some node is selected:",
                "└─ /: the document node",
                "reads: elements",
                "engine: automaton",
            ],
        ),
        ("true()", ["true()", "reads: elements", "engine: automaton"]),
        (
            "count(/a/b)<2",
            [
                "count(/a/b) < 2",
                "compared as numbers:",
                "└─ the number of nodes",
                "   ├─ child::a",
                "   └─ child::b",
                "reads: elements",
                "engine: automaton",
            ],
        ),
        (
            "string-length(normalize-space(a))=1",
            [
                "string-length(normalize-space(a)) = 1",
                "compared as numbers:",
                "└─ the number of characters",
                "   └─ with single spaces, and none at the ends",
                "      └─ the string value of the first node",
                "         └─ child::a",
                "reads: elements, text",
                "engine: automaton",
            ],
        ),
        (
            "//a/node() | b",
            [
                "//a/node() | b",
                "some node is selected:",
                "├─ //a/node(): a path",
                "│  ├─ descendant-or-self::node()",
                "│  ├─ child::a",
                "│  └─ child::node()",
                "└─ b: a path",
                "   └─ child::b",
                "reads: elements, text, comments and processing instructions",
                "engine: automaton",
            ],
        ),
    ],
)
def test_each_kind_of_part_has_its_words(expression: str, lines: list[str]) -> None:
    outcome = run("explain", expression)
    assert (outcome.status, outcome.out.splitlines()) == (0, lines)


def test_long_parts_are_cut_but_not_the_whole() -> None:
    expression = f"//a[b = '{'x' * 100}']"
    whole, *parts, _, _ = run("explain", expression).out.splitlines()
    assert whole == expression
    assert all(len(part) < 100 for part in parts)
    assert f"b = '{'x' * 54}…" in "".join(parts)


def test_a_document_is_explained_whether_it_matches_or_not(write: Write) -> None:
    write({"1.xml": "<a>\n<b><c/></b></a>"})
    matching = run("explain", "/a/b[c]", "1.xml")
    assert (matching.status, matching.err) == (0, "")
    assert matching.out.startswith("true: /a/b[c]\n")
    other = run("explain", "/a/b[d]", "-", stdin=b"<a><b/></a>")
    assert (other.status, other.err) == (0, "")
    assert other.out.startswith("false: /a/b[d]\n")
    assert "← fails here" in other.out


def test_a_document_in_error_is_told(write: Write) -> None:
    write({"1.xml": "<a>\n</b>"})
    outcome = run("explain", "//a", "1.xml")
    assert (outcome.status, outcome.out) == (3, "")
    assert outcome.err == "tamis: 1.xml: line 2, column 3: mismatched tag: <a> is open\n"
    assert run("explain", "//a", "none.xml").status == 3


@pytest.mark.parametrize("expression", ["//a[", "//a[last()]", "//p:a", ""])
def test_an_expression_that_cannot_be_used_is_told(expression: str) -> None:
    outcome = run("explain", expression)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("tamis: ")
    assert "^" in outcome.err


def test_a_hint_names_an_option_that_some_command_has(write: Write) -> None:
    write({"1.xml": "<a/><b/>"})
    outcome = run("explain", "//a[last()]")
    assert outcome.err.endswith("hint: tamis match --unsupported slow has lxml evaluate it\n")
    outcome = run("explain", "//a", "1.xml")
    assert "are read with tamis match --concatenated\n" in outcome.err
    write({"s.tsv": "//a[last()]\n"})
    outcome = run("check", "--subscriptions", "s.tsv")
    assert "hint: --unsupported slow has lxml evaluate it\n" in outcome.err


def test_a_value_that_only_select_evaluates_is_explained(write: Write) -> None:
    write({"1.xml": "<a><book/><book/></a>"})
    outcome = run("explain", " count(//book)")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "count(//book)\n"
        "└─ the number of nodes\n"
        "   ├─ descendant-or-self::node()\n"
        "   └─ child::book\n"
        "tamis select evaluates it; a subscription cannot use it: "
        "count() is supported over child and attribute steps only\n"
    )
    assert run("select", "count(//book)", "1.xml").out == "2\n"
    assert run("explain", "count(//book)", "1.xml").out == "2: count(//book)\n"
    assert run("explain", "count(//book) > 2", "1.xml").out == "false: count(//book) > 2\n"
    outcome = run("explain", "count(//book)", "1.xml", "--limit", "depth=1")
    assert (outcome.status, "1.xml: " in outcome.err) == (3, True)


def test_an_event_is_explained(write: Write) -> None:
    expression = 'area = "a1" and temp > 30 or wind > 20'
    outcome = run("explain", "--events", expression)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == 'any of\n  area = "a1" and temp > 30\n  wind > 20\n'
    write({"event.json": '{\n  "area": "a1",\n  "temp": 25, "tags": []\n}\n'})
    outcome = run("explain", "--events", expression, "event.json")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "false: expression\n"
        '  false: area = "a1" and temp > 30\n'
        '    area = "a1"  found: "a1"\n'
        "    temp > 30    found: 25  ← fails here\n"
        "  false: wind > 20\n"
        "    wind > 20  found: no such attribute  ← fails here\n"
    )
    inner = run("explain", "--events", "a.b[] = 1", "-", stdin=b'{"a": {"b": [2]}}').out
    assert inner.endswith("a.b[] = 1  found: [2]  ← fails here\n")
    inner = run("explain", "--events", "a.b.c = 1", "-", stdin=b'{"a": {"b": 2}}').out
    assert inner.endswith("a.b.c = 1  found: nothing beyond a.b  ← fails here\n")
    null = run("explain", "--events", "a = 1", "-", stdin=b'{"a": null}').out
    assert null.endswith("a = 1  found: null  ← fails here\n")
    assert run("explain", "--events", "a = 1", "-", stdin=b'{"a": 1}').out.startswith("true: ")


def test_a_default_namespace_and_names_of_any_are_explained(write: Write) -> None:
    write({"1.xml": "<a xmlns='urn:d'><b/><B xmlns='urn:e'/></a>"})
    options = ["--default-ns", "urn:d", "--ns", "e=urn:e"]
    outcome = run("explain", "/a/Q{}b | //*:c[e:d]", *options)
    assert "child::*:c" in outcome.out
    assert "\ndefault namespace: urn:d\ne: urn:e\n" in outcome.out
    outcome = run("explain", "/a/*:b/@x", "1.xml", *options)
    assert outcome.out.startswith("false: /a/*:b/@x\n")
    assert "the document has" not in outcome.out
    outcome = run("explain", "/a/*:C", "1.xml", *options)
    assert outcome.out.endswith("none  ← fails here\n")
    outcome = run("explain", "/a/Q{urn:e}b", "1.xml", *options)
    assert "the document has a 'b' in the namespace 'urn:d'" in outcome.out
    assert "the document has a 'B' in the namespace 'urn:e'" in outcome.out


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (("a >",), 2, "tamis: expected a value"),
        (("a = 1", "none.json"), 2, "tamis: cannot read none.json: No such file"),
        (("a = 1", "--namespaces", "x"), 2, "tamis: --events: namespaces are about documents"),
        (("a = 1", "--ns", "p=u"), 2, "tamis: --events: namespaces are about documents"),
        (("a = 1", "-"), 3, "tamis: -: the attribute 'a' is of type list"),
    ],
)
def test_what_is_no_event_is_told(args: tuple[str, ...], status: int, message: str) -> None:
    outcome = run("explain", "--events", *args, stdin=b'{"a": []}')
    assert (outcome.status, outcome.out) == (status, "")
    assert outcome.err.startswith(message)


def test_any_encoding_of_the_terminal_will_do() -> None:
    outcome = run_process(
        "explain", "//é", env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"}
    )
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("//\\xe9\n")


def test_the_plan_of_a_transformation(write: Write) -> None:
    write({"r.dtd": "<!ELEMENT r (b*)> <!ELEMENT b (b*, k)> <!ELEMENT k (#PCDATA)>"})
    text = "<r>{ for $b in /r//b where $b/k = 'x' return $b//k }</r>"
    assert run("explain", "--transformation", text).out == "strategy: relative\n"
    outcome = run(
        "explain", "--transformation", text, "--strategy", "plan-sharing", "--dtd", "r.dtd"
    )
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "strategy: plan-sharing\n"
        "OuterJoin-Select, by group: a group for each tuple, a list for each stream\n"
        "├─ its output for . = 'x'; DupElim, scan\n"
        "│  └─ shared Selection: by .\n"
        "│     └─ shared Join, hash: on the bound node\n"
        "│        ├─ stream of /r//b\n"
        "│        └─ stream of /r//b/k\n"
        "└─ shared GroupBy, hash: by bound node\n"
        "   └─ stream of /r//b//k\n"
        "where /r//b/k: hash (no claim holds)\n"
        "return /r//b//k: hash (no claim holds)\n"
    )
    for options, message in (
        (["--events"], "leave out --events"),
        (["--strategy", "fast"], "there is no strategy 'fast'"),
        (
            ["--dtd", "r.dtd"],
            "the strategy 'auto' needs no DTD: leave it out, or choose from path-sharing-f, ",
        ),
    ):
        outcome = run("explain", "--transformation", text, *options)
        assert outcome.status == 2
        assert message in outcome.err
    outcome = run("explain", "//b", "--dtd", "r.dtd")
    assert (outcome.status, "give --transformation" in outcome.err) == (2, True)
