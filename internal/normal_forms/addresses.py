"""Host names and numeric addresses: one spelling, and the rules for connections to them.

All decisions over addresses are made here. The properties of `ipaddress`, such as `is_private` and
`is_loopback`, are not used: their meaning and the spelling of ::ffff:127.0.0.1 depend on the Python
version.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")


def parse_host(host: str, *, bracketed: bool) -> str:
    """Return the canonical form of a host name or address: ASCII, or an IP address.

    Raises:
        ValueError: there is none, as for 0x7f.1, 2130706433, 0177.0.0.1 and fe80::1%eth0.
    """
    if bracketed:
        try:
            return _spelled(IPv6Address(host if "%" not in host else ""))
        except ValueError as error:
            raise ValueError(f"[{host}] is not an IPv6 address") from error
    try:
        # nameprep folds wide and circled characters, as a resolver does
        name = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError as error:
        raise ValueError(f"{host!r} is not a host name") from error
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):  # WHATWG URL: a host that ends in a number is an address
        try:
            return str(IPv4Address(name))
        except ValueError as error:
            raise ValueError(
                f"{host} is an odd spelling of an address: write it plainly"
            ) from error
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{host!r} is not a host name")
    return name


def _spelled(address: IPv6Address) -> str:
    # Python writes ::ffff:7f00:1 before 3.13, and ::ffff:127.0.0.1 since then
    if address not in _MAPPED:
        return str(address)
    low = int(address) & 0xFFFFFFFF
    return f"::ffff:{low >> 16:x}:{low & 0xFFFF:x}"


Address = IPv4Address | IPv6Address

_LOOPBACK4 = IPv4Network("127.0.0.0/8")
_LOOPBACK6 = IPv6Address("::1")
_PRIVATE4 = tuple(
    IPv4Network(block)
    for block in (
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarking; fake addresses of local proxies
    )
)
_FORBIDDEN4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this host
        "100.100.100.200/32",  # metadata: Alibaba Cloud
        "168.63.129.16/32",  # metadata: Azure; the block itself is public
        "169.254.0.0/16",  # link-local, and metadata of nearly all others
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_PRIVATE6 = (IPv6Network("::1/128"), IPv6Network("fc00::/7"))
_FORBIDDEN6 = tuple(
    IPv6Network(block)
    for block in (
        "fd00:ec2::254/128",  # metadata: AWS
        "fd20:ce::254/128",  # metadata: Google Cloud
        "2001::/23",  # Teredo, ORCHID and other protocols
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",
    )
)
_PUBLIC6 = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")


def parse_ip(text: str) -> Address:
    """Return a numeric address; ::ffff:127.0.0.1, the IPv6 form of an IPv4 address, is the latter.

    Raises:
        ValueError: the text is not an address.
    """
    address = ip_address(text)
    return _embedded(address) if address in _MAPPED else address


def _embedded(address: Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


def reached_host(host: str) -> str:
    """Return the IPv4 address that an IPv6 address leads to, directly or by NAT64, else the host.

    Rules are matched with the result: two spellings of a host are never two hosts.
    """
    if ":" not in host:
        return host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(_embedded(address)) if address in _MAPPED or address in _NAT64 else host


def is_loopback(host: str) -> bool:
    """Return True if a host is this machine: localhost, or an address of 127.0.0.0/8 or ::1."""
    try:
        address = parse_ip(host)
    except ValueError:
        return host == "localhost"
    return address == _LOOPBACK6 or address in _LOOPBACK4


def address_refusal(text: str, *, private: bool = False) -> str | None:
    """Return why an address may not be connected to, None if it may.

    Args:
        text: a numeric address, as returned by a resolver.
        private: allow this machine and private networks. Link-local, metadata, multicast and
            reserved addresses are never allowed.
    """
    try:
        address = ip_address(reached_host(text))
    except ValueError:
        return f"{text} is not an address"
    kind = _classify_v6(address) if isinstance(address, IPv6Address) else _classify_v4(address)
    if kind is None or (private and kind == "private"):
        return None
    return (
        f"{address} is not a public address" if kind == "private" else f"{address} is never fetched"
    )


def _classify_v4(address: IPv4Address) -> str | None:
    if any(address in block for block in _FORBIDDEN4):
        return "never"
    return "private" if any(address in block for block in _PRIVATE4) else None


def _classify_v6(address: IPv6Address) -> str | None:
    if address.scope_id is not None or any(address in block for block in _FORBIDDEN6):
        return "never"
    if any(address in block for block in _PRIVATE6):
        return "private"
    return None if address in _PUBLIC6 else "never"
