"""Matchers that are saved and loaded: the same answers, and every fault in a file refused."""

from __future__ import annotations

import json
import logging
import os
import pickle
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.core import array_file
from tamis.core.errors import DamagedProgram, OtherVersion, ProgramError, UnreadableProgram
from tamis.core.limits import Limits
from tamis.matching import saved
from tamis.matching.engines.automaton.layout import COUNT
from tamis.matching.engines.automaton.save import PROGRAM_VERSION
from tests.support.bulk import read_in_bulk
from tests.support.case_table import cases
from tests.support.processes import output, start

SUBSCRIPTIONS: dict[str | int, str] = {
    "path": "//a/b", 7: "//a[b = 'x']", "named": "//*[name() = 'p:a']", "same": "//a/b",
    "slow": "//b[last()]", "prefix": "//q:a[@n > 1]", "é": "//a[not(b)]",
    0: "//a[contains(b, 'é')]", -(1 << 70): "//b[2]", "also slow": "//a/following::b",
    "named too": "local-name(/*) = 'a'",
}  # fmt: skip
DOCUMENTS = [
    "<a><b>x</b></a>",
    "<a><b>éé</b><b/></a>",
    "<p:a xmlns:p='u' n='2'><a/></p:a>",
    "<r><a/><b/></r>",
    "<r>",
]


@pytest.fixture(scope="module")
def matcher() -> tamis.CompiledMatcher:
    subscriptions = tamis.Subscriptions(
        SUBSCRIPTIONS, namespaces={"q": "u"}, unsupported="slow", limits=Limits(depth=77)
    )
    return tamis.compile(subscriptions)


@pytest.fixture
def path(matcher: tamis.CompiledMatcher, tmp_path: Path) -> Path:
    path = tmp_path / "all.tamis"
    matcher.save(path)
    return path


def said(matcher: tamis.CompiledMatcher, threads: int = 1) -> list[Any]:
    matches = matcher.match_many(DOCUMENTS, threads)
    return [repr(match.error) if match.error else list(match) for match in matches]


# -- round trips -----------------------------------------------------------------------------------


def test_programs_of_all_engines_come_back(matcher: tamis.CompiledMatcher, path: Path) -> None:
    loaded = tamis.load(path)
    expected = said(matcher)
    assert said(loaded) == expected == said(loaded, threads=3)
    assert {id for ids in expected[:-1] for id in ids} == SUBSCRIPTIONS.keys()
    assert (len(loaded), list(loaded.ids)) == (len(matcher), list(SUBSCRIPTIONS))
    assert loaded.engine == matcher.engine == "automaton and reference and lxml"
    assert loaded.limits == matcher.limits == loaded.subscriptions.limits == Limits(depth=77)
    assert loaded.memory_usage().keys() == matcher.memory_usage().keys()


def test_its_subscriptions_come_back(matcher: tamis.CompiledMatcher, path: Path) -> None:
    loaded = tamis.load(path).subscriptions
    assert [(s.id, s.expression, s.query, s.absolute) for s in loaded] == [
        (s.id, s.expression, s.query, s.absolute) for s in matcher.subscriptions
    ]
    assert [entry.id for entry in loaded.slow] == ["slow", "also slow"]
    assert loaded.namespaces == {"q": "u"}
    assert loaded.find(8) is None
    for subscriptions in (loaded, pickle.loads(pickle.dumps(loaded))):
        again = tamis.compile(subscriptions)
        assert said(again) == said(matcher)
        assert again.engine == matcher.engine
    few = loaded.with_entries([entry for entry in loaded if entry.id in ("path", "prefix")])
    assert list(few.ids) == ["path", "prefix"]


def test_it_explains(matcher: tamis.CompiledMatcher, path: Path) -> None:
    loaded = tamis.load(path)
    for id in (7, "named", "same"):
        assert str(loaded.explain(DOCUMENTS[0], id)) == str(matcher.explain(DOCUMENTS[0], id))
    with pytest.raises(tamis.UsageError, match="no such subscription"):
        loaded.explain(DOCUMENTS[0], "7")


def test_it_is_saved_again_as_it_was(path: Path, tmp_path: Path) -> None:
    tamis.load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(
    "items",
    [{}, {"x": "//a"}, {"x": "name(/*) = 'a'"}, {"x": "//a", "y": "name(/*) = 'a'"}],
    ids=str,
)
def test_engines_without_queries(tmp_path: Path, items: dict[str, str], engine: str) -> None:
    matcher = tamis.compile(items, engine=engine)
    matcher.save(tmp_path / "it", warm=True)
    loaded = tamis.load(tmp_path / "it")
    assert loaded.engine == matcher.engine
    assert list(loaded.match("<a/>")) == list(items)
    assert list(loaded.match("<b/>")) == []
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "it").read_bytes()


def test_every_case_comes_back(tmp_path: Path) -> None:
    asked = [case for case in cases() if isinstance(case.expected, bool) and not case.namespaces]
    items = dict(enumerate(dict.fromkeys(case.subscription for case in asked)))
    matcher = tamis.compile(items)
    matcher.save(tmp_path / "cases")
    loaded = tamis.load(tmp_path / "cases")
    documents = list(dict.fromkeys(case.document for case in asked))
    for one, other in zip(matcher.match_many(documents), loaded.match_many(documents), strict=True):
        assert repr(one.error) == repr(other.error)
        if one.error is None:
            assert list(one) == list(other)


def test_many_that_were_read_in_bulk(tmp_path: Path) -> None:
    """Read by kernels, from a file with other things between."""
    file = tmp_path / "many.tsv"
    lines = [f"s{n}\t//a[b > {n}]\n#\n//c{n}[d]\n" for n in range(2_000)]
    file.write_text("".join(lines) + "odd\tname(/*) = 'a'\n")
    subscriptions = tamis.Subscriptions.from_file(file)
    assert read_in_bulk(subscriptions.queries) == 4_000
    matcher = tamis.compile(subscriptions)
    matcher.save(tmp_path / "many")
    loaded = tamis.load(tmp_path / "many")
    documents = ["<a><b>3</b></a>", "<c7><d/></c7>", "<a><b>1999.5</b></a>"]
    for document in documents:
        assert list(loaded.match(document)) == list(matcher.match(document))
    assert len(loaded.match(documents[2])) == 2_001
    found = loaded.subscriptions.find("s5")
    assert found is not None
    assert found.query == matcher.subscriptions.find("s5").query  # type: ignore[union-attr]
    assert list(loaded.ids) == list(matcher.ids)
    assert loaded.subscriptions.queries[5] == matcher.subscriptions.queries[5]


def test_threads_share_one(matcher: tamis.CompiledMatcher, path: Path) -> None:
    loaded, expected = tamis.load(path), said(matcher)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(said(loaded))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_records(path: Path) -> None:
    matcher = tamis.compile({"x": "/a[b]"})
    matcher.save(path)
    records = tamis.load(path).match_records("<all><a/><a><b/></a></all>", "a", threads=2)
    assert [(match.record, list(match)) for match in records] == [(0, []), (1, ["x"])]


# -- the warm cache --------------------------------------------------------------------------------


def states(matcher: tamis.CompiledMatcher) -> int:
    """How many states the automaton knows that matched last."""
    return int(matcher.programs.workers[-1].searchers[0].cached.cache.states.counts[COUNT])  # type: ignore[attr-defined]


def test_the_warm_cache_is_loaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "it"
    matcher = tamis.compile({"x": "//a[b]/c", "y": "//d"})
    matcher.match("<a><b/><c><d/></c></a>")
    matcher.save(path, warm=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["it", "it.cache"]
    loaded = tamis.load(path)
    loaded.match("<zz/>")
    assert states(loaded) >= states(matcher)
    other = tamis.compile({"x": "//a[b]/c"})
    other.save(path)
    assert not (tmp_path / "it.cache").exists()  # it would not fit
    assert list(tamis.load(path).match("<a><b/><c/></a>")) == ["x"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_cache_that_does_not_fit_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, cache = tmp_path / "it", tmp_path / "it.cache"
    matcher = tamis.compile({"x": "//a[b]/c"})
    matcher.match("<a><b/><c/></a>")
    matcher.save(path, warm=True)
    old = cache.read_bytes()
    tamis.compile({"x": "//a[b]/d"}).save(path)
    cache.write_bytes(old)
    assert list(tamis.load(path).match("<a><b/><d/></a>")) == ["x"]
    assert "it is of another program" in caplog.text


def test_a_second_process(path: Path) -> None:
    code = "tests.matching.answer_loaded"
    expected = said(tamis.load(path))[0]
    processes = [start(code, str(path), DOCUMENTS[0]) for _ in range(2)]
    for process in processes:
        assert json.loads(output(process)) == expected


# -- pickles ---------------------------------------------------------------------------------------


def test_a_pickle_names_the_file(path: Path, tmp_path: Path) -> None:
    loaded = tamis.load(path)
    pickled = pickle.dumps(loaded)
    assert len(pickled) < 500
    assert said(pickle.loads(pickled)) == said(loaded)
    tamis.compile({"x": "//a"}).save(path)
    assert said(loaded)[0]  # the old one is still mapped
    with pytest.raises(OtherVersion, match="replaced since"):
        pickle.loads(pickled)
    path.unlink()
    with pytest.raises(UnreadableProgram):
        pickle.loads(pickled)


def test_a_relative_path_is_that_of_a_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(path.parent)
    pickled = pickle.dumps(tamis.load(path.name))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(pickled)


# -- files that are no good ------------------------------------------------------------------------


def test_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(UnreadableProgram, match="No such file"):
        tamis.load(tmp_path / "none")
    with pytest.raises(UnreadableProgram, match="not a file"):
        tamis.load(tmp_path)
    with pytest.raises(tamis.UsageError, match="cannot read"):
        tamis.load("nul\0")
    matcher = tamis.compile({})
    with pytest.raises(tamis.UsageError, match="cannot write"):
        matcher.save(tmp_path / "no" / "folder")
    with pytest.raises(tamis.UsageError, match="cannot write"):
        matcher.save("nul\0")


def test_what_is_replaced(tmp_path: Path) -> None:
    """A link stays a link; a pipe or a device is not replaced by a file."""
    link, pipe = tmp_path / "link.tamis", tmp_path / "pipe"
    link.symlink_to(tmp_path / "real.tamis")
    tamis.compile({"x": "//a"}).save(link)
    assert link.is_symlink()
    assert list(tamis.load(tmp_path / "real.tamis").match("<a/>")) == ["x"]
    os.mkfifo(pipe)
    with pytest.raises(tamis.UsageError, match="it is not a regular file"):
        tamis.compile({"x": "//a"}).save(pipe)
    assert pipe.is_fifo()


def test_a_program_is_no_file_of_subscriptions(path: Path) -> None:
    with pytest.raises(tamis.UsageError, match=r"is a program: give it to tamis\.load"):
        tamis.Subscriptions.from_file(path)
    path.write_text("x\t//a\n" * 20)
    with pytest.raises(DamagedProgram, match="not a file of Tamis's"):
        tamis.load(path)


Arrays = dict[str, Any]


def rewritten(
    path: Path, change: Callable[[Arrays], object], of: Callable[[dict[str, Any]], object]
) -> None:
    """Write a file again, with right checksums and something else in it."""
    file = array_file.open_arrays(path, "program", PROGRAM_VERSION)
    arrays = {name: array.copy() for name, array in file.arrays.items()}
    metadata = json.loads(json.dumps(file.metadata))
    change(arrays)
    of(metadata["more"])
    array_file.write_arrays(path, "program", PROGRAM_VERSION, arrays, metadata)


def nothing(_: Mapping[str, Any]) -> None:
    """Leave it."""


def put(name: str, place: int, value: int) -> Callable[[Arrays], object]:
    return lambda arrays: arrays[name].__setitem__(place, value)


def cut(name: str) -> Callable[[Arrays], object]:
    return lambda arrays: arrays.update({name: arrays[name][:-1]})


def swap(name: str, one: int, other: int) -> Callable[[Arrays], object]:
    return lambda arrays: arrays[name].__setitem__([one, other], arrays[name][[other, one]])


# Subscriptions 0 and 3 ask one query; lxml evaluates 4 and 9.
FAULTS: dict[str, Callable[[Arrays], object]] = {
    "ids begin later": put("id_bounds", 0, 1),
    "ids end later": put("id_bounds", -1, 1 << 20),
    "ids descend": put("id_bounds", 2, 1 << 10),
    "ids negative": put("id_bounds", 1, -1),
    "texts end earlier": put("text_bounds", -1, 3),
    "fewer ids": cut("id_bounds"),
    "fewer texts": cut("text_bounds"),
    "fewer bytes": cut("text_bytes"),
    "another query": put("query_numbers", 0, 1),
    "a query beyond": put("query_numbers", 0, 1 << 30),
    "none asks": put("query_numbers", 0, -1),
    "less than none": put("query_numbers", 4, -2),
    "fewer query numbers": cut("query_numbers"),
    "starts later": put("subscriber_starts", 0, 1),
    "starts negative": put("subscriber_starts", 1, -1),
    "starts descend": put("subscriber_starts", 2, 1 << 40),
    "fewer starts": cut("subscriber_starts"),
    "nobody asks": lambda arrays: arrays["subscriber_starts"].__setitem__(
        1, arrays["subscriber_starts"][2]
    ),
    "a number beyond": put("subscriber_numbers", 0, 1 << 30),
    "a negative number": put("subscriber_numbers", 0, -1),
    "fewer numbers": cut("subscriber_numbers"),
    "one twice": lambda arrays: arrays["subscriber_numbers"].__setitem__(1, 0),
    "not ascending": swap("subscriber_numbers", 0, 1),
    "those of lxml not ascending": swap("subscriber_numbers", -2, -1),
    "more others": lambda arrays: arrays.update(others=np.arange(5, dtype=np.int32)),
    "fewer others": cut("others"),
    "others beyond": put("others", -1, 100),
    "others negative": put("others", 0, -1),
    "others not ascending": swap("others", 0, 1),
    "an array less": lambda arrays: arrays.pop("others"),
    "an array more": lambda arrays: arrays.update(more=np.zeros(1, np.int32)),
    "another type": lambda arrays: arrays.update(others=arrays["others"].astype(np.int64)),
    "rows": lambda arrays: arrays.update(others=arrays["others"].reshape(-1, 1)),
    "a slow one is no expression": lambda arrays: arrays["text_bytes"].__setitem__(
        slice(*arrays["text_bounds"][4:6]), ord("[")
    ),
    "a named one is no text": lambda arrays: arrays["text_bytes"].__setitem__(
        slice(*arrays["text_bounds"][2:4]), 0xFF
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_arrays_that_do_not_fit(path: Path, fault: str) -> None:
    rewritten(path, FAULTS[fault], nothing)
    with pytest.raises(DamagedProgram, match="cannot be right"):
        tamis.load(path)


SAID: dict[str, dict[str, Any]] = {
    "another engine": {"engine": "warp"},
    "no engine": {"engine": []},
    "no limits": {"limits": None},
    "unknown limits": {"limits": {"width": 1}},
    "limits below nothing": {"expression_limits": {"subscription_chars": -1}},
    "namespaces of numbers": {"namespaces": {"p": 1}},
    "no namespaces": {"namespaces": []},
    "odd namespaces": {"namespaces": {"a b": "u"}},
    "no default namespace": {"namespaces": {"": ""}},
    "another lane": {"unsupported": "guess"},
    "more": {"more": 1},
}


@pytest.mark.parametrize("fault", SAID)
def test_metadata_that_do_not_fit(path: Path, fault: str) -> None:
    rewritten(path, nothing, lambda metadata: metadata.update(SAID[fault]))
    with pytest.raises(DamagedProgram, match="cannot be right"):
        tamis.load(path)


def test_what_is_rewritten_as_it_was_is_taken(path: Path) -> None:
    """So what is refused above is refused for what was changed."""
    before = path.read_bytes()
    rewritten(path, nothing, nothing)
    assert path.read_bytes() == before
    tamis.load(path)


def test_a_program_with_nothing_beside_it(path: Path, matcher: tamis.CompiledMatcher) -> None:
    saved.save_program(path, matcher._batches.assignments[0][1])  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="what it says of itself cannot be right"):
        tamis.load(path)


def test_a_loaded_set_is_not_parsed_for_a_hint(tmp_path: Path) -> None:
    """Of a million expressions only some are read again, to tell that a namespace is another."""
    path = tmp_path / "s.tamis"
    tamis.compile({number: f"/a/b{number}" for number in range(2_000)}).save(path)
    loaded = tamis.load(path)
    assert not loaded.match("<a xmlns='urn:a'><b7/></a>")
    mismatch = loaded.namespace_mismatch()
    assert mismatch is not None
    assert (mismatch.test.local, mismatch.namespace) == ("a", "urn:a")
    assert not loaded.subscriptions.queries.is_lowered
