"""Whatever is given by mistake to a public function: an error of ours, which says what to do."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas
import pytest

import tamis
from tamis.events import EventSubscriptions
from tamis.events.matcher import CompiledEventMatcher
from tamis.matching.selection import Selection

QUERY = "<r>{ for $b in //b return $b }</r>"


def used_generator() -> Iterator[Any]:
    generator = (pair for pair in [("x", "//a")])
    list(generator)
    return generator


WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "int": lambda: 5,
    "float": lambda: 1.5,
    "bool": lambda: True,
    "str": lambda: "subs.tsv",
    "empty str": lambda: "",
    "bytes": lambda: b"subs.tsv",
    "list of str": lambda: ["//a", "//b"],
    "list of None": lambda: [None],
    "set": lambda: {1, 2},
    "dict of int": lambda: {"x": 5},
    "dict of None": lambda: {None: "//a"},
    "dict of dict": lambda: {"x": {"y": 1}},
    "used generator": used_generator,
    "Series": lambda: pandas.Series(["//a"]),
    "DataFrame": lambda: pandas.DataFrame({"a": [1]}),
    "missing file": lambda: Path("missing.tsv"),
    "folder": Path,
    "NUL in a path": lambda: Path("a\0b"),
    "object": object,
    "class": lambda: dict,
}

MATCHER = tamis.compile({"x": "//a"})
EVENTS = tamis.compile_events({"x": "a = 1"})
MATCH = MATCHER.match("<a/>", nodes="all", values=True)
INTERNAL = {
    *("answers", "record_answers", "match_batch"),
    *("arrow_answers", "event_answers", "ndjson_answers"),
    *("of_table", "of_columns", "with_entries", "with_limits"),
    *("entry", "expression", "joined", "messages_of", "subscription"),
    "document_nodes",
    "open",  # leaves a file open: see tests/core/index
}
"""What only Tamis itself calls."""

# What a person makes; then what that has.
MAKERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "compile": (tamis.compile, {"subscriptions": {"x": "//a"}}),
    "compile_events": (tamis.compile_events, {"subscriptions": {"x": "a = 1"}}),
    "load": (tamis.load, {"path": "none.tamis"}),
    "Limits": (tamis.Limits, {}),
    "Subscriptions": (tamis.Subscriptions, {"items": {"x": "//a"}}),
    "EventSubscriptions": (EventSubscriptions, {"items": {"x": "a = 1"}}),
    "Matcher": (tamis.Matcher, {}),
    "EventMatcher": (tamis.EventMatcher, {}),
    "Transformer": (tamis.Transformer, {}),
}
OBJECTS: dict[str, Callable[[], Any]] = {
    "Subscriptions": lambda: tamis.Subscriptions({"x": "//a"}),
    "EventSubscriptions": lambda: EventSubscriptions({"x": "a = 1"}),
    "Matcher": lambda: tamis.Matcher({"x": "//a"}),
    "EventMatcher": lambda: tamis.EventMatcher({"x": "a = 1"}),
    "Transformer": lambda: tamis.Transformer({"x": QUERY}),
    "CompiledMatcher": lambda: MATCHER,
    "CompiledEventMatcher": lambda: EVENTS,
    "Match": lambda: MATCH,
    "Selection": lambda: MATCH.nodes("x"),
}
# What is given for the other parameters of a method.
GOOD: dict[str, Any] = {
    "id": "x",
    "expression": "//a",
    "subscriptions": {"y": "//a"},
    "document": "<a/>",
    "documents": ["<a/>"],
    "tag": "a",
    "event": {"a": 1},
    "events": [{"a": 1}],
    "source": b'{"a": 1}',
    "path": "x.tamis",
}
OTHERS: dict[str, dict[str, Any]] = {
    "EventMatcher": {"expression": "a = 1", "subscriptions": {"y": "a = 1"}},
    "Transformer": {"expression": QUERY, "subscriptions": {"y": QUERY}},
}
# By the parameter, or the method and the parameter: the kinds of values that are no mistakes.
RIGHT: dict[str, set[str]] = {
    **{key: {"int"} for key in tamis.Limits.__dataclass_fields__},
    **{key: {"None"} for key in ("dtd", "limits", "namespaces", "nodes", "root")},
    "Matcher.check expression": {"str"},
    # Look-ups return None for whatever is no id, as ``dict.get`` does.
    **{
        f"{key} id": {*WRONG}
        for key in ("Subscriptions.find", "Matcher.get", "EventMatcher.get", "Transformer.get")
    },
    "default_namespace": {"None", "str"},
    "event": {"dict of int", "dict of dict"},
    "id": {"int", "str", "empty str"},
    "interfaces": {"None", "dict of int"},
    "path": {"str", "missing file"},
    "source": {"used generator", "DataFrame"},  # of Arrow: no batches, and a table
    "tag": {"str"},
    "threads": {"int", "bool"},
}
# Of these whatever is given is a truth value, or a function that is called.
ANYTHING = {
    *("skip_bad", "dtd_trust", "warm", "values", "progress", "value", "start", "stop"),
    "durable",
}


def functions() -> Iterator[tuple[str, Callable[[], Callable[..., Any]], dict[str, Any]]]:
    """Each public function, how to get it, and what it must be given."""
    for name, (maker, given) in MAKERS.items():
        yield name, lambda maker=maker: maker, given
    for name, make in OBJECTS.items():
        for method, member in inspect.getmembers(type(make())):
            if method.startswith("_") or method in INTERNAL or not callable(member):
                continue
            good = GOOD | OTHERS.get(name, {})
            needed = {
                parameter.name: good[parameter.name]
                for parameter in parameters(getattr(make(), method))
                if parameter.default is parameter.empty and parameter.name not in ANYTHING
            }
            yield f"{name}.{method}", lambda make=make, m=method: getattr(make(), m), needed


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


CASES = [
    pytest.param(get, given, name, parameter.name, id=f"{name} {parameter.name}")
    for name, get, given in functions()
    for parameter in parameters(get())
    if parameter.name not in ANYTHING
]


def test_all_that_is_public_is_here() -> None:
    errors = {name for name in tamis.__all__ if name.endswith(("Error", "Subscriptions"))}
    rest = {"BadSubscriptions", "UnsupportedExpression", "__version__"}
    assert set(tamis.__all__) - errors - rest <= set(MAKERS) | set(OBJECTS)
    assert len(CASES) > 80


@pytest.mark.parametrize(("get", "given", "function", "name"), CASES)
def test_mistakes_are_errors_of_ours(
    get: Callable[[], Callable[..., Any]],
    given: dict[str, Any],
    function: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is raised; or, where there may be other answers, carried by one of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger("tamis"), "disabled", True)
    unnoticed = set()
    for kind, make in WRONG.items():
        with suppress(tamis.TamisError):
            found = get()(**{**given, name: make()})
            if not (isinstance(found, Iterator) and any(answer.error for answer in found)):
                unnoticed.add(kind)
    assert unnoticed <= RIGHT.get(f"{function} {name}", RIGHT.get(name, set()))


MAKES_A_SET = [
    tamis.compile,
    tamis.compile_events,
    tamis.Subscriptions,
    EventSubscriptions,
    tamis.Matcher,
    tamis.Transformer,
    lambda given: tamis.Matcher().add_many(given),
    lambda given: tamis.Matcher().update(given),
    lambda given: tamis.Transformer().add_many(given),
    lambda given: tamis.Transformer().update(given),
]


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("make", MAKES_A_SET)
def test_what_makes_no_set_is_a_usage_error(make: Callable[[Any], Any], kind: str) -> None:
    """What looks like a set but has bad ids or expressions too: nobody is told of XPath there."""
    with pytest.raises(tamis.UsageError) as caught:
        make(WRONG[kind]())
    if kind == "str":
        assert "pathlib.Path('subs.tsv')" in str(caught.value)
    if kind == "list of str":
        assert "dict(enumerate(…))" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "items"),
    [
        (MATCHER.match_many, "documents"),
        (tamis.Matcher().match_many, "documents"),
        (tamis.Transformer().transform_many, "documents"),
        (EVENTS.match_many, "events"),
    ],
)
def test_many_are_an_iterable(call: Callable[[Any], Any], items: str) -> None:
    for wrong in ("<a/>", b"<a/>", Path("a.xml"), {"a": 1}):
        with pytest.raises(tamis.UsageError, match=f"many {items} are an iterable.*give one to"):
            call(wrong)
    for wrong in (None, 5, object()):
        with pytest.raises(tamis.UsageError, match=f"many {items} are an iterable"):
            call(wrong)
    with pytest.raises(tamis.UsageError, match="was used before"):
        call(used_generator())


def test_one_raises_and_many_carry() -> None:
    """An error is raised for one document or event, and carried where there may be others."""
    bad = "<a"
    records = "<r><a/><a"
    transformer = tamis.Transformer({"x": QUERY})
    live = tamis.Matcher({"x": "//a"})
    for one in (MATCHER.match, live.match, transformer.transform):
        with pytest.raises(tamis.DocumentError):
            one(bad)
    with pytest.raises(tamis.DocumentError):
        MATCHER.explain(bad, "x")
    with pytest.raises(tamis.TamisError):
        EVENTS.match({"a": {}})
    for found in (
        MATCHER.match_many(["<a/>", bad, "<a/>"]),
        live.match_many(["<a/>", bad, "<a/>"]),
        transformer.transform_many(["<b/>", bad, "<b/>"]),
        EVENTS.match_many([{"a": 1}, {"a": {}}, {"a": 1}]),
        EVENTS.match_ndjson(b'{"a": 1}\n{\n{"a": 1}\n'),
    ):
        first, second, third = found
        assert len(first) == len(third) == 1
        assert (first.error, third.error) == (None, None)
        with pytest.raises(type(second.error)):
            len(second)
    for found in (MATCHER.match_records(records, "a"), live.match_records(records, "a")):
        *answered, last = found
        assert [match.error for match in answered] == [None]
        assert isinstance(last.error, tamis.DocumentError)


def test_objects_are_of_the_classes_that_they_are_here_for() -> None:
    assert isinstance(EVENTS, CompiledEventMatcher)
    assert isinstance(MATCH.nodes("x"), Selection)


def test_a_live_set_that_was_not_made_can_be_shown() -> None:
    for live_set in (tamis.Matcher, tamis.EventMatcher, tamis.Transformer):
        live = live_set.__new__(live_set)  # which tracebacks show where the constructor raises
        with pytest.raises(tamis.BadSubscriptions):
            live.__init__({"x": "<"})  # type: ignore[misc]
        assert repr(live) == f"<{live_set.__name__}: not made>"


def test_no_live_set_takes_a_bad_id() -> None:
    for live, good in (
        (tamis.Matcher(), "//a"),
        (tamis.EventMatcher(), "a = 1"),
        (tamis.Transformer(), QUERY),
    ):
        for id, message in (("", "the id is empty"), ("a\tb", "the id has a tab")):
            with pytest.raises(tamis.SubscriptionError, match=message) as caught:
                live.add(id, good)
            assert caught.value.id == id
        for wrong in (True, 1.5, None):
            with pytest.raises(tamis.UsageError):
                live.add(wrong, good)
        assert len(live) == 0
