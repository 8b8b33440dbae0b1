"""Lines that kernels read, against the JSON library and the way that mappings go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tamis.core.errors import MalformedEvent
from tamis.core.limits import Limits
from tamis.events.encode import Encoder
from tamis.language.attributes import (
    ELEMENTS,
    ITSELF,
    Path,
    attribute_of,
    elements_name,
    folded_name,
    null_name,
    path_name,
)
from tests.events.decoding import decoded

ASKED = [
    *("a", "c", "é", "", "a.b", "long name of an attribute"),
    *map(path_name, [("a", "b"), ("a", 1), ("a", "a", "b"), ("c", "b"), ("b", 0, "a"), ("b", "é")]),
    *map(folded_name, ["c", "b", path_name(("a", "b")), path_name(("c", 0))]),
    *map(null_name, ["a", "c", path_name(("b", "b"))]),
    *(of_elements := {
        elements_name(("b",), " > 1"): [],
        elements_name(("b",), ".(a = 1 and not b exists)"): ["a", "b"],
        elements_name(("c", "a"), ' = i"É"'): [],
        elements_name(("a",), ".b[] > 1"): ["b"],
        elements_name(("a", 0), '.(. contains "x" or b = null)'): ["b"],
    }),
]  # fmt: skip
"""What filters ask for; beside it what they ask for in elements."""


# -- what is expected ------------------------------------------------------------------------------


class Pairs(list[tuple[str, Any]]):
    """The names and values of an object, as it has them."""


def paths_of(names: list[str]) -> set[Path]:
    """All places that filters ask about or pass through."""
    paths = {attribute_of(name).path for name in names}
    dotted = {(".".join(map(str, path)),) for path in paths if int not in map(type, path)}
    return dotted | {path[:size] for path in paths for size in range(1, len(path) + 1)}


def has_duplicate(value: Any, names: list[str]) -> bool:
    """Whether an object in an event has a name twice that is asked about."""
    paths = paths_of(names)

    def is_twice(value: Any, path: Path) -> bool:
        if isinstance(value, Pairs):
            asked = [name for name, _ in value if (*path, name) in paths]
            if len(set(asked)) < len(asked):
                return True
        parts = (
            value if isinstance(value, Pairs) else enumerate(value if type(value) is list else ())
        )
        if any(is_twice(each, (*path, part)) for part, each in parts):
            return True
        conditions = (name for name in names if attribute_of(name)[:2] == (ELEMENTS, path))
        inner = [asked for name in conditions for asked in of_elements.get(name, [])]
        return (
            any(has_duplicate(each, inner) for each in (value if type(value) is list else [value]))
            if inner
            else False
        )

    return is_twice(value, ())


def plain(value: Any) -> Any:
    """The value of a reading into pairs: of several of a name, the last."""
    if isinstance(value, Pairs):
        return {name: plain(each) for name, each in value}
    return list(map(plain, value)) if isinstance(value, list) else value


def expected(encoder: Encoder, lines: list[bytes]) -> Iterator[dict[str, Any] | None]:
    """What mappings come to that the libraries read; None for errors."""
    names = list(encoder.names)
    for line in lines:
        try:
            orjson.loads(line)  # it is the stricter one
        except orjson.JSONDecodeError:
            yield None
            continue
        found = json.loads(line, object_pairs_hook=Pairs)
        if not isinstance(found, Pairs) or has_duplicate(found, names):
            yield None
            continue
        (event,) = decoded(encoder.plain_events([plain(found)]), names)
        yield None if isinstance(event, str) else event


def check(names: list[str], lines: list[bytes], limits: Limits = Limits()) -> None:  # noqa: B008
    """Read lines together, and compare each. Equal lines are read once for what is expected."""
    encoder = Encoder(names, limits)
    batch, numbers = encoder.ndjson(b"\n".join(lines))
    assert numbers is not None
    assert numbers.tolist() == list(range(1, len(lines) + 1))
    found = decoded(batch, names)
    different = [*dict.fromkeys(lines)]
    others = dict(zip(different, expected(encoder, different), strict=True))
    for line, event in zip(lines, found, strict=True):
        said, other = None if isinstance(event, str) else repr(sorted(event.items())), others[line]
        assert said == (None if other is None else repr(sorted(other.items()))), (line, event)


# -- drawn -----------------------------------------------------------------------------------------

NUMBERS = [
    *("0", "-0", "-0.0", "1", "2", "-17", "1.5", "2.50", "1e2", "1E+2", "25e-1", "-1.25e-3", "0.1"),
    *("9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809"),
    *("18446744073709551616", "1" + "0" * 30, "9223372036854775807.0", "9007199254740993.0"),
    *("9007199254740992e3", "1e22", "1e23", "123456789012345678e-5", "0.30000000000000004"),
    *("1.7976931348623157e308", "1e309", "-1e400", "1e-400", "0e999", "0.000001e310", "5e-324"),
    *("123456789012345678901234567890.5", "1." + "0" * 40, "1e00000000000000000000002"),
    *("01", "1.", ".5", "+1", "1e", "1e+", "-", "0x1", "1.e1", "--1", "NaN", "-Infinity"),
]
STRINGS = [
    *('""', '"x"', '"É"', '"é"', '"AbC"', '"ǅÉx"', '"\\u00c9"', '"\\ud83d\\ude00"', '"a\\nb"'),
    *('"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\u0000"', '"😀"', '"' + "long " * 9 + '"', '"\\u00C9"'),
    *('"\\ud800"', '"\\ude00x"', '"\\ud800\\u0041"', '"\\x"', '"\\u12g4"', '"', '"\t"', '"\\'),
]
WORDS = ["true", "false", "null", "True", "nul", "falsy"]
KEYS = ['"a"', '"b"', '"c"', '"x"', '"y"', '"a.b"', '"c.b"', '"é"', '"\\u00e9"', '"\\u0061"', '""']
KEYS += ['"long name of an attribute"', '"\\u0005"', '"\\u0000a"', '"b.0.a"', '"0"', '"a.a.b"']
SPACES = st.sampled_from(["", "", "", " ", "\t ", "\r"])
GOOD = [text for text in [*NUMBERS[:30], *STRINGS[:14], *WORDS[:3]] if "e309" not in text]
SCALARS = st.one_of(st.sampled_from(GOOD), st.sampled_from([*NUMBERS, *STRINGS, *WORDS]))


def lists_of(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda items, space: "[" + space + f"{space},".join(items) + space + "]",
        st.lists(inner, max_size=4),
        SPACES,
    )


def objects_of(inner: st.SearchStrategy[str], is_odd: bool = True) -> st.SearchStrategy[str]:
    pair = st.tuples(st.sampled_from(KEYS), inner)
    return st.builds(
        lambda pairs, space: (
            "{" + space + f",{space}".join(f"{k}{space}:{space}{v}" for k, v in pairs) + "}" + space
        ),
        st.lists(pair, max_size=5, unique_by=None if is_odd else lambda pair: pair[0]),
        SPACES,
    )


def values(scalars: st.SearchStrategy[str], is_odd: bool) -> st.SearchStrategy[str]:
    return st.recursive(
        scalars, lambda inner: lists_of(inner) | objects_of(inner, is_odd), max_leaves=12
    )


LINES = st.one_of(
    objects_of(values(st.sampled_from(GOOD), is_odd=False), is_odd=False),
    objects_of(values(SCALARS, is_odd=True)),
)


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(ASKED), unique=True, max_size=8),
    st.lists(LINES.map(str.encode), min_size=1, max_size=6),
)
@example(
    [path_name(("a", "b"))], [b'{"a":{"b":1},"a":2}', b'{"a.b":1,"a.b":1}', b'{"a.b":1,"a":1}']
)
@example(ASKED, [b'{"b":[0e999,{"a":-0.1e400}]}', b'{"b":0e999}', b'{"b":1e999}', b'{"b":[]}'])
@example(ASKED, [b'{"b":[{"a":1},{"b":[{"a":2,"a":3}]}]}', b'{"b":[[2],3]}', b'{"b":{"a":1}}'])
@example(
    ASKED, [b'{"a":[{"b":[2]},{"b":2},"x"]}', b'{"c.a":["e"],"c.b":5}', b'{"a":[{"\\u0005":2}]}']
)
def test_as_mappings_are_read(names: list[str], lines: list[bytes]) -> None:
    assert not any(b"\n" in line for line in lines)
    check(names, lines)


SAMPLES = [
    b'{"a": {"b": -1.5e3, "x": [true, "\\u00e9\\n"]}, "c": null}',
    '{"b":[{"a":"é"},10,"\\ud83d\\ude00"],"x":{"a":[]},"c":"K"}'.encode(),
    b'{"x":[[{"y":0.1}],{}], "a.b":false,"":9223372036854775807 }',
]
PUT = b'0179-+.eE"\\{}[]:,/ \t\r\x00\x1f\x7f\x80\xbf\xc3\xe2\xed\xf0\xffautlnfsbd'


@pytest.mark.parametrize("line", SAMPLES)
def test_each_byte_is_another_or_missing(line: bytes) -> None:
    lines = [line[:place] + line[place + 1 :] for place in range(len(line))]
    lines += [line[:place] for place in range(1, len(line))]
    for place, byte in product(range(len(line)), PUT):
        lines.append(line[:place] + bytes([byte]) + line[place + 1 :])
        lines.append(line[:place] + bytes([byte]) + line[place:])
    check([name for name in ASKED if name != "a"], [line for line in lines if line.strip()])


def test_utf_8() -> None:
    """All that is at a bound, in what is asked for and in what is not."""
    bounds = bytes.fromhex("617f808f909fa0bfc0c1c2dfe0e1ecedeeeff0f1f3f4f5ff")
    texts = [bytes(text) for size in (1, 2) for text in product(bounds, repeat=size)]
    ends = b"a\x7f\x80\xbf\xc0"
    texts += [bytes(text) for text in product(bounds, bounds, ends)]
    texts += [bytes(text) for text in product(b"\xf0\xf1\xf4", bounds, ends, ends)]
    check(["a"], [b'{"%b":"%b"}' % (name, text) for text in texts for name in (b"a", b"xyzxyz")])


# -- limits, memory, threads -----------------------------------------------------------------------


def test_limits() -> None:
    limits = Limits(event_string_bytes=5, event_attributes=3)
    strings = [
        b'{"a":"%b"}' % text for text in (b"12345", b"123456", b"\\u00e9\\n12", "éé12".encode())
    ]
    many = [
        b'{"x":1,"y":2,"z":3}',
        b'{"x":1,"y":2,"z":3,"a":1}',
        b'{"x":{"a":1,"b":2,"c":3,"d":4}}',
    ]
    inside = [b'{"b":[{"x":1,"y":1,"z":1,"a":1}]}', b'{"b":["123456"]}', b'{"b":"123456"}']
    check(["a", elements_name(("b",), " > 1")], [*strings, *many, *inside], limits)
    encoder = Encoder(["a", elements_name(("b",), " = 1")], limits)
    data = b'{"a":"\\u00e9\\u00e9\\u00e9"}\n\n{"b":[1,"123456"]}\n{"b":[{"\\u0005":1,"x":7}]}'
    batch, _ = encoder.ndjson(data, 5)
    assert [str(error) for error in batch.errors.values()] == [
        "line 5: the attribute 'a' is a string of 6 bytes, beyond the limit event_string_bytes = 5",
        "line 7: in an element of b: the attribute '.' is a string of 6 bytes, beyond the limit "
        "event_string_bytes = 5",
    ]


def test_arrays_that_are_full_change_nothing() -> None:
    names = ["a", folded_name("a"), "x", elements_name(("b",), " = 1"), "long name"]
    lines = [
        b'{"a":"%b","x":%d.12345678901234567,"b":[%b]}' % (b"aB" * n, n, b"1," * n + b"1")
        for n in range(0, 9_000, 300)
    ]
    check(names, [*lines, b'{"a":1', b'{"a":[]}', *lines * 20])


def test_what_the_library_reads_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kernels make of it: here they have no room for a list in an object."""
    monkeypatch.setattr("tamis.events.reader.STACK_SIZE", 4)
    names = ["a", "c", elements_name(("b",), " = 1")]
    check(names, [b'{"a":1}', b'{"a":"x","b":[1]}', b'{"a":[1]}', b'{"c":"y"}', b'{"x":[}'])


def test_threads_share_an_encoder() -> None:
    encoder = Encoder([*ASKED[1:]])
    lines = [b'{"c":%d,"b":[%d,{"a":1}],"x":"\\u00e9"}\n' % (n, n) for n in range(2_000)]
    parts = [b"".join(lines[first : first + 100]) for first in range(0, 2_000, 100)]
    once = [encoder.ndjson(part).batch for part in parts]
    with ThreadPoolExecutor(4) as pool:
        for batch, again in zip(once * 5, pool.map(encoder.ndjson, parts * 5), strict=True):
            for one, other in zip(batch[:6], again.batch[:6], strict=True):
                assert np.array_equal(one, other)


def test_a_line_as_a_mapping() -> None:
    encoder = Encoder(["a", path_name(("b", "c"))])
    assert encoder.line(b'{\n"a": 1, "x": 99999999999999999999,\n"x": 1}') == {"a": 1, "x": 1}
    for line, message in {
        b'{"a": 1, "a": 2}': "there are several attributes 'a'",
        b'{"b": {"c": 99999999999999999999}}': "the attribute 'b.c' is an oversized integer",
        b"[]": "an event is an object of names",
    }.items():
        with pytest.raises(MalformedEvent, match=message) as caught:
            encoder.line(line)
        assert caught.value.line is None
    assert ITSELF not in encoder.names
