"""The whole harness, with the programs that are there, on tiny documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.declared import Experiment, Program
from benchmarks.running import ROOT
from tests.benchmarks.test_measuring import said

PARSE = """
about = "x"
measure = ["parse"]
baseline = "pyexpat"
repetitions = 1
[programs]
pyexpat.command = "{python} -m benchmarks.programs.parse_pyexpat {documents} {warmup}"
tamis.command = "{python} -m benchmarks.programs.parse_tamis {documents} {warmup} --threads 2"
lxml.command = "{python} -m benchmarks.programs.parse_lxml {documents} {warmup}"
xml-etree.command = "{python} -m benchmarks.programs.parse_etree {documents} {warmup}"
pygixml.command = "{python} -m benchmarks.programs.parse_pygixml {documents} {warmup}"
[workloads.tiny]
documents = { kind = "corpus", folder = "tiny", size = 50 }
expected = { documents = 2, elements = 6 }
target = [
    { program = "tamis", ratio = 1000 },
    { program = "lxml", seconds = 60, of = "pyexpat" },
]
"""
MATCH = """
about = "x"
measure = ["parse", "match", "report"]
repetitions = 1
[programs]
tamis.command = "{python} -m benchmarks.programs.match_tamis {documents} {warmup} {subscriptions}"
lxml.command = "{python} -m benchmarks.programs.match_lxml {documents} {warmup} {subscriptions}"
[workloads.tiny]
documents = { kind = "dblp", number = 4, records = 2 }
subscriptions = { count = 10, matching = 0.5, from = 3 }
"""


def test_parsers(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, record = tmp_path / "parse.toml", tmp_path / "record.json"
    path.write_text(PARSE)
    assert main([str(path), "--data", str(data), "--record", str(record)]) == 0
    text = capsys.readouterr().out
    assert "tamis at least 1000 × pyexpat: MISSED" in text  # and no failure
    assert "lxml at most 60 s more than pyexpat: MET" in text
    found = json.loads(record.read_text())
    assert {"experiment", "date", "commit", "machine", "versions"} <= set(found)
    tiny = found["workloads"]["tiny"]
    assert tiny["counts"] == {"documents": 2, "elements": 6}
    assert tiny["seeds"] == [0]
    assert {"pyexpat", "tamis", "lxml", "xml-etree"} <= set(tiny["programs"])
    draw(found, tmp_path)


def draw(record: dict[str, object], folder: Path) -> None:
    """The same plot twice, where plots can be drawn."""
    try:
        import matplotlib  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return
    from benchmarks import plots  # noqa: PLC0415

    drawn = []
    for name in ("one.svg", "two.svg"):
        assert plots.draw(record, folder / name)
        drawn.append((folder / name).read_bytes())
    assert drawn[0] == drawn[1]


def test_engines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "match.toml"
    path.write_text(MATCH)
    assert main([str(path), "--repeat", "1"]) == 0
    text = capsys.readouterr().out
    assert "documents 4, elements 142, matches " in text
    assert "compile ms" in text


def test_options_of_the_gpu_papers_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("numba_cuda", reason="needs the extra cuda")
    words = "-m benchmarks.programs.match_tamis {documents} {warmup} {subscriptions}"
    options = """--engine twigstacks-cuda --twigstacks '{{"levels": 99999}}'"""
    command = f"env NUMBA_ENABLE_CUDASIM=1 {{python}} {words} {options}"
    path = tmp_path / "options.toml"
    path.write_text(f"""
about = "x"
measure = ["match"]
[programs]
twigstacks.command = {json.dumps(command)}
[workloads.tiny]
documents = {{ kind = "dtd", dtd = "<!ELEMENT a (a?)>", depth = 3, size = 20, warmup = 20 }}
subscriptions = {{ kind = "twigs", count = 1, sizes = [[1, 0]] }}
""")
    assert main([str(path)]) == 1
    assert "fewer levels, or a shorter stride, fit into shared memory" in capsys.readouterr().out


def test_the_status_is_of_answers(
    tmp_path: Path,
    data: Path,
    declare: Callable[..., Experiment],
    fake: Callable[..., Program],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(tmp_path / "tiny.toml")
    declare(fake("honest", said()), fake("liar", said(elements=7)))
    assert main([path, "--data", str(data)]) == 1
    assert "tiny · tiny: FAILED: elements differ: honest 6, liar 7" in capsys.readouterr().out
    assert main([path, "--data", str(data), "--program", "honest"]) == 0
    assert main([path, "--data", str(tmp_path)]) == 0
    assert "tiny · tiny: SKIPPED: the real documents tiny are not in " in capsys.readouterr().out


def test_another_checkout(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = tmp_path / "parse.toml", tmp_path / "other"
    path.write_text(PARSE)
    words = [str(path), "--data", str(data), "--program", "xml-etree", "--against", str(other)]
    assert main(words) == 2
    assert "has no virtual environment: run make venv in it" in capsys.readouterr().err
    python = other / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (other / "benchmarks").symlink_to(ROOT / "benchmarks")
    assert main(words) == 0
    assert "× xml-etree-before (min–max)" in capsys.readouterr().out


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "tokenizer: Parsing alone" in capsys.readouterr().out
    assert main(["warp"]) == 2
    assert "there is no experiment warp" in capsys.readouterr().err
    assert main(["start", "--workload", "warp"]) == 2
    assert main(["start", "threads", "--record", "one.json"]) == 2
