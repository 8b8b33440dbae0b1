"""Sets of subscriptions: from Python, from text and NDJSON files; every bad one is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tamis
from tamis import BadSubscriptions, Subscriptions, UsageError
from tamis.core.errors import SubscriptionIdError, SubscriptionSyntaxError, UnsupportedExpression
from tamis.language import entries, queries
from tamis.language.subscriptions import read_namespaces
from tamis.language.xpath import absolute_xpath


@pytest.fixture(autouse=True, params=["parser", "kernels"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sets are read by Python alone; here also as if they were large."""
    if request.param == "kernels":
        monkeypatch.setattr(entries, "BULK_MIN", 0)
        monkeypatch.setattr(queries, "BULK_MIN", 0)


def from_file(tmp_path: Path, data: bytes | str, name: str = "set.tsv", **options) -> Subscriptions:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return Subscriptions.from_file(path, **options)


def pairs(subscriptions: Subscriptions) -> list[tuple[str | int, str]]:
    return [(item.id, item.expression) for item in subscriptions]


def messages(caught: pytest.ExceptionInfo[BadSubscriptions]) -> list[str]:
    """The first line of each error."""
    return [str(error).split("\n")[0] for error in caught.value.errors]


# -- from Python -------------------------------------------------------------------------------


def test_ids_keep_their_type_and_order() -> None:
    subscriptions = Subscriptions([("b", "//b"), (1, "//a"), ("1", "//c"), (-7, "//b")])
    assert list(subscriptions.ids) == ["b", 1, "1", -7]
    assert len(subscriptions) == 4
    assert list(tamis.compile(subscriptions).match("<a><b/></a>")) == ["b", 1, -7]


def test_a_mapping_and_an_iterator_will_do() -> None:
    assert pairs(Subscriptions({"x": "//a"})) == pairs(Subscriptions(iter([("x", "//a")])))
    assert pairs(Subscriptions({})) == []


def test_equal_expressions_are_one_query() -> None:
    subscriptions = Subscriptions({"x": "//a", "y": "//a", "z": "//a[name() = 'a']", "v": "//b"})
    first, second, *_ = subscriptions
    assert sorted(subscriptions.query_numbers.tolist()) == [0, 0, 1, 2]
    assert first.query == second.query


def test_all_bad_ones_are_told_at_once() -> None:
    with pytest.raises(BadSubscriptions) as caught:
        Subscriptions([("x", "//a["), ("y", "//b"), ("z", "//c[last()]"), ("y", "//d"), (8, "/")])
    errors = caught.value.errors
    kinds = [SubscriptionSyntaxError, UnsupportedExpression, SubscriptionIdError]
    assert [type(error) for error in errors] == kinds
    assert [error.id for error in errors] == ["x", "z", "y"]
    assert [error.line for error in errors] == [None, None, None]
    assert str(caught.value).startswith("3 bad subscriptions\nsubscription 'x': expected ")


def test_twenty_are_shown() -> None:
    with pytest.raises(BadSubscriptions) as caught:
        Subscriptions(dict.fromkeys(range(50), "//"))
    assert len(caught.value.errors) == 50
    assert str(caught.value).endswith("… and 30 more")


def test_skip_bad_keeps_the_good_ones_and_the_errors() -> None:
    subscriptions = Subscriptions({"x": "//a[", "y": "//b"}, skip_bad=True)
    assert list(subscriptions.ids) == ["y"]
    assert [error.id for error in subscriptions.errors] == ["x"]
    assert list(tamis.compile(subscriptions).match("<b/>")) == ["y"]


@pytest.mark.parametrize("id", ["a\tb", "a\nb", "a\rb", "\x00", "", "\u2028", "\ud800"])
def test_ids_that_no_line_could_hold(id: str) -> None:
    with pytest.raises(BadSubscriptions) as caught:
        Subscriptions({id: "//a"})
    assert caught.value.errors[0].code == "subscription-id"
    assert "\n" not in str(caught.value.errors[0])


@pytest.mark.parametrize("id", [" a b ", "é", "#1", "x" * 10_000, 0, -1, 1 << 70])
def test_ids_of_all_other_kinds(id: str | int) -> None:
    assert list(Subscriptions({id: "//a"}).ids) == [id]


@pytest.mark.parametrize(
    "items", [[("x", 5)], [(True, "//a")], [(1.5, "//a")], [("x",)], ["//a"], [None], {b"x": "//a"}]
)
def test_what_is_no_subscription(items: object) -> None:
    with pytest.raises(UsageError, match="a subscription is a pair"):
        Subscriptions(items)


def test_namespaces() -> None:
    subscriptions = Subscriptions({"x": "//p:a"}, namespaces={"p": "urn:p"})
    assert list(tamis.compile(subscriptions).match("<a xmlns='urn:p'/>")) == ["x"]


@pytest.mark.parametrize(
    ("namespaces", "said"),
    [
        ({"": "urn:p"}, "default namespace"),
        ({"p": ""}, "not a namespace declaration"),
        ({"p:q": "urn:p"}, "not a namespace declaration"),
        ({"1": "urn:p"}, "not a namespace declaration"),
        ({"p ": "urn:p"}, "not a namespace declaration"),
    ],
)
def test_bad_namespaces(namespaces: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Subscriptions({}, namespaces=namespaces)


def test_the_prefix_xml_is_not_bound_anew() -> None:
    with pytest.raises(UsageError):
        Subscriptions({"x": "//xml:a"}, namespaces={"xml": "urn:p"})


@pytest.mark.parametrize("character", ["\ud800", "\x00", "\x01", "\uffff"])
def test_literals_hold_characters_of_xml_only(character: str) -> None:
    """A lone surrogate could not even be compared with a document's UTF-8."""
    with pytest.raises(BadSubscriptions):
        Subscriptions({"x": f"//a[. = '{character}']"})


# -- for lxml ----------------------------------------------------------------------------------


def test_slow_takes_what_is_unsupported_and_only_that() -> None:
    subscriptions = Subscriptions({"x": "a/b[last()]", "y": "//b"}, unsupported="slow")
    slow, fast = subscriptions
    assert (slow.query, slow.absolute) == (None, "/a/b[last()]")
    assert fast.query is not None
    assert fast.absolute is None


def test_slow_still_refuses_what_is_not_xpath() -> None:
    with pytest.raises(BadSubscriptions) as caught:
        Subscriptions(
            {1: "//a[last(]", 2: "//q:a[last()]", 3: "$x", 4: "foo()", 5: "last(1)"},
            unsupported="slow",
        )
    assert [error.code for error in caught.value.errors] == [
        "subscription-syntax",
        "subscription-syntax",
        "subscription-unsupported",
        "subscription-syntax",
        "subscription-syntax",
    ]


@pytest.mark.parametrize(
    ("expression", "absolute"),
    [
        ("a | b[last()]", "/a | /b[last()]"),
        (".//a[last()]/../b", "/.//a[last()]/../b"),
        ("..", "/.."),
        ("string() = string(a)", "string(/) = string(/a)"),
        ("(a)[1]/b", "(/a)[1]/b"),
        ("count(//a[b]) = count(c[d])", "count(//a[b]) = count(/c[d])"),
        ("-a < 5 div b", "-/a < 5 div /b"),
        ("concat(a, 'b', c[1])", "concat(/a, 'b', /c[1])"),
        ("@a or text()[last()]", "/@a or /text()[last()]"),
        ("id('a')/b[c]", "id('a')/b[c]"),
        ("name() and namespace-uri( )", "name(/) and namespace-uri( /)"),
        ("* * *", "/* * /*"),
    ],
)
def test_the_document_node_is_written_into_slow_expressions(expression: str, absolute: str) -> None:
    assert absolute_xpath(expression) == absolute


def test_unknown_way_with_the_unsupported() -> None:
    with pytest.raises(UsageError, match="'refuse' or 'slow'"):
        Subscriptions({}, unsupported="ignore")


# -- text files --------------------------------------------------------------------------------


def test_text_file(tmp_path: Path) -> None:
    data = "# a comment\n\none\t//a\n//b\n  \n#\ntwo\t//c[d\t= 'e']\n\t \n//d"
    assert pairs(from_file(tmp_path, data)) == [
        ("one", "//a"),
        ("4", "//b"),
        ("two", "//c[d\t= 'e']"),
        ("9", "//d"),
    ]


@pytest.mark.parametrize("name", ["set.tsv", "set.ndjson"])
def test_empty_file(tmp_path: Path, name: str) -> None:
    assert pairs(from_file(tmp_path, b"", name)) == []
    assert pairs(from_file(tmp_path, b"\xef\xbb\xbf\r\n\n", name)) == []


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbfone\t//a\r\n# comment\r\n\r\n//b\r\n"
    assert pairs(from_file(tmp_path, data)) == [("one", "//a"), ("4", "//b")]


def test_every_bad_line_is_told_with_its_number(tmp_path: Path) -> None:
    data = (
        b"a\t//a[\n"  # 1: syntax
        b"b\t//b\n"
        b"\t//c\n"  # 3: no id
        b"d\t\n"  # 4: no expression
        b"b\t//d\n"  # 5: id of line 2
        b"e\t//\xff\n"  # 6: not UTF-8
        b"f\t//a[last()]\n"  # 7: unsupported
        b"a\t//a\n"  # 8: id of the bad line 1
        b"//[\n"  # 9: syntax, without id
        b"9\t//a\n"  # 10: id of line 9
        b"g\x00\t//a\n"  # 11: id with a control character
    )
    with pytest.raises(BadSubscriptions) as caught:
        from_file(tmp_path, data)
    syntax = "expected a path, a literal or a function, found the end"
    assert messages(caught) == [
        f"line 1: subscription 'a': {syntax}",
        "line 3: subscription '': the id is empty",
        "line 4: subscription 'd': the expression is empty",
        "line 5: subscription 'b': the id is used twice, first in line 2: ids must be unique",
        "line 6: subscription '6': the line is not UTF-8: 'utf-8' codec can't decode byte 0xff in "
        "position 4: invalid start byte",
        "line 7: subscription 'f': last() is not supported: how many siblings follow is not known "
        "when it is read",
        "line 8: subscription 'a': the id is used twice, first in line 1: ids must be unique",
        "line 9: subscription '9': expected a step, found '['",
        "line 10: subscription '9': the id is used twice, first in line 9: ids must be unique",
        "line 11: subscription 'g\\x00': the id has a tab, a newline or another character that "
        "cannot be printed",
    ]


def test_a_line_number_may_clash_with_an_id(tmp_path: Path) -> None:
    with pytest.raises(BadSubscriptions) as caught:
        from_file(tmp_path, "2\t//a\n//b\n")
    (message,) = messages(caught)
    assert message.startswith("line 2: subscription '2': the id is used twice, first in line 1")


def test_skip_bad_lines(tmp_path: Path) -> None:
    subscriptions = from_file(tmp_path, "a\t//a[\nb\t//b\na\t//c\n", skip_bad=True)
    assert list(subscriptions.ids) == ["b"]
    assert [error.line for error in subscriptions.errors] == [1, 3]


def test_slow_lines(tmp_path: Path) -> None:
    subscriptions = from_file(tmp_path, "a\t//a[last()]\nb\t//b\n", unsupported="slow")
    assert [item.query is None for item in subscriptions] == [True, False]


# -- NDJSON ------------------------------------------------------------------------------------


def ndjson(*objects: object) -> str:
    return "".join(json.dumps(value) + "\r\n" for value in objects)


def test_ndjson_file(tmp_path: Path) -> None:
    data = "\ufeff" + ndjson(
        {"id": "x", "expression": "//a"},
        {"expression": "//b[c = '\u00e9\"']", "id": 7, "owner": "ignored"},
        {"id": "#y", "expression": "//c\n"},
    )
    assert pairs(from_file(tmp_path, data + "\n  \n", "set.ndjson")) == [
        ("x", "//a"),
        (7, "//b[c = '\u00e9\"']"),
        ("#y", "//c\n"),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "not JSON"),
        (b"# comment", "not JSON"),
        (b'{"id": "x", "expression": "//\xff"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"id": ' + b"1" * 5_000 + b', "expression": "//a"}', "not JSON"),
        (b'{"id": "x"}', "expected an object"),
        (b'{"expression": "//a"}', "expected an object"),
        (b'{"id": true, "expression": "//a"}', "expected an object"),
        (b'{"id": 1.5, "expression": "//a"}', "expected an object"),
        (b'{"id": null, "expression": "//a"}', "expected an object"),
        (b'{"id": "x", "expression": 5}', "expected an object"),
        (b'["x", "//a"]', "expected an object"),
        (b'"//a"', "expected an object"),
        (b"null", "expected an object"),
        (b'{"id": "a\\tb", "expression": "//a"}', "the id has a tab"),
        (b'{"id": "", "expression": "//a"}', "the id is empty"),
        (b'{"id": "x", "expression": "//a["}', "found the end"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_ndjson_line(tmp_path: Path, line: bytes, said: str) -> None:
    good = b'{"id": "good", "expression": "//a"}\n'
    subscriptions = from_file(tmp_path, good + line + b"\n", "set.ndjson", skip_bad=True)
    assert list(subscriptions.ids) == ["good"]
    (error,) = subscriptions.errors
    assert error.line == 2
    assert said in str(error)
    assert len(str(error)) < 500


def test_duplicate_ids_in_ndjson(tmp_path: Path) -> None:
    data = ndjson({"id": 1, "expression": "/a"}, {"id": "1", "expression": "/b"}) * 2
    with pytest.raises(BadSubscriptions) as caught:
        from_file(tmp_path, data, "set.ndjson")
    assert messages(caught) == [
        "line 3: subscription 1: the id is used twice, first in line 1: ids must be unique",
        "line 4: subscription '1': the id is used twice, first in line 2: ids must be unique",
    ]


# -- files that cannot be read, and files of namespaces ----------------------------------------


@pytest.mark.parametrize("read", [Subscriptions.from_file, read_namespaces])
def test_files_that_cannot_be_read(tmp_path: Path, read) -> None:
    for path in (tmp_path, tmp_path / "missing.tsv", tmp_path / "no" / "folder"):
        with pytest.raises(UsageError, match="cannot read"):
            read(path)


@pytest.mark.parametrize("read", [Subscriptions.from_file, read_namespaces])
def test_path_that_cannot_be(read) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read("a\x00b")


def test_namespaces_file(tmp_path: Path) -> None:
    path = tmp_path / "namespaces"
    path.write_bytes(b"\xef\xbb\xbf# comment\r\n\r\np\turn:p\r\n  q   http://e.org/q  \n #x\n")
    assert read_namespaces(path) == {"p": "urn:p", "q": "http://e.org/q"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"p\turn:p\np\turn:q\n", "line 2: the prefix 'p' is declared before, as urn:p"),
        (b"\np\n", "line 2: expected a prefix, a space and its URI"),
        (b"p=urn:p\n", "line 1: expected a prefix, a space and its URI"),
        (b"p urn:p extra\n", "line 1: expected"),
        (b"p:q urn:p\n", "not a namespace declaration"),
        (b"p urn:\xff\n", "not UTF-8"),
    ],
)
def test_bad_namespaces_file(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "namespaces"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=said):
        read_namespaces(path)


@pytest.mark.parametrize("line", ["w       //order[@due]", "w /order", "17 //a"])
def test_spaces_for_a_tab_are_not_a_path(line: str, tmp_path: Path) -> None:
    path = tmp_path / "s.tsv"
    path.write_text(f"//a /b\n{line}\nx\t//a\n")
    with pytest.raises(BadSubscriptions, match=r"line 2: .*this line has none") as caught:
        Subscriptions.from_file(path)
    assert len(caught.value.errors) == 1


@pytest.mark.parametrize(
    ("expressions", "looks"),
    [
        (["a = 1 and b > 2"], 1),
        (["temp > 30", "//a", "(x != 'y' or z = \"w\")", "temp > 30"], 3),
        (["on = true", "temp < -1.5"], 2),
        (["/temp > 30", "a/b = 1", "@a = 1", ". = 1", "a[b = 1]", "text() = 'x'", "a"], 0),
        (["p:a = 1", "count(a) = 1", "30 < temp", "not(a = 1)", "a = 1 or b", "* = 1", "a | b"], 0),
        (["a = .5", "./a = 1", "child::a = 1", "'a' = 1", "a = 1 and //b"], 0),
    ],
)
def test_filters_of_events_are_noticed(
    expressions: list[str], looks: int, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning for a set, and none for what can be meant as XPath."""
    given = tamis.Subscriptions(
        enumerate(expressions), namespaces={"p": "urn:p"}, unsupported="slow"
    )
    assert len(given) == len(expressions)
    warnings = [m for m in caplog.messages if "filters of events" in m]
    assert len(warnings) == (looks > 0)
    if looks:
        assert warnings[0].startswith(f"{looks} of {len(expressions)} subscriptions look like")


def test_filters_of_events_are_noticed_once_by_live_sets(caplog: pytest.LogCaptureFixture) -> None:
    matcher = tamis.Matcher()
    matcher.add("x", "a = 1 and b > 2")
    matcher.add("y", "//a")
    assert list(matcher.match("<a>1</a>")) == ["y"]
    assert sum("filters of events" in message for message in caplog.messages) == 1
