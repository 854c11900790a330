"""`larkspur mcp serve`: real processes, with the stdio client of the SDK."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, MCPError, StdioServerParameters

from internal.channels.mcp.tools import TOOLS
from tests.support.gateway_process import LARKSPUR, running_gateway

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def environment(home: Path) -> dict[str, str]:
    return {
        "LARKSPUR_HOME": str(home),
        "HOME": str(home.parent),
        "LARKSPUR_SANDBOX__PROVIDER": "native",
    }


@asynccontextmanager
async def connect(
    environ: Mapping[str, str], mode: Literal["auto", "legacy"] = "auto"
) -> AsyncGenerator[Client]:
    command = StdioServerParameters(command=str(LARKSPUR), args=["mcp", "serve"], env=dict(environ))
    async with Client(command, mode=mode) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found
    content: dict[str, Any] = found.structured_content or {}
    return content


async def converse(environ: Mapping[str, str], *lines: bytes) -> tuple[int, list[Any], str]:
    """Write lines to the command, close its input, and return code, responses and errors."""
    process = await asyncio.create_subprocess_exec(
        *(LARKSPUR, "mcp", "serve"),
        env=environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(b"".join(line + b"\n" for line in lines))
    assert process.returncode is not None
    return process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


@pytest.mark.parametrize(
    ("mode", "protocol"),
    [
        ("auto", "2026-07-28"),
        pytest.param("legacy", "2025-11-25", marks=pytest.mark.slow),
    ],
)
async def test_a_task_is_run_for_a_client_of_standard_input(
    home: Path, mode: Literal["auto", "legacy"], protocol: str
) -> None:
    environ = environment(home)
    async with running_gateway(environ, home), connect(environ, mode) as client:
        assert client.protocol_version == protocol
        assert len((await client.list_tools()).tools) == len(TOOLS)
        made = await call(client, "create_task", instruction="grüße 世界")
        done = await call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
        assert done["status"] == "completed"
        assert done["answer"]
        failed = await client.call_tool("task_result", {"task_id": "none"})
        assert failed.is_error
        with pytest.raises(MCPError, match=r"There is no tool grüße\."):
            await client.call_tool("grüße", {})


@pytest.mark.slow
async def test_a_restarted_gateway_is_found_again(home: Path) -> None:
    environ = environment(home)
    async with AsyncExitStack() as first:
        await first.enter_async_context(running_gateway(environ, home))
        async with connect(environ) as client:
            made = await call(client, "create_task", instruction="hello")
            await call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
            await first.aclose()
            with pytest.raises(MCPError, match=r"^The gateway does not answer: No gateway is run"):
                await call(client, "search_sessions", query="hello")
            async with running_gateway(environ, home):
                found = await call(client, "search_sessions", query="hello")
                assert [one["session_id"] for one in found["sessions"]] == [made["session_id"]]


@pytest.mark.slow
async def test_responses_are_complete_when_the_input_ends(home: Path) -> None:
    environ = environment(home)
    lines = [
        json.dumps(PING).encode(),
        b"",
        b"{",
        b"[]",
        b"\xff",
        json.dumps({**PING, "id": "two"}).encode(),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled"}).encode(),
        json.dumps({"jsonrpc": "2.0", "id": 9, "result": {}}).encode(),
        json.dumps({**PING, "id": 3, "method": "wag"}).encode(),
    ]
    async with running_gateway(environ, home):
        code, responses, errors = await converse(environ, *lines)
    assert (code, errors) == (0, "")
    codes = {str(one["id"]): one.get("error", {}).get("code") for one in responses}
    assert codes == {"1": None, "two": None, "3": -32_601, "None": -32_700}
    assert sorted(one["error"]["code"] for one in responses if one["id"] is None) == [
        *(-32_700, -32_700, -32_600),
    ]


async def test_it_needs_a_running_gateway_and_says_where_it_looked(home: Path) -> None:
    code, responses, errors = await converse(environment(home), json.dumps(PING).encode())
    assert (code, responses) == (1, [])
    assert "No gateway is running. Start one with `larkspur serve`." in errors
    assert f"looked for in {home} (from LARKSPUR_HOME)" in errors
    assert "larkspur mcp serve --print-config CLIENT" in errors


async def test_an_entry_of_a_client_starts_it_without_any_other_variable(
    home: Path, tmp_path: Path
) -> None:
    environ = environment(home)
    async with running_gateway(environ, home):
        printed = await asyncio.create_subprocess_exec(
            *(LARKSPUR, "mcp", "serve", "--print-config", "claude-code"),
            env=environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await printed.communicate()
        entry = json.loads(out)["mcpServers"]["larkspur"]
        assert b"No gateway" not in err
        variables = [f"{name}={value}" for name, value in entry["env"].items()]
        # the client of the SDK adds variables, which env removes
        argv = ["-i", *variables, entry["command"], *entry["args"]]
        bare = StdioServerParameters(command="/usr/bin/env", args=argv, cwd=tmp_path)
        async with Client(bare) as client:
            made = await call(client, "create_task", instruction="hello")
            done = await call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
        assert done["status"] == "completed"
