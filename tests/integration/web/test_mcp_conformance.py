"""The MCP project's own conformance client against the server at /mcp; its package is fetched.

Only the scenarios for every server run; the others expect the tools, resources and prompts of a
demonstration server. The client sends no token, so that a relay adds it.
"""

import asyncio
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.anthropic_server import Rules
from tests.support.token_relay import token_relay
from tests.support.web_app import TOKEN
from tests.support.working_web_app import open_working_web_app

pytestmark = pytest.mark.chaos

PACKAGE = ROOT / "tests" / "support" / "mcp_conformance"
SCENARIOS = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")


def program(name: str) -> str:
    """Return a program of Node: of the development environment, else of the machine."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found, f"{name} is not installed"
    return found


async def run_program(folder: Path, *argv: str | Path) -> str:
    """Run a program that must succeed, and return its output."""
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()[-2_000:]
    return out.decode()


async def test_the_conformance_client_finds_no_failure(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "conformance"
    shutil.copytree(PACKAGE, folder)
    await run_program(folder, program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    client = (program("node"), folder / "node_modules" / ".bin" / "conformance", "server")
    async with token_relay(TOKEN) as relay:
        url = f"http://localhost:{relay.port}"
        async with open_working_web_app(home, Rules([]), public_url=url) as app:
            relay.target = app.client.port
            for scenario in SCENARIOS:
                out = await run_program(
                    folder, *client, "--url", f"{url}/mcp", "--scenario", scenario
                )
                passed = re.search(r"Passed: (\d+)/(\d+), 0 failed", out)
                assert passed, out
                assert passed[1] == passed[2] != "0", out
