"""Choice of the proxy for a request to a model provider."""

import pytest

from internal.egress.proxies import Proxies

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("variables", "scheme", "expected"),
    [
        ({}, "https", None),
        ({"https": PROXY}, "https", PROXY),
        ({"https": PROXY}, "http", None),
        ({"all": PROXY}, "http", PROXY),
        ({"all": "http://other", "https": PROXY}, "https", PROXY),
        ({"https": "proxy.example:3128"}, "https", PROXY),
        ({"https": "https://user:word@proxy.example"}, "https", "https://user:word@proxy.example"),
    ],
)
def test_the_proxy_is_that_of_the_scheme(
    variables: dict[str, str], scheme: str, expected: str | None
) -> None:
    assert Proxies(variables).find(scheme, "api.acme.example", 443) == expected


@pytest.mark.parametrize(
    ("excluded", "host", "is_direct"),
    [
        ("", "api.acme.example", False),
        ("*", "api.acme.example", True),
        ("other.example, *", "api.acme.example", True),
        ("acme.example", "api.acme.example", True),
        ("ACME.example", "acme.EXAMPLE", True),
        (".acme.example", "api.acme.example", True),
        ("*.acme.example", "api.acme.example", True),
        ("acme.example:8443", "acme.example", True),
        ("acme.example:443", "acme.example", False),
        ("cme.example", "acme.example", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "acme.example", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("fd00::/8", "fd00::1", True),
        ("[fd00::1]", "fd00::1", True),
        ("fd00::1", "fd00::1", True),
        ("no/network", "acme.example", False),
        ("", "127.0.0.1", True),
        ("", "localhost", True),
        ("", "::1", True),
        ("", "::ffff:127.0.0.1", True),
        ("", "::ffff:10.1.2.3", False),
        ("10.0.0.0/8", "::ffff:10.1.2.3", True),
        ("10.1.2.3", "::ffff:a01:203", True),
    ],
)
def test_hosts_of_no_proxy_and_of_this_machine_are_reached_directly(
    excluded: str, host: str, is_direct: bool
) -> None:
    proxies = Proxies({"https": PROXY, "no": excluded})
    assert (proxies.find("https", host, 8443) is None) is is_direct


@pytest.mark.parametrize("proxy", ["socks5://user:word@proxy.example", "http://", "ftp://x"])
def test_another_kind_of_proxy_is_rejected_without_its_password(proxy: str) -> None:
    proxies = Proxies({"all": proxy, "no": "direct.example"})
    with pytest.raises(ValueError, match="set HTTPS_PROXY to an HTTP proxy") as error:
        proxies.find("https", "acme.example", 443)
    assert "word" not in str(error.value)
    assert proxies.find("https", "direct.example", 443) is None
