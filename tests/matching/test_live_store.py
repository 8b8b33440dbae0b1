"""``Matcher.open``: documents are matched by subscriptions that a folder keeps."""

import pickle
from pathlib import Path

import pytest

import tamis
from tamis.core.errors import StoreError, UsageError
from tamis.core.index import store as store_module
from tamis.core.limits import Limits
from tamis.matching.engines.automaton import save as save_module
from tamis.schema.reader import parse_dtd, read_dtd

DTD = """<!ENTITY % inline "em | code">
<!NOTATION gif SYSTEM "gif">
<!ELEMENT a (b, (c | d)*, e?)> <!ELEMENT b (#PCDATA)> <!ELEMENT c (#PCDATA | %inline;)*>
<!ELEMENT d ANY> <!ELEMENT e EMPTY> <!ELEMENT em (b)> <!ELEMENT code (b)+>
<!ATTLIST a xmlns CDATA #FIXED "urn:p" k (x | y) "x" i ID #IMPLIED
            n CDATA "a &#34;&#60;&#38;' %" g NOTATION (gif) #REQUIRED>"""


def test_a_folder_keeps_settings_and_subscriptions(tmp_path: Path) -> None:
    given = {"namespaces": {"p": "urn:p"}, "default_namespace": "urn:d", "unsupported": "slow"}
    with tamis.Matcher.open(tmp_path, **given, limits=Limits(depth=50)) as live:
        live.update({"x": "//p:a", 1: "//a", "s": "//a[last()]"})
        live.add("gone", "//b")
        live.compact()
        live.remove("gone")
        live.add("1", "//a/b", durable=True)
        with pytest.raises(tamis.SubscriptionError):
            live.add("bad", "//q:a")
    for _ in range(2):
        with tamis.Matcher.open(tmp_path, **given) as live:
            assert live.ids == ("x", 1, "s", "1")
            assert list(live.match("<a xmlns='urn:d'><b/></a>")) == [1, "s", "1"]
            assert list(live.match("<a xmlns='urn:p'/>")) == ["x"]
            assert live.get("s") == "//a[last()]"
            assert live.snapshot().limits == Limits(depth=50)
            live.compact()
            compiled = live.compiled()
    assert list(pickle.loads(pickle.dumps(compiled)).match("<a xmlns='urn:p'/>")) == ["x"]
    with pytest.raises(UsageError, match="it was made with unsupported='slow', not 'refuse'"):
        tamis.Matcher.open(tmp_path, unsupported="refuse")
    with pytest.raises(TypeError):
        tamis.Matcher.open(tmp_path, colour="red")
    tamis.Matcher.open(tmp_path).close()


def test_warnings_are_logged_when_a_subscription_is_added(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.dtd").write_text("<!ELEMENT a ANY>")
    given = {"unsupported": "slow", "dtd": tmp_path / "a.dtd"}  # what has a DTD is compiled again
    with tamis.Matcher.open(tmp_path / "store", **given) as live:
        live.add("slow", "//a[last()]")
        live.add("odd", "true()")
        told = [*caplog.messages]
        assert told == [
            "1 of 1 subscriptions go through lxml",
            "subscription 'odd' is always true: true()",
        ]
        for number in range(70):
            live.add(number, f"//a{number}")
            assert list(live.match("<a/>")) == ["slow", "odd"]
        live.compact()
        live.remove("slow")
        live.compiled()
        live.update({"slow": "//a[last() = 1]"})
        told.append("1 of 1 subscriptions go through lxml")
    for _ in range(2):
        with tamis.Matcher.open(tmp_path / "store") as live:
            assert list(live.match("<a/>")) == ["odd", "slow"]
            live.compact()
    assert caplog.messages == told


@pytest.mark.parametrize("engine", ["auto", "nfa", "twigstacks"])
def test_a_dtd_is_kept(tmp_path: Path, engine: str) -> None:
    file = tmp_path / "a.dtd"
    file.write_text(DTD)
    folder = tmp_path / "store"
    names = {"p": "urn:p"}
    with tamis.Matcher.open(folder, dtd=file, root="a", engine=engine, namespaces=names) as live:
        live.update({"x": "//p:b", "y": "//*"})
        live.compact()
        live.add("z", "/*")
    for given in ({}, {"dtd": file, "root": "a"}):
        with tamis.Matcher.open(folder, **given) as live:
            schema = live.compiled().schema
            assert schema is not None
            assert schema.graph.roots == ("a",)
            assert schema.graph.dtd.elements == read_dtd(file).elements
            assert list(live.match("<a xmlns='urn:p' g='gif'><b/></a>")) == ["x", "y", "z"]
            assert list(live.match("<q/>")) == ["y", "z"]
    file.write_text("<!ELEMENT a EMPTY>")
    with pytest.raises(UsageError, match="it was made with dtd="):
        tamis.Matcher.open(folder, dtd=file)


def test_declarations_say_the_same() -> None:
    dtd = parse_dtd(DTD)
    assert parse_dtd(dtd.declarations()).elements == dtd.elements


def test_another_version_compiles_the_subscriptions_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"s{number}": f"//a{number}" for number in range(300)} | {7: "//b"}
    with tamis.Matcher.open(tmp_path) as live:
        live.add_many(many)
        live.compact()
        live.remove("s3")
    monkeypatch.setattr(save_module, "PROGRAM_VERSION", 1_000)
    with tamis.Matcher.open(tmp_path) as live:
        assert list(live.match("<r><a3/><a4/><b/></r>")) == ["s4", 7]
        live.compact()
    with tamis.Matcher.open(tmp_path) as live:
        assert live.ids == tuple(id for id in many if id != "s3")
    monkeypatch.setattr(store_module, "_VERSION", 2)
    with pytest.raises(StoreError, match="of version 1, made by another Tamis"):
        tamis.Matcher.open(tmp_path)


def test_a_long_journal_becomes_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_JOURNAL_MAX", 10_000)
    with tamis.Matcher.open(tmp_path) as live:
        for number in range(1_000):
            live.add(number, f"//a{number % 7}/b")
            if number % 3 == 0:
                live.remove(number)
            if number % 100 == 0:
                live.match("<a/>")
        if live._checkpointer is not None:
            live._checkpointer.join()
        expected = list(live.match("<a1><b/></a1>"))
    assert len(list(tmp_path.glob("*.segment"))) >= 1
    with tamis.Matcher.open(tmp_path) as live:
        assert list(live.match("<a1><b/></a1>")) == expected
        assert len(live) == 666


def test_what_can_no_longer_be_read_is_told(tmp_path: Path) -> None:
    with tamis.Matcher.open(tmp_path) as live:
        live._write('[["x", "//a["], ["y", "//b"]]')  # as a Tamis that took it would
    for read_only in (True, False):
        with pytest.raises(StoreError, match="subscription 'x': expected"):
            tamis.Matcher.open(tmp_path, read_only=read_only)
