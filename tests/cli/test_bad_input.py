"""Bad documents and bad subscriptions: a clear word about each, and the others are answered."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.core.limits import DEFAULT_LIMITS
from tests.support.running import run, run_process

Write = Callable[[dict[str, str | bytes]], None]

# The document, a part of the message, and the place; column 0: anywhere in that line.
BAD_DOCUMENTS: dict[str, tuple[bytes, str, int, int]] = {
    "empty": (b"", "no element found", 1, 1),
    "blank": (b"\n\n", "no element found", 3, 1),
    "not-xml": (b"\x89PNG\r\n\x1a\n\0\0", "not well-formed", 1, 1),
    "text": (b"id,name\n1,a\n", "", 1, 1),
    "truncated": (b"<a>\n <b>text", "the document ends inside <b>: no element found", 2, 9),
    "cut-in-a-tag": (b"<a>\n <b te", "the document ends inside <a>: unclosed token", 2, 2),
    "mismatched": (b"<a><b></a>", "mismatched tag: <b> is open", 1, 9),
    "two-roots": (b"<a/>\n<a/>", "junk after document element", 2, 1),
    "latin-1": (b"<a>caf\xe9</a>", "the byte 0xE9 is not UTF-8", 1, 7),
    "not-as-declared": (
        b"<?xml version='1.0' encoding='shift_jis'?>\n<a>\x81</a>",
        "bytes that are not shift_jis, the document's encoding",
        2,
        4,
    ),
    "not-utf-16": (b"<?xml version='1.0' encoding='utf-16'?><a/>", "encoding", 1, 31),
    "unknown-encoding": (
        b"<?xml version='1.0' encoding='klingon'?><a/>",
        "unknown encoding 'klingon'",
        1,
        31,
    ),
    "undeclared-prefix": (b"<a>\n<p:b/></a>", "unbound prefix", 2, 1),
    "undefined-entity": (b"<a>&nbsp;</a>", "undefined entity", 1, 4),
    "nested": (b"<a>" * 1_000_000 + b"</a>" * 1_000_000, "deeper than the limit depth", 1, 0),
    "laughs": (
        b"<!DOCTYPE a [<!ENTITY e0 'lol'>"
        + b"".join(b"<!ENTITY e%d '%s'>" % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 10))
        + b"]><a>&e9;</a>",
        "",
        1,
        0,
    ),
}


@pytest.mark.parametrize("name", BAD_DOCUMENTS)
def test_a_bad_document_is_an_error_beside_answers(write: Write, name: str) -> None:
    content, message, line, column = BAD_DOCUMENTS[name]
    write({"s": "//a", "1.xml": "<a/>", "2.xml": content, "3.xml": "<a/>"})
    outcome = run("match", "--subscriptions", "s", "1.xml", "2.xml", "3.xml")
    before, bad, after = outcome.results
    assert (outcome.status, outcome.err) == (3, "")
    assert before == {"document": "1.xml", "matches": ["1"]}
    assert after == {"document": "3.xml", "matches": ["1"]}
    assert list(bad) == ["document", "error", "line", "column"]
    assert message in bad["error"]
    assert bad["line"] == line
    assert bad["column"] == column or column == 0


def test_bad_documents_of_one_folder(write: Write) -> None:
    write({"s": "//a", "in/~.xml": "<a/>"})
    write({f"in/{name}.xml": content for name, (content, *_) in BAD_DOCUMENTS.items()})
    outcome = run_process("match", "--subscriptions", "s", "in")
    assert (outcome.status, outcome.err) == (3, "")
    assert len(outcome.results) == len(BAD_DOCUMENTS) + 1
    assert outcome.results[-1] == {"document": "in/~.xml", "matches": ["1"]}


def test_a_huge_attribute_is_answered(write: Write) -> None:
    write({"s": "//a[string-length(@v) = 10000000]", "1.xml": b"<a v='%s'/>" % (b"x" * 10**7)})
    assert run("match", "--subscriptions", "s", "1.xml").answers == {"1.xml": ["1"]}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none.xml", "cannot read none.xml: No such file or directory"),
        ("empty", "a folder without *.xml or *.xml.gz"),
        ("folder.xml", "a folder without *.xml or *.xml.gz"),
        ("dangling.xml", "cannot read dangling.xml: No such file or directory"),
        ("loop.xml", "cannot read loop.xml: Too many levels of symbolic links"),
        ("1.xml/2.xml", "cannot read 1.xml/2.xml: Not a directory"),
        ("x" * 5000, "File name too long"),
    ],
)
def test_what_cannot_be_read_is_an_error_beside_answers(
    write: Write, path: str, message: str
) -> None:
    write({"s": "//a", "1.xml": "<a/>", "empty/.hidden": ""})
    Path("folder.xml").mkdir()
    Path("dangling.xml").symlink_to("nowhere")
    Path("loop.xml").symlink_to("loop.xml")
    outcome = run("match", "--subscriptions", "s", path, "1.xml", path)
    first, answered, last = outcome.results
    assert (outcome.status, outcome.err) == (3, "")
    assert first == last
    assert first["document"] == path
    assert message in first["error"]
    assert (first["line"], first["column"]) == (None, None)
    assert answered == {"document": "1.xml", "matches": ["1"]}


def test_what_is_no_file_in_a_folder_is_an_error_and_does_not_block(write: Write) -> None:
    write({"s": "//a", "in/1.xml": "<a/>", "in/2.xml/3.xml": "<a/>"})
    os.mkfifo("in/4.xml")
    Path("in/5.xml").symlink_to("nowhere")
    outcome = run("match", "--subscriptions", "s", "in")
    assert outcome.status == 3
    assert outcome.answers == {
        "in/1.xml": ["1"],
        "in/2.xml": "not a regular file",
        "in/4.xml": "not a regular file",
        "in/5.xml": "cannot read in/5.xml: No such file or directory",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_one_may_not_read_is_an_error_beside_answers(write: Write) -> None:
    write({"s": "//a", "1.xml": "<a/>", "2.xml": "<a/>", "in/3.xml": "<a/>"})
    Path("1.xml").chmod(0)
    Path("in").chmod(0)
    outcome = run("match", "--subscriptions", "s", "1.xml", "in", "2.xml")
    Path("in").chmod(0o700)
    assert outcome.status == 3
    assert outcome.answers == {
        "1.xml": "cannot read 1.xml: Permission denied",
        "in": "cannot read the folder: Permission denied",
        "2.xml": ["1"],
    }


def test_a_closed_standard_input_is_an_error(write: Write) -> None:
    write({"s": "//a"})
    outcome = run_process("match", "--subscriptions", "s", "-", redirect="<&-")
    assert (outcome.status, outcome.err) == (3, "")
    assert outcome.answers == {"-": "standard input is closed"}


# -- subscriptions -----------------------------------------------------------------------------

BAD_SUBSCRIPTIONS: dict[str, tuple[str, bytes, str]] = {
    "twice": ("s.tsv", b"good\t//b", "subscription 'good': the id is used twice, first in line 1"),
    "no-expression": ("s.tsv", b"x\t", "subscription 'x': the expression is empty"),
    "no-id": ("s.tsv", b"\t//a", "subscription '': the id is empty"),
    "not-xpath": ("s.tsv", b"x\t//a[", "subscription 'x': expected a path"),
    "unsupported": ("s.tsv", b"x\t//a/..", "subscription 'x': the axis parent::"),
    "prefix": ("s.tsv", b"//p:a", "subscription '2': the prefix 'p' is not declared"),
    "long": ("s.tsv", b"x\t//" + b"a" * 100_000, "longer than the limit subscription_chars"),
    "parentheses": (
        "s.tsv",
        b"x\t" + b"(" * 10_000 + b"//a" + b")" * 10_000,
        "nested deeper than the limit subscription_nesting",
    ),
    "latin-1": ("s.tsv", b"x\t//caf\xe9", "the line is not UTF-8"),
    "tab-in-id": (
        "s.ndjson",
        json.dumps({"id": "a\tb", "expression": "//a"}).encode(),
        r"subscription 'a\tb': the id has a tab, a newline or another character",
    ),
    "newline-in-id": (
        "s.ndjson",
        json.dumps({"id": "a\nb", "expression": "//a"}).encode(),
        r"subscription 'a\nb': the id has a tab, a newline or another character",
    ),
    "not-json": ("s.ndjson", b"{", "the line is not JSON"),
    "deep-json": ("s.ndjson", b"[" * 100_000, "the line is not JSON"),
    "other-json": ("s.ndjson", b'["x", "//a"]', "expected an object"),
    "float-id": ("s.ndjson", b'{"id": 1.5, "expression": "//a"}', "expected an object"),
}

assert DEFAULT_LIMITS.subscription_chars < 100_000


@pytest.mark.parametrize("name", BAD_SUBSCRIPTIONS)
def test_a_bad_subscription_is_told_with_its_line(write: Write, name: str) -> None:
    file, line, message = BAD_SUBSCRIPTIONS[name]
    good = b'{"id": "good", "expression": "//a"}' if file.endswith("ndjson") else b"good\t//a"
    write({file: good + b"\n" + line + b"\n", "1.xml": "<a/>"})
    outcome = run("match", "--subscriptions", file, "1.xml")
    first, *context, last = (
        line for line in outcome.err.splitlines() if "--unsupported slow" not in line
    )
    assert (outcome.status, outcome.out) == (2, "")
    assert first.startswith(f"tamis: {file}, line 2: subscription ")
    assert message in first
    assert all(line.startswith("  ") for line in context)
    assert last == f"tamis: {file}: 1 of 2 subscriptions cannot be used"
    assert max(map(len, outcome.err.splitlines())) < 200

    skipping = run("match", "--subscriptions", file, "--skip-bad", "1.xml")
    assert (skipping.status, skipping.answers) == (0, {"1.xml": ["good"]})
    assert skipping.err == outcome.err.replace("tamis: ", "tamis: warning: ")


def test_all_bad_subscriptions_are_told_with_their_carets(write: Write) -> None:
    write({"s": "a\t//a[\n" + "".join(f"b{n}\t//b]\n" for n in range(100)), "1.xml": "<a/>"})
    outcome = run_process("match", "--subscriptions", "s", "1.xml")
    assert (outcome.status, outcome.out) == (2, "")
    lines = outcome.err.splitlines()
    assert lines[:3] == [
        "tamis: s, line 1: subscription 'a': expected a path, a literal or a function, "
        "found the end",
        "  //a[",
        "      ^",
    ]
    assert len(lines) == 3 * 101 + 1
    assert lines[-1] == "tamis: s: 101 of 101 subscriptions cannot be used"


def test_messages_cannot_write_to_the_terminal_what_they_like(write: Write) -> None:
    expression = json.dumps({"id": "x", "expression": "//a[. = '\x1b[31m']]"})
    write({"s.ndjson": expression, "\x1b]0;title\x07.tsv": "//a["})
    outcome = run("check", "--subscriptions", "s.ndjson")
    assert "\x1b" not in outcome.err
    outcome = run("check", "--subscriptions", "\x1b]0;title\x07.tsv")
    assert outcome.err.startswith(r"tamis: \x1b]0;title\x07.tsv, line 1: ")


@pytest.mark.parametrize(
    "command",
    [
        ("match", "--subscriptions", "s", "1.xml"),
        ("match", "--subscriptions", "s", "--record", "a", "1.xml"),
        ("select", "//a", "1.xml"),
        ("explain", "//a", "1.xml"),
        ("check", "--subscriptions", "s", "--against", "lxml", "1.xml"),
        ("transform", "--subscriptions", "q.xq", "1.xml"),
    ],
)
def test_the_declared_encoding_can_be_ignored(write: Write, command: tuple[str, ...]) -> None:
    """The message names the option, not the library's argument."""
    xml = "<?xml version='1.0' encoding='utf-16'?><a/>".encode("utf-8-sig")
    write({"s": "//a", "q.xq": "<r>{ for $a in //a return <b/> }</r>", "1.xml": xml})
    refused = run(*command)
    assert refused.status == 3
    assert "--declared-encoding ignore" in refused.out + refused.err
    assert "declared_encoding" not in refused.out + refused.err
    assert run(*command, "--declared-encoding", "ignore").status == 0
