"""The checks of the middleware, as plain calls."""

from typing import Any

import pytest
from msgspec.structs import replace

from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.web.errors import HttpError
from internal.channels.web.middleware import (
    Authentication,
    RateLimiter,
    cookie_name,
    own_hosts,
    own_origins,
    page_origin,
    require_principal,
)
from internal.channels.web.requests import RequestContext
from internal.channels.web.services import WebServices
from internal.config.server import ServerSettings


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def request(principal: Principal | None = None, **headers: str) -> RequestContext:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {"method": "GET", "headers": raw}
    return RequestContext(scope, "r", is_public=False, principal=principal)


def test_a_bucket_refills_over_time_up_to_its_burst() -> None:
    clock = Clock()
    check = RateLimiter(ServerSettings(rate_limit_per_minute=60, rate_limit_burst=2), clock)
    for _ in range(2):
        check(request(LOCAL_OWNER))
    with pytest.raises(HttpError) as rejected:
        check(request(LOCAL_OWNER))
    assert rejected.value.headers["retry-after"] == "1"
    check(request(Principal("another")))  # has a bucket of its own
    clock.now += 1.0
    check(request(LOCAL_OWNER))
    with pytest.raises(HttpError):
        check(request(LOCAL_OWNER))
    clock.now += 3600
    for _ in range(2):
        check(request(LOCAL_OWNER))
    with pytest.raises(HttpError):
        check(request(LOCAL_OWNER))


async def test_only_the_exact_token_authenticates_the_owner(services: WebServices) -> None:
    check = Authentication(replace(services, token=lambda: "secret"))
    for given in ("Bearer secret", "bearer  secret "):
        asked = request(authorization=given)
        check(asked)
        assert asked.principal is LOCAL_OWNER
        require_principal(asked)
    for given in ("Bearer secre", "Bearer secrets", "Bearer", "secret", "Bearer secret secret"):
        asked = request(authorization=given)
        check(asked)
        assert asked.principal is None
        with pytest.raises(HttpError):
            require_principal(asked)


def test_own_hosts_and_origins() -> None:
    settings = ServerSettings(port=80, public_url="https://Agent.example:8443/x")
    hosts = own_hosts(settings)
    assert {"127.0.0.1", "localhost:80", "[::1]", "agent.example:8443"} <= hosts
    assert "agent.example" not in hosts
    assert "https://agent.example:8443" in own_origins(settings)
    assert "http://agent.example:8443" not in own_origins(settings)
    assert "127.0.0.1" not in own_hosts(ServerSettings(port=8420))


def test_the_origin_of_a_page_follows_from_the_host() -> None:
    settings = ServerSettings(port=8420, public_url="https://Agent.example/x")
    for host, origin in (
        ("127.0.0.1:8420", "http://127.0.0.1:8420"),
        ("LocalHost:8420", "http://localhost:8420"),
        ("agent.example", "https://agent.example"),
    ):
        assert page_origin(request(host=host), settings) == origin


@pytest.mark.parametrize(
    ("origin", "port"),
    [
        ("http://127.0.0.1:8420", 8420),
        ("http://[::1]:8421", 8421),
        ("http://localhost", 80),
        ("https://larkspur.example.com", 443),
        ("https://larkspur.example.com:8443", 8443),
    ],
)
def test_the_cookie_is_named_by_the_port_of_the_page(origin: str, port: int) -> None:
    assert cookie_name(origin) == f"larkspur-{port}"
