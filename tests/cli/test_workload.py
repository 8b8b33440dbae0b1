"""``tamis workload``: files that ``tamis match`` reads, the same for the same seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.running import run, run_process, start

Write = Callable[..., None]

BOOK = """<!ELEMENT book (title, author+, section*)>
<!ELEMENT section (title, (p | section)*)>  <!ATTLIST section n CDATA #IMPLIED>
<!ELEMENT title (#PCDATA)>  <!ELEMENT author (#PCDATA)>  <!ELEMENT p (#PCDATA)>
"""


@pytest.fixture(autouse=True)
def dtd(write: Write) -> None:
    write({"book.dtd": BOOK, "p.dtd": "<!ELEMENT p:a ANY><!ATTLIST p:a xmlns:p CDATA 'urn:p'>"})


@pytest.mark.parametrize(
    "command",
    [
        "queries --dtd book.dtd --count 300 --predicates 1 --nested 1",
        "queries --dtd book.dtd --count 300 --depth 2..3 --skew 1 --inconsistent --distinct",
        "twigs --dtd book.dtd --count 300 --nodes 6 --splits 2 --predicates 1 --distinct",
    ],
)
def test_subscriptions_and_documents_fit_together(command: str) -> None:
    assert run("workload", *command.split(), "--output", "q.tsv").status == 0
    made = run("workload", "documents", "--dtd", "book.dtd", "--count", "20", "--output", "books")
    assert made.status == 0
    assert sorted(path.name for path in Path("books").iterdir())[::19] == [
        "000000.xml",
        "000019.xml",
    ]
    assert run("check", "--subscriptions", "q.tsv").results == [
        {"subscriptions": 300, "ok": 300, "slow": 0, "bad": 0}
    ]
    answers = run("match", "--subscriptions", "q.tsv", "books").answers
    assert len(answers) == 20
    assert any(answers.values())
    first = Path("q.tsv").read_text().splitlines()
    assert first[0].startswith("q1\t/")
    assert len({line.partition("\t")[2] for line in first}) > 200


def test_transformations_and_documents_fit_together() -> None:
    options = "--dtd book.dtd --count 200 --binding-depth 2 --returns 1 --distinct"
    made = run("workload", "transformations", *options.split(), "--output", "q.ndjson")
    assert made.status == 0
    assert run("workload", "documents", "--dtd", "book.dtd", "--count", "20", "--output", "books")
    outcome = run("transform", "--subscriptions", "q.ndjson", "books")
    assert outcome.status == 0
    assert {result["subscription"] for result in outcome.results} <= {
        f"q{n}" for n in range(1, 201)
    }
    assert len(outcome.results) > 20


def test_the_same_seed_the_same_bytes() -> None:
    for command in (
        ["queries", "--dtd", "book.dtd", "--count", "50"],
        ["twigs", "--dtd", "book.dtd", "--nodes", "5", "--splits", "1", "--count", "50"],
        ["transformations", "--dtd", "book.dtd", "--count", "50"],
        ["documents", "--dtd", "book.dtd", "--size", "5KB", "--fill"],
        ["dblp", "--records", "20"],
    ):
        once = run("workload", *command, "--seed", "5")
        assert once.status == 0
        assert once.out == run_process("workload", *command, "--seed", "5").out
        assert once.out != run("workload", *command, "--seed", "6").out


def test_from_documents(write: Write) -> None:
    write({"in/1.xml": "<a><b>x\ny</b></a>", "in/2.xml": "<a p:q='1' xmlns:p='urn:p'><c/></a>"})
    arguments = ["workload", "queries", "--documents", "in", "--count", "400", "--matching", "0.25"]
    refused = run(*arguments)
    assert refused.status == 2
    assert "may use prefixes (n0): name a file to write them to" in refused.err
    for output in ("q.tsv", "q.ndjson"):
        assert run(*arguments, "--namespaces", "ns", "--output", output).status == 0
        found = run("match", "--subscriptions", output, "--namespaces", "ns", "in").answers
        assert len({id for matches in found.values() for id in matches}) == 100
    assert "x\n" not in Path("q.tsv").read_text()
    texts = [json.loads(line)["expression"] for line in Path("q.ndjson").read_text().splitlines()]
    assert any("\n" in text for text in texts)


def test_one_document_is_a_file_or_goes_to_standard_output() -> None:
    to_output = run("workload", "documents", "--dtd", "book.dtd").out
    assert run("workload", "documents", "--dtd", "book.dtd", "--output", "one.xml").out == ""
    assert Path("one.xml").read_text() == to_output
    run("workload", "documents", "--dtd", "book.dtd", "--output", "folder")
    assert Path("folder/000000.xml").read_text() == to_output


def test_repeats() -> None:
    arguments = ["--repeat", "author=7..7", "--repeat", "section=0", "--optional", "0"]
    text = run("workload", "documents", "--dtd", "book.dtd", *arguments).out
    assert text.count("<author>") == 7
    assert "section" not in text


def test_prefixes_of_a_dtd() -> None:
    run("workload", "queries", "--dtd", "p.dtd", "--namespaces", "ns", "--output", "q.tsv")
    assert Path("ns").read_text() == "p urn:p\n"
    run("workload", "documents", "--dtd", "p.dtd", "--output", "p.xml")
    found = run("match", "--subscriptions", "q.tsv", "--namespaces", "ns", "p.xml")
    assert found.answers["p.xml"]


def test_of_several_roots_one_is_named(write: Write) -> None:
    write({"many.dtd": "<!ELEMENT lost EMPTY> <!ELEMENT a (b)> <!ELEMENT b EMPTY>"})
    made = run("workload", "documents", "--dtd", "many.dtd")
    assert made.out == "<a><b/></a>"
    assert "several roots (lost, a): <a> is taken" in made.err
    named = run("workload", "queries", "--dtd", "many.dtd", "--root", "lost", "--count", "1")
    assert named.err == ""


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("queries", "give either --dtd or --documents"),
        ("queries --dtd book.dtd --documents x", "give either --dtd or --documents"),
        ("queries --dtd book.dtd --matching 0.5", "--matching is for --documents"),
        ("queries --dtd none.dtd", "none.dtd: No such file or directory"),
        ("queries --dtd book.dtd --depth x", "expected a number or a range such as 2..4, not 'x'"),
        ("queries --dtd book.dtd --wildcard 2", "wildcard is a share from 0 to 1, not 2"),
        (
            "queries --dtd book.dtd --root boook",
            "no element 'boook' is declared: did you mean book?",
        ),
        ("queries --documents book.dtd --depth 3", "--depth is for --dtd, not for --documents"),
        ("documents --dtd book.dtd --records 3 --fill", "not for both"),
        ("documents --dtd book.dtd --size 9999TB", "1,099,511,627,776 bytes at most"),
        ("queries --documents none.xml", "cannot read none.xml"),
        ("twigs --dtd book.dtd --nodes 3", "need 13 nodes at least, not 3"),
        ("documents --dtd book.dtd --count 2", "several documents need a folder"),
        ("documents --dtd book.dtd --depth 1", "has 2 levels, more than 1"),
        ("documents --dtd book.dtd --size 20", "has 47 bytes: ask for a size of that at least"),
        ("documents --dtd book.dtd --size much", "expected a number of bytes such as 64KB"),
        ("documents --dtd book.dtd --repeat x=3", "repeats of <x>, which the DTD does not declare"),
        ("documents --dtd book.dtd --repeat author", "expected NAME=N or NAME=N..M, not 'author'"),
        ("documents --dtd book.dtd --repeat author=5..2", "0 to 1,000,000, not 5..2"),
        ("documents --dtd book.dtd --output book.dtd/x", "cannot make the folder book.dtd/x"),
        ("dblp", "give either --size or --records"),
        ("dblp --size 10", "has 54 bytes at least, not 10"),
    ],
)
def test_wrong_usage(command: str, message: str) -> None:
    outcome = run("workload", *command.split())
    assert message in outcome.err
    assert outcome.status in ((1,) if "cannot make" in message else (2, 3))
    assert outcome.out == ""
    assert "Traceback" not in outcome.err


def test_endless_output_into_a_closed_pipe() -> None:
    with start("workload", "dblp", "--size", "1TB") as process:
        assert process.stdout is not None
        assert process.stdout.read(1000).startswith(b"<?xml")
        process.stdout.close()
        assert process.wait(timeout=60) == 141


def test_events_and_their_filters() -> None:
    options = ["--filters", "20..30", "--interfaces", "3", "--strings", "0.5", "--names", "9"]
    shares = ["--operators", "= 0.5, < 0.5", "--string-operators", "suffix 1"]
    made = run("workload", "events", *options, *shares, "--count", "12", "--output", "one")
    assert (made.status, made.out) == (0, "")
    lines = Path("one/subscriptions.tsv").read_text().splitlines()
    assert 60 <= len(lines) <= 90
    operators = {
        part.split()[1] for line in lines for part in line.partition("\t")[2].split(" and ")
    }
    assert operators == {"=", "<", "suffix"}
    interfaces = [line.split("\t") for line in Path("one/interfaces.tsv").read_text().splitlines()]
    assert [id for id, _ in interfaces] == [line.partition("\t")[0] for line in lines]
    assert {interface for _, interface in interfaces} == {"i1", "i2", "i3"}
    events = [json.loads(line) for line in Path("one/events.ndjson").read_text().splitlines()]
    assert [3 <= len(event) <= 5 for event in events] == [True] * 12
    run("workload", "events", *options, *shares, "--count", "12", "--output", "two", "--seed", "1")
    assert Path("two/events.ndjson").read_text() != Path("one/events.ndjson").read_text()
    for wrong in (["--names", "4"], ["--operators", "= x"], ["--filters", "x"]):
        refused = run("workload", "events", *options, *wrong, "--output", "three")
        assert refused.status == 2
        assert not Path("three").exists()
