"""The pySigma backend, with real pySigma: what rules mean, and what cannot be said."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.events import EventSubscriptions
from tests.support.corpora import real

sys.path.insert(0, str(Path(__file__).parents[2] / "packages" / "pysigma-backend-tamis"))

from sigma.backends.tamis import TamisBackend
from sigma.exceptions import SigmaFeatureNotSupportedByBackendError
from sigma.rule import SigmaRule


def rule(detection: dict[str, Any], **others: Any) -> Any:
    return SigmaRule.from_dict(
        {
            "title": "a rule",
            "id": "a133193c-2daa-4a29-8022-018695fcf0ae",
            "logsource": {"category": "process_creation", "product": "windows"},
            "detection": detection,
            **others,
        }
    )


def expression(detection: dict[str, Any]) -> str:
    (query,) = TamisBackend().convert_rule(rule(detection))
    assert isinstance(query, str)
    return query


CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = {
    "parts, without case": (
        {
            "s": {"Image|endswith": "\\cmd.exe", "CommandLine|contains": ["-Enc", "IEX"]},
            "condition": "s",
        },
        [{"Image": "C:\\CMD.EXE", "CommandLine": "x iex y"}],
        [{"Image": "cmd.exe", "CommandLine": "iex"}, {"Image": "C:\\cmd.exe"}],
    ),
    "all of a list": (
        {"s": {"a|contains|all": ["x", "y"]}, "condition": "s"},
        [{"a": "yx"}],
        [{"a": "x"}, {}],
    ),
    "wildcards": (
        {"s": {"a": "x*y?z", "b": "\\\\*"}, "condition": "s"},
        [{"a": "X..ybz", "b": "\\anything"}],
        [{"a": "xyz", "b": "\\"}, {"a": "xybz", "b": "*"}],
    ),
    "literal stars": ({"s": {"a": "x\\*"}, "condition": "s"}, [{"a": "x*"}], [{"a": "xy"}]),
    "filters": (
        {
            "selection": {"a": "x"},
            "filter_1": {"b": "y", "c|startswith": "z"},
            "filter_2": {"d": None},
            "condition": "selection and not 1 of filter_*",
        },
        [{"a": "x", "d": 1}, {"a": "X", "b": "y", "d": 1}, {"a": "x", "b": "q", "c": "z", "d": 0}],
        [{"a": "x"}, {"a": "x", "b": "Y", "c": "zz", "d": 1}, {"d": 1}],
    ),
    "numbers": (
        {"s": {"EventID": 4688}, "condition": "s"},
        [{"EventID": 4688}, {"EventID": "4688"}],
        [{"EventID": 1}],
    ),
    "cased": ({"s": {"a|cased|startswith": "X"}, "condition": "s"}, [{"a": "Xy"}], [{"a": "xy"}]),
    "exists": (
        {"s": {"a|exists": True, "b|exists": False}, "condition": "s"},
        [{"a": 1}],
        [{}, {"a": 1, "b": 2}],
    ),
    "networks": (
        {"s": {"ip|cidr": "10.0.0.0/8"}, "condition": "s"},
        [{"ip": "10.1.1.1"}],
        [{"ip": "1.1.1.1"}],
    ),
    "networks in odd fields": (
        {"s": {"dst ip|cidr": "10.0.0.0/8"}, "condition": "s"},
        [{"dst ip": "10.1.1.1"}],
        [{"dst ip": "1.1.1.1"}],
    ),
    "comparisons": ({"s": {"n|gte": 5}, "condition": "s"}, [{"n": 5}], [{"n": 4}, {}]),
    "fields inside, and odd ones": (
        {"s": {"a.b": "x", "c d": "y", "in": "z"}, "condition": "s"},
        [{"a": {"b": "x"}, "c d": "y", "in": "z"}, {"a.b": "x", "c d": "y", "in": "z"}],
        [{"a": {"b": "x"}, "c d": "y"}],
    ),
    "regular expressions": (
        {"s": {"a|re": "x{2,3}\\.(exe|dll)$", "b|re|i|m": "^y"}, "condition": "s"},
        [{"a": "axx.dll", "b": "z\nY"}],
        [{"a": "xx.exe ", "b": "y"}, {"a": "XX.exe", "b": "y"}, {"a": "xx.exe", "b": "zy"}, {}],
    ),
    "two fields": (
        {"s": {"a|fieldref": "b", "c|fieldref|startswith": "d.e"}, "condition": "s"},
        [{"a": "x", "b": "X", "c": "yz", "d": {"e": "y"}}],
        [{"a": "x", "b": "y", "c": "yz", "d": {"e": "y"}}, {"a": "x", "c": "y", "d.e": "y"}],
    ),
    "keywords": (
        {"s": ["mimi*katz", 4688], "condition": "s"},
        [{"a": {"b": ["z", "MIMI-kATZ.exe"]}}, {"a": 4688}, {"a": "id 4688"}],
        [{"mimikatz": 1}, {"a": "katz", "b": "mimi"}, {}],
    ),
    "any value": ({"s": {"a": "*"}, "condition": "s"}, [{"a": "x"}, {"a": ""}], [{}]),
    "alternatives of selections": (
        {"s": [{"a": "x"}, {"b": "y"}], "t": {"c": True}, "condition": "s or not t"},
        [{"a": "x", "c": True}, {"b": "y", "c": True}, {}],
        [{"c": True}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_rules(case: str) -> None:
    detection, true, false = CASES[case]
    matcher = tamis.compile_events({"s": expression(detection)})
    assert [bool(list(match)) for match in matcher.match_many(true)] == [True] * len(true)
    assert [bool(list(match)) for match in matcher.match_many(false)] == [False] * len(false)


def test_what_cannot_be_said() -> None:
    with pytest.raises(SigmaFeatureNotSupportedByBackendError, match="placeholder"):
        expression({"s": {"a|expand": "%names%"}, "condition": "s"})


def test_formats(tmp_path: Path) -> None:
    backend = TamisBackend()
    two = rule({"s": {"a": "x"}, "t": {"b": "y"}, "condition": ["s", "t"]})
    lines = backend.finalize(backend.convert_rule(two, "ndjson"), "ndjson")
    ids = [two_id["id"] for two_id in map(json.loads, lines.splitlines())]
    assert ids == [str(two.id), f"{two.id}-2"]
    for format, name in (("ndjson", "rules.ndjson"), ("tsv", "rules.tsv")):
        path = tmp_path / name
        path.write_text(backend.finalize(backend.convert_rule(two, format), format), "utf-8")
        assert list(tamis.compile_events(path).match({"b": "Y"})) == [ids[1]]


@pytest.mark.corpora
def test_public_rules() -> None:
    backend, said, refused = TamisBackend(), {}, 0
    for line in real("sigma/rules.jsonl").read_text("utf-8").splitlines():
        given = json.loads(line)
        found = SigmaRule.from_dict(
            {key: given[key] for key in ("title", "id", "logsource", "detection")}
        )
        try:
            (said[given["id"]],) = backend.convert_rule(found)
        except SigmaFeatureNotSupportedByBackendError:
            refused += 1
    limits = tamis.Limits(subscription_predicates=10_000, subscription_filters=10_000)
    kept = EventSubscriptions(said, skip_bad=True, limits=limits)
    assert len(kept) > 0.99 * (len(said) + refused)
    assert all("subscription_states" in str(error) for error in kept.errors)
    matcher = tamis.compile_events(kept, limits=limits)
    assert list(matcher.match({"Image": "C:\\x.exe"})) == list(
        matcher.match({"Image": "c:\\X.EXE"})
    )
