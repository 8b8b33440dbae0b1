"""Public Sigma rules on made-up process events: Tamis beside a plain evaluation in Python.

    python -m benchmarks.programs.sigma lines|dicts|plain few|many RULES

RULES is a file of rules as lines of JSON. The backend of pySigma converts them. A tenth of the
values of events are drawn from the rules' own, or all are; others are ordinary. ``plain`` is what
pySigma's parsed conditions say, evaluated rule by rule, with lowercase strings made once an event:
what one would write in Python.
"""

from __future__ import annotations

import ipaddress
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import tamis
from benchmarks.programs.protocol import Digest, Phases, answer, load
from tamis.events import EventSubscriptions

Event = dict[str, Any]
Truth = Callable[[Event, Event], bool]
"""Of an event, and the same with lowercase strings."""
LIMITS = tamis.Limits(subscription_predicates=10_000, subscription_filters=10_000)
SHARES = {"few": 0.1, "many": 1.0}
EVENTS, BYTES, TURNS = 1_000, 729, 2
_PARTS = re.compile(r'(\w+) (?:=|like) i"\*?((?:[^"*?\\]|\\\\){3,60})')
_ORDINARY = (
    "",
    "C:\\Windows\\explorer",
    "C:\\Users\\ann\\report.docx",
    "ACME\\ann",
    "Medium",
    "x --port 8080 -v",
)
FIELDS = (
    "Image ParentImage CommandLine ParentCommandLine OriginalFileName Description Product Company "
    "User IntegrityLevel CurrentDirectory Hashes LogonId TargetFilename DestinationHostname"
).split()


def main() -> None:
    way, share, path = sys.argv[1:]
    phases = Phases()
    load("sigma.rule", phases)
    sys.path.insert(0, str(Path(__file__).parents[2] / "packages" / "pysigma-backend-tamis"))
    rules = dict(_rules(Path(path)))
    expressions = {id: expression for id, (expression, _) in rules.items()}
    with phases("read"):
        kept = EventSubscriptions(expressions, skip_bad=True, limits=LIMITS)  # one is too large
    rules = {id: rules[id] for id in expressions if id in kept}
    events = list(_events(rules, SHARES[share]))
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    with phases("compile"):
        match = _plain(rules, events) if way == "plain" else _tamis(kept, events, lines, way)
    times = []
    for _ in range(TURNS):
        start = perf_counter()
        found = match()
        times.append(perf_counter() - start)
    phases.times["match"] = min(times)
    digest = Digest()
    for number, ids in enumerate(found):
        digest.add(f"{number} {' '.join(ids)}")
    figures = {"documents": len(events), "matches": sum(map(len, found))}
    note = f"{len(rules):,} rules, {len(lines) // len(events)} bytes an event"
    answer(phases, figures, digest=str(digest), note=note)


def _rules(path: Path) -> Iterator[tuple[str, tuple[str, Any]]]:
    """By id the expression of a rule, and its condition as pySigma parses it."""
    backends: Any = import_module("sigma.backends.tamis")
    from sigma.exceptions import SigmaError  # noqa: PLC0415
    from sigma.rule import SigmaRule  # noqa: PLC0415

    backend = backends.TamisBackend()
    for line in path.read_text("utf-8").splitlines():
        given = json.loads(line)
        own = {key: given[key] for key in ("title", "id", "logsource", "detection")}
        try:
            rule = SigmaRule.from_dict(own)
            (expression,) = backend.convert_rule(rule)
        except SigmaError:  # two have placeholders
            continue
        yield given["id"], (expression, rule.detection.parsed_condition[0].parsed)


def _events(rules: dict[str, Any], share: float) -> Iterator[Event]:
    draw = random.Random(1)
    written = " ".join(expression for expression, _ in rules.values())
    of_field: dict[str, list[str]] = {}
    for field, text in _PARTS.findall(written):
        of_field.setdefault(field, []).append(text.replace("\\\\", "\\"))
    for number in range(EVENTS):
        event: Event = {"EventID": draw.choice([1, 3, 11, 4688]), "ProcessId": number}
        for field in FIELDS:
            is_own = field in of_field and draw.random() < share
            event[field] = (
                f"{draw.choice(_ORDINARY)}{draw.choice(of_field[field]) if is_own else ''}"
            )
        missing = BYTES - len(json.dumps(event)) - len(', "Details": ""')
        event["Details"] = "".join(draw.choices("abcdef 0123456789", k=max(missing, 0)))
        yield event


def _tamis(
    kept: EventSubscriptions, events: list[Event], lines: bytes, way: str
) -> Callable[[], Any]:
    matcher = tamis.compile_events(kept, limits=LIMITS)
    if way == "dicts":
        return lambda: [list(match) for match in matcher.match_many(events)]
    return lambda: [list(match) for match in matcher.match_ndjson(lines)]


# -- plain -----------------------------------------------------------------------------------------


def _plain(rules: dict[str, Any], events: list[Event]) -> Callable[[], list[list[str]]]:
    truths = {id: _truth(condition) for id, (_, condition) in rules.items()}

    def match() -> list[list[str]]:
        found = []
        for event in events:
            lower = {k: v.lower() if isinstance(v, str) else v for k, v in event.items()}
            found.append([id for id, truth in truths.items() if truth(event, lower)])
        return found

    return match


def _truth(condition: Any) -> Truth:
    from sigma import conditions as c  # noqa: PLC0415
    from sigma import types as t  # noqa: PLC0415

    if isinstance(condition, c.ConditionFieldEqualsValueExpression):
        return _of_field(condition.field, condition.value)
    if isinstance(condition, c.ConditionValueExpression):
        value = condition.value  # a part of some value
        one = (
            _of_string(value, False, "*") if isinstance(value, t.SigmaString) else _of_value(value)
        )
        return lambda event, lower: any(one(event[k], lower[k], event) for k in event)
    parts = [_truth(part) for part in condition.args]
    if isinstance(condition, c.ConditionNOT):
        return lambda event, lower: not parts[0](event, lower)
    every = all if isinstance(condition, c.ConditionAND) else any
    return lambda event, lower: every(part(event, lower) for part in parts)


def _of_field(field: str, value: Any) -> Truth:
    from sigma import types as t  # noqa: PLC0415

    if isinstance(value, t.SigmaNull):
        return lambda event, lower: event.get(field) is None
    if isinstance(value, t.SigmaExists):
        return lambda event, lower: (event.get(field) is not None) == value.exists
    is_so = _of_value(value)
    return lambda event, lower: field in event and is_so(event[field], lower[field], event)


def _of_value(value: Any) -> Callable[[Any, Any, Event], bool]:
    """Whether a value is as one of Sigma says: of the value, of it in lowercase, of the event."""
    from sigma import types as t  # noqa: PLC0415

    if isinstance(value, t.SigmaString):
        return _of_string(value, isinstance(value, t.SigmaCasedString))
    if isinstance(value, t.SigmaNumber):
        return lambda own, lower, event: own in (value.number, str(value.number))
    if isinstance(value, t.SigmaBool):
        return lambda own, lower, event: own is value.boolean
    if isinstance(value, t.SigmaRegularExpression):
        flags = sum(value.sigma_to_python_flags[flag] for flag in value.flags)
        search = re.compile(str(value.regexp), flags).search
        return lambda own, lower, event: isinstance(own, str) and search(own) is not None
    if isinstance(value, t.SigmaCIDRExpression):
        return lambda own, lower, event: _is_in(own, value.network)
    if isinstance(value, t.SigmaExpansion):
        inner = [_of_value(each) for each in value.values]
        return lambda own, lower, event: any(one(own, lower, event) for one in inner)
    if isinstance(value, t.SigmaFieldReference):
        return lambda own, lower, event: lower == str(event.get(value.field)).lower()
    order = {"<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[value.op.value]
    number = value.number.number
    return lambda own, lower, event: isinstance(own, int) and getattr(own, order)(number)


def _is_in(own: object, network: Any) -> bool:
    try:
        return ipaddress.ip_address(str(own)) in network
    except ValueError:
        return False


def _of_string(value: Any, is_cased: bool, around: str = "") -> Callable[[Any, Any, Event], bool]:
    """A string with wildcards; parts of strings are looked for as Python does it best."""
    parts = [part if is_cased else part.lower() for part in value.s if isinstance(part, str)]
    stars = {"WILDCARD_MULTI": "*", "WILDCARD_SINGLE": "?"}
    inner = "".join("s" if isinstance(part, str) else stars[part.name] for part in value.s)
    shape = f"{around}{inner}{around}"
    text = "".join(parts)
    tests: dict[str, Callable[[str], bool]] = {
        "": lambda own: not own,
        "s": text.__eq__,
        "*s*": lambda own: text in own,
        "s*": lambda own: own.startswith(text),
        "*s": lambda own: own.endswith(text),
    }
    test = tests.get(shape)
    if test is None:
        wildcards = {"*": ".*", "?": "."}
        left = iter(parts)
        regex = "".join(re.escape(next(left)) if x == "s" else wildcards[x] for x in shape)
        test = re.compile(regex, re.DOTALL).fullmatch  # type: ignore[assignment]
    assert test is not None
    is_so = test
    return lambda own, lower, event: (
        isinstance(own, str) and bool(is_so(own if is_cased else lower))
    )


if __name__ == "__main__":
    main()
