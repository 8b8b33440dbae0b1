"""Internet addresses and networks as strings of bits: an address is in a network that begins it.

The first character is the version, 4 or 6; behind it are the bits, 0 or 1.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def network_bits(text: str) -> str:
    """The bits that all addresses of a network begin with.

    Raises ``ValueError`` for what is no network; ``network_instead`` is what to write.

    >>> network_bits("10.0.0.0/8"), network_bits("::/0"), network_bits("1.2.3.4")[:9]
    ('400001010', '6', '400000001')
    >>> network_bits("10.1.0.0/8")
    Traceback (most recent call last):
    ValueError: 10.1.0.0/8 has host bits set
    """
    network = ipaddress.ip_network(text)
    return _bits(network.network_address)[: 1 + network.prefixlen]


@lru_cache(1 << 12)
def address_bits(text: str) -> str | None:
    """The bits of an address; None of a string that is none.

    >>> address_bits("10.1.2.3").startswith(network_bits("10.0.0.0/8")), address_bits("x")
    (True, None)
    """
    if len(text) > _ADDRESS_MAX:
        return None
    try:
        return _bits(ipaddress.ip_address(text))
    except ValueError:
        return None


def print_network(bits: str) -> str:
    """A network as it is written.

    >>> print_network(network_bits("10.0.0.0/8")), print_network(network_bits("fe80::/10"))
    ('10.0.0.0/8', 'fe80::/10')
    """
    version, own = bits[0], bits[1:]
    size = 32 if version == "4" else 128
    number = int(own.ljust(size, "0"), 2)
    kind = ipaddress.IPv4Network if version == "4" else ipaddress.IPv6Network
    return str(kind((number, len(own))))


_ADDRESS_MAX = 100
"""The characters of an address, at most; an IPv6 one may have the name of an interface."""


def _bits(address: _Address) -> str:
    return f"{address.version}{int(address):0{address.max_prefixlen}b}"


def network_instead(text: str) -> str:
    """What to write instead of a text that is no network: the one that it is in, or examples.

    >>> network_instead("10.1.0.0/8"), network_instead("x")
    ('write "10.0.0.0/8"', 'write "10.0.0.0/8", or "fe80::/10"')
    """
    try:
        return f'write "{ipaddress.ip_network(text, strict=False)}"'
    except ValueError:
        return 'write "10.0.0.0/8", or "fe80::/10"'
