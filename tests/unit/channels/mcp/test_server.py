"""The late import of the SDK."""

import asyncio
import sys

LAZY = """
import sys
import larkspur.serve
assert "mcp" not in sys.modules, "imported at the start"
assert "pydantic" in sys.modules
"""
MISSING = """
import asyncio, sys
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.mcp.server import McpServer
sys.modules["mcp"] = None
serving = McpServer(None, None, "1").serve({}, None, None, principal=LOCAL_OWNER, origin="")
assert asyncio.run(serving) is False
"""


async def run_python(code: str) -> str:
    """Run code in a new process and return its output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return out.decode()


async def test_the_gateway_starts_without_the_sdk() -> None:
    assert await run_python(LAZY) == ""


async def test_a_request_without_the_installed_sdk_is_not_served() -> None:
    assert await run_python(MISSING) == ""
