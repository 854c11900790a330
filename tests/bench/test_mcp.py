"""Cost of a call of an MCP server, and memory of the SDK and of an idle server."""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from internal.mcp.connection import ServerConnection
from tests.bench.processes import rss_of
from tests.bench.table import Row, Table, most
from tests.support.mcp_servers import HOSTILE, hostile

pytestmark = pytest.mark.bench

ROUNDS, CALLS = 5, 200
CALL = {"name": "echo", "arguments": {"text": "hi"}}
MEMORY = """
import asyncio, os, sys
from pathlib import Path
from tests.bench.processes import rss_of
from tests.support.mcp_servers import hostile

async def main():
    before = rss_of(os.getpid())
    server = hostile(Path(sys.argv[1]), "plain", idle_seconds=600)
    await server.list_tools()
    print(rss_of(os.getpid()) - before)
    await server.close()

asyncio.run(main())
"""


async def _milliseconds(server: ServerConnection) -> float:
    taken: list[float] = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        await server.call("echo", {"text": "hi"}, lambda *_: None)
        taken.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(taken)


def _bare_milliseconds(process: "subprocess.Popen[str]") -> float:
    """Return the median of calls that are only a line written and a line read."""
    assert process.stdin is not None
    assert process.stdout is not None
    taken: list[float] = []
    for number in range(CALLS):
        begun = time.perf_counter()
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": CALL}
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        taken.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(taken)


@contextmanager
def _bare_server() -> "Generator[subprocess.Popen[str]]":
    with subprocess.Popen(
        [sys.executable, "-I", HOSTILE, "plain"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.terminate()


async def test_a_call(tmp_path: Path, table: Table) -> None:
    taken, bare = [], []
    server = hostile(tmp_path, "plain")
    with _bare_server() as process:
        idle = rss_of(process.pid)
        for _ in range(ROUNDS):
            taken.append(await _milliseconds(server))
            bare.append(await asyncio.to_thread(_bare_milliseconds, process))
    await server.close()
    table.add(
        Row("a call of an MCP server over stdio", "ms", taken, bare, "a line and its answer"),
        Row("memory of a small idle server in Python", "MB", [idle]),
    )


async def test_memory(tmp_path: Path, table: Table) -> None:
    command = [sys.executable, "-c", MEMORY, str(tmp_path)]
    run = asyncio.to_thread(subprocess.run, command, capture_output=True, check=True, text=True)
    grown = float((await run).stdout)
    table.add(
        Row("the SDK and a connection, first server", "MB", [grown], goal=most(80, of="ours"))
    )
