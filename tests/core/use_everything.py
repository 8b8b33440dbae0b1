"""Uses every kernel that there is, at sizes at which arrays are full and tables grow."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.support.bulk import read_in_bulk

_WIDE = {f"n{number}": f"//n{number}" for number in range(200)}
_DTD = "<!ELEMENT a (b*)> <!ATTLIST a c CDATA #IMPLIED> <!ELEMENT b (#PCDATA | a)*>"


def use_everything() -> None:
    """Generate documents, parse and match them, save and load: add here what gets kernels."""
    import tamis_workload as workload  # noqa: PLC0415
    from tamis import Limits, Subscriptions, compile, compile_events, load  # noqa: PLC0415
    from tamis.schema.graph import SchemaGraph  # noqa: PLC0415
    from tamis.schema.reader import parse_dtd  # noqa: PLC0415

    documents = [
        b"".join(workload.dblp(records=2)),
        workload.Documents(SchemaGraph.of(parse_dtd(_DTD)), size=1000, fill=True).document(0),
        b"<?xml version='1.0'?><!-- c --><p:a xmlns:p='u' d='1'>x&amp;<?t u?><![CDATA[y]]></p:a>",
    ]
    assert len(list(compile({"s": "//b"}).match_records(documents[1], "b"))) > 0
    expressions = [
        *("//a[2]", "//a[count(b) = 1]", "//a[. = 1]", "//*[self::a or self::b]", "//a[b or c]/d"),
        *("//a[contains(., 'abcd')]", "//a[not(contains(., 'a'))]", "/*", "//text()"),
    ]
    for match in compile(enumerate(expressions)).match_many(documents, nodes="all"):
        assert match.error is None, match.error
    expressions = ["//b", "//a[@c = '1']", "//author[. = 'x']", "//node()", "name(/*) = 'p:a'"]
    for match in compile(enumerate(expressions)).match_many(documents):
        assert match.error is None, match.error
    matcher = compile({"s": "//b", "t": "/a/b[. = 1]"}, engine="automaton")
    written = [matcher.match(b"<a><b>1</b></a>").json() for _ in range(3)]  # names are known then
    assert written == [b'["s", "t"]'] * 3
    filters_of_events = {"s": "a in (1, 2) and b contains 'bc'", "t": "b suffix i'CD' or not_b = 1"}
    events = compile_events(filters_of_events)
    assert list(events.match({"a": 2, "b": "abcd"})) == ["s", "t"]
    filters = compile({"s": "//a//b", "t": "/a/b", "u": "//b/a//b"}, engine="pma")
    assert len(filters.match(documents[1])) > 0
    twigs = compile({"s": "//a//b", "t": "//a[b]", **_WIDE}, engine="twigstacks")
    assert len(twigs.match(documents[1])) > 0
    many = enumerate(f"/a/b{n}[@c = 'x{n}' or d < {n}]" for n in range(5_000))
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.writelines(f"s{number}\t{text}\n" for number, text in many)
        file.flush()
        subscriptions = Subscriptions.from_file(file.name)
    assert read_in_bulk(subscriptions.queries) == 5_000
    compile(subscriptions)
    # As many constants as are looked at one by one, and more of them in one element than at first.
    constants = {n: f"//a[b = 'x{n}'][c]" for n in range(100)}
    together = "".join(f"<b>x{n}</b>" for n in constants)
    assert len(compile(constants).match(f"<a>{together}<c/></a>")) == len(constants)
    # As many states as the automaton has to make room for, and none to spare.
    twigs = {n: f"//n{n}[m][not(.//k)]" for n in range(200)}
    nested = b"".join(b"<n%d><m/>" % n for n in range(200))
    nested += b"".join(b"</n%d>" % n for n in reversed(range(200)))
    for bytes_max in (1, 1 << 30):
        matcher = compile(twigs, limits=Limits(cache_bytes=bytes_max))
        assert len(matcher.match(nested)) == len(twigs)
    with tempfile.TemporaryDirectory() as folder:
        matcher.save(Path(folder, "x.tamis"), warm=True)
        assert len(load(Path(folder, "x.tamis")).match(nested)) == len(twigs)
    _use_nfa()
    _use_automata_of_strings()
    _use_events()
    _use_clauses()
    _use_drawn_events()
    _use_transformations()
    graph = SchemaGraph.of(parse_dtd("<!ELEMENT a (b*)> <!ELEMENT b EMPTY>"))
    matcher = compile({"s": "//b"}, dtd=graph)
    assert (
        len(matcher.match("<a><b/></a>")) == len(matcher.match("<b/>")) == matcher.schema_violations
    )
    _use_lines()


def _use_transformations() -> None:
    """Transform for so many subscriptions, and so large a document, that all arrays are full."""
    from tamis import Transformer  # noqa: PLC0415

    wheres = ["$b/c = 'x%d'", "$b/c < %d", "$b/@k != %d", "$b/@k = %d", "$b/c", "$b[c = 'x%d']//c"]
    queries = {
        (n, kind): "<r>{ for $b in //a[@n > 1]//b[@k] where "
        + where.replace("%d", str(n))
        + " return <i>{ $b/@k, $b/c/text(), $b//c[@l = 1] }</i> }</r>"
        for n in range(60)
        for kind, where in enumerate(wheres)
    }
    inside = "".join(f"<b k='{n}'><b k='1'>t<c l='1'>x{n}</c></b><c>{n}</c></b>" for n in range(99))
    transformer = Transformer({str(id): query for id, query in queries.items()})
    assert len(list(transformer.transform(f"<a n='2'><a n='3'>{inside}</a></a>"))) > 200
    made = "<x n='{ $b/c, count($b/c), sum($b/c) }'>{ $b/@k }{ $b/c }{ $b/c/text() }</x>"
    ordered = f"<r>{{ for $b in //b order by $b/c return {made} }}</r>"
    transformer = Transformer({n: ordered.replace("//b", f"//b[@k > {n}]") for n in range(40)})
    for document in (f"<a>{inside}</a>", "<a><b k='9'><c>1 &amp; 2</c></b></a>"):
        made = list(transformer.transform(document))
        assert list(transformer.transform(memoryview(document.encode()))) == made
        assert len(made) > 8
    _use_path_sharing()


def _use_path_sharing() -> None:
    """Run the broker paper's plans, with all operators and full arrays."""
    from benchmarks.programs.transform_plans import profile  # noqa: PLC0415
    from tamis.core.limits import Limits  # noqa: PLC0415
    from tamis.documents.parser import parse as parse_documents  # noqa: PLC0415
    from tamis.documents.source import Source  # noqa: PLC0415
    from tamis.documents.vocabulary import Vocabulary  # noqa: PLC0415
    from tamis.language.filters import Labels  # noqa: PLC0415
    from tamis.language.flwr import parse_transformation  # noqa: PLC0415
    from tamis.transform.shapes import Shapes, projection_of_tasks, task_of  # noqa: PLC0415
    from tamis_papers.pathsharing.claims import Claims  # noqa: PLC0415
    from tamis_papers.pathsharing.execute import PathSharing  # noqa: PLC0415
    from tamis_papers.pathsharing.plan import FW, FWR, F, Planner  # noqa: PLC0415

    returned = "return <i>{ $b//c[@l], $b }</i> }</r>"
    texts = [
        f"<r>{{ for $b in {binding} where $b/c {operator} '{n}' {returned}"
        for n in range(99)
        for binding in ("//a[@n > 1]//b", "//a//b[@k = 1]", "/a/a/b", "//*")
        for operator in ("=", "!=")
    ]
    inside = "".join(f"<b k='{n}'><b k='1'><c l='1'>{n}</c></b><c>{n}</c></b>" for n in range(99))
    document = Source(f"<a n='2'><a n='3'>{inside}</a></a>".encode())
    shapes = Shapes(Labels())
    tasks = [task_of(parse_transformation(text)) for text in texts]
    found = [shapes.of(task) for task in tasks]
    vocabulary = Vocabulary()
    batch, _ = parse_documents([document], vocabulary, projection_of_tasks(tasks), Limits())
    claims = Claims(shapes.labels, None)
    answers = set()
    for sharing, known, is_shared in (
        (F, claims, False),
        (FW, None, False),
        (FWR, claims, False),
        (FWR, None, False),
        (FWR, claims, True),
    ):
        strategy = PathSharing(shapes.labels, Planner(sharing, known, is_shared))
        for shape in found:
            strategy.add(shape)
        groups = strategy.find_groups(batch, vocabulary)
        answers.add(tuple(groups.transformations.tolist()))
        assert len(profile(strategy, batch, vocabulary)) > 8
    assert len(answers) == 1


def _use_automata_of_strings() -> None:
    """Run automata of strings: the first and the last ones, over no bytes and over all of them."""
    from tamis.core.kernel.dfa import packed  # noqa: PLC0415
    from tamis.language.regex import parse_like, parse_regex  # noqa: PLC0415
    from tests.support.automata import accepted  # noqa: PLC0415

    texts = ["", "ab", "é", "".join(map(chr, range(256))), "a" * 99 + "b"]
    regexes = [parse_regex(r"(?i)^a.{2,}b\b"), parse_like("*"), parse_like("?"), parse_regex("b$")]
    dfas = packed([regex.dfa() for regex in regexes])
    encoded = [text.encode() for text in texts]
    found = [[*map(int, accepted(dfas, n, encoded))] for n in range(len(regexes))]
    assert found == [[0, 0, 0, 0, 1], [1] * 5, [0, 0, 1, 0, 0], [0, 1, 0, 0, 1]], found


def _use_nfa() -> None:
    """Run YFilter's NFA with full stacks and with little on them, and add to it."""
    from tamis.core.limits import Limits  # noqa: PLC0415
    from tamis.documents.parser import parse as parse_documents  # noqa: PLC0415
    from tamis.documents.source import Source  # noqa: PLC0415
    from tamis.documents.vocabulary import EVERYTHING, Vocabulary  # noqa: PLC0415
    from tamis.language.xpath import parse  # noqa: PLC0415
    from tamis.matching.engines import nfa  # noqa: PLC0415

    expressions = [f"//n{n}/*//n{n}//*" for n in range(200)]
    expressions += [*("//*//*//*", "/*/p:*", "//a[.//b = 'x']/text()", "//n0[not(@c)]", "//p:*")]
    queries = [parse(text, {"p": "u"}) for text in expressions]
    nested = b"".join(b"<n%d>" % (n % 200) for n in range(400)) + b"<p:a xmlns:p='u'>t</p:a>"
    nested += b"".join(b"</n%d>" % (n % 200) for n in reversed(range(400)))
    vocabulary = Vocabulary()
    documents = [nested, b"<a><b>x</b>y</a>", b"<", nested]
    batch, _ = parse_documents([*map(Source, documents)], vocabulary, EVERYTHING, Limits())
    matching = nfa.open_nfa(nfa.compile_queries(queries), 0)
    found = [matching.match(batch, vocabulary).numbers(number) for number in range(4)]
    assert [len(numbers) for numbers in found] == [203, 1, 0, 203]


def _use_events() -> None:
    """Ask every engine of events the same."""
    import pyarrow  # noqa: PLC0415

    from tamis.events.encode import Encoder, encode  # noqa: PLC0415
    from tamis.events.model import TableBuilder  # noqa: PLC0415
    from tamis.language.constraints import Constraint  # noqa: PLC0415

    operators: dict[str, Any] = {
        "<": 2,
        "in": (1, 2),
        "exists": None,
        "prefix": "a",
        "suffix": "b",
        "contains": "",
    }
    builder = TableBuilder()
    for operator, constant in operators.items():
        builder.add([[Constraint("n", operator, constant)]])
    builder.add([[Constraint("n", "!=", "b")], [Constraint("n", ">", 0.5)]])
    table = builder.freeze()
    batch = encode([{"n": "ab"}, {"n": 1.0}, {"n": False}], table.names)
    rows = pyarrow.record_batch({"n": ["ab", None]})
    assert Encoder(table.names).arrow(rows).event_starts.tolist() == [0, 1, 1]
    for engine in _event_engines():
        matches = engine.searcher(engine.compile(table), table.owners("subscription"), 1).match(
            batch
        )
        found = [matches.numbers(event).tolist() for event in range(batch.events)]
        assert found == [[2, 3, 4, 5, 6], [0, 1, 2, 6], [2]], engine.name


def _use_clauses() -> None:
    """Filters with clauses and residual constraints, of many events and of one; arrays get full."""
    from tamis import compile_events  # noqa: PLC0415

    expressions = {n: f"n > {n} and not (m = {n} or k absent)" for n in range(2_000)}
    matcher = compile_events({**expressions, "all": "not n = 0", "plain": "n > 5"})
    events = [{"n": n, "k": 1, "m": n - 1} for n in range(0, 4_000, 500)]
    found = [list(match) for match in matcher.match_many(events)]
    assert found == [list(matcher.match(event)) for event in events]
    assert [*map(len, found)] == [0, 501, 1_001, 1_501, 2_001, *[2_002] * 3]
    orders = {f"{one} {order} {other}": f"{one} {order} field({other})"
              for one in "abc" for other in "abc" for order in ("=", "!=", "<", ">=")}  # fmt: skip
    parts = {part: f"s {part} field(t)" for part in ("prefix", "suffix", "contains", "<")}
    residual = compile_events({**orders, **parts, "re": 's matches "x[0-9]+y"'})
    event = {"a": 1, "b": 1.5, "c": True, "s": "ax07y", "t": "x0"}
    (match,) = residual.match_many([event])
    expected = "a = a,a >= a,a != b,a < b,b != a,b >= a,b = b,b >= b,c = c".split(",")
    assert list(match) == list(residual.match(event)) == [*expected, "contains", "<", "re"]


def _use_lines() -> None:
    """Lines of JSON with all that may be in them, and so much of it that all arrays are full."""
    from tamis import compile_events  # noqa: PLC0415

    matcher = compile_events(
        {
            "plain": "n = 1.5 and s = 'é😀\\n'",
            "path": "a.b[1].c > 2 and a.x = null",
            "folded": "s2 = i'ABC' or s2 = i'É'",
            "elements": "l[].(k = 1 and m[] = 2) and i[] = 7",
        }
    )
    pieces = [
        '"n":1.5,"s":"\\u00e9\\ud83d\\ude00\\n"',
        '"a":{"b":[[],{"c":1e30}],"x":null,"y":{"z":[true,false]}}',
        '"\\u0073\\u0032":"aBc","s":0.12345678901234567890',
        '"s2":"É","a.x":12,"x":[-1.5E+3,1e309]',
        '"l":[' + ",".join('{"k":1,"m":[1,"2"]}' for _ in range(300)) + ',{"m":[2],"k":1}],"i":7',
        f'"s2":"{"abc" * 9_000}"',
        '"s2":"ABC","s2":1',
        '"s":"\\ud800"',
    ]
    lines = [f" {{ {piece} }} ".encode() for piece in pieces] * 200
    found = [match.error or list(match) for match in matcher.match_ndjson(b"\n".join(lines))]
    assert found[:3] == [["plain"], ["path"], ["folded"]]
    assert found[4:6] == [["elements"], []]
    assert [n for n, each in enumerate(found[:8]) if not isinstance(each, list)] == [3, 6, 7]


def _use_drawn_events() -> None:
    """Draw filters and events, and match them with each engine."""
    import numpy as np  # noqa: PLC0415

    from tamis_papers.pcm.compile import compile_filters  # noqa: PLC0415
    from tamis_papers.pcm.execute import Preparation  # noqa: PLC0415
    from tamis_papers.pcm.layout import LINE_WIDTH  # noqa: PLC0415
    from tamis_workload import EventWorkload  # noqa: PLC0415

    drawn = EventWorkload(interfaces=2, filters=(50, 50), names=9, constraints=(1, 3), strings=0.5)
    table, events = drawn.table(), drawn.events(20)
    preparation = Preparation(compile_filters(table))  # what CCM leaves to the processor
    preparation.begin(events)
    lines = np.zeros((1_000, LINE_WIDTH), np.int64)
    assert preparation.prepare(lines, np.zeros(20, np.uint64)) == 20
    for each in (drawn, *map(_workload, _ALL_SHAPES)):
        _match_all(each.table(), each.events(20))


_ALL_SHAPES: tuple[dict[str, Any], ...] = (
    {"names": 4, "values": 3},  # large cells, divided by constants
    {"names": 24, "attributes": (18, 24)},  # events with too many keys for subsets
    {"names": 3, "values": 300, "strings": 0.5, "constraints": (1, 2)},  # constants that are hashed
    {"names": 1, "values": 100_000, "constraints": (1, 1), "filters": (40_000, 40_000)},  # wide
)


def _workload(options: dict[str, Any]) -> Any:
    from tamis_workload import EventWorkload  # noqa: PLC0415

    attributes = (1, min(5, options["names"]))
    return EventWorkload(**{
        "interfaces": 2, "filters": (300, 400), "attributes": attributes, **options
    })  # fmt: skip


def _event_engines() -> list[Any]:
    """Those that run on this machine."""
    from tamis.core.gpu import has_gpu  # noqa: PLC0415
    from tamis.events.planner import ENGINES  # noqa: PLC0415

    return [ENGINES.named(name) for name in ENGINES.names() if name != "ccm" or has_gpu()]


def _match_all(table: Any, events: Any) -> None:
    """Match events with each engine, by filter and by interface; all of them find as much."""

    for owners in map(table.owners, ("filter", "interface")):
        found = set()
        for engine in _event_engines():
            if engine.name == "reference" and table.filters > 10_000:
                continue
            matches = engine.searcher(engine.compile(table), owners, 1).match(events)
            found.add(sum(len(matches.numbers(event)) for event in range(events.events)))
        assert len(found) == 1, found
