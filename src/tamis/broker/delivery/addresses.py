"""``AddressGuard``: which URLs and IP addresses a webhook may call.

Subscribers choose the URLs. The broker often runs where it can reach databases, metadata services
and itself. The guard therefore refuses every address that is not globally routable (this prevents
server-side request forgery, SSRF). A check of the URL alone is not enough: a name can get another
address after the check. The sender therefore checks the addresses, and connects to these alone.

The lists below follow the IANA registries of special-purpose addresses. The functions of
:mod:`ipaddress` do not replace them: their answers differ between versions of Python.

The guard does not know the public addresses that belong to the operator, or a NAT64 prefix that a
network chose itself. Where these lead to internal services, a firewall has to stop the broker.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple, TypeAlias

import idna

from tamis.core.errors import UsageError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_KINDS: tuple[tuple[str, str], ...] = (  # the first that holds the address says its kind
    ("a cloud metadata address", "169.254.169.254 168.63.129.16 100.100.100.200 192.0.0.192"),
    ("a cloud metadata address", "fd00:ec2::254 fd20:ce::254 fd00:c1::a9fe:a9fe"),
    ("an unspecified address", "0.0.0.0/8 ::"),
    ("a loopback address", "127.0.0.0/8 ::1"),
    ("a private address", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10"),
    ("a shared address of a carrier", "100.64.0.0/10"),
    ("a link-local address", "169.254.0.0/16 fe80::/10"),
    ("a documentation address", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24"),
    ("a documentation address", "2001:db8::/32 3fff::/20"),
    ("a benchmarking address", "198.18.0.0/15 2001:2::/48"),
    ("a multicast address", "224.0.0.0/4 ff00::/8"),
    ("an IPv4-mapped address", "::ffff:0:0/96"),
    ("an IPv4-translated address", "::ffff:0:0:0/96"),
    ("an IPv4-compatible address", "::/96"),
    ("a NAT64 address", "64:ff9b::/96 64:ff9b:1::/48"),
    ("a 6to4 address", "2002::/16 192.88.99.0/24"),
    ("a Teredo address", "2001::/32"),
    ("a reserved address", "192.0.0.0/24 240.0.0.0/4 2001::/23 3ffe::/16"),
)
_REFUSED = [(ip_network(each), kind) for kind, networks in _KINDS for each in networks.split()]
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_IPV4_LAST = [
    IPv6Network(each) for each in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
]

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[^][/?#@:%\\\s]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>[/?][A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*)?",
    re.ASCII | re.IGNORECASE,
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_URL_MAX, _HOST_MAX = 2_048, 253
_PORTS = {"https": 443, "http": 80}


class EndpointRefused(UsageError):  # noqa: N818 - says what happened
    """A webhook may not call this URL or this address."""

    code = "webhook-endpoint"


class Endpoint(NamedTuple):
    """A URL that may be called, if its addresses may.

    Attributes:
        url: in canonical form: its host is a lower-case ASCII name or a canonical address, its port
            is left out if it is that of the scheme, and it has no fragment.
        host: without the brackets of an IPv6 address.
        port: from 1 to 65535.
    """

    url: str
    host: str
    port: int


class AddressGuard(NamedTuple):
    """Which URLs and addresses may be called.

    Attributes:
        allowed: networks that may be called although they are not globally routable.
        is_http_allowed: whether URLs may begin with ``http://``.

    >>> guard = AddressGuard()
    >>> guard.endpoint("https://Example.com:443/hook#top")
    Endpoint(url='https://example.com/hook', host='example.com', port=443)
    >>> guard.refusal(ip_address("10.0.0.1"))
    '10.0.0.1 is a private address'
    >>> guard.endpoint("https://0x7f.1/")
    Traceback (most recent call last):
    tamis.broker.delivery.addresses.EndpointRefused: 127.0.0.1 is a loopback address
    """

    allowed: tuple[Network, ...] = ()
    is_http_allowed: bool = False

    def endpoint(self, url: str) -> Endpoint:
        """Checks a URL and returns its canonical form. This does not look the name up.

        Raises:
            EndpointRefused: no webhook may call the URL. The message says what to change.
        """
        found = _URL.fullmatch(url) if len(url) <= _URL_MAX else None
        if found is None:
            raise EndpointRefused(_fault(url))
        scheme = found["scheme"].lower()
        if scheme == "http" and not self.is_http_allowed:
            raise EndpointRefused("http is not allowed: use https, or ask the operator to allow it")
        port = int(found["port"] or _PORTS[scheme])
        if not (port in _PORTS.values() or 1_024 <= port <= 65_535):
            raise EndpointRefused(f"port {port} is not allowed: use 80, 443, or 1024 to 65535")
        host = _host(found["host"])
        if not isinstance(host, str) and (refusal := self.refusal(host)):
            raise EndpointRefused(refusal)
        shown = f"[{host}]" if isinstance(host, IPv6Address) else str(host)
        if port != _PORTS[scheme]:
            shown += f":{port}"
        path = (found["rest"] or "").partition("#")[0]
        path = path if path.startswith("/") else f"/{path}"
        return Endpoint(f"{scheme}://{shown}{path}", str(host), port)

    def refusal(self, address: Address) -> str | None:
        """Says why an address may not be called; None if it may.

        An IPv6 address can hold an IPv4 address (IPv4-mapped, NAT64, 6to4, Teredo, ISATAP). Such an
        address needs two permissions. ``allowed`` must contain it, since whoever translates it may
        be in another network, where 127.0.0.1 is another host. And the IPv4 address must be one
        that may be called: who allows 64:ff9b::/96 does not allow 10.0.0.1 by it.

        Addresses in 64:ff9b:1::/48 are refused even if they are allowed: each network chooses where
        they hold the IPv4 address, so this address cannot be checked.
        """
        kind = _kind(address)
        is_allowed = any(address in each for each in self.allowed) and address not in _LOCAL_NAT64
        if kind is not None and not is_allowed:
            return f"{address} is {kind}"
        held = _held(address) if isinstance(address, IPv6Address) else ()
        return next(filter(None, map(self.refusal, held)), None)

    def permitted(self, addresses: Iterable[str]) -> list[Address]:
        """Returns the addresses of a name, if all of them may be called.

        One refused address refuses the name. To skip it would be no less safe for this connection,
        but the outcome would then depend on which addresses answer. A name of a public service has
        no private address: the name is wrong or an attack, and its owner should see this at once.

        Raises:
            EndpointRefused: an address may not be called.
        """
        found = [ip_address(each) for each in dict.fromkeys(addresses)]
        for address in found:
            if refusal := self.refusal(address):
                raise EndpointRefused(refusal)
        return found


def _kind(address: Address) -> str | None:
    """What makes an address one that is not globally routable; None if it is."""
    for network, kind in _REFUSED:
        if address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6:
        return "a reserved address"
    return None


def _held(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 address holds."""
    if address.teredo:
        return address.teredo
    if address.sixtofour:
        return (address.sixtofour,)
    number = int(address)
    is_isatap = (number >> 32) & 0xFDFF_FFFF == 0x5EFE
    if number > 1 and (is_isatap or any(address in each for each in _IPV4_LAST)):
        return (IPv4Address(number & 0xFFFF_FFFF),)
    return ()


def _host(text: str) -> str | Address:
    """The host of a URL: a lower-case ASCII name, or an address in whatever form it is written.

    A host whose last part is a number is an IPv4 address, as in browsers. ``inet_aton`` reads it as
    resolvers would: ``0x7f.1``, ``2130706433`` and ``0177.0.0.1`` are all 127.0.0.1.
    """
    if text.startswith("["):
        try:
            return IPv6Address(text[1:-1])
        except ValueError:
            raise EndpointRefused(f"{text} is not an IPv6 address") from None
    try:
        name = text if text.isascii() else idna.encode(text, uts46=True, std3_rules=True).decode()
    except idna.IDNAError:
        raise EndpointRefused(f"{text!a} is not the name of a host") from None
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return IPv4Address(socket.inet_aton(name))
        except OSError:
            raise EndpointRefused(f"{name} is not an IPv4 address") from None
    if len(name) > _HOST_MAX or not all(map(_LABEL.fullmatch, labels)):
        raise EndpointRefused(f"{text!a} is not the name of a host")
    return name


def _fault(url: str) -> str:
    """What is wrong with a text that is not a URL for webhooks, and what to do."""
    if len(url) > _URL_MAX:
        return f"the URL has {len(url)} characters: use {_URL_MAX} at most"
    if not url.lower().startswith(("https://", "http://")):
        return "the URL does not begin with https://"
    if "@" in re.split(r"[/?#]", url, maxsplit=3)[2]:
        return "the URL has a user name: remove it, and send credentials in a header"
    return "this is not a URL: use https://host/path, and write other characters as %XX"
