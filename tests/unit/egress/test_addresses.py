"""Hosts and their addresses; which are refused is tested with every client in test_clients."""

import pytest

from internal.egress.addresses import AddressCheck, AddressRefused, UnknownHost, resolve_host
from tests.support.http_site import FakeResolver


async def test_the_system_resolves_a_name() -> None:
    assert "127.0.0.1" in await resolve_host("localhost", 80)


async def test_each_address_is_tried_once_and_at_most_four_are() -> None:
    found = [f"93.184.216.{last}" for last in (1, 1, 2, 3, 4, 5)]
    check = AddressCheck(resolver=FakeResolver(site_test=[found]))
    assert await check.resolve("site.test", 80) == [f"93.184.216.{last}" for last in (1, 2, 3, 4)]


async def test_an_address_that_would_not_be_tried_rejects_the_host_as_well() -> None:
    found = [*(f"93.184.216.{last}" for last in range(9)), "10.0.0.1"]
    check = AddressCheck(resolver=FakeResolver(site_test=[found]))
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1 is not a public address"):
        await check.resolve("site.test", 80)


@pytest.mark.parametrize("host", ["no-such-name.invalid", "a" * 70])
async def test_a_host_without_an_address_is_unknown(host: str) -> None:
    with pytest.raises(UnknownHost, match="there is no such host"):
        await AddressCheck().resolve(host, 80)
