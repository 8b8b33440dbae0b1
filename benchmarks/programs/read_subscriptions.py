"""How fast Tamis reads and compiles a large file of subscriptions, and what memory they take.

    python -m benchmarks.programs.read_subscriptions WORKLOAD

They are drawn by another process, so that their memory is not counted, from the DTD of
``benchmarks.programs.generate``. Kernels are loaded before, with a file of their own (``load``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.programs.protocol import Phases, answer

LINEAR = 500_000
TWIGS = 100_000


def expressions(workload: str, count: int) -> Iterable[str]:
    """The subscriptions of a workload, no two alike."""
    import tamis_workload as made  # noqa: PLC0415
    from benchmarks.programs.generate import MANUAL  # noqa: PLC0415 - not in the measured process
    from tamis.schema.graph import SchemaGraph  # noqa: PLC0415
    from tamis.schema.reader import parse_dtd  # noqa: PLC0415

    graph = SchemaGraph.of(parse_dtd(MANUAL))
    if workload == "linear":
        steps = made.QueryOptions(depth=(3, 12))
        return made.queries_from_dtd(graph, count, options=steps, distinct=True)
    compared = {"value-twigs": made.TwigOptions(predicates=3, values=made.Values(100_000))}
    options = compared.get(workload, made.TwigOptions())
    return made.twigs_from_dtd(graph, count, options=options, distinct=True)


def write(workload: str, count: int, path: Path) -> None:
    """Write a file of subscriptions, from a process of its own."""
    words = ["-m", "benchmarks.programs.read_subscriptions", "write", workload, str(count)]
    subprocess.run([sys.executable, *words, str(path)], check=True)


def resident_bytes() -> int:
    """The memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(workload: str, folder: Path, phases: Phases) -> tuple[dict[str, int], str]:
    """Read and compile a workload; gives the counts, and a note of speeds and memory."""
    from tamis.language.subscriptions import Subscriptions  # noqa: PLC0415 - timed as "import"
    from tamis.matching.matcher import CompiledMatcher, compile_subscriptions  # noqa: PLC0415

    count = LINEAR if workload == "linear" else TWIGS
    few, many = folder / "few.tsv", folder / "many.tsv"
    write(workload, 5_000, few)
    write(workload, count, many)
    with phases("load"):
        compile_subscriptions(Subscriptions.from_file(few))
    before = resident_bytes()

    def step(phase: str, do: Callable[[], Subscriptions | CompiledMatcher]) -> str:
        with phases(phase):
            made.append(do())
        speed, size = count / phases.times[phase], (resident_bytes() - before) / count
        return f"{phase} {speed:,.0f}/s, then {size:,.0f} bytes each"

    made: list[Subscriptions | CompiledMatcher] = []
    notes = [step("read", lambda: Subscriptions.from_file(many))]
    (read,) = made
    assert isinstance(read, Subscriptions)
    queries = len(read.queries)
    notes.append(step("compile", lambda: compile_subscriptions(read)))
    return {"subscriptions": len(read), "queries": queries}, "; ".join(notes)


def main() -> None:
    if sys.argv[1] == "write":
        workload, count, path = sys.argv[2:]
        with Path(path).open("w", encoding="utf-8") as file:
            made = expressions(workload, int(count))
            file.writelines(f"s{number}\t{text}\n" for number, text in enumerate(made))
        return
    phases = Phases()
    with phases("import"):
        import tamis  # noqa: F401, PLC0415
    with tempfile.TemporaryDirectory() as folder:
        counts, note = measure(sys.argv[1], Path(folder), phases)
    answer(phases, counts, note=note)


if __name__ == "__main__":
    main()
