"""How long it takes Tamis to start, and to be built.

    python -m benchmarks.programs.start WHAT

``python`` and ``numpy`` are a new process that does nothing, and one that imports NumPy: what the
others stand on. ``library`` imports Tamis and matches one document. ``match``, ``match-events`` and
``transform`` are whole commands with a small input, and ``help`` is ``tamis --help``. ``saved`` is
a saved program of a million subscriptions: from after the import until it has answered its first
document, while another process has it too. ``build`` compiles all kernels for this processor.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.programs.protocol import Phases, answer

_LIBRARY = "import tamis; print(list(tamis.compile({'x': '//b'}).match('<a><b/></a>')))"
_COMMAND = "import sys; from tamis.cli import main; sys.exit(main())"
_SAVED = 1_000_000
_FIELDS = ("author", "editor", "title", "pages", "year", "volume", "journal", "ee", "url", "cite")
_KINDS = ("article", "book", "incollection", "inproceedings", "phdthesis", "proceedings", "www")
_BIBLIOGRAPHY = "".join([
    f"<!ELEMENT dblp ({'|'.join(_KINDS)})*>",
    *(f"<!ELEMENT {kind} ({'|'.join(_FIELDS)})*>" for kind in _KINDS),
    *(f"<!ATTLIST {kind} key CDATA #REQUIRED mdate CDATA #IMPLIED>" for kind in _KINDS),
    *(f"<!ELEMENT {field} (#PCDATA)>" for field in _FIELDS),
])  # fmt: skip


def main() -> None:
    phases = Phases()
    what = sys.argv[1]
    if what == "load":
        load(*sys.argv[2:])
    elif what == "saved":
        counts, note = of_saved(phases)
        answer(phases, counts, note=note)
    else:
        of_process(phases, what)
        answer(phases, {"processes": 1})


def of_process(phases: Phases, what: str) -> None:
    """A new process, from its start to its end; a first one has the files read and compiled."""
    with tempfile.TemporaryDirectory() as folder:
        words, expected = _words(Path(folder))[what]
        if what != "build":
            _run(*words)
        with phases("start"):
            said = _run(*words)
    assert expected in said, said


def _words(folder: Path) -> dict[str, tuple[list[str], str]]:
    """What Python is started with, and a part of what it answers; the files are written."""
    files = {
        "one.tsv": "s\t//b[@c > 1]\nt\t//c[b]\n",
        "one.xml": "<a><b c='2'/></a>",
        "events.tsv": "s\tn > 1\n",
        "events.ndjson": '{"n": 2}\n',
        "one.xq": "<t>{ for $b in //b return <i>{ $b }</i> }</t>",
    }
    paths = {name: str(folder / name) for name in files}
    for name, text in files.items():
        Path(paths[name]).write_text(text)
    command = ["-c", _COMMAND]
    return {
        "python": (["-c", "pass"], ""),
        "numpy": (["-c", "import numpy"], ""),
        "library": (["-c", _LIBRARY], "['x']"),
        "help": ([*command, "--help"], "match-events"),
        "match": (
            [*command, "match", "--subscriptions", paths["one.tsv"], paths["one.xml"]],
            '"matches": ["s"]',
        ),
        "match-events": (
            [
                *command,
                "match-events",
                "--subscriptions",
                paths["events.tsv"],
                paths["events.ndjson"],
            ],
            '"matches": ["s"]',
        ),
        "transform": (
            [*command, "transform", "--subscriptions", paths["one.xq"], paths["one.xml"]],
            "<i><b c=",
        ),
        "build": (["-m", "tamis.core.kernel.build", "--folder", str(folder / "native")], ""),
    }


def of_saved(phases: Phases) -> tuple[dict[str, int], str]:
    """What was counted, and how large the file is, and what of it a process has for itself."""
    with tempfile.TemporaryDirectory() as folder:
        program, document = Path(folder, "million.tamis"), Path(folder, "one.xml")
        _save(program, document)
        words = ["-m", "benchmarks.programs.start", "load", str(program), str(document)]
        other = subprocess.Popen(
            [sys.executable, *words, "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert other.stdout is not None
        other.stdout.readline()
        said = json.loads(_run(*words))
        other.communicate()
        size = program.stat().st_size
    phases.times.update(load=said["load"], first=said["first"])
    phases.times["start"] = said["load"] + said["first"]
    before, after = (said[name] / 1e6 for name in ("before", "after"))
    note = f"file {size / 1e6:.0f} MB, private {after:.0f} MB, {before:.0f} MB when imported"
    return {"matches": said["matches"]}, note


def _save(program: Path, document: Path) -> None:
    """A program of a million subscriptions, and a document that asks it."""
    import tamis_workload as workload  # noqa: PLC0415
    from tamis import compile  # noqa: PLC0415
    from tamis.schema.graph import SchemaGraph  # noqa: PLC0415
    from tamis.schema.reader import parse_dtd  # noqa: PLC0415

    document.write_bytes(b"".join(workload.dblp(records=3)))
    values = workload.Values(count=100_000)
    queries = workload.queries_from_dtd(
        SchemaGraph.of(parse_dtd(_BIBLIOGRAPHY)),
        _SAVED,
        options=workload.QueryOptions(predicates=1, values=values),
        distinct=True,
    )
    compile((f"s{n}", text) for n, text in enumerate(queries)).save(program)


def load(program: str, document: str, *stay: str) -> None:
    """Load a program and answer a document; say how long it took, and perhaps stay."""
    import tamis  # noqa: PLC0415 - with all that is imported when it is used
    from tamis.documents import parser  # noqa: F401, PLC0415
    from tamis.matching import matcher, saved  # noqa: F401, PLC0415

    before, start = _private_bytes(), perf_counter()
    loaded = tamis.load(program)
    then = perf_counter()
    matches = len(loaded.match(Path(document)))
    end = perf_counter()
    said = {"load": then - start, "first": end - then, "matches": matches}
    print(json.dumps({**said, "before": before, "after": _private_bytes()}), flush=True)
    if stay:
        sys.stdin.read()


def _private_bytes() -> int:
    """What of its memory this process shares with no other; 0 where the system does not tell."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _run(*words: str) -> str:
    """What Python prints when run with these words."""
    command = [sys.executable, *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main()
