"""``EventMatcher.open``: events are matched by subscriptions that a folder keeps."""

from pathlib import Path

import pytest

import tamis
from tamis.core.errors import StoreError, UsageError
from tamis.events import EventSubscriptions
from tamis.events import live as live_module

EVENT = {"a": 1, "b": "xyz", "c": 2.5}


@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_folder_keeps_subscriptions_and_interfaces(tmp_path: Path, is_compacted: bool) -> None:
    with tamis.EventMatcher.open(tmp_path, limits=tamis.Limits(event_attributes=5)) as live:
        live.add_many({"x": "a = 1", 1: 'b in ("q", "xyz")', "gone": "c > 2"})
        live.update(EventSubscriptions({"x": "a >= 1", 7: "c < 3"}, interfaces={"x": "i", 7: "i"}))
        if is_compacted:
            live.compact()
        live.remove("gone")
        live.add("1", 'b contains "y" or d exists', durable=True)
    for _ in range(2):
        with tamis.EventMatcher.open(tmp_path) as live:
            assert live.ids == (1, "x", 7, "1")
            assert list(live.match(EVENT)) == [1, "x", 7, "1"]
            assert set(live.match(EVENT, by="interface")) == {1, "i", "1"}
            assert live.get(1) == 'b in ("q", "xyz")'
            assert live.snapshot().limits == tamis.Limits(event_attributes=5)
            if is_compacted:
                live.compact()
    with pytest.raises(UsageError, match="it was made with engine='auto', not 'reference'"):
        tamis.EventMatcher.open(tmp_path, engine="reference")
    with pytest.raises(StoreError, match="its subscriptions are of the kind 'events'"):
        tamis.Matcher.open(tmp_path)


def test_a_segment_of_another_version_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tamis.EventMatcher.open(tmp_path) as live:
        live.add_many({n: f"a = {n}" for n in range(200)})
        live.compact()
    monkeypatch.setattr(live_module, "_VERSION", 99)
    with tamis.EventMatcher.open(tmp_path) as live:
        assert list(live.match({"a": 7})) == [7]


def test_damage_is_told(tmp_path: Path) -> None:
    with tamis.EventMatcher.open(tmp_path) as live:
        live.add_many({n: f"a = {n}" for n in range(200)})
        live.compact()
    (segment,) = tmp_path.glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with pytest.raises(StoreError, match="segment"):
        tamis.EventMatcher.open(tmp_path)


def test_what_can_no_longer_be_read_is_told(tmp_path: Path) -> None:
    for number, written in enumerate(('"a ="', '["a =", "i"]')):
        with tamis.EventMatcher.open(tmp_path / str(number)) as live:
            live._write(f'[["x", {written}]]')  # as a Tamis that took it would
        with pytest.raises(StoreError, match="subscription 'x': expected"):
            tamis.EventMatcher.open(tmp_path / str(number))
