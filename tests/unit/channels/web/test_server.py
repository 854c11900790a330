"""The address of the server."""

from internal.channels.web.server import Address


def test_an_ipv6_host_is_bracketed_in_the_url() -> None:
    assert Address("127.0.0.1", 8420).url == "http://127.0.0.1:8420"
    assert Address("::1", 80).url == "http://[::1]:80"
