"""Shows what `tamis run` found out about the POMs: for each question how many, and some of them.

Usage: python examples/show_poms.py FOLDER

FOLDER is the output of `tamis run` with examples/poms.tsv, as `make run` makes it. It is read with
pyarrow; any other reader of Parquet does as well.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


def read_questions(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the id of each subscription and the question in the comment above it."""
    question = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            question = line.removeprefix("#").strip()
        elif line.strip():
            yield line.partition("\t")[0], question


def read_rows(folder: Path) -> list[dict[str, str]]:
    """Reads a folder of Parquet files."""
    rows: list[dict[str, str]] = pq.read_table(folder).to_pylist()
    return rows


def artifacts(documents: Iterable[str]) -> list[str]:
    """Lists the artifacts of some POMs, without their groups; one may be in several jars."""
    names = {Path(document).stem.partition("@")[0] for document in documents}
    return sorted({re.sub(r"^([A-Za-z0-9]+\.)+", "", name) for name in names})


def matches_table(questions: Iterable[tuple[str, str]], rows: Iterable[dict[str, str]]) -> Table:
    """Makes the table of what matched."""
    found = defaultdict(list)
    for row in rows:
        found[row["subscription"]].append(row["document"])
    table = Table(title="What the POMs say", title_justify="left", box=SIMPLE_HEAD, expand=True)
    table.add_column("question")
    table.add_column("POMs", justify="right")
    table.add_column("artifacts", no_wrap=True, ratio=1)  # as many as fit
    for id, question in questions:
        table.add_row(question, str(len(found[id])), ", ".join(artifacts(found[id])))
    return table


def errors_table(rows: Iterable[dict[str, str]]) -> Table:
    """Makes the table of the POMs that could not be answered."""
    table = Table(title="In error", title_justify="left", box=SIMPLE_HEAD)
    for name in ("document", "line", "message"):
        table.add_column(name)
    for row in rows:
        table.add_row(row["document"], str(row["line"] or ""), row["message"])
    return table


def main() -> None:
    """Shows the folder that the command line names."""
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/show_poms.py FOLDER")
    folder = Path(sys.argv[1])
    try:
        matches, errors = read_rows(folder / "matches"), read_rows(folder / "errors")
    except FileNotFoundError as error:
        sys.exit(f"{folder} is no output of tamis run: {error}")
    console = Console()
    questions = read_questions(Path(__file__).with_name("poms.tsv"))
    console.print(matches_table(questions, matches))
    if errors:
        console.print(errors_table(errors))


if __name__ == "__main__":
    main()
