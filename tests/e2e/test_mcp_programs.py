"""Isolated MCP servers of this environment, with the files that `mcp add` finds."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.gateway_process import LARKSPUR

PROGRAMS = Path(sys.executable).parent

pytestmark = pytest.mark.slow


async def run(environ: dict[str, str], *argv: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=environ,
        cwd=environ["HOME"],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


@pytest.fixture
def isolated(environ: dict[str, str]) -> dict[str, str]:
    environ["LARKSPUR_SANDBOX__PROVIDER"] = "bubblewrap"
    return environ


@pytest.mark.parametrize(
    ("name", "tool"), [("time", "get_current_time"), ("git", "git_status"), ("fetch", "fetch")]
)
async def test_a_server_of_a_virtual_environment_starts(
    isolated: dict[str, str], name: str, tool: str
) -> None:
    program = PROGRAMS / f"mcp-server-{name}"
    added = await run(isolated, LARKSPUR, "mcp", "add", name, "--", program)
    assert f"{name} reads the files of its program: " in added
    assert f"mcp__{name}__{tool}" in added
    listed = await run(isolated, LARKSPUR, "mcp", "test", name)
    assert f"mcp__{name}__{tool} (exec, not reviewed)" in listed
