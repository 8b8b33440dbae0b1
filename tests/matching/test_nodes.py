"""The nodes that subscriptions select: the same as lxml's, where expat says that they stand."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, settings
from lxml import etree

import tamis
from tamis.core.errors import SubscriptionError, UsageError
from tamis.core.limits import Limits
from tamis.documents import offsets
from tamis.language import entries, queries
from tamis.matching.engines.automaton.execute import Automaton
from tamis.matching.selection import Node, Selection
from tamis_workload.observed.generator import draw_from_documents
from tests.matching.automaton.test_cache import varied
from tests.matching.selected import Oracle
from tests.matching.test_drawn import thorough
from tests.matching.test_oracles import small
from tests.support.bulk import read_in_bulk
from tests.support.corpora import CORPORA, corpus
from tests.support.oracles import read
from tests.support.strategies import NAMESPACES, documents, subscriptions

ENGINES = ("auto", "reference")


def fragments(
    document: str | bytes, expression: str, engine: str = "auto", **prefixes: str
) -> list[str]:
    """What an expression selects, as text."""
    matcher = tamis.compile({"x": expression}, engine=engine, namespaces=prefixes)
    return list(matcher.match(document, nodes="all").nodes("x").fragments())


def check(oracle: Oracle, expression: str, nodes: Sequence[Node], first: Sequence[Node]) -> int:
    """Compare what was found with what lxml selects: how many nodes."""
    found = oracle.found(list(nodes))
    assert len(set(found)) == len(found)
    assert set(found) == set(oracle.expected(expression, NAMESPACES))
    inner = [node.start for node in nodes][found[:1] == [("document",)] :]
    assert inner == sorted(set(inner))
    assert list(first) == list(nodes)[:1]
    if isinstance(nodes, Selection):
        assert list(nodes.values()) == [oracle.value(key) for key in found]
    return len(found)


# -- everything that XML has ---------------------------------------------------------------------

CONTENT = [
    ("<a>x</a>", "//text()", ["x"]),
    ("<a>x<!--c-->y<?p?>z</a>", "//text()", ["x", "y", "z"]),
    ("<a>x<![CDATA[<y>]]>&amp;&#49;z<b/>w</a>", "//text()", ["x<![CDATA[<y>]]>&amp;&#49;z", "w"]),
    ("<a><![CDATA[</a>]]></a >", "//text()", ["<![CDATA[</a>]]>"]),
    ("<a>x<!--c--></a>", "//node()", ["<a>x<!--c--></a>", "x", "<!--c-->"]),
    ("<!--b--><?p d?><a/><!--c-->", "/node()", ["<!--b-->", "<?p d?>", "<a/>", "<!--c-->"]),
    ("<!DOCTYPE a [<!--x--><!ENTITY e ']>'><?y?>]><?p?><a/>", "/node()", ["<?p?>", "<a/>"]),
    ("<?xml version='1.0'?><!--c--><a/>", "/node()", ["<!--c-->", "<a/>"]),
    ("<a x=\"'>\" y = '\"' z='1'/>", "//@*", ['x="\'>"', "y = '\"'", "z='1'"]),
    ('<a x=\' y="1"\' y="2"\n/>', "//@y", ['y="2"']),
    ("<a xx='1' x='&lt;2'></a>", "//@x", ["x='&lt;2'"]),
    ("<a\tx\r\n=\r\n'1\r\n'/>", "//@x", ["x\r\n=\r\n'1\r\n'"]),
    ("<r xmlns='u'><a xmlns:x='x'/></r>", "//@*", []),
    ("<a ><b / ></a >".replace("/ ", "/"), "//*", ["<a ><b /></a >", "<b />"]),
    ("<a><b>1</b><b>2</b></a>", "/a/b[2]", ["<b>2</b>"]),
    ("<a><a><a/></a></a>", "//a//a", ["<a><a/></a>", "<a/>"]),
    ("<a><b/><c/></a>", "//c | //b | //*[self::b]", ["<b/>", "<c/>"]),
    ("<é ü='ö'>ä</é>", "//@*", ["ü='ö'"]),
    ("<a>\r\n<b>\r</b></a>", "//text()", ["\r\n", "\r"]),
    ("<a/>\n", "/", ["<a/>\n"]),
    ("<a/>", ".", ["<a/>"]),
    ("<a/>", "//.", ["<a/>", "<a/>"]),
]
BOOLEANS = [
    "/a/b = 3",
    "boolean(//a)",
    "not(//z)",
    "//a and //a",
    "count(/a) = 1",
    "'x'",
    "//a=true()",
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("document", "expression", "expected"), CONTENT)
def test_fragments(document: str, expression: str, expected: list[str], engine: str) -> None:
    assert fragments(document, expression, engine) == expected


@pytest.mark.parametrize("expression", BOOLEANS)
def test_booleans_select_nothing(expression: str) -> None:
    match = tamis.compile({"x": expression, "p": "//a"}).match("<a><b>3</b></a>", nodes="all")
    assert list(match) == ["x", "p"]
    assert list(match.nodes("x")) == []
    assert len(match.nodes("p")) == 1


def test_attributes_in_namespaces() -> None:
    document = "<a xmlns:p='u' xmlns:q='v' x='0' p:x='1' q:x='2'><b xmlns:p='v' p:x='3'/></a>"
    assert fragments(document, "//@x") == ["x='0'"]
    assert fragments(document, "//@n:x", n="u") == ["p:x='1'"]
    assert fragments(document, "//@n:*", n="v") == ["q:x='2'", "p:x='3'"]
    assert fragments(document, "//@*") == ["x='0'", "p:x='1'", "q:x='2'", "p:x='3'"]
    assert fragments("<a xml:lang='en'/>", "//@xml:lang") == ["xml:lang='en'"]


DTD = """<!DOCTYPE a [<!ATTLIST b d CDATA 'D'><!ENTITY t 'tt'><!ENTITY e '<b>1<c/>2</b>x'>]>"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("content", "expression", "expected"),
    [
        ("<b y='1'>z</b>", "//@d", ["<b y='1'>"]),
        ("<b/>", "//@d", ["<b/>"]),
        ("<b/>&e;", "//b", ["<b/>", "&e;"]),
        ("&e;", "//b | //c", ["&e;", "&e;"]),
        ("&e;", "//@d", ["&e;"]),
        ("&e;", "//text()", ["&e;"] * 3),
        ("1&t;2<b/>&t;", "//text()", ["1&t;2", "&t;"]),
        ("&t;<b/>&t;<!--c-->&t;", "//text()", ["&t;"] * 3),
        ("<b></b>&amp;<c/>", "//b | //c | //text()", ["<b></b>", "&amp;", "<c/>"]),
    ],
)
def test_entities(content: str, expression: str, expected: list[str], engine: str) -> None:
    """What an entity holds stands where its reference does; defaults stand at the tag."""
    assert fragments(f"{DTD}<a>{content}</a>", expression, engine) == expected


def test_references_to_what_nobody_declares_divide_text() -> None:
    document = "<!DOCTYPE a SYSTEM 'a.dtd'><a>x&u;y&amp;z<b/>&u;</a>"
    assert fragments(document, "//text()") == ["x", "y&amp;z"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("document", "expression", "expected"),
    [
        ("[<!ENTITY e 'x'>]><a>1&e;<!--c-->2&e;</a>", "//text()", ["1&e;", "2&e;"]),
        (
            "[<!ENTITY e 'x<!--k-->y'>]><a>1&e;2<!--z--></a>",
            "//a/node()",
            ["1&e;", "&e;", "&e;2", "<!--z-->"],
        ),
        ("SYSTEM 'x.dtd' [<!ENTITY e 'x'>]><a>1&u;2&e;3</a>", "//text()", ["1", "2&e;3"]),
        ("[<!ENTITY lt '&#38;#60;'>]><a>1&lt;2</a>", "//text()", ["1&lt;2"]),
        ("[<!ENTITY e SYSTEM 'e.xml'>]><a>1&e;2</a>", "//text()", ["1", "2"]),
        ("[<!ENTITY e 'x'><?p ]>?>]><!--c--><a>&e;</a>", "/node()[not(*)]", ["<!--c-->", "<a>"]),
        ("[<!ENTITY e ''>]><a>&e;1&e;2&e;<b/>&e;</a>", "//text()", ["1&e;2"]),
    ],
)
def test_references_are_what_they_were_to_the_parser(
    document: str, expression: str, expected: list[str], engine: str
) -> None:
    found = fragments(f"<!DOCTYPE a {document}", expression, engine)
    assert [text.replace("<a>&e;</a>", "<a>") for text in found] == expected


# What is written, and what it stands for: (T)ext, a (C)omment, an element or, (-), what is left
# out and divides text.
PIECES = [
    *[("1", "T"), ("&#50;", "T"), ("<![CDATA[&t;<]]>", "T"), ("<!--&t;-->", "C"), ("<b/>", "B")],
    *[("&t;", "T"), ("&c;", "C"), ("&m;", "TCT"), ("&n;", "TCTBT"), ("&v;", ""), ("&u;", "-")],
    *[("&d;", "T"), ("&x;", "-")],
]
SUBSET = """SYSTEM 'a.dtd' [<!ENTITY t 't\nt'><!ENTITY c '<?c?>'><!ENTITY m '5<!--k-->&t;'>
<!ENTITY n '&m;<b></b>&d;'><!ENTITY v ''><!ENTITY d '<![CDATA[]]]]><![CDATA[>]]>'>
<!ENTITY x SYSTEM 'x.xml'>]"""


def expected_inside(pieces: Sequence[tuple[str, str]], place: int) -> list[tuple[int, int]]:
    """Where the nodes of content that is put together from these pieces stand."""
    found: list[tuple[int, int]] = []
    is_text = False
    for written, kinds in pieces:
        end = place + len(written)
        for kind in kinds:
            if kind == "T" and is_text:
                found[-1] = (found[-1][0], end)
            elif kind != "-":
                found.append((place, end))
            is_text = kind == "T"
        place = end
    return found


def test_all_that_entities_may_hold() -> None:
    """Text, comments and elements, in every order, in documents and in records."""
    matcher = tamis.compile({"x": "/a/node()"})
    contents = list(product(PIECES, repeat=3))
    texts = ["".join(written for written, _ in content) for content in contents]
    head = f"<!DOCTYPE a {SUBSET}><!--c--><a>"
    documents = [f"{head}{text}</a>".encode() for text in texts]
    for content, match in zip(contents, matcher.match_many(documents, nodes="all"), strict=True):
        found = [(node.start, node.end) for node in match.nodes("x")]
        assert found == expected_inside(content, len(head)), content
    head = f"<!DOCTYPE r {SUBSET}><r>"
    stream = f"{head}{''.join(f'<a>{text}</a>' for text in texts)}</r>"
    place = len(head)
    records = matcher.match_records(io.BytesIO(stream.encode()), "a", nodes="all")
    for content, text, match in zip(contents, texts, records, strict=True):
        found = [(node.start, node.end) for node in match.nodes("x")]
        assert found == expected_inside(content, place + len("<a>")), content
        place += len(f"<a>{text}</a>")


def test_comments_between_documents_are_each_its_own() -> None:
    texts = ["<a/><!--1--><?x?>", "<!--2--><!--3--><a/><!--4-->", "<!--5--><a/>"]
    given = [text.encode() for text in texts]
    found = tamis.compile({"x": "/node()"}).match_many(given, nodes="all")
    assert ["".join(match.nodes("x").fragments()) for match in found] == texts


class Counting:
    """A pattern, and how often it was looked for."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self.pattern = pattern
        self.count = 0

    def match(self, *place: Any) -> re.Match[bytes] | None:
        self.count += 1
        return self.pattern.match(*place)

    def finditer(self, *place: Any) -> Iterator[re.Match[bytes]]:
        for found in self.pattern.finditer(*place):
            self.count += 1
            yield found


ENTITY = "<!DOCTYPE a [<!ENTITY e 'x'>]>"


@pytest.mark.parametrize("kept", [offsets.KEPT_RANGES, 10])
@pytest.mark.parametrize(
    ("before", "repeated", "behind", "expression", "each"),
    [
        ("<a>", "x<!--y-->", "</a>", "//text()", 1),
        ("<a>", "x<!--y-->", "</a>", "/a/node()", 2),
        (f"{ENTITY}<a>", "&e;<!--y-->", "</a>", "/a/node()", 2),
        ("", "<!--y-->", "<a/>", "/node()[not(self::a)]", 1),
        ("<a", " a{}='1'", "/>", "//@*", 1),
        ("<a>", "x<b y='1' z='2'/>", "</a>", "//text() | //@*", 3),
    ],
)
def test_a_node_more_is_one_more_to_look_at(
    before: str,
    repeated: str,
    behind: str,
    expression: str,
    each: int,
    kept: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is looked at, all in all, grows as the document does; little has to be remembered."""
    monkeypatch.setattr(offsets, "KEPT_RANGES", kept)
    matcher = tamis.compile({"x": expression})
    work = []
    for times in (200, 400):
        patterns = [
            (name, Counting(getattr(offsets, name)))
            for name in ("TAG_PATTERN", "_CONTENT", "ATTRIBUTE_PATTERN", "_PIECE")
        ]
        document = before + "".join(repeated.format(n) for n in range(times)) + behind
        match = matcher.match(document, nodes="all")
        with monkeypatch.context() as patch:
            for name, pattern in patterns:
                patch.setattr(offsets, name, pattern)
            nodes = match.nodes("x")
        assert len(nodes) == len(set(nodes)) >= each * times
        work.append(sum(pattern.count for _, pattern in patterns))
    assert 0 < work[1] <= 2 * work[0] <= 200 * 2 * 10


TEXT = "<a>\n<b ä='ß'>ö</b><!--ü-->é</a>"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8-sig"),
        (f"<?xml version='1.0' encoding='iso-8859-1'?>{TEXT}".encode("latin-1"), "latin-1"),
        (gzip.compress(TEXT.encode(), mtime=0), "gzip"),
    ],
)
def test_offsets_are_of_the_documents_own_bytes(data: bytes, encoding: str) -> None:
    matcher = tamis.compile({"b": "//b", "@": "//@*", "t": "//text()", "/": "/"})
    match = matcher.match(data, nodes="all")
    own = gzip.decompress(data) if encoding == "gzip" else data
    codec = {"gzip": "utf-8", "utf-8-sig": "utf-8"}.get(encoding, encoding)
    for id, expected in (
        ("b", ["<b ä='ß'>ö</b>"]),
        ("@", ["ä='ß'"]),
        ("t", ["\n", "ö", "é"]),
        ("/", [own.decode(codec)]),
    ):
        nodes = match.nodes(id)
        assert [own[node.start : node.end].decode(codec) for node in nodes] == expected
        assert list(nodes.fragments()) == [text.removeprefix("\ufeff") for text in expected]
    assert [node.line for node in match.nodes("t")] == [1, 2, 2]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-be", "cp437", "shift_jis", "str"])
def test_offsets_of_what_is_transcoded_are_of_its_utf8(encoding: str) -> None:
    text = "<a>\n<b x='é'>é</b></a>" if encoding == "cp437" else "<a>\n<b x='1'>あ</b></a>"
    if encoding in ("cp437", "shift_jis"):
        text = f"<?xml version='1.0' encoding='{encoding}'?>{text}"
    document = text if encoding == "str" else text.encode(encoding)
    matcher = tamis.compile({"x": "//b | //b/@x | //b/text()"})
    for match in (
        matcher.match(document, nodes="all"),
        *matcher.match_records(document, "b", nodes="all"),
    ):
        nodes = match.nodes("x")
        assert [text.encode()[node.start : node.end].decode() for node in nodes] == list(
            nodes.fragments()
        )
        assert [node.line for node in nodes] == [2, 2, 2]
        assert nodes[0].start == text.encode().index(b"<b")


# -- as it is asked ------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_first_and_all(engine: str) -> None:
    matcher = tamis.compile({"a": "//b", "t": "//b[@x]", "no": "//c"}, engine=engine)
    document = "<a><b/>\n<b x=''/></a>"
    every, first = (matcher.match(document, nodes=which) for which in ("all", "first"))
    assert list(every) == list(first) == list(matcher.match(document)) == ["a", "t"]
    assert every.nodes("a")[:] == [(3, 7, 1), (8, 17, 2)]
    assert list(first.nodes("a")) == [(3, 7, 1)]
    assert list(first.nodes("t")) == list(every.nodes("t")) == [(8, 17, 2)]
    assert len(every.nodes("no")) == len(first.nodes("no")) == 0
    assert every.nodes("a").starts.tolist() == [3, 8]
    assert not every.nodes("a").starts.flags.writeable
    assert repr(every.nodes("a")) == "<Selection: 2 nodes>"


def test_a_limit_cuts_and_says_so() -> None:
    limits = Limits(matched_nodes=2)
    subscriptions = {"l": "//b", "t": "//b[not(c)]", "two": "//b[@x]"}
    matcher = tamis.compile(subscriptions, limits=limits)
    match = matcher.match("<a><b/><b x=''/><b x=''/></a>", nodes="all")
    for id in ("l", "t"):
        assert [node.start for node in match.nodes(id)] == [3, 7]
        assert match.nodes(id).is_cut
    assert len(match.nodes("two")) == 2
    assert not match.nodes("two").is_cut
    first = matcher.match("<a><b/><b/><b/></a>", nodes="first").nodes("l")
    assert (len(first), first.is_cut) == (1, False)


def test_predicates_and_steps_that_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in bulk, each path has its own nodes."""
    monkeypatch.setattr(entries, "BULK_MIN", 1)
    monkeypatch.setattr(queries, "BULK_MIN", 1)
    paths = ["//a[b]/c", "//a[b][c]", "//a[b and c]", "//a[b/c]", "//a[b[c]]", "//a[b]", "//a/b"]
    paths += ["//a[b][c]/@d", "//a[b]/c[@d]", "//a[b]/c/@d", "//a[b][c[@d]]", "//a[@e]//c", "//a/c"]
    matcher = tamis.compile({path: path for path in paths})
    assert read_in_bulk(matcher.subscriptions.queries) >= len(paths) - 2
    oracle = Oracle(b"<!--c--><r><a><b><c/></b><c d='1'/></a><a e='1'><b/><c/></a><a/></r>")
    match = matcher.match(oracle.data, nodes="all")
    for path in paths:
        found = oracle.found(list(match.nodes(path)))
        assert sorted(map(str, found)) == sorted(map(str, oracle.expected(path, {}))), path


def test_what_cannot_be_asked() -> None:
    matcher = tamis.compile({"x": "//a"})
    with pytest.raises(UsageError, match="nodes were not asked for"):
        matcher.match("<a/>").nodes("x")
    with pytest.raises(UsageError, match="subscription 'y': there is no such subscription"):
        matcher.match("<a/>", nodes="all").nodes("y")
    with pytest.raises(UsageError, match='nodes is None, "first" or "all", not True'):
        matcher.match("<a/>", nodes=True)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not 'last'"):
        matcher.match_records("<a/>", "a", nodes="last")  # type: ignore[arg-type]


def test_documents_in_error_have_no_nodes() -> None:
    matcher = tamis.compile({"x": "//a"})
    good, bad, other = matcher.match_many(["<a/>", "<a>", "<b><a/></b>"], nodes="all")
    assert list(good.nodes("x")) == [(0, 4, 1)]
    assert list(other.nodes("x")) == [(3, 7, 1)]
    with pytest.raises(tamis.DocumentError):
        bad.nodes("x")


def test_live_subscriptions_of_several_engines() -> None:
    live = tamis.Matcher()
    live.add("a", "//a")
    live.add(7, "//*[local-name() = 'a']")  # the reference engine's
    live.add("twin", "//a")
    match = live.match("<r><a/></r>", nodes="first")
    live.remove("a")
    assert [list(match.nodes(id)) for id in match] == [[(3, 7, 1)]] * 3
    (found,) = live.match_many(["<a/>"], nodes="all")
    assert list(found.nodes(7)) == [(0, 4, 1)]


@pytest.mark.parametrize("threads", [1, 3])
def test_many_documents_in_threads(threads: int) -> None:
    """Each has its own nodes, however batches are made, and a document that libexpat reads."""
    texts = [f"<a>{'<b/>' * n}<c>{n}</c></a>" for n in range(600)]
    texts[77] = f"<!DOCTYPE a [<!ENTITY e 'x'>]>{texts[77]}"
    matcher = tamis.compile({"c": "//c", "t": f"//c[. = '{77}'] | //c[. > 590]", "b": "//b"})
    given = [text.encode() for text in texts]
    for number, match in enumerate(matcher.match_many(given, threads, nodes="all")):
        start = texts[number].index("<c>")
        assert [node.start for node in match.nodes("c")] == [start]
        assert [node.start for node in match.nodes("t")] == [start] * (number > 590 or number == 77)
        assert len(match.nodes("b")) == number


def test_a_matcher_is_asked_with_and_without_nodes_in_turn() -> None:
    matcher = tamis.compile({"x": "//b", "y": "//b[c]"})
    for _ in range(3):
        assert list(matcher.match("<a><b><c/></b></a>")) == ["x", "y"]
        assert list(matcher.match("<a><b/></a>", nodes="all").nodes("x")) == [(3, 7, 1)]


@pytest.mark.parametrize("cache_bytes", [1, 60_000, 1 << 28])
def test_what_was_noted_outlives_what_was_learned(cache_bytes: int) -> None:
    """The automaton forgets in the middle of documents, and its notes grow there."""
    asked = [f"//{a}//{b}" for a, b in product("abcd", repeat=2)]
    asked += [f"//{a}/{b}/@x | //{b}/text()" for a, b in product("abcd", repeat=2)]
    asked += ["/", "//node()", "//*", "/r/*", *(f"//n{n}" for n in range(0, 300, 7))]
    inner = "<a x='1'>t<b/></a>" * 50
    texts = [*varied(4), *(f"<r><n{n}/>{inner}</r>" for n in range(60))]
    texts.append(f"<r>{''.join(f'<n{n}><m/></n{n}>' for n in range(300))}</r>")
    given = [text.encode() for text in texts]
    limits = Limits(cache_bytes=cache_bytes)
    matcher = tamis.compile(enumerate(asked), engine="automaton", limits=limits)
    oracle = tamis.compile(enumerate(asked), engine="reference")
    for which in ("all", "first"):
        pairs = zip(
            matcher.match_many(given, nodes=which),
            oracle.match_many(given, nodes=which),
            strict=True,
        )
        for found, expected in pairs:
            assert list(found) == list(expected)
            for id in range(len(asked)):
                assert list(found.nodes(id)) == list(expected.nodes(id)), asked[id]
    (worker,) = matcher.programs.workers
    (automaton,) = worker.searchers
    assert isinstance(automaton, Automaton)
    assert (automaton.cleared > 0) == (cache_bytes < 1 << 28)


# -- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize("doctype", ["", "<!DOCTYPE r>", "<!DOCTYPE r [<!ENTITY e 'x'>]>"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_records(doctype: str, mark: str) -> None:
    """Offsets and lines are of the whole document, in the tokenizer's batches and libexpat's."""
    records = [f"<p n='{n}'>\n{'<b/>' * (n % 3)}<!--c-->é{n}</p>" for n in range(5_000)]
    text = f"{mark}{doctype}<r>\r\n" + "\r".join(records) + "\n</r>"
    data = text.encode()
    matcher = tamis.compile(
        {"p": "/p", "b": "//b", "n": "//@n", "t": "//text()", "/": "/", "x": "//p[b[2]]"}
    )
    place, line = len(f"{mark}{doctype}<r>\r\n".encode()), 2
    stream = io.BytesIO(data)
    for number, match in enumerate(matcher.match_records(stream, "p", 2, nodes="all")):
        record = records[number].encode()
        assert list(match.nodes("p")) == [(place, place + len(record), line)]
        if number % 7 == 0:
            assert list(match.nodes("/")) == list(match.nodes("p"))
            assert [node.line for node in match.nodes("b")] == [line + 1] * (number % 3)
            assert list(match.nodes("n").fragments()) == [f"n='{number}'"]
            texts = [data[node.start : node.end].decode() for node in match.nodes("t")]
            assert texts == ["\n", f"é{number}"]
            assert len(match.nodes("x")) == (number % 3 == 2)
        place += len(record) + 1
        line += 2
    assert match.record == 4_999


def test_records_of_a_stream_in_error() -> None:
    matcher = tamis.compile({"x": "//a"})
    one, bad = matcher.match_records("<r><a/><a>", "a", nodes="all")
    assert list(one.nodes("x")) == [(3, 7, 1)]
    with pytest.raises(tamis.DocumentError):
        bad.nodes("x")


# -- beside lxml ---------------------------------------------------------------------------------


def test_the_comparison_can_fail() -> None:
    """The canary: a range that is one byte off, another node, and a wrong line are noticed."""
    oracle = Oracle(b"<a>\n<b/><b x='1'>y</b></a>\n")
    assert set(oracle.expected("//b", {})) == set(oracle.found([Node(4, 8, 2), Node(8, 22, 2)]))
    assert oracle.expected("//b/@x", {}) == oracle.found([Node(11, 16, 2)])
    assert oracle.expected("//b", {}) != oracle.found([Node(0, 26, 1), Node(4, 8, 2)])
    for wrong in (Node(8, 21, 2), Node(9, 22, 2), Node(8, 22, 1), Node(11, 15, 2)):
        with pytest.raises((AssertionError, ValueError, etree.XMLSyntaxError)):
            oracle.found([wrong])


@settings(thorough, max_examples=250)
@given(subscriptions(), documents())
def test_drawn(subscription: str, document: str) -> None:
    document += "\n"  # so that the document and its root element do not stand in the same place
    note(f"{subscription!r} on {document!r}")
    oracle = Oracle(document.encode())
    expected = None
    for engine in ENGINES:
        try:
            matcher = tamis.compile({"x": subscription}, namespaces=NAMESPACES, engine=engine)
        except SubscriptionError:
            return
        (query,) = (entry.query for entry in matcher.subscriptions)
        assert query is not None
        match = matcher.match(document, nodes="all", values=True)
        nodes = match.nodes("x")
        assert query.selects or not nodes
        if query.selects:
            assert bool(match) == bool(nodes)
            first = matcher.match(document.encode(), nodes="first").nodes("x")
            check(oracle, subscription, nodes, first)
        assert expected is None or list(nodes) == expected
        expected = list(nodes)


@pytest.mark.corpora
@pytest.mark.parametrize("name", [n for n in CORPORA if n not in ("mondial", "xmark")])
def test_real_documents(name: str) -> None:
    paths: list[Path] = small(name)[:4]
    contents = {path: data for path in paths if (data := read(path)) is not None}
    drawn = draw_from_documents(contents.values(), 120, seed=5)
    asked = dict(enumerate([*drawn, "//text()", "//@*", "//node()", "//*[1]", "/*//*"]))
    matcher = tamis.compile(asked, namespaces=drawn.namespaces)
    queries = {entry.id: entry.query for entry in matcher.subscriptions}
    total = 0
    for data in contents.values():
        if b"<!ENTITY" in data or b"<!ATTLIST" in data:
            continue
        document = data + b"\n"  # which is to differ from its root element
        oracle = Oracle(document)
        every = matcher.match(document, nodes="all", values=True)
        first = matcher.match(document, nodes="first")
        for id in every:
            query = queries[id]
            assert query is not None
            if not query.selects or " = 1e" in asked[int(id)]:
                continue
            nodes = every.nodes(id)
            found = oracle.found(nodes[:200])
            try:
                expected = oracle.expected(asked[int(id)], drawn.namespaces)
            except etree.XPathError:
                continue
            assert len(nodes) == len(expected)
            assert set(found) <= set(expected)
            assert list(first.nodes(id)) == nodes[:1]
            values = list(islice(nodes.values(), 200))
            assert values == [oracle.value(key) for key in found]
            total += len(found)
    assert total > 100
    assert corpus(name)
