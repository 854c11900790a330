"""Proxies and addresses of a policy."""

import pytest

from internal.egress.policy import EgressPolicy, checked_policy, provider_policy, webhook_policy
from internal.tools.http_urls import PublicUrl
from tests.support.connect_proxy import open_connect_proxy
from tests.support.http_site import local_fetcher
from tests.support.raw_server import raw_server, response


async def test_proxies_of_the_environment_are_for_providers_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy resolves names itself, so nothing would be checked."""
    async with open_connect_proxy() as proxy, raw_server(response()) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        found = [policy.proxies.find("https", "a.test", 443) for policy in _policies()]
        assert found == [proxy.url, None, None, None]
        url = PublicUrl.parse(f"http://site.test:{server.port}/")
        assert (await local_fetcher().fetch(url)).response.body == b"ok"
        assert proxy.tunnels == []


def _policies() -> list[EgressPolicy]:
    checked = [checked_policy(private=private) for private in (True, False)]
    return [provider_policy(), webhook_policy(), *checked]
