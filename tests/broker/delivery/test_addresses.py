"""The guard: tables of spellings and of addresses."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from tamis.broker.delivery.addresses import AddressGuard, EndpointRefused

STRICT = AddressGuard(is_http_allowed=True)

KINDS = {
    "an unspecified address": "0.0.0.0 0.255.255.255 ::",
    "a loopback address": "127.0.0.1 127.255.255.254 ::1",
    "a private address": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd12::1 fec0::1",
    "a shared address of a carrier": "100.64.0.1 100.127.255.255",
    "a link-local address": "169.254.0.1 169.254.170.2 fe80::1 febf::1",
    "a cloud metadata address": "169.254.169.254 168.63.129.16 100.100.100.200 fd00:ec2::254",
    "a documentation address": "192.0.2.1 198.51.100.1 203.0.113.9 2001:db8::1 3fff::1",
    "a benchmarking address": "198.18.0.1 198.19.255.255 2001:2::1",
    "a multicast address": "224.0.0.1 239.255.255.255 ff02::1 ff0e::1",
    "a reserved address": "192.0.0.1 240.0.0.1 255.255.255.255 100::1 2001:10::1 2001:20::1 4000::1"
    " 5f00::1 3ffe::1 ::1:0:0:0:0 fe00::1",
    "an IPv4-mapped address": "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:8.8.8.8",
    "an IPv4-translated address": "::ffff:0:127.0.0.1 ::ffff:0:8.8.8.8",
    "an IPv4-compatible address": "::127.0.0.1 ::8.8.8.8 ::2",
    "a NAT64 address": "64:ff9b::a00:1 64:ff9b::8.8.8.8 64:ff9b:1::1 64:ff9b:1:ffff::1",
    "a 6to4 address": "2002:7f00:1:: 2002:808:808::1 192.88.99.1",
    "a Teredo address": "2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2",
}
PUBLIC = """1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255
128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255
192.169.0.0 198.17.255.255 198.20.0.0 203.0.114.0 223.255.255.255 2606:4700::1111
2001:4860:4860::8888 2001:200::1 2a00::1 3ffd::1 2003::1"""


@pytest.mark.parametrize(
    ("address", "kind"), [(a, kind) for kind, every in KINDS.items() for a in every.split()]
)
def test_addresses_that_are_not_globally_routable(address: str, kind: str) -> None:
    parsed = ip_address(address)
    assert STRICT.refusal(parsed) == f"{parsed} is {kind}"
    url = f"https://[{address}]/" if ":" in address else f"https://{address}/"
    with pytest.raises(EndpointRefused, match=f"is {kind}"):
        STRICT.endpoint(url)
    with pytest.raises(EndpointRefused, match=f"is {kind}"):
        STRICT.permitted(["1.1.1.1", address])


@pytest.mark.parametrize("address", PUBLIC.split())
def test_addresses_that_are(address: str) -> None:
    assert STRICT.refusal(ip_address(address)) is None
    assert STRICT.permitted([address, address]) == [ip_address(address)]


def test_a_name_without_addresses() -> None:
    assert STRICT.permitted([]) == []


@pytest.mark.parametrize(
    ("allowed", "address", "is_permitted"),
    [
        ("127.0.0.0/8", "127.0.0.1", True),
        ("127.0.0.0/8", "10.0.0.1", False),
        ("::1/128", "::1", True),
        ("fd00::/8", "fd00::1", True),
        ("fd00::/8", "127.0.0.1", False),
        # an address that holds another needs both permissions
        ("127.0.0.0/8", "::ffff:127.0.0.1", False),
        ("::ffff:0:0/96", "::ffff:127.0.0.1", False),
        ("::ffff:0:0/96 127.0.0.0/8", "::ffff:127.0.0.1", True),
        ("::ffff:0:0/96", "::ffff:8.8.8.8", True),
        ("64:ff9b::/96", "64:ff9b::8.8.8.8", True),
        ("64:ff9b::/96", "64:ff9b::10.0.0.1", False),
        ("64:ff9b::/96", "64:ff9b::169.254.169.254", False),
        ("10.0.0.0/8", "64:ff9b::10.0.0.1", False),
        ("64:ff9b::/96 10.0.0.0/8", "64:ff9b::10.0.0.1", True),
        ("64:ff9b:1::/48", "64:ff9b:1::8.8.8.8", False),
        ("2002::/16", "2002:a00:1::1", False),
        ("2002::/16", "2002:808:808::1", True),
        ("2001::/32", "2001:0:0a00:0001:0:0:f7f7:f7f7", False),  # the server is 10.0.0.1
        ("2001::/32", "2001:0:0808:0808:0:0:f5ff:fffe", False),  # the client is 10.0.0.1
        ("2001::/32", "2001:0:0808:0808:0:0:f7f7:f7f7", True),
        ("::/0", "::1", True),
        ("::/0", "::", True),
        ("::/0", "::127.0.0.1", False),
        ("::/0", "::ffff:127.0.0.1", False),
        ("::/0", "::ffff:0:127.0.0.1", False),
        ("::/0", "2a00::5efe:10.0.0.1", False),
        ("2a00::/16", "2a00::200:5efe:10.0.0.1", False),
        ("2a00::/16", "2a00::5efe:8.8.8.8", True),
        ("0.0.0.0/0", "169.254.169.254", True),
    ],
)
def test_what_an_operator_allows(allowed: str, address: str, is_permitted: bool) -> None:
    guard = AddressGuard(tuple(map(ip_network, allowed.split())))
    assert (guard.refusal(ip_address(address)) is None) == is_permitted


SPELLINGS = {
    "127.0.0.1": "127.0.0.1 127.0.0.1. 0x7f.1 2130706433 0177.0.0.1 0x7F000001 017700000001 127.1"
    " 127.0.1 0x7f.0.0x0.01 00000177.0.0.1 0X7F.0.0.1 １２７.０.０.１ 127。0。0。1"
    " ①②⑦.⓪.⓪.① 127.0.0.1。",
    "0.0.0.0": "0 0x0 0.0 00 0.0.0.0",
    "169.254.169.254": "2852039166 0xA9FEA9FE 0251.0376.0251.0376 169.254.43518",
    "::1": "[::1] [0:0:0:0:0:0:0:1] [0000::0001] [::0.0.0.1]",
    "::ffff:7f00:1": "[::ffff:127.0.0.1] [::FFFF:7F00:1]",
}


@pytest.mark.parametrize(
    ("host", "address"), [(host, a) for a, every in SPELLINGS.items() for host in every.split()]
)
@pytest.mark.parametrize("port", ["", ":443", ":8080"])
def test_spellings_of_addresses_are_recognised(host: str, address: str, port: str) -> None:
    with pytest.raises(EndpointRefused, match="is a") as caught:
        STRICT.endpoint(f"https://{host}{port}/x")
    assert ip_address(str(caught.value).split()[0]) == ip_address(address)


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.com.:00443/A?b=%20#c", "https://example.com/A?b=%20"),
        ("https://example.com?a=1", "https://example.com/?a=1"),
        ("https://example.com#@127.0.0.1", None),
        ("http://example.com:80/", "http://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://example.com:8443/@a:b//c", "https://example.com:8443/@a:b//c"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://EXAMPLE。com/", "https://example.com/"),
        ("https://a_b.example/", "https://a_b.example/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://0x8080808/", "https://8.8.8.8/"),
        ("https://[2606:4700:0::1111]:8443/", "https://[2606:4700::1111]:8443/"),
        ("https://0x.example/", "https://0x.example/"),
        ("https://1.2.3.4.example/", "https://1.2.3.4.example/"),
    ],
)
def test_urls_and_their_canonical_form(url: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(EndpointRefused, match="not a URL"):
            STRICT.endpoint(url)
    else:
        assert STRICT.endpoint(url).url == canonical
        assert STRICT.endpoint(canonical).url == canonical


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "begin with https"),
        ("example.com", "begin with https"),
        ("//example.com/", "begin with https"),
        ("ftp://example.com/", "begin with https"),
        ("file:///etc/passwd", "begin with https"),
        (" https://example.com/", "begin with https"),
        ("httpſ://example.com/", "begin with https"),
        ("https:/example.com/", "begin with https"),
        ("https:example.com/", "begin with https"),
        ("https:///example.com/", "not a URL"),
        ("https://", "not a URL"),
        ("https://:443/", "not a URL"),
        ("https://example.com:/", "not a URL"),
        ("https://example.com:0/", "port 0"),
        ("https://example.com:22/", "port 22"),
        ("https://example.com:25/", "port 25"),
        ("https://example.com:65536/", "port 65536"),
        ("https://example.com:99999999/", "not a URL"),
        ("https://example.com:+443/", "not a URL"),
        ("https://example.com:٤٤٣/", "not a URL"),
        ("https://user@example.com/", "user name"),
        ("https://user:pw@example.com/", "user name"),
        ("https://example.com:80@127.0.0.1/", "user name"),
        ("https://example.com\\@127.0.0.1/", "user name"),
        ("https://example.com\\127.0.0.1/", "not a URL"),
        ("https://127.0.0.1\\.example.com/", "not a URL"),
        ("https://example.com /", "not a URL"),
        ("https://example.com/a b", "not a URL"),
        ("https://example.com/\r\nHost: a", "not a URL"),
        ("https://exam\tple.com/", "not a URL"),
        ("https://example.com/\n", "not a URL"),
        ("https://example.com/é", "write other characters as %XX"),
        ("https://%31%32%37.0.0.1/", "not a URL"),
        ("https://127.0.0.1%00.example.com/", "not a URL"),
        ("https://127.0.0.1\x00.example.com/", "not the name of a host"),
        ("https://[::1%25eth0]/", "not a URL"),
        ("https://[fe80::1%eth0]/", "not a URL"),
        ("https://[v1.a]/", "not a URL"),
        ("https://[::1/", "not a URL"),
        ("https://[::1].example.com/", "not a URL"),
        ("https://[127.0.0.1]/", "not an IPv6 address"),
        ("https://[::1]127.0.0.1/", "not a URL"),
        ("https://256.0.0.1/", "not an IPv4 address"),
        ("https://1.2.3.4.5/", "not an IPv4 address"),
        ("https://0x100000000/", "not an IPv4 address"),
        ("https://4294967296/", "not an IPv4 address"),
        ("https://08.0.0.1/", "not an IPv4 address"),
        ("https://example.0x1/", "not an IPv4 address"),
        ("https://example.1/", "not an IPv4 address"),
        ("https://example..com/", "not the name of a host"),
        ("https://example.com../", "not the name of a host"),
        ("https://127.0.0.1../", "not the name of a host"),
        ("https://.example.com/", "not the name of a host"),
        ("https://./", "not the name of a host"),
        ("https://-a.example/", "not the name of a host"),
        ("https://a!.example/", "not the name of a host"),
        ("https://" + "a" * 64 + ".example/", "not the name of a host"),
        ("https://" + "a." * 130 + "example/", "not the name of a host"),
        ("https://\u2100.example/", "not the name of a host"),  # ℀ becomes a/c
        ("https://example.com\uff0f.evil.example/", "not the name of a host"),  # a full-width /
        ("https://127.0.0.1\uff20example/", "not the name of a host"),  # a full-width @
        ("https://\u00ad/", "not the name of a host"),
        ("https://example.com/" + "a" * 2_048, "2068 characters"),
    ],
)
def test_urls_that_are_refused(url: str, message: str) -> None:
    with pytest.raises(EndpointRefused, match=message):
        STRICT.endpoint(url)


def test_http_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(EndpointRefused, match="use https"):
        AddressGuard().endpoint("http://example.com/")
