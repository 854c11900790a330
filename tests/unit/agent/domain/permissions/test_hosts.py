"""Hosts of URLs."""

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
