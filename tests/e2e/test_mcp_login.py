"""`larkspur mcp login` and `logout` as processes."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.authorization_server import ProtectedServer, browse, protected_server
from tests.support.gateway_process import LARKSPUR
from tests.support.mcp_agent import define


async def start(environ: dict[str, str], *argv: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        str(LARKSPUR),
        "mcp",
        *argv,
        env={**environ, "LARKSPUR_SANDBOX__PROVIDER": "native"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def signing_in(
    environ: dict[str, str], home: Path
) -> AsyncGenerator[tuple[ProtectedServer, asyncio.subprocess.Process, str]]:
    """Yield a server, a process that waits for the browser, and the URL that it shows."""
    async with protected_server() as server:
        define(home, "docs", {**server.entry, "login": "shared"})
        process = await start(environ, "login", "docs")
        assert process.stdout is not None
        async with asyncio.timeout(60):
            url = (await process.stdout.readline()).decode().strip()
        yield server, process, url


@pytest.mark.slow
async def test_a_person_signs_in_reviews_and_signs_out(environ: dict[str, str], home: Path) -> None:
    async with signing_in(environ, home) as (_, process, url):
        assert "received the answer" in await browse(url)
        _, said = await process.communicate()
        assert (process.returncode, "Signed in to docs" in said.decode()) == (0, True)
        review = await start(environ, "review", "docs", "--yes")
        shown, said = await review.communicate()
        assert (review.returncode, "mcp__docs__echo" in shown.decode()) == (0, True), said
        assert "login: shared" in shown.decode()
        for expected in ("Signed out of docs", "Nobody is signed in to docs"):
            logout = await start(environ, "logout", "docs")
            _, said = await logout.communicate()
            assert expected in said.decode()
        test = await start(environ, "test", "docs")
        _, said = await test.communicate()
        assert "sign in to docs with: larkspur mcp login docs" in said.decode()


@pytest.mark.slow
async def test_ctrl_c_ends_the_wait_without_a_trace(environ: dict[str, str], home: Path) -> None:
    async with signing_in(environ, home) as (_, process, _url):
        process.send_signal(signal.SIGINT)
        _, said = await process.communicate()
    assert "Traceback" not in said.decode()
    assert process.returncode == 130
    assert not (home / "mcp-tokens.json").exists()


async def test_a_server_without_a_login_is_refused(environ: dict[str, str], home: Path) -> None:
    define(home, "tool", {"command": sys.executable})
    process = await start(environ, "login", "tool")
    _, said = await process.communicate()
    assert "neither login: shared nor login: personal" in said.decode()
