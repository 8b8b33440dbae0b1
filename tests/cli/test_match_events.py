"""``tamis match-events``: results, exit statuses, streams that go on."""

from __future__ import annotations

import gzip
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tamis.cli.console import to_json
from tests.support.running import run, run_process, start

Write = Callable[[dict[str, str | bytes]], None]

EVENTS = (
    b'{"temp": 35, "area": "a1"}\n\n{"temp": 35\n{"wind": 25.5, "temp": 31}\r\n{"temp": [1]}\n{}\n'
)
BROKEN = '"error": "not JSON: unexpected end of data, at character 12"}\n'
NESTED = '"error": "the attribute \'temp\' is of type list: write temp[] for some element of it"}\n'
ANSWERS = (
    '{"line": 1, "matches": ["hot"]}\n'
    f'{{"line": 3, {BROKEN}'
    '{"line": 4, "matches": ["hot", "wiñd"]}\n'
    f'{{"line": 5, {NESTED}'
    '{"line": 6, "matches": []}\n'
)


@pytest.fixture(autouse=True)
def _alarms(write: Write) -> None:
    write(
        {
            "alarms.tsv": 'hot\ttemp > 30\nwiñd\twind > 20 or area = "b"\n',
            "groups.tsv": "hot\tnorth\nwiñd\tnorth\n",
            "events.ndjson": EVENTS,
            "good.ndjson": b'{"wind": 21}',
        }
    )


ALARMS = ("match-events", "--subscriptions", "alarms.tsv")


def test_answers_in_order() -> None:
    outcome = run_process(*ALARMS, "events.ndjson")
    assert (outcome.status, outcome.out, outcome.err) == (3, ANSWERS, "")


def test_lines_are_those_of_the_other_commands() -> None:
    for line in ANSWERS.splitlines(keepends=True):
        assert to_json(json.loads(line)) + "\n" == line


@pytest.mark.parametrize("threads", [1, 3])
def test_standard_input_and_threads(threads: int) -> None:
    outcome = run(*ALARMS, "--threads", str(threads), "-", stdin=EVENTS)
    assert (outcome.status, outcome.out) == (3, ANSWERS)
    outcome = run(*ALARMS, "--threads", str(threads), "-", stdin=gzip.compress(EVENTS))
    assert (outcome.status, outcome.out) == (3, ANSWERS)


def test_objects_are_looked_into(write: Write) -> None:
    write(
        {"nested.tsv": "hot\td.t > 30\n", "nested.ndjson": b'{"d": {"t": 35}}\n{"d.t": 31}\n{}\n'}
    )
    outcome = run_process("match-events", "--subscriptions", "nested.tsv", "nested.ndjson")
    found = [found["matches"] for found in outcome.results]
    assert (outcome.status, found, outcome.err) == (0, [["hot"], ["hot"], []], "")


def test_status_is_zero_when_all_events_are_answered() -> None:
    outcome = run(*ALARMS, "good.ndjson")
    assert (outcome.status, outcome.out) == (0, '{"line": 1, "matches": ["wiñd"]}\n')


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_parquet_is_no_lines(threads: str, pack: Callable[[bytes], bytes]) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"temp": [31] * 5_000}), "events.dat")
    Path("events.dat").write_bytes(pack(Path("events.dat").read_bytes()))
    outcome = run(*ALARMS, "--threads", threads, "events.dat")
    message = "this is Parquet: name it *.parquet, or give it to match_arrow()"
    assert (outcome.status, outcome.results) == (3, [{"line": 1, "error": message}])


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_an_array_is_no_lines(threads: str, mark: bytes) -> None:
    message = (
        "an event is an object of names and values, and this is a list: write one object a line; "
        "jq -c '.[]' makes lines of an array"
    )
    for array in (b'[{"temp": 31}, {"temp": 3}]', b"[", b"[\n"):
        outcome = run(*ALARMS, "--threads", threads, "-", stdin=mark + array)
        assert (outcome.status, outcome.results) == (3, [{"line": 1, "error": message}])
    lines = b'[\n{"temp": 31},\n{"temp": 32}\n]'
    found = run(*ALARMS, "--threads", threads, "-", stdin=mark + lines).results
    assert [result["line"] for result in found] == [1, 2, 3, 4]
    assert found[0]["error"] == message
    assert found[2] == {"line": 3, "matches": ["hot"]}
    assert "jq" not in found[1]["error"] + found[3]["error"]
    found = run(*ALARMS, "--threads", threads, "-", stdin=b"{}\n[]").results
    assert "jq" not in found[1]["error"]


def test_several_files_have_names() -> None:
    outcome = run(*ALARMS, "good.ndjson", "none.ndjson", "-", stdin=b'{"temp": 31}')
    assert outcome.status == 3
    assert outcome.results == [
        {"file": "good.ndjson", "line": 1, "matches": ["wiñd"]},
        {
            "file": "none.ndjson",
            "line": 1,
            "error": "cannot read none.ndjson: No such file or directory",
        },
        {"file": "-", "line": 1, "matches": ["hot"]},
    ]
    assert all(next(iter(result)) == "file" for result in outcome.results)


def test_names_that_are_not_utf_8() -> None:
    name = b"n\xff.ndjson".decode(errors="surrogateescape")
    Path(name).write_bytes(b"{}")
    outcome = run_process(*ALARMS, name, "good.ndjson")
    assert outcome.out.splitlines()[0] == '{"file": "n\\udcff.ndjson", "line": 1, "matches": []}'


def test_matching_only_leaves_out_what_matched_nothing_but_no_error() -> None:
    outcome = run(*ALARMS, "--matching-only", "events.ndjson")
    assert [result["line"] for result in outcome.results] == [1, 3, 4, 5]


def test_by() -> None:
    found = {}
    for by in ("subscription", "filter", "interface"):
        outcome = run(*ALARMS, "--interfaces", "groups.tsv", "--by", by, "-", stdin=b'{"wind":99}')
        found[by] = outcome.results[0]["matches"]
    assert found == {"subscription": ["wiñd"], "filter": [1], "interface": ["north"]}


def test_interfaces_in_json(write: Write) -> None:
    rules = (
        '{"id": 1, "expression": "temp > 30", "interface": "north"}\n'
        '{"id": "x", "expression": "temp > 3", "interface": 7}\n'
    )
    plain = rules.replace(', "interface": "north"', "").replace(', "interface": 7', "")
    groups = '{"id": 1, "interface": "north"}\n\n{"id": "x", "interface": 7}\n'
    write({"with.ndjson": rules, "plain.ndjson": plain, "groups.ndjson": groups})
    by = ("--by", "interface", "-")
    for options in (
        ("--subscriptions", "with.ndjson"),
        ("--subscriptions", "plain.ndjson", "--interfaces", "groups.ndjson"),
    ):
        outcome = run("match-events", *options, *by, stdin=b'{"temp": 31}\n{"temp": 4}')
        assert [result["matches"] for result in outcome.results] == [["north", 7], [7]]
    for options, message in (
        (("plain.ndjson",), "--by interface needs to know which subscriptions belong to each"),
        (("with.ndjson", "--interfaces", "groups.ndjson"), "the file has interfaces, and others"),
    ):
        outcome = run("match-events", "--subscriptions", *options, *by, stdin=b"")
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err.startswith(f"tamis: {message}")
    some = '{"id": "y", "expression": "temp > 3"}\n'
    some += '{"id": "z", "expression": "temp > 3", "interface": ""}'
    write({"some.ndjson": rules + some})
    outcome = run("match-events", "--subscriptions", "some.ndjson", *by, stdin=b"")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(
        "tamis: some.ndjson, line 3: subscription 'y': there is no \"interface\", and other lines "
        "have one\ntamis: some.ndjson, line 4: subscription 'z': the interface is no id: ''\n"
    )
    options = ("--subscriptions", "some.ndjson", "--skip-bad")
    outcome = run("match-events", *options, *by, stdin=b'{"temp": 31}')
    assert [result["matches"] for result in outcome.results] == [["north", 7]]
    for line in ('{"id": 1}', "[]", '{"id": 1, "interface": true}', "{"):
        write({"groups.ndjson": line})
        options = ("--subscriptions", "plain.ndjson", "--interfaces", "groups.ndjson")
        outcome = run("match-events", *options, "-", stdin=b"")
        assert outcome.err == ('tamis: groups.ndjson, line 1: write {"id": …, "interface": …}\n'), (
            line
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("hot north", "groups.tsv, line 1: write id, tab, interface"),
        ("hot\tnorth\n\n# x\nhot\tsouth", "groups.tsv, line 4: the id is there before"),
        (b"\xff", "cannot read groups.tsv: 'utf-8' codec"),
    ],
)
def test_interfaces_that_are_none(write: Write, content: str | bytes, message: str) -> None:
    write({"groups.tsv": content})
    outcome = run(*ALARMS, "--interfaces", "groups.tsv", "good.ndjson")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tamis: {message}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-", "-"), "standard input can be read only once: give - once"),
        (("--engine", "fast", "good.ndjson"), "there is no engine 'fast': choose one of "),
        (("--interfaces", "none.tsv", "good.ndjson"), "cannot read none.tsv: No such file"),
    ],
)
def test_wrong_usage(options: tuple[str, ...], message: str) -> None:
    outcome = run(*ALARMS, *options, stdin=b"")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tamis: {message}")


def test_an_archive_is_refused() -> None:
    with zipfile.ZipFile("events.zip", "w") as archive:
        archive.write("events.ndjson")
    with tarfile.open("events.tar.gz", "w:gz") as packed:
        packed.add("events.ndjson")
    for name in ("events.zip", "events.tar.gz"):
        outcome = run(*ALARMS, "good.ndjson", name)
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err == (
            f"tamis: {name} is an archive: unpack it, and give the files in it\n"
        )


def test_bad_subscriptions_are_all_listed(write: Write) -> None:
    write({"alarms.tsv": "hot\ttemp > 30\none\ttemp >> 30\ntwo\t(\n"})
    outcome = run(*ALARMS, "good.ndjson")
    assert (outcome.status, outcome.out) == (2, "")
    assert "alarms.tsv, line 2: subscription 'one': " in outcome.err
    assert "alarms.tsv, line 3: subscription 'two': " in outcome.err
    outcome = run(*ALARMS, "--skip-bad", "-", stdin=b'{"temp": 31}')
    assert (outcome.status, outcome.out) == (0, '{"line": 1, "matches": ["hot"]}\n')
    assert "warning: alarms.tsv, line 2: " in outcome.err


def test_a_file_of_results() -> None:
    outcome = run(*ALARMS, "--output", "found.ndjson", "events.ndjson")
    assert (outcome.status, outcome.out) == (3, "")
    assert Path("found.ndjson").read_text(encoding="utf-8") == ANSWERS


def test_closed_standard_input() -> None:
    outcome = run_process(*ALARMS, "-", redirect="<&-")
    assert (outcome.status, outcome.err) == (2, "tamis: standard input is closed\n")


@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_pipe_that_pauses_is_answered(threads: str) -> None:
    process = start(*ALARMS, "--threads", threads, "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for number in (1, 3, 5):
        process.stdin.write(b'{"temp": 31}\n{"wind":')
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"line": number, "matches": ["hot"]}
        process.stdin.write(b" 21}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"line": number + 1, "matches": ["wiñd"]}
    process.stdin.close()
    assert process.stdout.read() == b""
    assert process.wait(10) == 0
    process.stdout.close()
    if process.stderr is not None:
        process.stderr.close()


def test_long_lines_are_passed_over() -> None:
    long = b'{"x": "' + b"x" * (17 << 20) + b'"}\n'
    outcome = run_process(*ALARMS, "-", stdin=b'{"temp": 31}\n' + long + b'{"temp": 32}\n')
    assert outcome.results == [
        {"line": 1, "matches": ["hot"]},
        {
            "line": 2,
            "error": "longer than the limit event_bytes = 16,777,216 (--limit event_bytes=…)",
        },
        {"line": 3, "matches": ["hot"]},
    ]


def test_check() -> None:
    outcome = run("check", "--events", "--subscriptions", "alarms.tsv")
    assert (outcome.status, outcome.results) == (
        0,
        [{"subscriptions": 2, "ok": 2, "bad": 0, "never": 0}],
    )


def test_check_tells_what_contradicts_itself(write: Write) -> None:
    write({"alarms.tsv": "hot\ttemp > 30\nno\ttemp > 3 and temp < 2\n"})
    outcome = run("check", "--events", "--subscriptions", "alarms.tsv")
    assert (outcome.status, outcome.results) == (
        0,
        [
            {"id": "no", "never": "temp > 3 and temp < 2 exclude each other"},
            {"subscriptions": 2, "ok": 2, "bad": 0, "never": 1},
        ],
    )


def test_check_lists_what_is_bad(write: Write) -> None:
    write({"alarms.tsv": "hot\ttemp > 30\none\ttemp >> 30\n"})
    outcome = run("check", "--events", "--subscriptions", "alarms.tsv")
    assert (outcome.status, outcome.results) == (
        2,
        [{"subscriptions": 2, "ok": 1, "bad": 1, "never": 0}],
    )
    assert "alarms.tsv, line 2: subscription 'one': " in outcome.err
    outcome = run("check", "--events", "--subscriptions", "alarms.tsv", "--dtd", "x.dtd")
    assert (outcome.status, outcome.out) == (2, "")
    assert "--events: all other options are about documents" in outcome.err


def test_parquet_has_rows() -> None:
    table = pyarrow.table({"temp": pyarrow.array([31, None, 2**63], pyarrow.uint64())})
    pyarrow.parquet.write_table(table, "events.parquet")
    outcome = run(*ALARMS, "events.parquet", "good.ndjson")
    assert outcome.status == 3
    assert outcome.results == [
        {"file": "events.parquet", "row": 1, "matches": ["hot"]},
        {"file": "events.parquet", "row": 2, "matches": []},
        {
            "file": "events.parquet",
            "row": 3,
            "error": "the attribute 'temp' is an oversized integer, beyond 64 bits: make it a "
            "float or a str",
        },
        {"file": "good.ndjson", "line": 1, "matches": ["wiñd"]},
    ]
    pyarrow.parquet.write_table(pyarrow.table({"temp": [[1]]}), "events.parquet")
    outcome = run(*ALARMS, "events.parquet", "good.ndjson")
    assert outcome.status == 3
    error, answer = outcome.results
    assert error["error"].startswith("events.parquet: the column 'temp' is of type list<")
    assert answer == {"file": "good.ndjson", "line": 1, "matches": ["wiñd"]}


def test_lines_that_are_no_events_say_what_to_do() -> None:
    utf_16, pretty = '{"temp": 31}\n'.encode("utf-16"), b'{\n  "temp": 31\n}\n'
    odd = b'{"temp": .5}\n{"temp": +5}\n{"temp": NaN}\n{\'temp\': 1}\n'
    told = [
        [result["error"] for result in run(*ALARMS, "-", stdin=data).results]
        for data in (utf_16, pretty, odd)
    ]
    assert all("it looks like UTF-16" in error for error in told[0])
    assert all("each event is one line; jq -c ." in error for error in told[1])
    wanted = ("begins with a digit", "has no +", "there is no NaN", "in double quotes")
    assert all(want in error for want, error in zip(wanted, told[2], strict=True))
