"""Which internet addresses a fetch may go to.

Denied is what the IANA special-purpose registries keep from the public internet
(https://www.iana.org/assignments/iana-ipv4-special-registry, …ipv6…), and the addresses at which
clouds serve credentials. IPv6 is turned round: only 2000::/3 is public, less its special parts.
An IPv4 address inside an IPv6 one is judged as what it is.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

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
_NEVER4 = tuple(
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
_NEVER6 = tuple(
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


def refusal(text: str, *, private: bool = False) -> str | None:
    """Say why an address may not be connected to; None when it may.

    Args:
        text: a numeric address, as a resolver gives it.
        private: whether addresses of this machine and its networks are allowed; never allowed
            are link-local, metadata, multicast and reserved ones.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return f"{text} is not an address"
    if isinstance(address, IPv6Address):
        if address in _MAPPED or address in _NAT64:
            return refusal(str(IPv4Address(int(address) & 0xFFFFFFFF)), private=private)
        kind = _judge6(address)
    else:
        kind = _judge4(address)
    if kind is None or (private and kind == "private"):
        return None
    return f"{text} is not a public address" if kind == "private" else f"{text} is never fetched"


def _judge4(address: IPv4Address) -> str | None:
    if any(address in block for block in _NEVER4):
        return "never"
    return "private" if any(address in block for block in _PRIVATE4) else None


def _judge6(address: IPv6Address) -> str | None:
    if address.scope_id is not None or any(address in block for block in _NEVER6):
        return "never"
    if any(address in block for block in _PRIVATE6):
        return "private"
    return None if address in _PUBLIC6 else "never"
