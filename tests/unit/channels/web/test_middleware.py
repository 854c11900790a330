"""The checks of the middleware, as plain calls."""

from typing import Any

import pytest
from msgspec.structs import replace

from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.web.errors import HttpError
from internal.channels.web.middleware import (
    Authentication,
    RateLimiter,
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
