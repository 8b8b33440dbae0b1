"""What is inside of events: objects, lists, positions; named cases, and drawn ones."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.core.errors import EventError
from tests.support.event_cases import check_case

CASES: dict[str, tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a path": (
        "order.total > 100",
        [{"order": {"total": 101}}],
        [{"order": {"total": 7}}, {"order": 1}],
    ),
    "a name with dots is taken where there is no object": (
        "order.total > 100",
        [{"order.total": 101}, {"order": 1, "order.total": 101}],
        [{"order": {}, "order.total": 101}, {"order": {"total": 7}, "order.total": 101}],
    ),
    "in backquotes it is a name": (
        "`order.total` > 100",
        [{"order.total": 101}, {"order": {"total": 7}, "order.total": 101}],
        [{"order": {"total": 101}}],
    ),
    "names with dots in a path": (
        "`k8s.io`.`app.name` = 'x'",
        [{"k8s.io": {"app.name": "x"}}],
        [{"k8s.io.app.name": 1}, {"k8s": {"io": {"app": {"name": "x"}}}}],
    ),
    "a position": (
        "a[1].b = 2",
        [{"a": [{}, {"b": 2}]}, {"a": [0, {"b": 2}, 3]}],
        [{"a": [{"b": 2}]}, {"a": {"1": {"b": 2}}}, {"a": []}],
    ),
    "some element": (
        "tags[] = 'x'",
        [{"tags": ["x"]}, {"tags": ["y", 3, None, "x"]}, {"tags": "x"}],
        [{"tags": []}, {"tags": ["y"]}, {"tags": None}, {}, {"tags": {"x": 1}}],
    ),
    "no element": ("not tags[] = 'x'", [{"tags": ["y"]}, {"tags": []}, {}], [{"tags": ["y", "x"]}]),
    "some element is another": ("tags[] != 'x'", [{"tags": ["y", "x"]}], [{"tags": ["x"]}, {}]),
    "conditions on one element": (
        'items[].(sku = "a" and price > 3)',
        [{"items": [{"sku": "b"}, {"sku": "a", "price": 4}]}, {"items": {"sku": "a", "price": 4}}],
        [{"items": [{"sku": "a", "price": 1}, {"sku": "b", "price": 4}]}, {"items": []}],
    ),
    "conditions on several elements": (
        'items[].sku = "a" and items[].price > 3',
        [{"items": [{"sku": "a", "price": 1}, {"sku": "b", "price": 4}]}],
        [{"items": [{"sku": "a", "price": 1}]}],
    ),
    "not, of one element": (
        "a[].(b = 1 and not c exists)",
        [{"a": [{"b": 1, "c": 2}, {"b": 1}]}],
        [{"a": [{"b": 1, "c": 2}, {"c": 3}]}],
    ),
    "elements of elements": (
        "a[].(b[].c = 1 and d = 2)",
        [{"a": [{"b": [{"c": 0}, {"c": 1}], "d": 2}]}],
        [{"a": [{"b": [{"c": 1}]}, {"d": 2}]}],
    ),
    "no element of an element": (
        "a[].(b exists and not c[] exists)",
        [{"a": [{"b": 1}]}, {"a": [{"b": 1, "c": [None]}]}, {"a": [{"c": [1]}, {"b": 1, "c": []}]}],
        [{"a": [{"b": 1, "c": [None, 1]}]}],
    ),
    "the element itself": (
        "a[].(. exists and not . in ('x', 3))",
        [{"a": ["x", 4]}, {"a": "y"}],
        [{"a": ["x", 3, None]}, {"a": []}, {"a": {"b": 1}}],
    ),
    "a range of one element": ("a[].(. > 0 and . < 9)", [{"a": [9, 8]}], [{"a": [0, 9]}]),
    "a pattern": (
        "a like 'x*y?z' or b.c like i'?X*\\\\*'",
        [{"a": "xyyz"}, {"a": "x..yyz"}, {"b": {"c": "axb*"}}],
        [{"a": "xyz"}, {"a": "x.yyz."}, {"b": {"c": "xb*"}}, {"b": {"c": "axb"}}, {"a": 5}],
    ),
    "a pattern of some element": ("a[] like 'x?y'", [{"a": ["", "xxy"]}], [{"a": ["xy"]}]),
    "networks": (
        "ip cidr ('10.0.0.0/8', 'fe80::/10')",
        [{"ip": "10.255.0.1"}, {"ip": "fe80::1"}, {"ip": "FEBF::"}],
        [{"ip": "11.0.0.1"}, {"ip": "10.0.0"}, {"ip": 10}, {"ip": "::ffff:10.0.0.1"}, {}],
    ),
    "no network": (
        "not src.ip cidr '10.0.0.0/8'",
        [{}, {"src": {"ip": "x"}}],
        [{"src": {"ip": "10.1.1.1"}}],
    ),
    "elements of a path": ("a.b[].c = 1", [{"a": {"b": [{"c": 1}]}}], [{"a": [{"b": {"c": 1}}]}]),
    "absent inside": (
        "a.b absent",
        [{}, {"a": 1}, {"a": {}}, {"a": {"b": None}}],
        [{"a": {"b": 0}}],
    ),
    "null inside": ("a.b = null", [{"a": {"b": None}}], [{"a": {}}, {"a": None}, {}]),
    "null as an element": ("a[] = null", [{"a": [1, None]}, {"a": None}], [{"a": []}, {"a": [0]}]),
    "without case inside": ("a.b = i'É'", [{"a": {"b": "é"}}], [{"a": {"b": "e"}}]),
    "without case, an element": ("a[] contains i'É'", [{"a": ["x", "xéx"]}], [{"a": ["e"]}]),
    "deep": ("a.b.c.d = 1", [{"a": {"b": {"c": {"d": 1}}}}], [{"a": {"b": {"c": 1}}}]),
}  # fmt: skip


class Pair(NamedTuple):
    one: int
    other: int


@pytest.mark.parametrize("engine", ["signature", "reference", "sff", "ocm"])
@pytest.mark.parametrize("case", CASES)
def test_cases(case: str, engine: str) -> None:
    check_case(*CASES[case], engine)


def test_values_inside_that_cannot_be_compared() -> None:
    matcher = tamis.compile_events({"s": "a.b = 1 or l[].c = 1"})
    bad = {
        "'a.b' is of type list: write a.b[] for some element of it": {"a": {"b": [1]}},
        "'a.b' is of type dict: write a.b.field for what is in it": {"a": {"b": {}}},
        "'a.b' is an oversized integer": {"a": {"b": 2**64}},
        "'a.b' has a surrogate": {"a": {"b": "\ud800"}},
        "'a.b' is of type bytes: decode it": {"a": {"b": b"x"}},
        "in an element of l: the attribute 'c' is of type list: write c[] for": {"l": [{"c": [1]}]},
        "in an element of l: the attribute 'c' is an oversized integer": {"l": {"c": 2**70}},
        "'a.b' is of type list: write": {"a": {"b": Pair(1, 2)}},
        "'a.b' is of type dict: write a.b.field": {"a": {"b": OrderedDict(x=1)}},
    }
    others = [{"a": {"b": 1}}, {"l": [{"c": 1}]}]
    found = list(matcher.match_many([*bad.values(), *others]))
    for message, match in zip(bad, found, strict=False):
        assert message in str(match.error)
    assert [list(match) for match in found[len(bad) :]] == [["s"], ["s"]]
    for event in bad.values():
        with pytest.raises(EventError):
            matcher.match(event)
        with pytest.raises(EventError):
            matcher.explain(event, "s")
    free = {"a": {"x": [1]}, "l": [{"d": [b"x", 2**70]}], "z": {"b": {}}}
    assert list(matcher.match(free)) == []


def test_answers_do_not_depend_on_other_subscriptions() -> None:
    """Paths share places, and names with dots are only taken for paths that are the same."""
    asked = ["a.b.c = 1", "a.b = null", "a.b[0] = 1", "a.b[] = 1", "`a.b`.c = 1", "a.`b.c` = 1"]
    events = [{"a.b": {"c": 1}}, {"a.b.c": 1}, {"a": {"b.c": 1}}, {"a.b": None}]
    together = tamis.compile_events(dict(enumerate(asked)))
    alone = [tamis.compile_events({0: expression}) for expression in asked]
    for event, found in zip(events, together.match_many(events), strict=True):
        assert list(found) == [n for n, matcher in enumerate(alone) if list(matcher.match(event))]
    assert [list(each) for each in together.match_many(events)] == [[4], [0], [5], [1]]


def test_odd_names_and_depths() -> None:
    matcher = tamis.compile_events({"s": "a[0] = 1", "t": "a[1] = 1", "e": "b[] = 1"})
    itself = "\5"
    for event in (
        {"a": {0: 1}},
        {"a": {True: 1}},
        {"b": [{itself: 1}]},
        {"b": {itself: 1}},
        {"b": [[1]]},
    ):
        assert list(matcher.match(event)) == []
    (match,) = matcher.match_ndjson(b'{"\\u0002\\u0004x": 1, "b": 1, "\\u0062": 2}')
    assert "several attributes" in str(match.error)
    deep: Any = 1
    for _ in range(5_000):
        deep = {"a": deep}
    circular: list[Any] = []
    circular.append(circular)
    inside = tamis.compile_events({"s": "a.a.x = 1 or c[].c = 1"})
    for odd in (deep, {"a": {(1, 2): 3}}, {"c": circular}):
        assert list(inside.match(odd)) == []
        assert "fails here" in str(inside.explain(odd, "s"))
    with pytest.raises(tamis.BadSubscriptions, match="more than 64 parts"):
        tamis.compile_events({"s": ".".join("a" * 100) + " = 1"})
    with pytest.raises(tamis.BadSubscriptions, match="inside each other"):
        tamis.compile_events({"s": "a[]." * 40 + "b = 1"})


def test_conditions_on_elements_do_not_grow() -> None:
    expression = "b = 1"
    pairs = " and ".join(f"(x{n} = 1 or y{n} = 1)" for n in range(6))
    for _ in range(12):
        expression = f"a[].({expression} and {pairs})"
    (name,) = tamis.compile_events({"s": expression}).table.names
    assert len(name) < 2 * len(expression)


def test_nobody_else_gives_what_is_derived() -> None:
    matcher = tamis.compile_events({"s": "a.b = 1 or u = i'root' or n = null or l[] = 1"})
    forged = dict.fromkeys(matcher.table.names, True)
    assert list(matcher.match(forged)) == []
    assert not any(list(matcher.match({name: value})) for name in forged for value in (1, "root"))


def test_a_line_with_odd_numbers_is_read_to_its_depths() -> None:
    matcher = tamis.compile_events({"s": "a.b[].c = 1", "n": "n > 1"})
    lines = b'{"n": 12345678901234567890.5, "a": {"b": [{"c": 1}]}}\n'
    lines += b'{"a": {"b": [{"c": 1}]}, "x": 99999999999999999999}\n'
    assert [list(match) for match in matcher.match_ndjson(lines)] == [["s", "n"], ["s"]]
    one, other = matcher.match_ndjson(b'{"n": 2, "x": 1, "x": 2}\n{"a": {"b": 1, "b": 2}, "n": 2}')
    assert list(one) == ["n"]
    assert "several attributes 'b'" in str(other.error)


def test_rows_of_arrow() -> None:
    events: list[dict[str, Any]] = [
        {"o": {"t": 101, "u": None}, "tags": ["x", None], "items": [{"sku": "a", "price": 4}]},
        {"o": {"t": 1, "u": "BOB"}, "tags": [], "items": None},
        {"o": None, "tags": None, "items": [{"sku": "a", "price": 1}, {"sku": None, "price": 9}]},
    ]
    matcher = tamis.compile_events(
        {
            "path": "o.t > 100",
            "tag": "tags[] = 'x'",
            "both": 'items[].(sku = "a" and price > 3)',
            "case": "o.u = i'bob'",
            "null": "o.u = null",
            "no tag": "not tags[] exists",
        }
    )
    expected = [list(match) for match in matcher.match_many(events)]
    assert expected == [["path", "tag", "both", "null"], ["case", "no tag"], ["no tag"]]
    assert [
        list(found) for found in matcher.match_arrow(pyarrow.Table.from_pylist(events))
    ] == expected


# -- drawn -----------------------------------------------------------------------------------------

VALUES = st.sampled_from([0, 1, 2, "x", "X", True, None])
NAMES = st.sampled_from("abc")
INNER = st.recursive(
    VALUES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=10,
)
EVENTS = st.lists(st.dictionaries(NAMES, INNER, max_size=3), min_size=1, max_size=8)

Truth = Callable[[Any], bool]
Formula = tuple[str, Truth]


def _at(value: Any, path: list[str | int]) -> Iterator[Any]:
    """What is at a path: nothing, or one value."""
    for part in path:
        is_inside = isinstance(value, dict) and isinstance(part, str) and part in value
        if isinstance(value, list) and isinstance(part, int):
            is_inside = part < len(value)
        if not is_inside:
            return
        value = value[part]
    yield value


TESTS: dict[str, Truth] = {
    "= 1": lambda value: type(value) is int and value == 1,
    "> 0": lambda value: type(value) is int and value > 0,
    '= "x"': lambda value: value == "x",
    '= i"x"': lambda value: isinstance(value, str) and value.lower() == "x",
    "= true": lambda value: value is True,
    "= null": lambda value: value is None,
    "exists": lambda value: value is not None and not isinstance(value, dict | list),
}
PARTS = st.one_of(NAMES, st.integers(0, 2))
PATHS = st.builds(lambda first, rest: [first, *rest], NAMES, st.lists(PARTS, max_size=2))


def _text(path: list[str | int]) -> str:
    texts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(texts).removeprefix(".")


@st.composite
def formulas(draw: st.DrawFn, depth: int = 2) -> Formula:
    path, kind = draw(PATHS), draw(st.integers(0, 5 if depth else 1))
    text, test = draw(st.sampled_from(list(TESTS.items())))
    if kind == 0:
        return f"{_text(path)} {text}", lambda event: any(map(test, _at(event, path)))

    def elements(value: Any) -> Iterator[Any]:
        for found in _at(value, path):
            yield from found if isinstance(found, list) else [found]

    if kind == 1:
        return f"{_text(path)}[] {text}", lambda event: any(map(test, elements(event)))
    one, truth = draw(formulas(depth - 1))
    if kind == 2:
        return f"not ({one})", lambda event: not truth(event)
    if kind == 3:
        inside = lambda event: any(map(truth, elements(event)))  # noqa: E731
        return f"{_text(path)}[].({one})", inside
    other, also = draw(formulas(depth - 1))
    if kind == 4:
        return f"({one}) and ({other})", lambda event: truth(event) and also(event)
    return f"({one}) or ({other})", lambda event: truth(event) or also(event)


@settings(max_examples=500)
@given(asked=st.lists(formulas(), min_size=1, max_size=5), events=EVENTS)
def test_drawn_conditions(asked: list[Formula], events: list[dict[str, Any]]) -> None:
    expressions = {number: text for number, (text, _) in enumerate(asked)}
    matcher = tamis.compile_events(expressions)
    found = list(matcher.match_many(events))
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    of_lines = list(matcher.match_ndjson(lines))
    live = tamis.EventMatcher()
    for number, text in expressions.items():
        live.add(number, text)
    for event, match, line in zip(events, found, of_lines, strict=True):
        assert (match.error is None) == (line.error is None)
        if match.error is not None:  # a list or an object is compared
            assert "is of type" in str(match.error)
            continue
        expected = [number for number, (_, truth) in enumerate(asked) if truth(event)]
        assert list(match) == list(line) == list(matcher.match(event)) == expected
        assert list(live.match(event)) == expected
