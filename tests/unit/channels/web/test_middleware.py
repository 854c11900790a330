"""The checks of the middleware, as plain calls."""

from typing import Any

import pytest
from msgspec.structs import replace

from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.web.errors import HttpError
from internal.channels.web.middleware import (
    Authentication,
    RateLimiter,
    RequestMiddleware,
    require_principal,
)
from internal.channels.web.requests import RequestContext
from internal.channels.web.services import WebServices
from internal.settings.server import ServerSettings
from tests.support.web_app import TOKEN


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


@pytest.mark.parametrize(("method", "retry"), [("GET", None), ("POST", b"false")])
async def test_a_change_that_timed_out_is_not_to_be_repeated(
    services: WebServices, method: str, retry: bytes | None
) -> None:
    async def time_out(*_: Any) -> Any:
        raise TimeoutError

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8420"), (b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "http", "method": method, "path": "/api/tasks", "headers": headers}
    app = RequestMiddleware(services, time_out, is_public=lambda _: False)
    await app(scope, time_out, send)
    assert sent[0]["status"] == 504
    assert dict(sent[0]["headers"]).get(b"x-should-retry") == retry
