"""``tamis transform``: results, exit statuses, subscriptions in folders and files."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.support.running import run

Write = Callable[[dict[str, str | bytes]], None]

TITLES = "<r>{ for $b in //book return <b>{ $b/t }</b> }</r>"
BIG = "<r>{ for $b in //book return <b>{ $b/@k, $b/*/@k }</b> }</r>"


def test_results(write: Write) -> None:
    write({
        "queries/titles.xq": TITLES,
        "queries/big.xq": BIG,
        "queries/none.xq": TITLES.replace("//book", "//journal"),
        "in/1.xml": "<bib><book k='é'><t>A</t></book></bib>",
        "in/2.xml": "<bib>",
        "in/3.xml": "<bib><book k='1'><t k='2'/></book></bib>",
    })  # fmt: skip
    outcome = run("transform", "--subscriptions", "queries", "in")
    assert outcome.status == 3
    assert outcome.err == ""
    one, two, three, *others = outcome.results
    assert one == {"document": "in/1.xml", "subscription": "big", "message": '<r><b k="é"/></r>'}
    assert two["message"] == "<r><b><t>A</t></b></r>"
    assert (three["document"], three["line"]) == ("in/2.xml", 1)
    assert "would have two attributes 'k'" in others[0]["error"]
    assert others[1]["subscription"] == "titles"
    assert len(others) == 2


def test_ndjson_standard_input_and_output(write: Write) -> None:
    rows = [{"id": 1, "query": TITLES}, {"id": "p", "query": TITLES.replace("//book", "//p:b")}]
    write({
        "queries.ndjson": "\n".join(map(json.dumps, rows)),
        "prefixes.txt": "p urn:p\n",
        "one.xq": TITLES,
    })  # fmt: skip
    options = ("--subscriptions", "queries.ndjson", "--namespaces", "prefixes.txt")
    document = b"<p:b xmlns:p='urn:p'><book><t/></book></p:b>"
    outcome = run("transform", *options, "--output", "out.ndjson", "-", stdin=document)
    assert (outcome.status, outcome.out) == (0, "")
    with open("out.ndjson", encoding="utf-8") as file:
        assert [json.loads(line)["subscription"] for line in file] == [1, "p"]
    outcome = run("transform", "--subscriptions", "one.xq", "-", stdin=document)
    assert [found["subscription"] for found in outcome.results] == ["one"]


def test_bad_subscriptions(write: Write) -> None:
    write({"q/good.xq": TITLES, "q/bad.xq": "<r/>", "q/worse.xq": "//b", "d.xml": "<book/>"})
    outcome = run("transform", "--subscriptions", "q", "d.xml")
    assert (outcome.status, outcome.out) == (2, "")
    assert "q/bad.xq, subscription 'bad': there is no { for … return … }" in outcome.err
    assert outcome.err.endswith("tamis: q: 2 of 3 subscriptions cannot be used\n")
    outcome = run("transform", "--skip-bad", "--subscriptions", "q", "d.xml")
    assert outcome.status == 0
    assert [found["message"] for found in outcome.results] == ["<r><b></b></r>"]
    outcome = run("transform", "--subscriptions", "none", "d.xml")
    assert outcome.status == 2
    assert "cannot read none" in outcome.err
    outcome = run("transform", "--skip-bad", "--subscriptions", "q/bad.xq", "d.xml")
    assert "warning: q/bad.xq has no subscriptions that can be used" in outcome.err


def test_lxml_answers_no_transformations(write: Write) -> None:
    write({"q.xq": TITLES, "1.xml": "<a/>"})
    outcome = run("transform", "--subscriptions", "q.xq", "--unsupported", "slow", "1.xml")
    assert outcome.status == 2
    assert "lxml does not answer transformations" in outcome.err
