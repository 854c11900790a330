"""Hosts and origins of the gateway, and the path of the page."""

from typing import Any

import pytest

from internal.channels.web.public_address import (
    PublicPath,
    cookie_name,
    is_own_host,
    own_origins,
    page_address,
    page_origin,
)
from internal.channels.web.requests import RequestContext
from internal.channels.web.routes.table import ROUTES
from internal.settings.server import OWN_PATHS, ServerSettings

PUBLIC = ServerSettings(port=8420, public_url="https://Agent.example/x")


def request(host: str) -> RequestContext:
    scope = {"method": "GET", "path": "/", "headers": [(b"host", host.encode())]}
    return RequestContext(scope, "id", is_public=True)


@pytest.mark.parametrize(
    ("host", "origin", "address"),
    [
        ("127.0.0.1:8420", "http://127.0.0.1:8420", "http://127.0.0.1:8420"),
        ("LocalHost:8420", "http://localhost:8420", "http://localhost:8420"),
        ("agent.example", "https://agent.example", "https://agent.example/x"),
        ("agent.example:443", "https://agent.example", "https://agent.example/x"),
        ("Agent.example:8420", "https://agent.example", "https://agent.example/x"),
    ],
)
def test_the_address_of_a_page_follows_from_the_host(host: str, origin: str, address: str) -> None:
    assert is_own_host(host, PUBLIC)
    assert page_origin(request(host), PUBLIC) == origin
    assert page_address(request(host), PUBLIC) == address


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "agent.example.evil.example",
        "agent.example:443:1",
        "agent.example:",
        "evil.example:8420",
        "[::1]:8421",
        "127.0.0.1",
        "",
    ],
)
def test_other_names_are_foreign(host: str) -> None:
    assert not is_own_host(host, PUBLIC)
    assert not is_own_host("agent.example", ServerSettings())


def test_a_proxy_may_leave_out_a_port_that_is_not_the_usual_one() -> None:
    settings = ServerSettings(public_url="http://[fd00::5]:8443")
    assert is_own_host("[fd00::5]", settings)
    assert page_origin(request("[fd00::5]"), settings) == "http://[fd00::5]:8443"


def test_origins_are_exact() -> None:
    settings = ServerSettings(port=80, public_url="https://agent.example:8443/x")
    origins = own_origins(settings)
    assert {"https://agent.example:8443", "http://localhost", "http://[::1]:80"} <= origins
    assert origins.isdisjoint({"http://agent.example:8443", "https://agent.example"})
    usual = own_origins(ServerSettings(public_url="https://agent.example:443"))
    assert "https://agent.example" in usual


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


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("/lark/spur", "/"),
        ("/lark/spur/", "/"),
        ("/lark/spur/api/me", "/api/me"),
        ("/lark/spurs", "/lark/spurs"),
        ("/api/me", "/api/me"),
    ],
)
async def test_the_path_is_removed_if_the_proxy_leaves_it(asked: str, served: str) -> None:
    seen: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append((scope["path"], scope["raw_path"]))

    async def nothing(*_: Any) -> Any:
        raise AssertionError

    scope = {"path": asked, "raw_path": asked.encode()}
    await PublicPath(app, "/lark/spur")(scope, nothing, nothing)
    assert seen == [(served, served.encode())]


def test_a_path_cannot_be_one_of_the_gateways_own() -> None:
    firsts = {endpoint.path.split("/")[1] for endpoint in ROUTES} - {""}
    assert firsts | {"mcp"} == OWN_PATHS
