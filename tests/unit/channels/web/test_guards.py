"""The guards and bounds of the web services, as plain calls."""

from typing import Any

import pytest

from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.web.errors import HttpError, to_http_error
from internal.channels.web.middleware import (
    MAX_BUCKETS,
    RateLimiter,
    TokenAuthentication,
    own_hosts,
    own_origins,
    require_principal,
)
from internal.channels.web.requests import RequestContext, decode_body, decode_query
from internal.channels.web.schemas import CreateTaskRequest, TasksQuery
from internal.config.server import ServerSettings


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def exchange(address: str = "127.0.0.1", **headers: str) -> RequestContext:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {"method": "GET", "headers": raw, "client": (address, 1)}
    return RequestContext(scope, "r", is_public=False)


def test_a_bucket_fills_again_with_time_and_never_above_its_burst() -> None:
    watch = Watch()
    guard = RateLimiter(ServerSettings(rate_limit_per_minute=60, rate_limit_burst=2), watch)
    guard(exchange())
    guard(exchange())
    with pytest.raises(HttpError) as refused:
        guard(exchange())
    assert refused.value.headers["retry-after"] == "1"
    guard(exchange(address="192.0.2.7"))  # another address has a bucket of its own
    watch.now += 1.0
    guard(exchange())
    with pytest.raises(HttpError):
        guard(exchange())
    watch.now += 3600
    guard(exchange())
    guard(exchange())
    with pytest.raises(HttpError):
        guard(exchange())


def test_buckets_of_many_strangers_do_not_pile_up() -> None:
    watch = Watch()
    guard = RateLimiter(ServerSettings(rate_limit_per_minute=60, rate_limit_burst=2), watch)
    for number in range(3 * MAX_BUCKETS):
        watch.now += 0.01
        guard(exchange(address=f"stranger-{number}"))
    assert len(guard._buckets) <= MAX_BUCKETS


def test_the_token_makes_the_owner_and_nothing_else_does() -> None:
    guard = TokenAuthentication("secret")
    for given in ("Bearer secret", "bearer  secret "):
        asked = exchange(authorization=given)
        guard(asked)
        assert asked.principal is LOCAL_OWNER
        require_principal(asked)
    for given in ("Bearer secre", "Bearer secrets", "Bearer", "secret", "Bearer secret secret"):
        asked = exchange(authorization=given)
        guard(asked)
        assert asked.principal is None
        with pytest.raises(HttpError):
            require_principal(asked)


def test_our_hosts_and_origins() -> None:
    settings = ServerSettings(port=80, public_url="https://Agent.example:8443/x")
    hosts = own_hosts(settings)
    assert {"127.0.0.1", "localhost:80", "[::1]", "agent.example:8443"} <= hosts
    assert "agent.example" not in hosts
    assert "https://agent.example:8443" in own_origins(settings)
    assert "http://agent.example:8443" not in own_origins(settings)
    assert "127.0.0.1" not in own_hosts(ServerSettings(port=8420))


def test_an_error_that_nobody_foresaw_says_nothing_of_itself() -> None:
    refusal = to_http_error(RuntimeError("the password is 123"))
    assert refusal.status == 500
    assert "123" not in str(refusal)
    assert to_http_error(TimeoutError()).status == 504


def test_a_field_given_twice_is_refused_at_any_depth() -> None:
    assert (
        decode_body(b'{"task":"x","options":{"model":"m"}}', CreateTaskRequest).options.model == "m"
    )
    for body in (b'{"task":"x","task":"x"}', b'{"task":"x","options":{"deny":[],"deny":[]}}'):
        with pytest.raises(InvalidRequest, match="twice"):
            decode_body(body, CreateTaskRequest)


def test_parameters_are_read_strictly() -> None:
    asked = decode_query({"query_string": b"limit=7&status=queued"}, TasksQuery)
    assert (asked.limit, asked.status) == (7, "queued")
    for query in (b"limit=7&limit=8", b"limit=%FF", b"other=1", b"\xff=1", b"&" * 50 + b"a=1&b"):
        with pytest.raises(InvalidRequest):
            decode_query({"query_string": query}, TasksQuery)
