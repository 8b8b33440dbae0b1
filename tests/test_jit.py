"""Kernels: one specialisation each, cached in a private folder, with every index in bounds."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis import jit

# Uses every kernel that there is; prints what the tests ask for.
PROGRAM = """
import hashlib, numba, numpy as np
from tamis import jit
from tamis.documents.demand import EVERYTHING
from tamis.documents.parser import parse
from tamis.documents.records import parse_records
from tamis.documents.source import Source
from tamis.documents.streams import Stream
from tamis.documents.tokenizer.kernels.layout import bind, bind_text
from tamis.documents.tokenizer.kernels.lines import pass_over
from tamis.documents.tokenizer.kernels.scan import scan
from tamis.documents.tokenizer.kernels.spans import begin_document, begin_stream
from tamis.documents.vocabulary import Vocabulary
from tamis.language.plain.kernels.expressions import read
from tamis.language.plain.kernels.lines import check_ids, find_lines, write_ids
from tamis.language.plain.kernels.tables import rehash
from tamis.language.subscriptions import Subscriptions
from tamis.limits import Limits
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis.workload.documents import kernels
from tamis.workload.documents.dblp import dblp
from tamis.workload.documents.generator import Documents

graph = SchemaGraph.of(parse_dtd('''
    <!ELEMENT a (b | c | a)*> <!ATTLIST a i ID #IMPLIED r IDREFS #IMPLIED>
    <!ELEMENT b (#PCDATA)> <!ELEMENT c (b?, b, (c | b))>'''))
digest = hashlib.sha256()
for size in (40, 1_000, 100_000):
    documents = Documents(graph, size=size, fill=True)
    for number in range(20):
        digest.update(documents.document(number))
data = b"".join(dblp(records=2_000))
digest.update(data)
demand = EVERYTHING._replace(lines=False)
chunks = (data[place : place + 3_001] for place in range(0, len(data), 3_001))
stream = Stream(chunks, None, "")
for found in parse_records(stream, "article", Vocabulary(), demand, Limits()):
    for values in (*found.batch, *found.places[1:4]):
        digest.update(values)
for values in parse([Source(data)], Vocabulary(), demand, Limits())[0]:
    digest.update(values)
expressions = [f"/a[b{n} = '{n}' or c > {n}]//d" for n in range(4_000)] + ["a", "//b"]
with open("subscriptions.tsv", "w") as file:
    file.writelines(f"s{n}\\t{text}\\n" for n, text in enumerate(expressions))
    file.write("# comment\\n\\n//c\\ns //a\\n")
for given in (Subscriptions.from_file("subscriptions.tsv", skip_bad=True),
              Subscriptions(enumerate(expressions))):
    given = given.with_entries([*given])
    for values in (given.query_numbers, *given.queries.plain[:2], *given.queries.plain[3:]):
        digest.update(values)
    digest.update(repr([*given.ids]).encode())
print("digest", digest.hexdigest())
for kernel in (kernels.costs, kernels.start, kernels.write, bind, bind_text, begin_document,
               begin_stream, scan, pass_over, read, rehash, find_lines, write_ids, check_ids):
    print("signatures", kernel.__name__, len(kernel.signatures))
    print("compiled", kernel.__name__, sum(kernel.stats.cache_misses.values()))
print("folder", jit.cache_folder())

@jit.kernel
def canary(array, index):
    return array[index]

try:
    print("canary", canary(np.zeros(3, np.int64), 5) == canary(np.zeros(3, np.int64), 1))
except IndexError:
    print("canary", "IndexError")
"""


KERNELS = (
    *("costs", "start", "write", "bind", "bind_text", "begin_document", "begin_stream", "scan"),
    *("pass_over", "read", "rehash", "find_lines", "write_ids", "check_ids"),
)


def run(home: Path, **environment: str) -> dict[str, str]:
    """What the program prints, by its first words."""
    program = home / "program.py"
    program.write_text(PROGRAM)  # a file, since what is cached belongs to one
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=home,
        env={**os.environ, "XDG_CACHE_HOME": str(home / "cache"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def test_bounds_and_cache(tmp_path: Path) -> None:
    """A fresh cache with every index checked, one without, and a second process that finds it."""
    checked = run(tmp_path, NUMBA_BOUNDSCHECK="1")
    assert checked["canary"] == "IndexError"
    first = run(tmp_path)
    assert first["canary"] != "IndexError"
    second = run(tmp_path)
    for kernel in KERNELS:
        assert first[f"signatures {kernel}"] == "1"
        assert checked[f"compiled {kernel}"] == first[f"compiled {kernel}"] == "1"
        assert second[f"compiled {kernel}"] == "0"
    assert checked["digest"] == first["digest"] == second["digest"]
    assert checked["folder"] != first["folder"] == second["folder"]
    assert first["folder"].startswith(str(tmp_path / "cache" / "tamis"))


@pytest.fixture
def no_folder_yet() -> Iterator[None]:
    jit.cache_folder.cache_clear()
    yield
    jit.cache_folder.cache_clear()


def is_private(folder: Path) -> bool:
    return stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.usefixtures("no_folder_yet")
def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jit.cache_folder().is_relative_to(tmp_path)
    assert is_private(jit.cache_folder())


@pytest.mark.usefixtures("no_folder_yet")
@pytest.mark.parametrize("fault", ["nowhere", "a file", "others may write"])
def test_a_private_folder_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if fault == "nowhere":
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    elif fault == "a file":
        (tmp_path / "tamis").write_text("")
    else:
        folder = jit.cache_folder()
        folder.chmod(0o777)
        jit.cache_folder.cache_clear()
    folder = jit.cache_folder()
    assert folder.is_dir()
    assert is_private(folder)
    assert not folder.is_relative_to(tmp_path / "tamis")
