"""``tamis match``: results, exit statuses, and where results go."""

import gzip
import json
import os
import stat
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import tamis
from tamis.language.entries import BULK_MIN
from tests.support.running import environment, run, run_process, start

Write = Callable[[dict[str, str | bytes]], None]

BROKEN = (
    '{"document": "in/2.xml", "error": "mismatched tag: <total> is open", '
    '"line": 2, "column": 11}\n'
)


@pytest.mark.usefixtures("orders")
def test_answers_a_folder_in_order() -> None:
    outcome = run_process("match", "--subscriptions", "orders.tsv", "in")
    assert outcome.status == 3
    assert outcome.out == (
        '{"document": "in/1.xml", "matches": ["large", "urgent", "5"]}\n'
        + BROKEN
        + '{"document": "in/3.xml", "matches": []}\n'
    )
    assert outcome.err == ""


@pytest.mark.usefixtures("orders")
def test_status_is_zero_when_all_documents_are_answered() -> None:
    outcome = run_process("match", "in/3.xml", "in/1.xml", "--subscriptions", "orders.tsv")
    assert outcome.status == 0
    assert outcome.answers == {"in/3.xml": [], "in/1.xml": ["large", "urgent", "5"]}
    assert list(outcome.answers) == ["in/3.xml", "in/1.xml"]


@pytest.mark.usefixtures("orders")
def test_standard_input_is_a_document() -> None:
    outcome = run_process(
        "match", "--subscriptions", "orders.tsv", "in/3.xml", "-", stdin=b"<item/>"
    )
    assert outcome.status == 0
    assert outcome.answers == {"in/3.xml": [], "-": ["5"]}


@pytest.mark.usefixtures("orders")
def test_standard_input_can_be_read_once_only() -> None:
    outcome = run("match", "--subscriptions", "orders.tsv", "-", "-", stdin=b"<item/>")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "tamis: standard input can be read only once: give - once\n"


@pytest.mark.usefixtures("orders")
def test_matching_only_leaves_out_what_matched_nothing_but_no_error() -> None:
    outcome = run("match", "--subscriptions", "orders.tsv", "--matching-only", "in")
    assert outcome.status == 3
    assert list(outcome.answers) == ["in/1.xml", "in/2.xml"]


def test_ids_keep_their_type_and_the_order_of_the_subscriptions(write: Write) -> None:
    write(
        {
            "s.ndjson": '{"id": 7, "expression": "//b"}\n\n{"id": "7", "expression": "//a"}\n'
            '{"id": "é", "expression": "//a"}\n',
            "1.xml": "<a><b/></a>",
        }
    )
    outcome = run("match", "--subscriptions", "s.ndjson", "1.xml")
    assert outcome.out == '{"document": "1.xml", "matches": [7, "7", "é"]}\n'


def test_a_folder_means_what_the_shell_makes_of_it(write: Write) -> None:
    write({"s": "//a", "in/b.xml": "<a/>", "in/a.xml": "<a/>", "in/B.xml": "<a/>"})
    write({"in/.hidden.xml": "<", "in/notes.txt": "", "in/c.XML": "", "in/below/d.xml": "<a/>"})
    outcome = run("match", "--subscriptions", "s", "in/")
    assert list(outcome.answers) == ["in/B.xml", "in/a.xml", "in/b.xml", "in/c.XML"]


def test_names_that_are_not_utf8_survive(write: Write) -> None:
    write({"s": "//a", "in/plain-é.xml": "<a/>"})
    name = os.fsdecode(b"in/\xe9.xml")
    Path(name).write_bytes(b"<a/>")
    outcome = run_process("match", "--subscriptions", "s", "in", env=environment(LC_ALL="C"))
    assert [found["document"] for found in outcome.results] == ["in/plain-é.xml", name]


def test_namespaces_are_those_of_the_file(write: Write) -> None:
    write(
        {
            "s": "//m:a[@xml:id]",
            "ns": "# Maven\nm\turn:m\n",
            "1.xml": "<a xmlns='urn:m' xml:id='1'/>",
        }
    )
    assert run("match", "--subscriptions", "s", "--namespaces", "ns", "1.xml").answers == {
        "1.xml": ["1"]
    }
    outcome = run("match", "--subscriptions", "s", "1.xml")
    assert outcome.status == 2
    assert "the prefix 'm' is not declared" in outcome.err


def test_namespaces_are_declared_one_by_one(write: Write) -> None:
    write(
        {
            "s": "m\t/m:a/n:b\nd\t/a\nodd\t/a[last()]\n",
            "ns": "m urn:m\n",
            "1.xml": "<a xmlns='urn:m'><b xmlns='urn:n'/></a>",
        }
    )
    options = ["--subscriptions", "s", "--unsupported", "slow", "--namespaces", "ns"]
    options += ["--ns", "n=urn:n", "--ns", "m=urn:m", "--default-ns", "urn:m"]
    found = run("match", *options, "1.xml")
    assert found.answers == {"1.xml": ["m", "d", "odd"]}
    assert run("compile", *options, "--output", "p").status == 0
    assert run("match", "--program", "p", "1.xml").answers == found.answers
    differences = run("check", *options, "--against", "lxml", "1.xml").results[-1]
    assert (differences["ok"], differences["slow"], differences["differences"]) == (2, 1, 0)


def test_a_set_that_matches_nothing_for_its_namespaces_says_so_once(write: Write) -> None:
    entries = "".join(f"{number}\t/feed/entry{number}\n" for number in range(BULK_MIN))
    feed = "<feed xmlns='http://www.w3.org/2005/Atom'><entry7/></feed>"
    write({"s": entries, "one": entries + "any\t/*\n", "in/1.xml": feed, "in/2.xml": "<rss/>"})
    told = (
        "tamis: warning: nothing was found: the documents have 'feed' in the namespace "
        "http://www.w3.org/2005/Atom, and it was asked for in none: give {}--default-ns "
        "http://www.w3.org/2005/Atom; or give {}--ns p=http://www.w3.org/2005/Atom and write "
        "p:feed\n"
    )
    assert run("match", "--subscriptions", "s", "in", "--threads", "2").err == told.format("", "")
    assert run("compile", "--subscriptions", "s", "--output", "p").status == 0
    compiling = "tamis compile "
    assert run("match", "--program", "p", "in").err == told.format(compiling, compiling)
    assert run("match", "--subscriptions", "one", "in").err == ""
    options = ["--subscriptions", "s", "--default-ns", "http://www.w3.org/2005/Atom"]
    found = run("match", *options, "in")
    assert (found.err, found.answers["in/1.xml"]) == ("", ["7"])


def test_a_prefix_that_is_not_declared_is_told_with_the_option(write: Write) -> None:
    write({"s": "//svg:g\n//own:g\n", "1.xml": "<a/>"})
    err = run("match", "--subscriptions", "s", "1.xml").err
    assert "hint: declare it: --ns svg=http://www.w3.org/2000/svg\n" in err
    assert "hint: declare it: --ns own=URI" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ns", "p"], "--ns p: expected PREFIX=URI"),
        (["--ns", "p="], "--ns p=: expected PREFIX=URI"),
        (["--ns", "=u"], "--ns =u: a default namespace is --default-ns u"),
        (["--ns", "p=u", "--ns", "p=v"], "--ns p=v: the prefix is declared before, as u"),
        (["--namespaces", "ns", "--ns", "p=v"], "--ns p=v: the prefix is declared before, as u"),
        (["--ns", "1=u"], "not a namespace declaration: '1' → 'u'"),
        (["--default-ns", ""], "--default-ns: expected a URI"),
        (["--namespaces", "p=u"], "--namespaces takes a file: a single prefix is --ns PREFIX=URI"),
        (
            ["--namespaces", "p=http://x"],
            "--namespaces takes a file: a single prefix is --ns PREFIX=URI",
        ),
    ],
)
def test_declarations_that_are_none_are_refused(
    write: Write, options: list[str], message: str
) -> None:
    write({"s": "/a", "ns": "p u", "1.xml": "<a/>"})
    outcome = run("match", "--subscriptions", "s", *options, "1.xml")
    assert (outcome.status, outcome.out, outcome.err) == (2, "", f"tamis: {message}\n")


def test_unsupported_expressions_are_refused_or_go_through_lxml(write: Write) -> None:
    write({"s": "a\t//a\nlast\t//b[last()]", "1.xml": "<a><b/></a>"})
    refused = run("match", "--subscriptions", "s", "1.xml")
    assert (refused.status, refused.out) == (2, "")
    slow = run("match", "--subscriptions", "s", "--unsupported", "slow", "1.xml")
    assert (slow.status, slow.answers) == (0, {"1.xml": ["a", "last"]})
    assert slow.err == "tamis: warning: 1 of 2 subscriptions go through lxml\n"


def test_without_lxml_the_message_says_what_to_install(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    write({"s": "//b[last()]", "1.xml": "<a/>"})
    outcome = run("match", "--subscriptions", "s", "--unsupported", "slow", "1.xml")
    assert (outcome.status, outcome.out) == (2, "")
    assert "pip install 'tamis[slow]'" in outcome.err


@pytest.mark.usefixtures("orders")
def test_an_engine_is_used_or_refused() -> None:
    args = ("match", "--subscriptions", "orders.tsv", "in/1.xml", "--engine")
    assert run(*args, "reference").status == 0
    outcome = run(*args, "warp")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("tamis: there is no engine 'warp': choose one of auto, ")


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("options", [["--root", "a"], ["--dtd-trust"]])
def test_what_is_about_a_dtd_needs_one(options: list[str]) -> None:
    outcome = run("match", "--subscriptions", "orders.tsv", *options, "in")
    assert (outcome.status, outcome.out) == (2, "")
    assert "give --dtd too" in outcome.err


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["in"], "give either --subscriptions or --program"),
        (["--subscriptions", "orders.tsv"], "Missing argument 'DOCUMENT'"),
        (["--subscriptions", "none.tsv", "in"], "tamis: cannot read none.tsv: No such file"),
        (["--subscriptions", "in", "in"], "tamis: cannot read in: Is a directory"),
        (
            ["--subscriptions", "orders.tsv", "--namespaces", "none", "in"],
            "tamis: cannot read none",
        ),
        (["--subscriptions", "orders.tsv", "--unsupported", "guess", "in"], "'guess'"),
    ],
)
def test_wrong_usage(args: list[str], message: str) -> None:
    outcome = run("match", *args)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


def test_a_set_without_subscriptions_is_warned_about(write: Write) -> None:
    write({"s": "# none yet\n", "bad": "//a[", "1.xml": "<a/>"})
    outcome = run("match", "--subscriptions", "s", "1.xml")
    assert (outcome.status, outcome.answers) == (0, {"1.xml": []})
    assert outcome.err == "tamis: warning: s has no subscriptions\n"
    outcome = run("match", "--subscriptions", "bad", "--skip-bad", "1.xml")
    assert outcome.err.endswith("warning: bad has no subscriptions that can be used\n")


# -- where results go --------------------------------------------------------------------------


@pytest.mark.usefixtures("orders")
def test_output_is_written_and_keeps_the_mode_of_what_it_replaces() -> None:
    Path("out").write_text("old")
    Path("out").chmod(0o640)
    Path("link").symlink_to("out")
    outcome = run_process("match", "--subscriptions", "orders.tsv", "--output", "link", "in")
    assert (outcome.status, outcome.out) == (3, "")
    assert Path("out").read_text().splitlines(keepends=True)[1] == BROKEN
    assert stat.S_IMODE(Path("out").stat().st_mode) == 0o640
    assert Path("link").is_symlink()
    assert sorted(os.listdir()) == ["in", "link", "orders.tsv", "out"]


@pytest.mark.usefixtures("orders")
def test_output_of_a_command_that_fails_stays_as_it_was() -> None:
    Path("out").write_text("old")
    args = ("match", "--subscriptions", "orders.tsv", "--output", "out")
    assert run(*args, "--engine", "warp", "in").status == 2
    assert Path("out").read_text() == "old"


@pytest.mark.usefixtures("orders")
def test_output_that_is_no_file_is_written_to_as_it_is() -> None:
    os.mkfifo("pipe")
    process = start("match", "--subscriptions", "orders.tsv", "--output", "pipe", "in/3.xml")
    assert Path("pipe").read_bytes() == b'{"document": "in/3.xml", "matches": []}\n'
    assert process.communicate(timeout=60) == (b"", b"")
    assert Path("pipe").is_fifo()


@pytest.mark.usefixtures("orders")
def test_output_dash_is_standard_output() -> None:
    outcome = run("match", "--subscriptions", "orders.tsv", "--output", "-", "in/3.xml")
    assert outcome.answers == {"in/3.xml": []}


@pytest.mark.usefixtures("orders")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_results_that_cannot_be_written_are_a_failure() -> None:
    args = ("match", "--subscriptions", "orders.tsv", "in")
    outcome = run_process(*args, "--output", "/dev/full")
    assert (outcome.status, outcome.err) == (
        1,
        "tamis: cannot write /dev/full: No space left on device\n",
    )
    outcome = run_process(*args, redirect="> /dev/full")
    assert (outcome.status, outcome.err) == (
        1,
        "tamis: cannot write standard output: No space left on device\n",
    )


@pytest.mark.usefixtures("orders")
def test_a_closed_standard_output_cannot_be_written() -> None:
    outcome = run_process("match", "--subscriptions", "orders.tsv", "in", redirect=">&-")
    assert (outcome.status, outcome.err) == (1, "tamis: standard output is closed\n")


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    "command",
    [
        ["match", "--subscriptions", "orders.tsv", "in/1.xml"],
        ["match-events", "--subscriptions", "alarms.tsv", "events.ndjson"],
        ["transform", "--subscriptions", "late.xq", "in/1.xml"],
        ["compile", "--subscriptions", "orders.tsv"],
        ["select", "//total", "in/1.xml"],
        ["schema", "order.dtd"],
        ["workload", "queries", "--dtd", "order.dtd"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("no/out", "No such file or directory"),
        ("in", ""),
        ("in/1.xml/2", "Not a directory"),
        ("x" * 5000, "File name too long"),
    ],
    ids=["no folder", "a folder", "below a file", "a long name"],
)
def test_an_output_that_cannot_be_written_is_a_failure_of_any_command(
    write: Write, command: list[str], output: str, message: str
) -> None:
    write(
        {
            "alarms.tsv": "hot\ttemp > 30\n",
            "events.ndjson": '{"temp": 31}\n',
            "late.xq": "<r>{ for $t in //total return $t }</r>",
            "order.dtd": "<!ELEMENT order (total)> <!ELEMENT total (#PCDATA)>",
        }
    )
    outcome = run(*command, "--output", output)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("tamis: cannot ")
    assert message in outcome.err


def test_memory_does_not_grow_with_the_documents(write: Write) -> None:
    size = 4 << 20  # what match_many() reads ahead
    write({"s": "//a", "1.xml": b"<a><!--" + b"-+" * (size // 2) + b"--></a>"})
    code = (
        "import resource, sys; from tamis.cli import main\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )

    def peak_bytes(documents: int) -> int:
        command = [sys.executable, "-c", code, "match", "--subscriptions", "s"]
        done = subprocess.run(
            command + ["1.xml"] * documents, capture_output=True, check=True, timeout=60
        )
        assert len(done.stdout.splitlines()) == documents
        return int(done.stderr) * (1 if sys.platform == "darwin" else 1024)

    assert peak_bytes(80) < peak_bytes(2) + 40 * size


# -- compressed documents ----------------------------------------------------------------------


def test_gzip_is_read_from_files_folders_and_standard_input(write: Write) -> None:
    data = gzip.compress(b"<a/>")
    write({"s": "//a", "in/1.xml": "<a/>", "in/2.xml.gz": data, "in/3.gz": data, "4": data})
    outcome = run_process("match", "--subscriptions", "s", "in", "4", "-", stdin=data)
    assert outcome.status == 0
    assert outcome.answers == {name: ["1"] for name in ("in/1.xml", "in/2.xml.gz", "4", "-")}


def test_the_members_of_a_zip_archive_are_documents(write: Write) -> None:
    write({"s": "//a", "empty.zip": b"PK\x05\x06" + b"\0" * 18, "bad.zip": b"PK\x03\x04"})
    with zipfile.ZipFile("some.zip", "w") as archive:
        archive.writestr("in/2.xml", "<a/>")
        archive.writestr("1.xml.gz", gzip.compress(b"<b/>"))
        archive.writestr("readme", "")
        archive.writestr("3.xml", "<a>")
    outcome = run("match", "--subscriptions", "s", "some.zip", "empty.zip", "bad.zip")
    assert outcome.status == 3
    assert outcome.results == [
        {"document": "some.zip/in/2.xml", "matches": ["1"]},
        {"document": "some.zip/1.xml.gz", "matches": []},
        {
            "document": "some.zip/3.xml",
            "error": "the document ends inside <a>: no element found",
            "line": 1,
            "column": 4,
        },
        {
            "document": "empty.zip",
            "error": "a zip archive without *.xml or *.xml.gz",
            "line": None,
            "column": None,
        },
        {
            "document": "bad.zip",
            "error": "cannot read the zip archive: File is not a zip file",
            "line": None,
            "column": None,
        },
    ]


# -- records -----------------------------------------------------------------------------------

FEED = b"<feed xmlns:p='u'><p:entry><a/></p:entry>\n<entry/><p:entry>1</p:entry></feed>"


def test_records_are_answered_one_by_one(write: Write) -> None:
    write({"s": "/p:entry/a\n/p:entry\n/entry", "ns": "p\tu", "1.xml": FEED})
    args = ("match", "--subscriptions", "s", "--namespaces", "ns", "--record")
    outcome = run_process(*args, "p:entry", "1.xml", "-", stdin=gzip.compress(FEED))
    assert outcome.status == 0
    assert outcome.out == "".join(
        f'{{"document": "{name}", "record": 0, "matches": ["1", "2"]}}\n'
        f'{{"document": "{name}", "record": 1, "matches": ["2"]}}\n'
        for name in ("1.xml", "-")
    )
    outcome = run(*args, "entry", "1.xml")
    assert outcome.results == [{"document": "1.xml", "record": 0, "matches": ["3"]}]


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_pipe_that_pauses_is_answered(write: Write, threads: str, is_packed: bool) -> None:
    write({"s": "//b"})
    args = ("match", "--subscriptions", "s", "--record", "a", "--threads", threads, "-")
    packer = zlib.compressobj(wbits=31)
    with start(*args, stdin=subprocess.PIPE) as process:

        def give(text: bytes) -> None:
            if is_packed:
                text = packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)
            process.stdin.write(text)
            process.stdin.flush()

        give(b"<x><a/><a><b/></a><a")
        for number in (0, 2, 4):
            for record, matches in ((number, []), (number + 1, ["1"])):
                found = json.loads(process.stdout.readline())
                assert found == {"document": "-", "record": record, "matches": matches}
            give(b"/><a><b></b></a><a")
        process.kill()


def test_records_that_match_nothing_are_left_out(write: Write) -> None:
    write({"s": "//b", "1.xml": "<x><a/><a><b/></a><a/><a><c></a></x>"})
    outcome = run("match", "--subscriptions", "s", "--record", "a", "--matching-only", "1.xml")
    assert outcome.status == 3
    assert outcome.results == [
        {"document": "1.xml", "record": 1, "matches": ["1"]},
        {
            "document": "1.xml",
            "record": 3,
            "error": "mismatched tag: <c> is open; the rest was not read",
            "line": 1,
            "column": 31,
        },
    ]


def test_records_behind_a_bad_one(write: Write) -> None:
    write({"s": "//b", "1.xml": "<x><a/><a>&e;</a>\n<a><b/></a><a><c></a></x>"})
    args = ("match", "--subscriptions", "s", "--on-bad-record", "resume")
    outcome = run(*args, "--record", "a", "1.xml")
    assert outcome.status == 3
    assert [found["record"] for found in outcome.results] == [0, 1, 2, 3]
    assert outcome.results[1]["error"] == "undefined entity; bytes 7 to 18 were passed over"
    assert outcome.results[2]["matches"] == ["1"]
    assert outcome.results[3]["error"] == "mismatched tag: <c> is open; the rest was not read"
    assert run(*args, "1.xml").err == "tamis: --on-bad-record is for --record TAG\n"
    select = run("select", "--record", "a", "--on-bad-record", "resume", "//b", "1.xml")
    assert "<b/>" in select.out
    assert select.status == 3


def test_records_by_their_namespace(write: Write) -> None:
    write({"s": "//b", "1.xml": "<x xmlns:p='u'><a/><p:a><b/></p:a><a xmlns='u'/></x>"})
    args = ("match", "--subscriptions", "s", "--record")
    expected = [[0, ["1"]], [1, []]]
    for more in (("{u}a",), ("q:a", "--ns", "q=u")):
        outcome = run(*args, *more, "1.xml")
        assert [[found["record"], found["matches"]] for found in outcome.results] == expected
    assert [found["record"] for found in run(*args, "p:a", "1.xml").results] == [0]
    outcome = run(*args, "{v}a", "1.xml")
    assert outcome.status == 3
    assert "with its namespace, {uri}page" in outcome.err


def test_documents_without_records_are_told_of(write: Write) -> None:
    write({"s": "//a", "1.xml": "<x/>", "2.xml": "<a/>", "3.xml": "<"})
    outcome = run("match", "--subscriptions", "s", "--record", "a", "1.xml", "2.xml", "3.xml", "4")
    assert outcome.status == 3
    assert outcome.err == "tamis: warning: 1.xml has no element a: it has no records\n"
    assert outcome.results[0] == {"document": "2.xml", "record": 0, "matches": ["1"]}
    assert outcome.results[1]["error"] == "unclosed token"
    assert outcome.results[2]["record"] == 0
    assert outcome.results[2]["error"].startswith("cannot read 4: No such file")


def test_records_through_lxml(write: Write) -> None:
    write({"s": "odd\t//a[last()]\nroot\t/a[1][last()]", "1.xml": "<l><a/><b><a><a/></a></b></l>"})
    args = ("match", "--subscriptions", "s", "1.xml", "--unsupported", "slow", "--record")
    outcome = run(*args, "a")
    assert outcome.status == 0
    assert [found["matches"] for found in outcome.results] == [["odd", "root"], ["odd", "root"]]
    outcome = run(*args, "<a>")
    assert (outcome.status, outcome.out) == (2, "")


def test_memory_does_not_grow_with_the_records(write: Write) -> None:
    write({"s": "//b[. = 'x']"})
    code = (
        "import resource, sys; from tamis.cli import main\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "match", "--subscriptions", "s", "--record", "a", "-"]

    def peak_kb(megabytes: int) -> int:
        record = b"<a n='1'><b>" + b"text " * 2000 + b"</b></a>\n"
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            reader = threading.Thread(target=lambda: lines.append(process.stdout.read()))
            lines: list[bytes] = []
            reader.start()
            process.stdin.write(b"<x>")
            for _ in range(megabytes):
                process.stdin.write(record * 100)
            process.stdin.write(b"</x>")
            process.stdin.close()
            reader.join()
            error = process.stderr.read()
        assert lines[0].count(b"\n") == 100 * megabytes
        return int(error)

    assert peak_kb(100) < peak_kb(10) + 30_000


# -- threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", ["1", "2", "7"])
def test_any_number_of_threads_answers_the_same(write: Write, threads: str) -> None:
    write({"s": "/a\n//b"})
    write({f"in/{n:04}.xml": "<a/>" if n % 3 else "<a><b>" for n in range(700)})
    args = ("match", "--subscriptions", "s", "--threads", threads)
    outcome = run(*args, "in")
    assert outcome.status == 3
    assert [found["document"] for found in outcome.results] == [
        f"in/{n:04}.xml" for n in range(700)
    ]
    assert [n for n, found in enumerate(outcome.results) if "error" in found] == [*range(0, 700, 3)]
    outcome = run(*args, "--record", "b", "-", stdin=b"<a>" + b"<b/>" * 700 + b"</a>")
    assert [found["record"] for found in outcome.results] == list(range(700))
    assert outcome.status == 0


@pytest.mark.usefixtures("orders")
def test_a_number_of_threads_that_is_none() -> None:
    outcome = run("match", "--subscriptions", "orders.tsv", "--threads", "0", "in")
    assert (outcome.status, outcome.out) == (2, "")
    assert "--threads" in outcome.err


def test_with_a_dtd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b.dtd").write_text("<!ELEMENT b (c*)> <!ELEMENT c (d?)> <!ELEMENT d EMPTY>")
    Path("s.tsv").write_text("x\t/c/*\ny\t//d\n")
    Path("b.xml").write_text("<b><c><d/></c><c/></b>")
    Path("e.xml").write_text("<b><d/></b>")
    asked = ["match", "--subscriptions", "s.tsv", "--dtd", "b.dtd"]
    outcome = run(*asked, "b.xml", "e.xml")
    assert [line["matches"] for line in outcome.results] == [["y"], ["y"]]
    assert "documents that violate the DTD: 1, the first by d in b; Tamis" in outcome.err
    for engine in ("automaton", "nfa", "pma"):
        outcome = run(*asked, "--engine", engine, "--record", "c", "b.xml")
        assert [line["matches"] for line in outcome.results] == [["x", "y"], []]
        assert outcome.err == ""


def test_what_lxml_cannot_answer_fails_alone(write: Write, tmp_path: Path) -> None:
    """The others are answered in the same line, and the status says that one is not."""
    deep = "<a>" * 3000 + "</a>" * 3000  # deeper than libxml2's own limit
    write({"1.xml": "<a><b/></a>", "2.xml": deep, "3.xml": deep.replace("a>", "c>")})
    limits = tamis.Limits(depth=5000)
    expressions = {"a": "//a", "last": "//b[last()]"}
    tamis.compile(expressions, unsupported="slow", limits=limits).save(tmp_path / "p.tamis")
    for option in ("--threads=1", "--matching-only"):
        outcome = run("match", "--program", "p.tamis", option, "1.xml", "2.xml", "3.xml")
        assert outcome.status == 3
        assert outcome.answers == {"1.xml": ["a", "last"], "2.xml": ["a"], "3.xml": []}
        failed = [result.get("failed") for result in outcome.results]
        assert failed[0] is None
        assert ["lxml cannot parse" in found["last"] for found in failed[1:]] == [True, True]
