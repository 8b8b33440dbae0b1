"""Patterns against regular expressions, and networks against the standard library."""

from __future__ import annotations

import ipaddress
import re
import time

from hypothesis import given
from hypothesis import strategies as st

from tamis.language.patterns import Networks, Pattern

PATTERNS = st.lists(st.sampled_from(["a", "b", "é", "*", "?", "\\*", "\\?", "\\\\"])).map("".join)
TEXTS = st.text(alphabet="abé*?\\", max_size=8)


def _expression(pattern: str) -> str:
    parts = re.findall(r"\\[*?\\]|.", pattern)
    meanings = {"*": ".*", "?": "."}
    return "".join(meanings.get(part) or re.escape(part[-1]) for part in parts)


@given(pattern=PATTERNS, texts=st.lists(TEXTS, max_size=20))
def test_patterns_equal_regular_expressions(pattern: str, texts: list[str]) -> None:
    expected = re.compile(_expression(pattern), re.DOTALL)
    for text in (*texts, pattern, pattern.replace("*", "ab").replace("?", "é")):
        assert Pattern(pattern).matches(text) == bool(expected.fullmatch(text)), text


def test_many_stars_take_no_exponential_time() -> None:
    pattern = Pattern("*a" * 200 + "*b")
    start = time.process_time()
    assert not pattern.matches("a" * 100_000)
    assert time.process_time() - start < 2


NETWORKS = st.one_of(
    st.builds(
        lambda address, size: ipaddress.ip_network((address, size), strict=False),
        st.integers(0, 255).map(lambda last: f"10.0.0.{last}"),
        st.integers(0, 32),
    ),
    st.builds(
        lambda address, size: ipaddress.ip_network((address, size), strict=False),
        st.integers(0, 1 << 16).map(lambda last: f"fe80::{last % 65_536:x}"),
        st.integers(0, 128),
    ),
)


@given(
    networks=st.lists(NETWORKS, max_size=9),
    addresses=st.lists(st.sampled_from(["10.0.0.7", "10.0.0.200", "fe80::7", "::", "", "x"])),
)
def test_networks(networks: list[ipaddress.IPv4Network], addresses: list[str]) -> None:
    asked = Networks({str(number): str(network) for number, network in enumerate(networks)})
    for text in addresses:
        expected = []
        if text not in ("", "x"):
            address = ipaddress.ip_address(text)
            expected = [str(n) for n, network in enumerate(networks) if address in network]
        assert sorted(asked.of(text)) == sorted(expected)
