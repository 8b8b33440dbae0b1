"""How long it takes Tamis to start.

    python -m benchmarks.programs.start import | first-match | all-kernels

``import`` is ``import tamis`` in a new process. ``first-match`` is a whole ``tamis match`` of one
small document, its kernels in the cache. ``all-kernels`` is a new process with an empty cache that
compiles every kernel that there is; that none is forgotten is checked.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.programs.protocol import Phases, answer

_IMPORT = """
from time import perf_counter
start = perf_counter()
import tamis
print(perf_counter() - start)
"""
_COMMAND = "import sys; from tamis.cli import main; sys.exit(main())"
_DTD = "<!ELEMENT a (b*)> <!ATTLIST a c CDATA #IMPLIED> <!ELEMENT b (#PCDATA | a)*>"


def main() -> None:
    phases = Phases()
    measured = {"import": of_import, "first-match": of_first_match, "all-kernels": of_all_kernels}
    if sys.argv[1] == "compile":
        print(json.dumps(compile_all()))
        return
    counts = measured[sys.argv[1]](phases)
    answer(phases, counts)


def of_import(phases: Phases) -> dict[str, int]:
    phases.times["start"] = float(_run("-c", _IMPORT))
    return {"imports": 1}


def of_first_match(phases: Phases) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        subscriptions, document = Path(folder, "one.tsv"), Path(folder, "one.xml")
        subscriptions.write_text("s\t//b[@c > 1]\nt\t//c[b]\n")
        document.write_text("<a><b c='2'/></a>")
        words = ["-c", _COMMAND, "match", "--subscriptions", str(subscriptions), str(document)]
        _run(*words)  # so that the kernels are in the cache
        with phases("start"):
            said = _run(*words)
    return {"matches": len(json.loads(said)["matches"])}


def of_all_kernels(phases: Phases) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder, phases("start"):
        said = _run("-m", "benchmarks.programs.start", "compile", cache=folder)
    found: dict[str, bool] = json.loads(said)
    forgotten = [name for name, is_compiled in found.items() if not is_compiled]
    if forgotten:
        sys.exit(f"nothing here uses the kernels {', '.join(forgotten)}: add what does")
    return {"kernels": len(found)}


def _run(*words: str, cache: str | None = None) -> str:
    """What Python prints when run with these words; ``cache`` is where kernels are kept."""
    environment = os.environ | ({"XDG_CACHE_HOME": cache} if cache else {})
    done = subprocess.run(
        [sys.executable, *words], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def compile_all() -> dict[str, bool]:
    """Use everything that has kernels; gives which there are, and whether they are compiled."""
    use_everything()
    from numba.core.registry import CPUDispatcher  # noqa: PLC0415

    import tamis  # noqa: PLC0415 - slow to import, as are the others

    package = Path(tamis.__path__[0])
    found = {}
    for path in sorted(package.rglob("*.py")):
        if "tamis.jit import" not in path.read_text(encoding="utf-8"):
            continue
        module = ".".join(("tamis", *path.relative_to(package).with_suffix("").parts))
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, CPUDispatcher) and value.py_func.__module__ == module:
                is_inlined = value.targetoptions.get("forceinline")
                if not is_inlined:
                    found[f"{module}.{name}"] = bool(value.signatures)
    return found


def use_everything() -> None:
    """Generate documents, parse and match them: add here what gets kernels."""
    from tamis import Limits, Subscriptions, compile, workload  # noqa: PLC0415
    from tamis.schema.graph import SchemaGraph  # noqa: PLC0415
    from tamis.schema.reader import parse_dtd  # noqa: PLC0415

    documents = [
        b"".join(workload.dblp(records=2)),
        workload.Documents(SchemaGraph.of(parse_dtd(_DTD)), size=1000, fill=True).document(0),
        b"<?xml version='1.0'?><!-- c --><p:a xmlns:p='u' d='1'>x&amp;<?t u?><![CDATA[y]]></p:a>",
    ]
    assert len(list(compile({"s": "//b"}).match_records(documents[1], "b"))) > 0
    expressions = ["//b", "//a[@c = '1']", "//author[. = 'x']", "//node()", "name(/*) = 'p:a'"]
    for match in compile(enumerate(expressions)).match_many(documents):
        assert match.error is None, match.error
    many = enumerate(f"/a/b{n}[@c = 'x{n}' or d < {n}]" for n in range(5_000))
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.writelines(f"s{number}\t{text}\n" for number, text in many)
        file.flush()
        assert len(Subscriptions.from_file(file.name).queries.plain) == 5_000
    # As many states as the automaton has to make room for, and none to spare.
    twigs = {n: f"//n{n}[m][not(.//k)]" for n in range(200)}
    nested = b"".join(b"<n%d><m/>" % n for n in range(200))
    nested += b"".join(b"</n%d>" % n for n in reversed(range(200)))
    for bytes_max in (1, 1 << 30):
        found = compile(twigs, limits=Limits(memo_bytes=bytes_max)).match(nested)
        assert len(found) == len(twigs)


if __name__ == "__main__":
    main()
