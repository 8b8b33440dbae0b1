"""What all commands share: help, messages, progress, interrupts, and how fast they start."""

import ast
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tamis
from tamis.cli import app
from tamis.cli.options import Commands
from tests.support.running import COMMAND, environment, run, run_process, start

Write = Callable[[dict[str, str | bytes]], None]


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option: str) -> None:
    outcome = run_process(option)
    assert (outcome.status, outcome.out) == (0, f"tamis {tamis.__version__}\n")


def _commands(group: Commands = app, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command and of each group of commands."""
    yield words
    for name in group.commands:
        command = group.imported(name)
        if isinstance(command, Commands):
            yield from _commands(command, (*words, name))
        else:
            yield (*words, name)


@pytest.mark.parametrize("words", list(_commands()), ids=" ".join)
def test_each_command_has_help_by_its_short_name_too(words: tuple[str, ...]) -> None:
    outcome = run(*words, "-h")
    assert outcome.status == 0
    assert outcome == run(*words, "--help")
    assert outcome.out.startswith(" ".join(["Usage: tamis", *words, "[OPTIONS]"]))


def test_subscriptions_have_a_short_name(write: Write) -> None:
    write({"s": "//a", "e": "a = 1", "q.xq": "<r>{ for $a in //a return <b/> }</r>"})
    write({"1.xml": "<a/>", "1.ndjson": '{"a": 1}'})
    for command, file, *given in (
        ("match", "s", "1.xml"),
        ("match-events", "e", "1.ndjson"),
        ("transform", "q.xq", "1.xml"),
        ("check", "s"),
        ("compile", "s", "--output", "p"),
    ):
        assert run(command, "-s", file, *given) == run(command, "--subscriptions", file, *given)
    assert "-s, --subscriptions FILE" in run("run", "--help").out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["mtch"], "No such command 'mtch'"),
        (["match", "--nope"], "--nope"),
        (["match", "-s"], "'-s' requires an argument"),
        (["match", "-s", "s", "--threads", "0", "1.xml"], "--threads"),
        (["match", "-s", "s", "--threads", "two", "1.xml"], "--threads"),
        (["match", "-s", "s", "--unsupported", "fast", "1.xml"], "'refuse', 'slow'"),
        (["transform", "1.xml"], "--subscriptions"),
        (["select", "//a"], "Missing argument 'DOCUMENT'"),
        (["schema", "1.dtd", "2.dtd"], "2.dtd"),
        (["completion", "csh"], "'bash', 'zsh', 'fish'"),
    ],
)
def test_wrong_usage_is_told(args: list[str], message: str) -> None:
    outcome = run(*args)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.startswith("Usage: tamis") or "requires an argument" in outcome.err


@pytest.mark.parametrize(
    "args",
    [
        ["match", "-s", "URL", "1.xml"],
        ["match", "--program", "URL", "1.xml"],
        ["match", "-s", "s", "--namespaces", "URL", "1.xml"],
        ["match", "-s", "s", "--dtd", "URL", "1.xml"],
        ["match", "-s", "s", "--dtd", "1.dtd", "--catalog", "URL", "1.xml"],
        ["match", "-s", "s", "--output", "URL", "1.xml"],
        ["match-events", "-s", "s", "--interfaces", "URL", "-"],
        ["match-events", "-s", "s", "-", "URL"],
        ["transform", "-s", "URL", "1.xml"],
        ["compile", "-s", "s", "--output", "URL"],
        ["schema", "URL"],
        ["run", "-s", "s", "--input", "in", "--output", "s3://a/b", "--checkpoint", "URL"],
    ],
)
def test_a_url_is_no_file(args: list[str]) -> None:
    url = "http://e.org/s.tsv"
    outcome = run(*[url if arg == "URL" else arg for arg in args])
    assert (outcome.status, outcome.out) == (2, "")
    kind = "folder" if {"--catalog", "--checkpoint"} & {*args} else "file"
    assert f"{url} is a URL, and nothing is fetched: give a {kind}\n" in outcome.err


def test_the_lines_of_the_help_are_whole() -> None:
    for words in ((), ("workload",)):
        listed = run(*words, "--help").out.partition("Commands:\n")[2].partition("\n\n")[0]
        assert all(line.endswith(".") and "..." not in line for line in listed.splitlines())


def test_help_lists_the_commands_and_the_statuses() -> None:
    outcome = run("--help")
    assert outcome.status == 0
    for word in ("match", "check", "explain", "Exit status:", "130  interrupted"):
        assert word in outcome.out


@pytest.mark.parametrize("command", ["match", "check", "explain", "run", "schema"])
def test_help_of_a_command_shows_examples(command: str) -> None:
    outcome = run(command, "--help")
    assert outcome.status == 0
    assert f"Examples:\n    tamis {command} " in outcome.out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], ["match", "--help"], ["workload", "-h"]]
)
def test_a_help_that_cannot_be_written_is_a_failure(args: list[str]) -> None:
    outcome = run_process(*args, redirect="> /dev/full")
    told = "tamis: cannot write standard output: No space left on device\n"
    assert (outcome.status, outcome.err) == (1, told)


# What only some commands need, and all take long to import.
HEAVY = "lxml numba pandas pyarrow pyspark rich tarfile zipfile email csv concurrent".split()


def _imported(*args: str | Path) -> set[str]:
    """The modules that a command imports."""
    code = (
        "import sys; from tamis.cli import app\n"
        "try: app(sys.argv[1:], prog_name='tamis')\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *map(str, args)]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60)
    assert done.stderr.splitlines()[:-1] == [] or done.returncode == 2, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "args",
    [
        *([], ["--help"], ["match", "--help"], ["run", "-h"], ["match", "--nope"], ["mtch"]),
        ["match", "d.xml"],
    ],
)
def test_help_and_wrong_usage_import_no_engine(args: list[str]) -> None:
    imported = _imported(*args)
    assert imported.isdisjoint({"numpy", "orjson", *HEAVY})
    modules = {name for name in imported if name.startswith("tamis.cli.")}
    only = "arguments completion console documents match options run".split()
    assert modules <= {f"tamis.cli.{name}" for name in only}
    if args in (["--help"], ["mtch"], []):
        assert modules == {"tamis.cli.console", "tamis.cli.options"}


# What only some options need.
OF_DTDS = "tamis.schema.reader tamis.schema.graph tamis.matching.conformance".split()
OF_DOCUMENTS = ["tamis.matching.matcher", "tamis.documents.parser", "tamis.documents.tokenizer"]
OF_EXPAT = ["tamis.documents.expat", "tamis.documents.expat_records"]
OF_OTHER_ENGINES = [
    "tamis.matching.engines.reference.execute",
    "tamis.matching.engines.nfa.compile",
    "tamis_papers.pma.compile",
    "tamis_papers.twigstacks.compile",
    "tamis.matching.engines.lxml.execute",
]
OF_NUMPY = ["numpy.ma", "numpy.random"]  # each takes longer than a small match


@pytest.mark.parametrize(
    ("args", "others"),
    [
        (
            ["match", "-s", "s", "--threads", "1", "1.xml"],
            [*OF_DTDS, *OF_EXPAT, *OF_OTHER_ENGINES, "tamis.matching.explain", "tamis.events"],
        ),
        (
            ["match-events", "-s", "e", "--threads", "1", "1.ndjson"],
            [*OF_DTDS, *OF_DOCUMENTS, "tamis_papers.pcm", "tamis_papers.sff"],
        ),
        (
            ["transform", "-s", "q.xq", "1.xml"],
            [*OF_DTDS, *OF_EXPAT, *OF_OTHER_ENGINES, "tamis_papers.pathsharing"],
        ),
    ],
    ids=["match", "match-events", "transform"],
)
def test_a_command_imports_what_it_uses(write: Write, args: list[str], others: list[str]) -> None:
    write({"s": "//a[b = 'x']\n/a/b", "q.xq": "<r>{ for $a in //a return <b/> }</r>"})
    write({"e": "a = 1", "1.ndjson": '{"a": 1}', "1.xml": "<a><b>x</b></a>"})
    imported = _imported(*args)
    assert {"numpy", "click", f"tamis.cli.{args[0].replace('-', '_')}"} <= imported
    assert imported.isdisjoint({*HEAVY, *OF_NUMPY, *others})


def test_a_match_imports_what_it_uses() -> None:
    code = (
        "import sys, tamis; assert 'numpy' not in sys.modules\n"
        "assert tamis.compile({'x': '//a'}).match('<a/>')\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    others = [*OF_DTDS, *OF_EXPAT, *OF_OTHER_ENGINES, *OF_NUMPY, "click", "tamis.events"]
    assert set(done.stdout.split()).isdisjoint({*HEAVY, *others})


def test_a_reader_who_leaves_ends_the_command_quietly(write: Write) -> None:
    write({"s": "//a", "1.xml": "<a/>"})
    process = start("match", "--subscriptions", "s", *["1.xml"] * 20_000)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b'{"document": "1.xml", "matches": ["1"]}\n'
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 128 + signal.SIGPIPE
    process.stderr.close()


def test_results_come_out_while_later_documents_are_awaited(write: Write) -> None:
    write({"s": "//a", "1.xml": "<a/>"})
    os.mkfifo("late.xml")
    process = start("match", "--subscriptions", "s", *["1.xml"] * 64, "late.xml")
    assert process.stdout is not None
    early = [process.stdout.readline() for _ in range(64)]
    assert set(early) == {b'{"document": "1.xml", "matches": ["1"]}\n'}
    Path("late.xml").write_bytes(b"<b/>")
    out, err = process.communicate(timeout=60)
    assert (out, err) == (b'{"document": "late.xml", "matches": []}\n', b"")
    assert process.returncode == 0


@pytest.fixture
def _interrupts_are_heeded() -> Iterator[None]:
    """By what is started, too: it ignores them where we do, as in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts_are_heeded")
def test_an_interrupt_is_one_line_and_leaves_the_output_as_it_was(write: Write) -> None:
    write({"s": "//a", "1.xml": "<a/>", "out": "old"})
    os.mkfifo("late.xml")
    args = ["--subscriptions", "s", "--output", "out", *["1.xml"] * 64, "late.xml"]
    process = start("match", *args)
    with open("late.xml", "wb"):  # opens when the command does
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"tamis: interrupted\n")
    assert Path("out").read_text() == "old"
    assert sorted(os.listdir()) == ["1.xml", "late.xml", "out", "s"]


def test_warnings_of_the_library_are_one_line_each(write: Write) -> None:
    write({"s": "//a", "1.xml": "<!DOCTYPE a SYSTEM 'a.dtd'><a>&b;</a>"})
    outcome = run("match", "--subscriptions", "s", "1.xml")
    assert (outcome.status, outcome.answers) == (0, {"1.xml": ["1"]})
    assert re.fullmatch(r"tamis: warning: .*\n", outcome.err)
    assert run("match", "--subscriptions", "s", "1.xml").err == outcome.err  # not twice


def _on_terminal(output: list[str], **changes: str) -> str:
    """What standard error, a terminal, gets to see of a command."""
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [COMMAND, "match", "--subscriptions", "s", *output, "1.xml", "1.xml", "2.xml"],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        check=False,
        timeout=60,
        env=environment(TERM="xterm-256color", COLUMNS="80", **changes),
    )
    os.close(theirs)
    with open(ours, "rb", buffering=0) as terminal:
        seen = terminal.read(1 << 16)
    assert done.returncode == 3
    return seen.decode()


def test_progress_is_for_terminals_only(write: Write) -> None:
    write({"s": "//a", "1.xml": "<a/>", "2.xml": "<"})
    shown = _on_terminal([])
    assert "3/3" in shown
    assert "documents" in shown
    assert run_process("match", "--subscriptions", "s", "1.xml").err == ""


@pytest.mark.parametrize("how", [["--record", "a"], ["--concatenated"]])
def test_progress_of_what_is_read_as_a_stream_is_in_bytes(write: Write, how: list[str]) -> None:
    write({"s": "//a", "1.xml": "<a>" + "<a/>" * 499 + "</a>", "2.xml": "<"})
    assert "4.0/4.0 kB" in _on_terminal(how)  # 1.xml is there twice


def test_progress_of_reading_many_subscriptions(write: Write) -> None:
    write({"s": "//a\n" * 5_000 + "a//b\n" * 300, "1.xml": "<a/>", "2.xml": "<"})
    shown = _on_terminal([])
    assert "/5300" in shown
    assert "subscriptions" in shown
    assert "documents" in shown


def test_progress_has_no_colour_where_none_is_wanted(write: Write) -> None:
    write({"s": "//a", "1.xml": "<a/>", "2.xml": "<"})
    colour = re.compile(r"\x1b\[[\d;]*3\d(;|m)")
    assert colour.search(_on_terminal([]))
    assert not colour.search(_on_terminal([], NO_COLOR="1"))


def test_the_library_does_not_speak_of_options() -> None:
    """Its messages name arguments and functions; the command line puts options in their place."""
    package = Path(tamis.__file__).parent
    found = []
    for file in package.rglob("*.py"):
        part = file.relative_to(package)
        if part.parts[0] in ("cli", "spark") or part == Path("core/kernel/build.py"):  # a command
            continue
        if part == Path("hardware/tools.py"):  # It gives other programs their options.
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                is_text = "\n" in node.value  # a docstring, or an example
                if not is_text and re.search(r"(?<![\w<!-])--[a-z]", node.value):
                    found.append(node.value)
    assert [text for text in found if not re.search(r"\b(tar|pip install) --", text)] == []


@pytest.mark.parametrize(
    "words", [["check"], ["compile"], ["match-events", "e.ndjson"], ["transform", "d.xml"]]
)
def test_an_option_that_is_missing(words: list[str]) -> None:
    outcome = run(*words)
    assert outcome.status == 2
    assert "Missing option '--subscriptions'" in outcome.err.replace("'-s' / ", "")
