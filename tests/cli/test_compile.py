"""``tamis compile`` and ``tamis match --program``: the same answers, and clear errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.running import run, run_process

Write = Callable[[dict[str, str | bytes]], None]

SUBSCRIPTIONS = "large\t//order[total > 100]\nnamed\t//p:item[name() = 'q:item']\n//item\n"


@pytest.fixture
def program(write: Write) -> Path:
    """A program, compiled, and documents."""
    write(
        {
            "s.tsv": SUBSCRIPTIONS,
            "ns.tsv": "p\turn:p\n",
            "in/1.xml": "<order><total>250</total><item/></order>",
            "in/2.xml": "<order><q:item xmlns:q='urn:p'/></order>",
            "in/3.xml": "<order><total>2",
            "all.xml": "<all><order><total>101</total></order><order/><item/></all>",
        }
    )
    outcome = run(
        "compile", "--subscriptions", "s.tsv", "--namespaces", "ns.tsv", "--output", "s.tamis"
    )
    assert outcome == (0, "", "")
    return Path("s.tamis")


ASKED = [
    ["in"],
    ["--threads", "2", "in/1.xml", "in/2.xml"],
    ["--matching-only", "in"],
    ["--record", "order", "--matching-only", "all.xml"],
    ["--output", "answers.ndjson", "in/2.xml"],
]


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_a_program_answers_as_its_subscriptions(program: Path, words: list[str]) -> None:
    answers = Path("answers.ndjson")
    outcomes = []
    for given in (
        ["--program", str(program)],
        ["--subscriptions", "s.tsv", "--namespaces", "ns.tsv"],
    ):
        outcome = run("match", *given, *words)
        outcomes.append((*outcome, answers.read_text() if answers.exists() else ""))
        answers.unlink(missing_ok=True)
    assert outcomes[0] == outcomes[1]
    assert "large" in outcomes[0][1] or "named" in outcomes[0][3]


def test_in_processes_of_their_own(program: Path) -> None:
    words = ["compile", "--subscriptions", "s.tsv", "--namespaces", "ns.tsv"]
    compiled = run_process(*words, "--output", "warm.tamis", "--warm", "in")
    assert compiled.status == 3
    assert compiled.out == ""
    assert compiled.err.startswith(
        "tamis: warning: --warm skips a document: in/3.xml: line 1, column "
    )
    assert Path("warm.tamis.cache").exists()
    assert Path("warm.tamis").read_bytes() == program.read_bytes()
    for path in ("warm.tamis", program):
        outcome = run_process("match", "--program", str(path), "in/1.xml", "in/2.xml")
        assert outcome.status == 0
        assert outcome.err == ""
        assert outcome.answers == {"in/1.xml": ["large", "3"], "in/2.xml": ["named"]}


def test_all_options_together(write: Write) -> None:
    write(
        {
            "s.tsv": "bad\t//a[\nslow\t//b[last()]\nplain\t//p:a[b]\nname\tname(/*) = 'x:a'\n",
            "ns": "p urn:p\n",
            "1.xml": "<x:a xmlns:x='urn:p'><b/></x:a>",
            "2.xml": "<b/>",
        }
    )
    outcome = run(
        *["compile", "--subscriptions", "s.tsv", "--namespaces", "ns", "--unsupported", "slow"],
        *["--skip-bad", "--output", "s.tamis", "--warm", "1.xml", "--warm", "2.xml"],
    )
    assert outcome.status == 0
    assert "1 of 4 subscriptions cannot be used" in outcome.err
    outcome = run("match", "--program", "s.tamis", "--threads", "2", "1.xml", "2.xml")
    assert outcome.answers == {"1.xml": ["slow", "plain", "name"], "2.xml": ["slow"]}
    outcome = run("match", "--program", "s.tamis", "--record", "b", "1.xml")
    assert outcome.results == [{"document": "1.xml", "record": 0, "matches": ["slow"]}]


def test_bad_subscriptions_are_not_compiled(write: Write) -> None:
    write({"s.tsv": "bad\t//a[\ngood\t//a\n"})
    outcome = run("compile", "--subscriptions", "s.tsv", "--output", "s.tamis")
    assert outcome.status == 2
    assert "s.tsv, line 1: subscription 'bad'" in outcome.err
    assert not Path("s.tamis").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give either --subscriptions or --program"),
        (["--program", "s.tamis", "--subscriptions", "s.tsv"], "give either --subscriptions or"),
        (["--program", "s.tamis", "--namespaces", "ns.tsv"], "--namespaces: not with --program"),
        (["--program", "s.tamis", "--ns", "p=u"], "--ns: not with --program"),
        (["--program", "s.tamis", "--default-ns", "u"], "--default-ns: not with --program"),
        (["--program", "s.tamis", "--unsupported", "slow"], "--unsupported: not with --program"),
        (["--program", "s.tamis", "--skip-bad"], "--skip-bad: not with --program"),
        (["--program", "s.tamis", "--engine", "reference"], "--engine: not with --program"),
        (
            ["--program", "s.tamis", "--engine", "reference", "--skip-bad"],
            "--skip-bad and --engine: not with --program",
        ),
        (["--program", "none.tamis"], "none.tamis: cannot read it: No such file or directory"),
        (["--program", "in"], "in: it is not a file"),
        (["--program", "s.tsv"], "s.tsv: it is not a file of Tamis's"),
        (["--program", "damaged"], "was changed since it was written"),
        (["--program", "other"], "another version of Tamis made this file: make it again with"),
        (["--program", "half"], "half: it has 1,000 bytes instead of"),
        (["--program", "s.tamis.cache"], "it has a cache in it, not a program"),
        (["--subscriptions", "s.tamis"], "s.tamis is a program: give it as --program"),
    ],
)
def test_what_cannot_be(program: Path, words: list[str], said: str) -> None:
    content = program.read_bytes()
    Path("damaged").write_bytes(content[:-65] + bytes([content[-65] ^ 1]) + content[-64:])
    Path("other").write_bytes(content[:8] + b"\xff" + content[9:])
    Path("half").write_bytes(content[:1_000])
    warm = ["--output", "s.tamis", "--warm", "in/1.xml", "--namespaces", "ns.tsv"]
    assert run("compile", "--subscriptions", "s.tsv", *warm).status == 0
    outcome = run("match", *words, "in/1.xml")
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err
    assert outcome.err.startswith("tamis: ")


@pytest.mark.usefixtures("program")
def test_a_program_that_cannot_be_written() -> None:
    words = ["compile", "--subscriptions", "s.tsv", "--namespaces", "ns.tsv", "--output"]
    for output in ("no/folder/s.tamis", "in"):
        outcome = run(*words, output)
        assert outcome.status == 1
        assert outcome.err.startswith(f"tamis: cannot write {output}: ")
    assert not list(Path().rglob("*.tmp"))


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("document", ["none.xml", "in/3.xml", "empty"])
def test_a_program_without_a_warm_cache_is_reported(document: str) -> None:
    Path("empty").mkdir()
    words = ["compile", "--subscriptions", "s.tsv", "--namespaces", "ns.tsv"]
    outcome = run(*words, "--output", "s.tamis", "--warm", document)
    assert (outcome.status, outcome.out) == (3, "")
    assert "tamis: --warm: no document can be read: s.tamis has no warm cache\n" in outcome.err
    assert not Path("s.tamis.cache").exists()
    assert run("match", "--program", "s.tamis", "in/1.xml").answers == {"in/1.xml": ["large", "3"]}


def test_a_damaged_cache_costs_no_answer(program: Path) -> None:
    words = ["--subscriptions", "s.tsv", "--namespaces", "ns.tsv", "--output", "s.tamis"]
    run("compile", *words, "--warm", "in/1.xml")
    cache = Path("s.tamis.cache")
    cache.write_bytes(cache.read_bytes()[:-1])
    outcome = run("match", "--program", program, "in/1.xml")
    assert outcome.answers == {"in/1.xml": ["large", "3"]}
    assert "warning: the warm cache is left out" in outcome.err


def test_a_program_is_not_checked_as_subscriptions(program: Path) -> None:
    outcome = run("check", "--subscriptions", program)
    assert outcome.status == 2
    assert "s.tamis is a program" in outcome.err


def test_help_has_examples() -> None:
    outcome = run("compile", "--help")
    assert "tamis match --program orders.tamis incoming/" in outcome.out
    assert "--warm DOCUMENT" in outcome.out
    assert "--program FILE" in run("match", "--help").out
