"""Addresses that may be connected to: only permitted networks. The URLs of web_fetch and the proxy
of isolated commands test the spellings of hosts."""

import pytest

from internal.agent.domain.permissions.addresses import address_refusal

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
    *("5f00::1", "4000::1", "", "localhost", "127.1", "0x7f000001", "010.0.0.1"),
]

PRIVATE = [
    *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("100.64.0.1", "100.127.255.255", "198.18.0.1", "198.19.255.255", "::1", "fc00::1"),
    *("fdff::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::192.168.0.1"),
]

PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.32.0.1"),
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
