"""Plain queries and parsed ones in one form, to be compared: nested tuples of what has to hold.

A level is ``("step", below, first, onward, is_attribute, test, items)``; what follows a step is one
of its items, as its predicates are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.model import (
    DESCEND,
    And,
    Axis,
    Compare,
    Contains,
    Exists,
    Expression,
    KindTest,
    Nodes,
    Not,
    Or,
    Path,
    Query,
    StartsWith,
    Step,
    StringOf,
)
from tamis.language.plain import (
    ALL,
    ANCHOR,
    ANY,
    ASKS,
    BELOW,
    END,
    FIRST,
    NOT,
    ONWARD,
    OPERATORS,
    STEP,
    TEST_SHIFT,
    PlainQueries,
)
from tamis.language.plain.reader import PlainReader

Items = list[tuple[Any, ...]]
_HERE = Step(Axis.SELF, KindTest.NODE)


def read_plain(
    texts: Sequence[str | bytes],
    namespaces: dict[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[list[int], PlainQueries]:
    """The number of the query of each text, -1 where it is declined, and the queries."""
    encoded = [t if isinstance(t, bytes) else t.encode(errors="surrogatepass") for t in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    starts = ends - [len(text) for text in encoded]
    reader = PlainReader(namespaces or {}, limits)
    numbers = reader.read(np.frombuffer(b"".join(encoded), np.uint8), starts, ends)
    return numbers.tolist(), reader.queries()


# -- from words ----------------------------------------------------------------------------------


def decoded(queries: PlainQueries, number: int) -> tuple[Items, int]:
    """What has to hold at the document, and which step of the path from there is the anchor."""
    words = queries.code[queries.starts[number] : queries.starts[number + 1]].tolist()
    outer: list[Items] = [[]]
    steps: list[int] = []
    at = 0
    while not steps or not steps[-1]:  # up to the anchor
        assert words[at] & 7 == STEP
        outer.append(_begin_step(queries, words[at] >> 3, outer[-1]))
        steps.append(words[at] >> 3 & ANCHOR)
        at += 1
    end = _decode_items(queries, words, at, outer[-1])
    assert end == len(words)
    return outer[0], len(steps) - 1


def _begin_step(queries: PlainQueries, payload: int, into: Items) -> Items:
    items: Items = []
    is_attribute, test = queries.tests[payload >> TEST_SHIFT]
    flags = (bool(payload & flag) for flag in (BELOW, FIRST, ONWARD))
    into.append(("step", *flags, is_attribute, test, items))
    return items


def _decode_items(queries: PlainQueries, words: list[int], at: int, into: Items) -> int:
    """Decode up to the END of what is open; gives what comes after it."""
    while words[at] & 7 != END:
        kind, payload = words[at] & 7, words[at] >> 3
        at += 1
        if kind == ASKS:
            into.append(("asks", OPERATORS[payload], _literal(queries, words[at])))
            at += 1
            continue
        if kind == STEP:
            assert not payload & ANCHOR
            inner = _begin_step(queries, payload, into)
            at = _decode_items(queries, words, at, inner)
            continue
        items: Items = []
        at = _decode_items(queries, words, at, items)
        if kind == ALL:
            assert len(items) > 1
            into.append(("all", items))
        elif kind == ANY:
            assert len(items) > 1
            into.append(("any", _flat(items)))
        else:
            assert kind == NOT
            into.append(("not", items))
    return at + 1


def _literal(queries: PlainQueries, word: int) -> str | float:
    if word < 0:
        return float(queries.numbers[-1 - word])
    start, end = queries.string_starts[word : word + 2]
    return queries.string_bytes[start:end].tobytes().decode()


def _flat(items: Items) -> Items:
    return [i for item in items for i in (item[1] if item[0] == "any" else [item])]


# -- from syntax trees ---------------------------------------------------------------------------


def form(query: Query) -> tuple[Items, int]:
    """The same of a query that :func:`tamis.language.xpath.parse` gave.

    Raises:
        ValueError: it is not plain.
    """
    match query.expression:
        case Exists((Path(True, steps),)) if steps:
            folded = _folded(steps)
            anchors = [number for number, (_, step) in enumerate(folded) if step.predicates]
            anchor = anchors[0] if anchors else len(folded) - 1
            return _levels(folded, [], anchor), anchor
    raise ValueError("not a path from the document")


def _items(expression: Expression) -> Items:
    match expression:
        case And(operands):
            return [item for operand in operands for item in _items(operand)]
        case Or(operands):
            return [("any", _flat([_one(_items(operand)) for operand in operands]))]
        case Not(operand):
            return [("not", _items(operand))]
        case Exists((Path(False, steps),)):
            return _relative(steps, [])
        case Compare(operator, Nodes((Path(False, steps),)), literal):
            return _relative(steps, [("asks", operator, literal)])
        case Contains(StringOf(path), literal) | StartsWith(StringOf(path), literal) if literal:
            name = "contains" if isinstance(expression, Contains) else "starts-with"
            inner: Items = [("asks", name, literal)]
            if path.steps == (_HERE,):
                return inner
            (step,) = path.steps
            is_first = step.axis is Axis.CHILD
            if step.predicates or step.axis not in (Axis.CHILD, Axis.ATTRIBUTE):
                raise ValueError("a first node that is not looked for")
            return [("step", False, is_first, False, not is_first, step.test, inner)]
    raise ValueError("not plain")


def _one(items: Items) -> tuple[Any, ...]:
    return items[0] if len(items) == 1 else ("all", items)


def _relative(steps: tuple[Step, ...], inner: Items) -> Items:
    return _levels(_folded(steps[1:] if steps[0] == _HERE else steps), inner)


def _folded(steps: tuple[Step, ...]) -> list[tuple[bool, Step]]:
    """Steps, each with whether it is after ``//``."""
    folded: list[tuple[bool, Step]] = []
    below = False
    for step in steps:
        if step == DESCEND and not below:
            below = True
            continue
        if step.axis not in (Axis.CHILD, Axis.ATTRIBUTE) or step.test is KindTest.NODE:
            raise ValueError("a step that is not plain")
        folded.append((below, step))
        below = False
    if below:
        raise ValueError("a step that is not plain")
    return folded


def _levels(steps: list[tuple[bool, Step]], inner: Items, anchor: int | None = None) -> Items:
    if not steps:
        return inner
    (below, step), *rest = steps
    items = [item for predicate in step.predicates for item in _items(predicate)]
    items += _levels(rest, inner, None if anchor is None else anchor - 1)
    is_onward, is_attribute = anchor is not None and anchor < 0, step.axis is Axis.ATTRIBUTE
    return [("step", below, False, is_onward, is_attribute, step.test, items)]
