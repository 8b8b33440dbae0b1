"""Large sets, of which kernels read the lines, ids and plain expressions: nothing else changes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis import Limits, Subscriptions
from tamis.core.index.columns import Ids
from tamis.language import entries, queries
from tamis.language.model import Query
from tamis.language.xpath import parse
from tests.language.plain_forms import form
from tests.language.test_plain import NOT_PLAIN, PLAIN, WRONG
from tests.support.bulk import read_in_bulk

SOME = [text for text in PLAIN + NOT_PLAIN + WRONG if not set(text) & set("\t\r\n")]
CONSTANTS = ["true()", "//a > 'x'", "'text'", "1 = 2 or true()"]
NAMESPACES = {"p": "urn:p", "q": "urn:q"}
DOCUMENT = "<a><b>x</b><b>5</b><c><d b='x'/></c></a>"


@pytest.fixture(params=["refuse", "slow"])
def unsupported(request: pytest.FixtureRequest) -> str:
    return request.param


def set_bulk_min(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(entries, "BULK_MIN", count)
    monkeypatch.setattr(queries, "BULK_MIN", count)


def meaning(query: Query) -> object:
    """Equal for plain queries that differ only in how they are written, as ``[a][b]``."""
    return form(query) if query.unstreamed is None else query


def all_about(subscriptions: Subscriptions) -> dict[str, object]:
    """What can be known of a set without matching."""
    items = list(subscriptions)
    return {
        "pairs": [(item.id, item.expression) for item in items],
        "ids": list(subscriptions.ids),
        "queries": [item.query for item in items],
        "by number": [
            meaning(subscriptions.queries[number])
            for number in subscriptions.query_numbers.tolist()
        ],
        "absolute": [item.absolute for item in items],
        "slow": [(item.id, item.absolute) for item in subscriptions.slow],
        "errors": [(type(error), str(error)) for error in subscriptions.errors],
    }


def random_line(random: Random, number: int) -> bytes:
    """A line of a file, more or less good; some ids occur again and again."""
    kind = random.randrange(40)
    expression = random.choice(CONSTANTS if kind == 0 else SOME).encode()
    if kind == 1:
        return random.choice([b"", b" ", b"\t", b"\r", b"\x0b", b" \t\r", b"# x\t//a", b"#"])
    if kind == 2:
        return random.choice([b"id //a", b"id  /a", b"a/b", b" //a", b"//a //b", b"\xff", b"/\xe9"])
    if kind == 3:
        return b"/a[b = '\xff']" if random.random() < 0.5 else b"x%d\t//b\xff" % number
    if kind == 4:
        return b"\t".join([b"", expression])
    if kind == 5:
        return b"\x0b\x1f\xc2\x85%d\t%b" % (random.randrange(9), expression)
    if kind < 10:
        return expression
    name = random.choice([b"x%d", b"%d", "\u00e9%d".encode(), b"x y %d", b"x\xc2\xa0%d"])
    return (
        name % random.choice([number, number, number, random.randrange(3_000)]) + b"\t" + expression
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_files(
    seed: int,
    end: bytes,
    unsupported: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    random = Random(seed)
    path = tmp_path / "set"
    path.write_bytes(end.join(random_line(random, number) for number in range(1, 3_000)))
    found = []
    for count in (1 << 30, 1):
        set_bulk_min(monkeypatch, count)
        caplog.clear()
        read = Subscriptions.from_file(
            path, namespaces=NAMESPACES, unsupported=unsupported, skip_bad=True
        )
        found.append((all_about(read), [record.getMessage() for record in caplog.records]))
        assert (read_in_bulk(read.queries) > 0) == (count == 1)
    assert found[0] == found[1]
    assert len(found[0][0]["errors"]) > 100
    assert len(found[0][1]) > 10


def test_from_python(unsupported: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(5)
    ids: Sequence[str | int] = [7, "7", -7, 1 << 80, "", "a\tb", "\u00e9", "\ud800", "x" * 300, 0]
    pairs = [(random.choice(ids), random.choice(SOME)) for _ in range(30)]
    pairs += [(f"x{n}", random.choice([*SOME, "//\ud800", "/a[b = '\ud800']"])) for n in range(500)]
    found = []
    for count in (1 << 30, 1):
        set_bulk_min(monkeypatch, count)
        read = Subscriptions(pairs, namespaces=NAMESPACES, unsupported=unsupported, skip_bad=True)
        found.append(all_about(read))
    assert found[0] == found[1]
    assert 7 in found[0]["ids"]


def test_a_large_set_is_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain queries, others, those of another engine and of lxml, and shared ones."""
    others = ["//b[2]", "name(/*) = 'a'", "//a[last()]", "//b[2]", "/a/b"]
    texts = [*PLAIN, *others, *(f"/a[b = '{n}']" for n in range(3_000))]
    given = Subscriptions(enumerate(texts), namespaces=NAMESPACES, unsupported="slow")
    assert read_in_bulk(given.queries) > 3_000
    matcher = tamis.compile(given)
    assert matcher.engine == "automaton and reference and lxml"
    few = dict(enumerate(texts[:500]))
    set_bulk_min(monkeypatch, 1_000)
    small = tamis.compile(few, namespaces=NAMESPACES, unsupported="slow")
    assert read_in_bulk(small.subscriptions.queries) == 0
    matched = list(matcher.match(DOCUMENT))
    assert matched == list(small.match(DOCUMENT))
    assert texts.index("/a[b = '5']") in matched
    assert list(pickle.loads(pickle.dumps(matcher)).match(DOCUMENT)) == matched
    assert str(matcher.explain(DOCUMENT, 0)).startswith("true: /a")


def test_all_engines_take_plain_queries() -> None:
    given = Subscriptions({f"s{n}": f"/a[b = '{n}']/c" for n in range(2_500)})
    assert read_in_bulk(given.queries) == len(given.queries) == 2_500
    for engine in ("auto", "automaton", "reference"):
        assert list(tamis.compile(given, engine=engine).match(DOCUMENT)) == ["s5"]


def test_live_subscriptions_are_read_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    set_bulk_min(monkeypatch, 3)
    live = tamis.Matcher(unsupported="slow")
    for number, text in enumerate(["/a/b", "/a/c/d", "//a[last()]", "/a[name() = 'a']", "/a/x"]):
        live.add(number, text)
        assert len(list(live.match(DOCUMENT))) == min(number + 1, 4)
    live.remove(1)
    assert list(live.match(DOCUMENT)) == [0, 2, 3]


def test_a_part_of_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    set_bulk_min(monkeypatch, 2)
    given = Subscriptions(dict(enumerate(["/a", "/b", "count(b) = 2", "/c"])))
    part = given.with_entries([item for item in given if item.id != 1])
    assert list(part.ids) == [0, 2, 3]
    assert [item.query for item in part] == [parse(item.expression) for item in part]
    assert 1 in given
    assert 1 not in part


def test_progress_is_told(tmp_path: Path) -> None:
    path = tmp_path / "set"
    path.write_text("".join(f"x{n}\t/a{n}\n" for n in range(2_500)) + "y\ta or b\n")
    told: list[tuple[int, int]] = []
    Subscriptions.from_file(path, progress=lambda done, total: told.append((done, total)))
    assert told == [(2_500, 2_501), (2_500, 2_501)]


def test_few_subscriptions_need_no_numba() -> None:
    code = (
        "import sys, tamis\n"
        "given = tamis.Subscriptions({n: f'//a[{n + 1}]' for n in range(1_000)})\n"
        "assert len(list(given)) == 1_000\n"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "False\n"


@given(st.lists(st.one_of(st.text(max_size=5), st.integers()), unique_by=lambda id: (str, id)))
def test_ids_are_a_sequence(drawn: list[str | int]) -> None:
    ids = Ids.of(drawn).compact()
    assert list(ids) == [ids[number] for number in range(len(ids))] == drawn
    assert ids == tuple(drawn)
    assert ids[1:3] == tuple(drawn[1:3])
    assert ids.take(np.arange(len(drawn))) == drawn
    assert [ids.find(id) for id in drawn] == list(range(len(drawn)))
    assert [type(id) for id in ids] == [type(id) for id in drawn]


@pytest.mark.parametrize("predicates", [0, 1, 2])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_new_names_at_a_limit(predicates: int, steps: int) -> None:
    """A limit may be reached in the step that has a name that no expression before it has."""
    odd = [
        "//a[contains(new, 'x')]",
        "//other",
        "//new",
        "//a[starts-with(@newer, 'x')]",
        "//@last",
    ]
    limits = Limits(subscription_predicates=predicates, subscription_steps=steps)
    padding = [f"//a[b = {number}]" for number in range(entries.BULK_MIN)]
    large, small = (
        Subscriptions(list(enumerate(texts)), skip_bad=True, limits=limits)
        for texts in ([*odd, *padding], odd)
    )
    kept = [id for id in large.ids if isinstance(id, int) and id < len(odd)]
    assert kept == list(small.ids)
