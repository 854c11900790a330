"""Servers over streamable HTTP, in both versions of the protocol, and hostile ones."""

from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.mcp.limits import ServerFailure
from tests.support.mcp_connection import connect, ignore, opened, text_of
from tests.support.mcp_http import LegacyServer, serve, serve_sdk


async def test_a_server_of_the_new_protocol_is_called(tmp_path: Path) -> None:
    reports: list[str] = []
    async with serve_sdk() as url, opened(connect(tmp_path, url)) as server:
        listed = await server.list_tools()
        result = await server.call("add", {"a": 2, "b": 3}, ignore)
        await server.call("count", {"upto": 2}, lambda *report: reports.append(report[2]))
        async with server._session() as session:
            assert session.protocol == "2026-07-28"
    assert {"add", "count", "everything", "fail"} <= {tool.name for tool in listed}
    assert result["structuredContent"] == {"result": 5}
    assert reports == ["at 1", "at 2"]


async def test_a_server_of_the_old_protocol_gets_the_headers_of_its_definition(
    tmp_path: Path,
) -> None:
    legacy = LegacyServer()
    headers = {"Authorization": "Bearer canary-77aa88bb"}
    async with (
        serve(legacy.app) as url,
        opened(connect(tmp_path, url, headers=headers)) as server,
    ):
        assert await text_of(server) == "hi"
        async with server._session() as session:
            assert session.protocol == "2025-11-25"
    assert {each.get("authorization") for each in legacy.seen} == {"Bearer canary-77aa88bb"}
    assert {each["accept-encoding"] for each in legacy.seen} == {"identity"}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://127.0.0.1/mcp", "127.0.0.1 is not a public address"),
        ("https://localhost/mcp", "localhost: .* is not a public address"),
        ("https://169.254.169.254/latest", "is never fetched"),
        ("https://[::ffff:10.0.0.1]/", "is not a public address"),
        ("https://no-such-host.invalid/", "no-such-host.invalid: there is no such host"),
    ],
)
async def test_only_public_addresses_are_connected_to(
    tmp_path: Path, url: str, reason: str
) -> None:
    server = connect(tmp_path, url, allow_private_networks=False)
    async with opened(server):
        with pytest.raises(ServerFailure, match=reason):
            await server.list_tools()


async def test_metadata_addresses_are_refused_on_private_networks_as_well(tmp_path: Path) -> None:
    async with opened(connect(tmp_path, "http://169.254.169.254/mcp")) as server:
        with pytest.raises(ServerFailure, match="is never fetched"):
            await server.list_tools()


async def test_a_redirect_to_another_host_is_not_followed(tmp_path: Path) -> None:
    legacy = LegacyServer("redirect")
    async with serve(legacy.app) as url, opened(connect(tmp_path, url)) as server:
        with pytest.raises(ToolError, match="Redirect to http://localhost:1/mcp not followed"):
            await text_of(server)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("large", "a response of more than 10,000,000 bytes"),
        ("gzip", "unrequested content encoding: gzip"),
        ("large-event", "exceeds maximum size|too large|SSE"),
    ],
)
async def test_a_response_beyond_the_bounds_fails_the_call(
    tmp_path: Path, mode: str, reason: str
) -> None:
    legacy = LegacyServer(mode)
    async with serve(legacy.app) as url, opened(connect(tmp_path, url)) as server:
        with pytest.raises((ServerFailure, ToolError), match=reason):
            await text_of(server)


async def test_a_response_is_read_as_leniently_as_a_line(tmp_path: Path) -> None:
    legacy = LegacyServer("untidy")
    async with serve(legacy.app) as url, opened(connect(tmp_path, url)) as server:
        assert await text_of(server) == "caf\ufffd"


async def test_a_session_that_the_server_forgets_is_opened_again(tmp_path: Path) -> None:
    legacy = LegacyServer("forget")
    async with serve(legacy.app) as url, opened(connect(tmp_path, url)) as server:
        with pytest.raises(ServerFailure, match="during the call"):
            await text_of(server)
        assert await text_of(server) == "hi"
    assert legacy.sessions == 2


async def test_a_server_that_is_gone_fails_with_a_reason(tmp_path: Path) -> None:
    async with serve_sdk() as url:
        pass
    async with opened(connect(tmp_path, url)) as server:
        with pytest.raises(ServerFailure, match="attempts failed"):
            await server.list_tools()
