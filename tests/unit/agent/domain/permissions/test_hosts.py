"""Hosts of URLs."""

import pytest

from internal.agent.domain.permissions.hosts import (
    UrlSite,
    allows_site,
    denies_site,
    parse_url,
    suggest_host_rule,
)
from internal.agent.domain.permissions.rules import HostPattern


def test_a_canonical_url_has_one_site() -> None:
    assert parse_url("https://Example.com:8443/a") == UrlSite(("example.com",), 8443, exact=True)
    assert parse_url("https://example.com:443/a").port is None


def test_an_ambiguous_url_is_never_allowed_and_denied_for_every_reading() -> None:
    site = parse_url("https://good.example\\@evil.example/")
    assert not site.exact
    for host in site.hosts:
        pattern = HostPattern(host, subdomains=False, port=None)
        assert not allows_site(pattern, site)
        assert denies_site(pattern, site)
    assert suggest_host_rule("get", site) == ""


def test_a_host_that_cannot_be_determined_is_undecided() -> None:
    pattern = HostPattern("example.com", subdomains=False, port=None)
    assert denies_site(pattern, UrlSite(("",), None, exact=False)) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://[::ffff:8.8.8.8]/",
        "http://[::ffff:808:808]/",
        "http://[::FFFF:808:808]:8080/",
        "http://user@[64:ff9b::8.8.8.8]/",
        "http://%5B::ffff:8.8.8.8%5D/",
    ],
)
def test_a_denied_ipv4_address_is_denied_in_its_ipv6_forms(url: str) -> None:
    site = parse_url(url)
    assert denies_site(HostPattern("8.8.8.8", subdomains=False, port=None), site)
    assert not denies_site(HostPattern("8.8.8.9", subdomains=False, port=None), site)
    assert not allows_site(HostPattern("8.8.8.8", subdomains=False, port=None), site)
