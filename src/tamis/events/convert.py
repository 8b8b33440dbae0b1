"""Rules of others → expressions about events.

``from_pattern``: EventBridge's patterns, which are event-ruler's; and the filter policies of SNS.
``from_matchers``: Alertmanager's. What cannot be said raises ``UnsupportedExpression``.

In these patterns a field may be in an object or in each object of a list, and a value may be one or
a list of some: so every step is written with ``[]``, which takes what is no list for a list of it.
Conditions on fields of one object hold of one element.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tamis.core.errors import SubscriptionError, SubscriptionSyntaxError, UnsupportedExpression
from tamis.language.attributes import print_name
from tamis.language.constraints import print_filters
from tamis.language.events import parse_filters
from tamis.language.patterns import pattern_of
from tamis.language.regex import RegexError

_MATCHER = re.compile(
    r"""\s*([A-Za-z_:][\w:.-]*|"(?:[^"\\]|\\.)*")\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|[^\s",}=]*)\s*"""
)
_GROUP = re.compile(r"\((?:\?:)?((?!\?)[^()\\]*)\)")
_SPLIT = re.compile(r"[^][()\\]*")
"""What is divided at each ``|``: nothing else is inside of something."""
_COMPARED = ("=", "<", "<=", ">", ">=")


def from_pattern(pattern: object) -> str:
    """An event pattern as an expression.

    >>> from_pattern({"detail": {"state": ["on", {"prefix": "up"}], "n": [{"numeric": [">", 3]}]}})
    'detail[].((state[] = "on" or state[] prefix "up") and n[] > 3)'
    """
    return _checked(_written(_conditions(pattern)))


def from_filter_policy(policy: object) -> str:
    """A filter policy of SNS, on attributes or on the body of messages.

    >>> from_filter_policy({"store": ["a"], "price": [{"numeric": [">=", 100, "<", 200]}]})
    'store[] = "a" and price[].(. >= 100 and . < 200)'
    """
    return from_pattern(policy)


def _checked(expression: str) -> str:
    """An expression that Tamis takes, or ``UnsupportedExpression``."""
    try:
        parse_filters(expression)
    except SubscriptionError as error:
        raise UnsupportedExpression(f"{error.message}, in {expression:.200}") from None
    return expression


class _Condition(NamedTuple):
    """What is asked; where it is negated, the text is what must not hold."""

    text: str
    is_negated: bool = False


def _written(conditions: Iterable[_Condition]) -> str:
    return " and ".join(f"not {text}" if negated else text for text, negated in conditions)


def _conditions(pattern: object) -> Iterator[_Condition]:
    """What an object asks for; alternatives are in parentheses."""
    if not isinstance(pattern, Mapping) or not pattern:
        raise UnsupportedExpression("a pattern is an object with fields")
    for field, asked in pattern.items():
        name = f"{print_name(field)}[]"
        if field == "$or":
            if not isinstance(asked, list) or not asked:
                raise UnsupportedExpression("$or is a list of patterns")
            yield _Condition(_alternatives([_written(_conditions(each)) for each in asked]))
        elif isinstance(asked, Mapping) and asked:
            yield from _of_object(name, list(_conditions(asked)))
        elif isinstance(asked, list) and asked:
            rules = [_rule(name, rule) for rule in asked]
            if len(rules) == 1:
                yield rules[0]
            else:
                yield _Condition(_alternatives([_written([rule]) for rule in rules]))
        else:
            raise UnsupportedExpression(f"{field!r} is a list of values, or an object with fields")


def _of_object(name: str, conditions: list[_Condition]) -> Iterator[_Condition]:
    """Conditions on one object; where all say what is not there, the object need not be either."""
    if all(condition.is_negated for condition in conditions):
        for text, _ in conditions:
            yield _Condition(f"{name}.({text})", is_negated=True)
    elif len(conditions) == 1 and conditions[0].text[0] == "(":
        yield _Condition(f"{name}.{conditions[0].text}")
    else:
        yield _Condition(f"{name}.({_written(conditions)})")


def _alternatives(expressions: Sequence[str]) -> str:
    return f"({' or '.join(expressions)})"


def _any_of(expressions: Sequence[str]) -> str:
    return expressions[0] if len(expressions) == 1 else _alternatives(expressions)


def _rule(name: str, rule: object) -> _Condition:
    """One of the alternatives for a field."""
    if not isinstance(rule, Mapping):
        return _Condition(f"{name} = {_constant(rule)}")
    if len(rule) != 1:
        raise UnsupportedExpression(f"a rule has one key, not {sorted(rule)}")
    ((kind, asked),) = rule.items()
    if kind == "exists":
        return _Condition(f"({name} exists or {name} = null)", is_negated=not asked)
    if kind == "anything-but":
        others = asked if isinstance(asked, list) else [asked]
        but = [each for other in others for each in _but(other)]
        if not but:
            raise UnsupportedExpression("anything-but has no values")
        return _Condition(f"{name}.((. exists or . = null) and not {_any_of(but)})")
    if kind == "numeric":
        return _Condition(_numeric(name, asked))
    return _Condition(_text(name, kind, asked))


def _but(other: object) -> Iterator[str]:
    """What is excluded, of the value itself."""
    if not isinstance(other, Mapping):
        yield f". = {_constant(other)}"
        return
    for kind, asked in other.items():
        for text in asked if isinstance(asked, list) else [asked]:
            yield _text(".", kind, text)


def _numeric(name: str, asked: object) -> str:
    if not isinstance(asked, list) or not asked or len(asked) % 2:
        raise UnsupportedExpression("numeric is a list of operators and numbers")
    pairs = list(zip(asked[::2], asked[1::2], strict=True))
    for operator, number in pairs:
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if operator not in _COMPARED or not is_number:
            raise UnsupportedExpression(f"numeric has no {operator!r} {number!r}")
    if len(pairs) == 1:
        return f"{name} {pairs[0][0]} {_constant(pairs[0][1])}"
    return f"{name}.({' and '.join(f'. {o} {_constant(number)}' for o, number in pairs)})"


def _text(name: str, kind: str, asked: object) -> str:
    """A rule about a string."""
    case = ""
    if isinstance(asked, Mapping) and list(asked) == ["equals-ignore-case"]:
        case, asked = "i", asked["equals-ignore-case"]
    operators = {
        "prefix": "prefix",
        "suffix": "suffix",
        "wildcard": "like",
        "cidr": "cidr",
        "equals-ignore-case": "= i",
    }
    if kind not in operators or not isinstance(asked, str):
        raise UnsupportedExpression(f"there is nothing like the rule {kind!r}: {asked!r:.60}")
    if kind == "wildcard":
        asked = asked.replace("?", "\\?")
    operator = operators[kind]
    space = "" if operator.endswith("i") else " "
    return f"{name} {operator}{space}{case}{_constant(asked)}"


def _constant(value: object) -> str:
    if isinstance(value, str | int | float | bool) or value is None:
        return json.dumps(value, ensure_ascii=False)
    raise UnsupportedExpression(f"{value!r:.60} is no value")


# -- Alertmanager ----------------------------------------------------------------------------------


def from_matchers(matchers: str) -> str:
    """Alertmanager's matchers, in braces or without, as an expression about labels.

    A label that is missing is the empty string. Regular expressions match whole values.

    >>> from_matchers('{severity=~"warning|critical", team!="x", instance=~"web-.*"}')
    '(severity = "warning" or severity = "critical") and not team = "x" and instance prefix "web-"'
    """
    text = matchers.strip()
    if text[:1] == "{":
        if text[-1:] != "}":
            raise SubscriptionSyntaxError("expected } at the end", matchers, len(matchers))
        text = text[1:-1]
    found, position = [], 0
    while position < len(text):
        match = _MATCHER.match(text, position)
        if match is None:
            raise SubscriptionSyntaxError(
                "expected a label, = != =~ or !~, a value", text, position
            )
        found.append(_matcher(*match.groups()))
        position = match.end()
        if text[position : position + 1] not in ("", ","):
            raise SubscriptionSyntaxError("expected , or the end", text, position)
        position += 1
    if not found:
        raise SubscriptionSyntaxError("there are no matchers", matchers, 0)
    return _checked(" and ".join(found))


def _matcher(label: str, operator: str, value: str) -> str:
    name, text = print_name(_unquoted(label)), _unquoted(value)
    if operator in ("=~", "!~"):
        tests = _regex_tests(name, text)
    else:
        tests = [f"{name} = {_constant(text)}"] + [f"{name} absent"] * (not text)
    found = _any_of(tests)
    return f"not {found}" if operator[0] == "!" else found


def _regex_tests(name: str, text: str) -> list[str]:
    """The alternatives of a regular expression that matches whole values, as simple as they are."""
    try:
        of_empty = pattern_of("matches", f"^(?s:{text})$").matches(b"")
    except (RegexError, SubscriptionError) as error:
        message = f"the regular expression {text!r:.80} cannot be used: {error.message}"
        raise UnsupportedExpression(message) from None
    group = _GROUP.fullmatch(text)
    inner = group[1] if group else text
    each = inner.split("|") if _SPLIT.fullmatch(inner) else [text]
    found = [_simple(name, one) for one in each]
    return [*found, f"{name} absent"] if of_empty else found


def _unquoted(text: str) -> str:
    """A label or a value without its quotes; a backslash before others stays."""
    if text[:1] != '"':
        return text.strip()
    return re.sub(r'\\(["\\n])', lambda found: {"n": "\n"}.get(found[1], found[1]), text[1:-1])


def _simple(name: str, regex: str) -> str:
    """A regular expression that matches whole values, as the simplest constraints for it."""
    (filter,) = parse_filters(f"{name} matches {_constant(f'^(?s:{regex})$')}")
    text = print_filters([filter])
    return f"({text})" if len(filter) > 1 else text
