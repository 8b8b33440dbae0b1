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
from tests.cli.running import COMMAND, environment, run, run_process, start

Write = Callable[[dict[str, str | bytes]], None]


def test_version() -> None:
    outcome = run_process("--version")
    assert (outcome.status, outcome.out) == (0, f"tamis {tamis.__version__}\n")


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


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    code = (
        "import sys, tamis\n"
        "before = set(sys.modules)\n"
        "import tamis.cli\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    packages = {name.partition(".")[0] for name in done.stdout.split()}
    assert packages.isdisjoint(("numpy", "numba", "lxml", "rich", "pyspark", "pandas", "pyarrow"))


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
        if file.relative_to(package).parts[0] in ("cli", "spark"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                is_text = "\n" in node.value  # a docstring, or an example
                if not is_text and re.search(r"(?<![\w<!-])--[a-z]", node.value):
                    found.append(node.value)
    assert [text for text in found if "tar --" not in text] == []
