"""What a user reads about transformations that cannot be used, and how others are read.

``flwr_errors.txt`` is as ``errors.txt``: ``TAMIS_WRITE_GOLDEN=1`` writes the present messages.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.errors import SubscriptionError, SubscriptionLimitError, TamisError
from tamis.core.limits import Limits
from tamis.language.flwr import parse_transformation, read_transformations
from tamis.language.flwr.model import Constructor, Enclosed, ReturnPath

GOLDEN = Path(__file__).with_name("flwr_errors.txt")


def blocks() -> list[tuple[str, str]]:
    text = GOLDEN.read_text(encoding="utf-8")
    pairs = [block.partition("\n") for block in text.strip("\n").split("\n\n")]
    return [(first.removeprefix("> "), rest) for first, _, rest in pairs]


def refusal(text: str) -> SubscriptionError | None:
    """Why a text is refused, or None."""
    try:
        parse_transformation(text)
    except SubscriptionError as error:
        return error
    return None


def test_whole_messages() -> None:
    found = []
    for text, _ in blocks():
        with pytest.raises(SubscriptionError) as caught:
            parse_transformation(text)
        found.append((text, f"{caught.value.code}: {caught.value}"))
    assert len(found) >= 40
    if os.environ.get("TAMIS_WRITE_GOLDEN"):
        GOLDEN.write_text("\n\n".join(f"> {e}\n{m}" for e, m in found) + "\n", encoding="utf-8")
    assert found == blocks()


def test_model() -> None:
    text = "<r><h/>{ for $b in //b return <i k='{ $b/@k }'> x { $b/c, count($b/d) }{{ </i> }</r>"
    found = parse_transformation(text)
    assert isinstance(found.element.content[0], Constructor)
    (item,) = found.flwr.result
    assert isinstance(item, Constructor)
    before, enclosed, behind = item.content
    assert (before, behind) == (" x ", "{ ")
    assert isinstance(enclosed, Enclosed)
    assert isinstance(enclosed.items[0], ReturnPath)
    assert found.flwr.are_read == (True, False, False)
    assert parse_transformation(text.replace("$b", "$x")) == found


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(subscription_chars=20), "subscription_chars"),
        (Limits(subscription_nesting=2), "subscription_nesting"),
        (Limits(subscription_steps=3), "subscription_steps"),
        (Limits(subscription_predicates=1), "subscription_predicates"),
    ],
)
def test_limits(limits: Limits, name: str) -> None:
    text = "<r>{ for $b in /a/b where $b/c = 1 and $b/d = 2 return <x><y>{ $b/e/f }</y></x> }</r>"
    with pytest.raises(SubscriptionLimitError, match=name):
        parse_transformation(text, limits=limits)


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * 20_000,
        "<r>{ for $b in //a return " + "(" * 20_000,
        "<r>{ for $b in //a where " + "(" * 20_000,
        "(:" * 30_000,
        "<r>{ for $b in //a return <x>" + "{ $b }" * 8_000 + "</x> }</r>",
        "<r a='" + "{{" * 30_000 + "'/>",
        "<r>{ for $b in //a where " + " and ".join(["$b/c = 'x'"] * 900) + " return $b }</r>",
    ],
)
def test_long_and_deep_ones_take_no_time(text: str) -> None:
    start = time.process_time()
    with suppress(SubscriptionError):
        parse_transformation(text)
    assert time.process_time() - start < 5  # a second; minutes, where it is quadratic


_PIECES = st.sampled_from(
    "<r> </r> <r/> { } {{ }} for $b in //a /a where return order by , ( ) $b/c $b $c = 'x' \" ' & "
    "&lt; <!-- --> <![CDATA[ ]]> <?p ?> (: :) @k [ ] count sum text() declare namespace p ; let "
    "xmlns='u' <x k=' and or not( 1 * . .. :: : é \r\n \t ; if".split(" ")
)


@given(st.lists(_PIECES, max_size=30).map(" ".join))
def test_soup_is_read_or_refused(text: str) -> None:
    for whole in (text, f"<r>{{ for $b in //a return {text} }}</r>"):
        error = refusal(whole)
        assert error is None or error.position is None or 0 <= error.position <= len(whole)
        assert error is None or str(error)


def test_the_line_of_an_error() -> None:
    error = refusal("<r>{\n  for $b in //b\n  return $i/@id }</r>")
    assert str(error) == (
        "the variable $i is not bound: only $b is (line 3 of its text)\n"
        "    return $i/@id }</r>\n"
        "           ^"
    )


def test_files(tmp_path: Path) -> None:
    good = "<r>{ for $b in //b return $b }</r>"
    (tmp_path / "b.xq").write_text(good)
    (tmp_path / "a.xq").write_bytes(b"\xef\xbb\xbf" + good.encode())
    (tmp_path / "c.xq").write_bytes(b"\xff")
    (tmp_path / "d.txt").write_text("no")
    (tmp_path / "folder.xq").mkdir()
    found = read_transformations([tmp_path])
    assert list(found.transformations) == ["a", "b"]
    assert [(bad.file.name, bad.error.id) for bad in found.refused] == [("c.xq", "c")]
    lines = tmp_path / "x.ndjson"
    rows = [f'{{"id": 1, "query": "{good}"}}', "", "[]", f'{{"id": 1, "query": "{good}"}}', "{"]
    lines.write_text("\n".join(rows))
    found = read_transformations([lines])
    assert list(found.transformations) == [1]
    assert [bad.error.line for bad in found.refused] == [3, 4, 5]
    (tmp_path / "e.xquery").write_text(good)
    found = read_transformations([tmp_path / "b.xq", tmp_path / "e.xquery", tmp_path / "a.xq"])
    assert list(found.transformations) == ["b", "e", "a"]
    found = read_transformations([tmp_path / "b.xq", tmp_path])
    assert [str(bad.error) for bad in found.refused][:1] == [
        "subscription 'b': the id is used twice: ids must be unique"
    ]
    for missing in (tmp_path / "none", tmp_path / "empty", tmp_path / "d.txt"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(TamisError):
            read_transformations([missing])
