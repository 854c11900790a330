"""Isolated MCP servers from the package registries, with the options that `mcp add` proposes."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.gateway_process import LARKSPUR

PROGRAMS = Path(sys.executable).parent
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
HAS_CERTIFICATES = CERTIFICATES.exists()

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
    if HAS_CERTIFICATES:
        environ["SSL_CERT_FILE"] = str(CERTIFICATES)  # uv does not read the machine's by itself
    return environ


@pytest.mark.parametrize(
    ("name", "tool"), [("time", "get_current_time"), ("git", "git_status"), ("fetch", "fetch")]
)
async def test_a_server_of_a_virtual_environment_starts(
    isolated: dict[str, str], name: str, tool: str
) -> None:
    program = PROGRAMS / f"mcp-server-{name}"
    added = await run(isolated, LARKSPUR, "mcp", "add", name, "--yes", "--", program)
    assert "It needs these options: --read " in added
    listed = await run(isolated, LARKSPUR, "mcp", "test", name)
    assert f"mcp__{name}__{tool} (exec, not reviewed)" in listed


async def test_uvx_starts_a_server_from_a_cache_without_network(isolated: dict[str, str]) -> None:
    isolated["PATH"] = f"{isolated['PATH']}:{ROOT}/.uv/bin"
    isolated["UV_PYTHON"] = "/usr/bin/python3"  # which isolated commands find as well
    await run(isolated, "uvx", "mcp-server-time", "--help")
    cache = f"{isolated['HOME']}/.cache/uv"
    options = ("--write", cache, "--env", f"UV_CACHE_DIR={cache}", "--env", "UV_OFFLINE=1")
    command = (*options, "--network", "pypi.org", "--", "uvx", "mcp-server-time")
    added = await run(isolated, LARKSPUR, "mcp", "add", "clock", "--yes", *command)
    assert "commands do not find uvx; isolated commands do not see " in added
    assert "--network registries" not in added
    assert "mcp__clock__convert_time" in await run(isolated, LARKSPUR, "mcp", "test", "clock")


async def test_uvx_without_network_is_told_what_it_lacks(isolated: dict[str, str]) -> None:
    isolated["PATH"] = f"{isolated['PATH']}:{ROOT}/.uv/bin"
    added = await run(isolated, LARKSPUR, "mcp", "add", "clock", "--yes", "--", "uvx", "time")
    assert "uvx downloads what it starts, and isolated commands have no network" in added
    assert "--network registries -- " in added
    shown = await run(isolated, LARKSPUR, "mcp", "show", "clock")
    assert "network(pypi.org)" in shown
