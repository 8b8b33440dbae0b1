"""Networks as strings of bits, against the standard library."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.networks import address_bits, network_bits, network_instead, print_network

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
    addresses=st.lists(
        st.sampled_from(
            ["10.0.0.7", "10.0.0.200", "fe80::7", "FE80::7%eth0", "::", "::ffff:10.0.0.7"]
        )
    ),
)
def test_networks(networks: list[ipaddress.IPv4Network], addresses: list[str]) -> None:
    for text in addresses:
        bits = address_bits(text)
        assert bits is not None
        for network in networks:
            is_inside = ipaddress.ip_address(text) in network
            assert bits.startswith(network_bits(str(network))) == is_inside


@given(network=NETWORKS)
def test_networks_are_written(network: ipaddress.IPv4Network) -> None:
    assert print_network(network_bits(str(network))) == str(network)


@pytest.mark.parametrize(
    "text", ["", "x", "10.0.0", "10.0.0.1/8", "1" * 1_000, "10.0.0.256", "1:2"]
)
def test_what_is_no_address(text: str) -> None:
    assert address_bits(text) is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [("10.1.0.0/8", 'write "10.0.0.0/8"'), ("x", 'write "10.0.0.0/8", or "fe80::/10"')],
)
def test_what_is_no_network(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        network_bits(text)
    assert network_instead(text) == hint
