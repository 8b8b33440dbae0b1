"""What an automaton learns: it grows, is forgotten, and never changes an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pytest

import tamis
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.parser import Parser
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.language.xpath import parse
from tamis.matching.engines import reference
from tamis.matching.engines.automaton import compile_queries, layout
from tamis.matching.engines.automaton import execute as automaton_module
from tamis.matching.engines.automaton.execute import Automaton
from tests.matching.automaton.comparison import STRUCTURE, answers

UNLIMITED = 1 << 40
NOTED = {"node_bits", "answer_bits", "child_facts", "derived", "derived_words", "counter_values"}
"""What has to be zero again after each call of a kernel."""
STATUSES = {
    getattr(layout, name): name for name in vars(layout)
    if name.startswith(("FULL_", "ASKS_", "ENDED"))
}  # fmt: skip
NOT_GROWN = {"FULL_DEPTH", "FULL_TEXT", "ASKS_NUMBER", "ASKS_OPEN", "ENDED"}

DEEP = "<a x='1'>" * 500 + "<b/>" * 3 + "</a>" * 500
"""Deep: each level is a state, and tells the one around it something else."""
MANY = {
    f"n{n}": f"<r><n{n} x='1' y='2'><m{n % 7}/><m{n % 5}/></n{n}><n{n}/></r>" for n in range(300)
}


def asked(
    expressions: Iterable[str],
    documents: Sequence[str],
    cache_bytes: int = UNLIMITED,
    namespaces: dict[str, str] | None = None,
) -> tuple[Automaton, Counter[str]]:
    """Compare with the reference engine: the automaton after that, and what had to grow."""
    queries = [parse(text, namespaces or {}) for text in expressions]
    parser = Parser(Vocabulary(), STRUCTURE, DEFAULT_LIMITS)
    sources = [Source(text.encode()) for text in documents]
    oracle = reference.ENGINE.searcher(reference.compile_queries(queries), 1 << 28)
    expected = answers(oracle, parser, sources)
    automaton = Automaton(compile_queries(queries), cache_bytes)
    grew: Counter[str] = Counter()
    scan = automaton_module.scan

    def watched(state: np.ndarray) -> int:
        status = scan(state)
        rooms = automaton._scratch._asdict()
        assert not any(room.any() for name, room in rooms.items() if name in NOTED)
        grew[STATUSES.get(status, "DONE")] += 1
        return int(status)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(automaton_module, "scan", watched)
        assert answers(automaton, parser, sources) == expected
        assert answers(automaton, parser, sources) == expected  # by what is known
        assert answers(automaton, parser, sources[::-1]) == expected[::-1]
    return automaton, grew


# -- growth ----------------------------------------------------------------------------------------

TAGS = "abcd"
CHAINS = [f"//{'//'.join(names)}" for names in product(TAGS, repeat=3)]
TWIGS = [f"//{a}[.//{b}][{c}]" for a, b, c in product(TAGS, repeat=3)]
COUNTS = [f"//{a}[count({b}) = {n}]" for a, b, n in product(TAGS, TAGS, range(6))]
PLACES = [f"//{a}[{b}][{n}]/{c}" for a, b, c in product(TAGS, repeat=3) for n in (1, 2, 3)]
VALUES = [
    f"//{a}[contains(@x0, '{n:02}')][.//{b}]" for a, b in product(TAGS, repeat=2) for n in range(70)
]
LEAVES = [f"//{a}[@x{n} and @x{m}]" for a in TAGS for n in range(9) for m in range(n)]

ALL = [*CHAINS, *TWIGS, *COUNTS, *PLACES, *LEAVES, *VALUES]


def varied(count: int, seed: int = 0) -> list[str]:
    """Documents in which everything is in everything."""
    draw = np.random.default_rng(seed)

    def element(depth: int) -> str:
        name = TAGS[draw.integers(len(TAGS))]
        digits = "".join(map(str, draw.integers(10, size=300)))
        attributes = "".join(f" x{n}='{digits}'" for n in range(9) if draw.random() < 0.3)
        inside = "".join(element(depth + 1) for _ in range(draw.integers(5) if depth < 7 else 0))
        return f"<{name}{attributes}>{inside}</{name}>"

    return [f"<r>{element(0)}{element(0)}{element(1)}</r>" for _ in range(count)]


VARIED = varied(8)


@pytest.mark.parametrize("cache_bytes", [1, 30_000, UNLIMITED])
@pytest.mark.parametrize(
    "expressions",
    [CHAINS, TWIGS, COUNTS, PLACES, LEAVES, VALUES, ALL],
    ids=["chains", "twigs", "counts", "places", "leaves", "values", "all"],
)
def test_everything_grows(expressions: list[str], cache_bytes: int) -> None:
    automaton, grew = asked(expressions, VARIED, cache_bytes)
    assert (automaton.cleared > 0) == (cache_bytes < UNLIMITED)
    if cache_bytes == UNLIMITED and len(expressions) > len(VALUES):
        assert set(grew) >= {*STATUSES.values()} - NOT_GROWN


def test_depth() -> None:
    expressions = ["//a[b]", "//a//a//a[count(b) = 3]", "//a[not(a)]/b[3]", "//a[a/a/b]", "//b/a"]
    for cache_bytes in (1, 100_000, UNLIMITED):
        deep = "<a>" * 999 + "<b/>" * 3 + "</a>" * 999
        _, grew = asked(expressions, [deep, "<a/>", deep, "<b/>"], cache_bytes)
        assert grew["FULL_DEPTH"] > 0


def test_depth_with_a_state_a_level() -> None:
    """So many steps that each level of the document is another state."""
    expressions = ["/a" * n for n in range(1, 800, 40)]
    expressions += ["/a" * n + "[b]" for n in range(495, 505)]
    for cache_bytes in (1, 50_000, UNLIMITED):
        automaton, grew = asked(expressions, [DEEP, "<a><b/></a>", DEEP], cache_bytes)
        assert grew["FULL_STATES"] > 0
        assert automaton.cleared > 0 or cache_bytes == UNLIMITED


def test_what_was_told_by_leaves_before_the_cache_grew_is_kept() -> None:
    """Each name is a state, and each of its attributes: a later one fills the cache."""
    expressions = [f"//n{n}[@x and @y and @z]" for n in range(300)]
    elements = "".join(f"<n{n} x='1' y='2' z='3'/>" for n in range(300))
    _, grew = asked(expressions, [f"<r>{elements}</r>"])
    assert grew["FULL_STATES"] > 0


@pytest.mark.parametrize("cache_bytes", [1, 20_000, UNLIMITED])
def test_many_names_and_wildcards(cache_bytes: int) -> None:
    namespaces = {f"p{n}": f"urn:{n}" for n in range(100)}
    expressions = [f"//p{n}:*" for n in range(100)] + [f"/*/p{n}:a[@p{n}:*]" for n in range(100)]
    expressions += [f"//*[self::p{n}:*]/node()" for n in range(0, 100, 7)]
    documents = [
        f"<r xmlns='urn:{n - 1}'><p:a xmlns:p='urn:{n}' p:x=''/><p:b xmlns:p='urn:{n}'>1</p:b></r>"
        for n in range(102)
    ]
    asked(expressions, documents, cache_bytes, namespaces=namespaces)


@pytest.mark.parametrize(
    ("start", "all_true"), [("<a><b/><c/></a>", True), ("<a/><a><c/></a>", False)]
)
def test_once_all_is_true_the_rest_is_left_out(start: str, all_true: bool) -> None:
    queries = [parse(text) for text in ("//a", "//a[b]", "//c")]
    parser = Parser(Vocabulary(), STRUCTURE, DEFAULT_LIMITS)
    document = f"<r>{start}{'<x>' * 50}<c/>{'</x>' * 50}</r>"
    automaton = Automaton(compile_queries(queries), UNLIMITED)
    expected = {0, 1, 2} if all_true else {0, 2}
    assert answers(automaton, parser, [Source(document.encode())]) == [expected]
    assert (automaton._state.words[layout.EVENT] < 20) == all_true
    small = "<r><a/><c/></r>"
    assert answers(automaton, parser, [Source(document.encode()), Source(small.encode())]) == [
        expected,
        {0, 2},
    ]


def test_a_document_left_early_keeps_its_texts_for_itself() -> None:
    expressions = ["//a or contains(., 'x')", "//a or starts-with(., 'y')", "/"]
    for number in range(len(expressions)):
        asked(expressions[: number + 1], ["<r><a/>x</r>", "<b>y</b>", "<b/>", "<a/>", "<b>x</b>"])
    _, grew = asked(["/", "//a"], ["<r><a/><x/></r>", "<b>y</b>"])
    assert grew["DONE"]


# -- marks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache_bytes", [1, 50_000, 1_000_000])
def test_one_answer_larger_than_the_cache(cache_bytes: int) -> None:
    """What a single event needs is granted: it would never be had otherwise."""
    queries = [f"//a[b or n{n}]" for n in range(9_000)]
    asked(queries, ["<r><a><b/></a></r>", "<r><a/></r>", "<a><a><b/></a></a>"], cache_bytes)


# -- documents -------------------------------------------------------------------------------------

ODD = {
    "comments": "//comment() | /node()[2]",
    "first": "/node()[not(*)]",
    "all": "count(node()) = 3",
    "root": "/node()[a]",
    "always": "/",
    "not": "not(//zzz)",
    "none": "count(zzz) = 0",
    "never": "//a/self::b",
    "self": "//node()/self::text()",
    "below": "//descendant-or-self::a/descendant-or-self::node()[self::b]",
    "here": ".",
}


@pytest.mark.parametrize("cache_bytes", [1, UNLIMITED])
def test_beside_the_root(cache_bytes: int) -> None:
    expressions = [text for name, text in ODD.items() if name != "comments"]
    documents = [
        "<r/>",
        "<!--c--><r/>",
        "<!--c--><?p?><r/>",
        "<r/><!--c-->",
        "<!--c--><r><a/></r><!--c-->",
        "<r><a>1<!--c-->2</a></r><?p?>",
        "<a><b/></a>",
        "<r><!--c--></r>",
        "<zzz/>",
    ]
    asked(expressions, documents, cache_bytes)
    asked(["/node()[2]", "/node()[3]", "//node()[1]", "//text()[2]"], documents, cache_bytes)


def test_always_true_and_no_subscriptions() -> None:
    matcher = tamis.compile({"one": "/", "two": "not(//x)", "three": "true()"}, engine="automaton")
    assert [list(m) for m in matcher.match_many(["<a/>", "<x/>", "<b/>"])] == [
        ["one", "two", "three"],
        ["one", "three"],
        ["one", "two", "three"],
    ]
    none = tamis.compile({}, engine="automaton")
    found = list(none.match_many(["<a/>", "<a", "<b>1</b>"]))
    assert [match.error is None and list(match) for match in found] == [[], False, []]


@pytest.mark.parametrize("cache_bytes", [1, 1 << 28])
def test_documents_in_error_between_others(cache_bytes: int) -> None:
    matcher = tamis.compile(
        {"x": "//a[@x]/b", "no": "not(//b)", "text": "//b/text()"},
        engine="automaton",
        limits=tamis.Limits(cache_bytes=cache_bytes),
    )
    good = {
        "<a x='1'><b/></a>": ["x"],
        "<a><b>1</b></a>": ["text"],
        "<!--c--><c y='1'/>": ["no"],
        "<a x='1'>" * 90 + "<b/>" + "</a>" * 90: ["x"],
    }
    bad = ["<a x='1'><b>", "", "<a><b/></a", "<a x='1' x='1'/>", "<a><b>1</b></a><c/>"]
    documents = [text for pair in product(good, bad) for text in (*pair, pair[1])]
    for text, match in zip(documents, matcher.match_many(documents), strict=True):
        if text in good:
            assert list(match) == good[text]
        else:
            assert match.error is not None


def test_the_bound_is_kept() -> None:
    """Names that no subscription knows, and structures without end, take a bounded cache."""
    limit = 60_000
    queries = [parse(text) for text in [*TWIGS, *COUNTS]]
    automaton = Automaton(compile_queries(queries), limit)
    parser = Parser(Vocabulary(), STRUCTURE, DEFAULT_LIMITS)
    sizes = []
    for round in range(4):
        answers(automaton, parser, [Source(text.encode()) for text in varied(6, round)])
        sizes.append(automaton.memory_usage())
    assert automaton.cleared > 0
    assert max(sizes) < 3 * limit + sum(array.nbytes for array in automaton._scratch)


def test_answers_are_the_callers() -> None:
    """What is learned later does not reach into matches that were given before."""
    matcher = tamis.compile({n: f"//n{n}[@x]/m{n % 7}" for n in range(300)}, engine="automaton")
    matches = [matcher.match(text) for text in MANY.values()]
    assert [list(match) for match in matches] == [[n] for n in range(300)]


# -- retirement ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache_bytes", [1, UNLIMITED])
def test_what_is_true_of_a_long_document_retires(cache_bytes: int) -> None:
    draw = np.random.default_rng(3)
    records = "".join(
        f"<a k='{draw.integers(50)}'><y>{draw.integers(60)}</y><p>{draw.integers(90)}</p><c/></a>"
        for _ in range(3_000)
    )
    ranges = [f"/r/a[y > {y}][p < {p}]" for y in range(-1, 60, 5) for p in range(0, 90, 9)]
    others = [
        *(f"/r/a[@k = '{k}'][y = {k}]" for k in range(60)),
        *(f"/r/a[{k}][c]/y" for k in (1, 2_500)),
        "/r/a[not(p)]",
        "/r[count(a) > 2500]",
        "//c[starts-with(., 'x')]",
        "//b",
    ]
    long = f"<r>{records}<b/></r>"
    automaton, grew = asked([*ranges, *others], [long, "<r><a><y>9</y></a></r>", long], cache_bytes)
    assert automaton.retired >= 3
    assert grew["ENDED"] == 6  # each of the long ones, three times
