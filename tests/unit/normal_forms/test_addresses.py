"""Addresses that may be connected to: only permitted networks. The URLs of web_fetch and the proxy
of isolated commands test the spellings of hosts."""

import pytest

from internal.normal_forms.addresses import (
    address_refusal,
    is_loopback,
    parse_host,
    parse_ip,
    reached_host,
)

NEVER = [
    *(
        "0.0.0.0",  # noqa: S104 - an address to refuse
        "0.1.2.3",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    ),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.51.100.1"),
    *("203.0.113.9", "192.88.99.1", "::", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1"),
    *("ff02::1", "fd00:ec2::254", "fd20:ce::254", "2001::1", "2001:0:53aa:64c::1", "2001:10::1"),
    *("2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "3fff::1", "64:ff9b:1::1", "100::1"),
    *("::ffff:169.254.169.254", "::ffff:0.0.0.0", "64:ff9b::169.254.169.254", "::127.0.0.1"),
    *("192.0.0.9", "192.0.0.10", "192.0.0.170", "192.88.99.255", "2001:1ff:ffff::", "2001:1::1"),
    *("2001:3::1", "2001:4:112::1", "2001:20::1", "2001:30::1", "3fff:fff:ffff::", "64:ff9b:2::"),
    *("64:ff9a:ffff::1", "::fffe:ffff:ffff", "::1:0:0:0", "::ffff:0:127.0.0.1", "::2", "fec0::1"),
    *("::ffff:127.0.0.1.", "::ffff:224.0.0.1", "::ffff:198.51.100.1", "fe00::1", "1fff::1"),
    *("5f00::1", "4000::1", "", "localhost", "127.1", "0x7f000001", "010.0.0.1"),
]

PRIVATE = [
    *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("100.64.0.1", "100.127.255.255", "198.18.0.1", "198.19.255.255", "::1", "fc00::1"),
    *("10.255.255.255", "172.31.0.1", "192.168.255.255", "64:ff9b::127.0.0.1", "fd00:ec2::253"),
    *("::ffff:a00:1", "::FFFF:7F00:1", "::ffff:198.18.0.1", "::ffff:100.64.0.1", "fcff:ffff::"),
    *("fdff::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::192.168.0.1"),
]

PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.32.0.1"),
    *("9.255.255.255", "11.0.0.0", "126.255.255.255", "128.0.0.1", "169.253.255.255"),
    *("169.255.0.0", "172.15.255.255", "191.255.255.255", "192.0.1.0", "192.0.3.0"),
    *("192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255"),
    *("198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0"),
    *("223.255.255.255", "168.63.129.15", "168.63.129.17", "1.0.0.0", "2000::", "2001:200::"),
    *("2001:db7:ffff::1", "2001:db9::", "2001:ffff::1", "2003::1", "3ffe::1", "3fff:1000::"),
    *("2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"),
]


@pytest.mark.parametrize("address", NEVER)
def test_metadata_and_reserved_addresses_are_always_refused(address: str) -> None:
    assert address_refusal(address)
    assert address_refusal(address, private=True)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused_unless_allowed(address: str) -> None:
    assert address_refusal(address)
    assert address_refusal(address, private=True) is None


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert address_refusal(address) is None


# IPv4-mapped addresses in the forms of Python 3.13 and later, and of earlier versions


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.0", True),
        ("127.0.0.1", True),
        ("127.255.255.255", True),
        ("::1", True),
        ("0:0:0:0:0:0:0:1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:7f00:1", True),
        ("::FFFF:7FFF:FFFF", True),
        ("126.255.255.255", False),
        ("128.0.0.0", False),
        ("0.0.0.0", False),  # noqa: S104 - not of this machine alone
        ("::", False),
        ("::2", False),
        ("::127.0.0.1", False),
        ("::ffff:126.255.255.255", False),
        ("::ffff:128.0.0.0", False),
        ("::ffff:0:127.0.0.1", False),
        ("64:ff9b::127.0.0.1", False),  # of the machine that translates
        ("::1%lo", False),
        ("fe80::1", False),
        ("10.0.0.1", False),
        ("127.1", False),
        ("0177.0.0.1", False),
        ("[::1]", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_loopback_addresses_are_those_of_this_machine(host: str, *, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("::ffff:a01:203", "10.1.2.3"),
        ("0:0:0:0:0:FFFF:A01:203", "10.1.2.3"),
        ("::ffff:0.0.0.0", "0.0.0.0"),  # noqa: S104 - only a spelling
        ("::ffff:255.255.255.255", "255.255.255.255"),
        ("64:ff9b::10.1.2.3", "10.1.2.3"),
        ("64:ff9b::a01:203", "10.1.2.3"),
        ("64:ff9b:1::10.1.2.3", "64:ff9b:1::10.1.2.3"),
        ("::10.1.2.3", "::10.1.2.3"),
        ("::fffe:10.1.2.3", "::fffe:10.1.2.3"),
        ("2606:4700::1111", "2606:4700::1111"),
        ("10.1.2.3", "10.1.2.3"),
        ("example.com", "example.com"),
        ("a:b", "a:b"),
    ],
)
def test_an_ipv4_address_in_an_ipv6_address_is_the_host_that_is_reached(
    host: str, reached: str
) -> None:
    assert reached_host(host) == reached


def test_an_ipv6_address_has_one_spelling() -> None:
    for text in ("::ffff:127.0.0.1", "::FFFF:7f00:1", "0:0:0:0:0:ffff:7f00:0001"):
        assert parse_host(text, bracketed=True) == "::ffff:7f00:1"
        assert str(parse_ip(text)) == "127.0.0.1"
    assert parse_host("::ffff:0.0.0.0", bracketed=True) == "::ffff:0:0"
    assert parse_host("::ffff:0.0.0.1", bracketed=True) == "::ffff:0:1"
    assert parse_host("::ffff:1.0.0.0", bracketed=True) == "::ffff:100:0"
    assert parse_host("64:ff9b::10.1.2.3", bracketed=True) == "64:ff9b::a01:203"
    assert parse_host("2606:4700:0::1111", bracketed=True) == "2606:4700::1111"
