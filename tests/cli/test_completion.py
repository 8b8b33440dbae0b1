"""``tamis completion``: the files are those of the commands, and shells complete with them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.cli import arguments, explain, match_events
from tamis.cli.options import COMPLETIONS
from tamis.core.index import Choices
from tamis.events import planner as events_planner
from tamis.matching import planner as matching_planner
from tamis.transform import planner as transform_planner
from tests.support.running import run

SHELLS = ("bash", "zsh", "fish")
SCRIPT = Path(__file__).parents[2] / "scripts" / "make-completions"


def test_the_files_are_made_of_the_commands(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, tmp_path], check=True)
    for shell in SHELLS:
        made = (tmp_path / f"tamis.{shell}").read_text()
        there = (COMPLETIONS / f"tamis.{shell}").read_text()
        assert made == there, "commands have changed: run scripts/make-completions"
        assert "--subscriptions" in made.replace("-l ", "--")


@pytest.mark.parametrize("shell", SHELLS)
def test_they_are_printed_and_a_shell_can_read_them(shell: str, tmp_path: Path) -> None:
    outcome = run("completion", shell)
    assert outcome.status == 0
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    (tmp_path / "file").write_text(outcome.out)
    subprocess.run([shell, "-n", tmp_path / "file"], check=True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["ma"], {"match", "match-events"}),
        (["-"], {"-V", "--version", "-h", "--help"}),
        (["match", "--sub"], {"--subscriptions"}),
        (["match", "--unsupported", ""], {"refuse", "slow"}),
        (
            ["match", "--engine", ""],
            {
                *("auto", "automaton", "reference", "nfa", "stacks", "stacks-cuda", "pma"),
                *("twigstacks", "twigstacks-cuda"),
            },
        ),
        (["match-events", "--engine", "s"], {"signature", "sff"}),
        (["explain", "--strategy", "pa"], {f"path-sharing-f{end}" for end in ("", "w", "wr")}),
        (["match", "--concatenated", ""], set()),  # a document: its value is behind =
        (["workload", "t"], {"twigs", "transformations"}),
        (["workload", "queries", "--sel"], {"--selectivity"}),
        (["completion", ""], set(SHELLS)),
        (["match", "-s", ""], set()),  # a file, which the shell itself completes
    ],
)
def test_bash_completes(line: list[str], expected: set[str]) -> None:
    words = ["tamis", *line]
    code = f"""
        source {COMPLETIONS}/tamis.bash
        COMP_WORDS=("$@") COMP_CWORD={len(words) - 1}
        _tamis
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", code, "bash", *words], capture_output=True, check=True, text=True
    )
    assert (set(done.stdout.split()), done.stderr) == (expected, "")


@pytest.mark.parametrize(
    ("listed", "choices"),
    [
        (arguments.ENGINES, matching_planner.ENGINES),
        (match_events.ENGINES, events_planner.ENGINES),
        (explain.STRATEGIES, transform_planner.STRATEGIES),
    ],
)
def test_help_and_completions_list_every_name(listed: tuple[str, ...], choices: Choices) -> None:
    assert set(listed) == {"auto", "reference", *choices.names()}


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tamis ma", {"match", "match-events"}),
        ("tamis match --unsupported ", {"refuse", "slow"}),
        ("tamis workload queries --sel", {"--selectivity"}),
    ],
)
def test_fish_completes(line: str, expected: set[str]) -> None:
    code = f"source {COMPLETIONS}/tamis.fish; complete -C '{line}'"
    done = subprocess.run(["fish", "-c", code], capture_output=True, check=True, text=True)
    assert {found.split("\t")[0] for found in done.stdout.splitlines()} == expected
