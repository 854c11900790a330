"""MCP servers with services of this machine, by the commands that people type."""

import asyncio
import re
import shlex
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.gateway_process import LARKSPUR
from tests.support.ports import free_port
from tests.support.postgres_server import shared_server

pytestmark = [pytest.mark.slow, pytest.mark.needs("namespaces")]

DATABASE_SERVER = ("/usr/bin/python3", "-I", f"{ROOT}/tests/support/mcp_database_server.py")


async def larkspur(environ: dict[str, str], *argv: str) -> str:
    """Run `larkspur mcp` in the bubblewrap sandbox and return its output."""
    process = await asyncio.create_subprocess_exec(
        LARKSPUR,
        "mcp",
        *argv,
        env={**environ, "LARKSPUR_SANDBOX__PROVIDER": "bubblewrap"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode()


async def answers(environ: dict[str, str], *sites: str, network: tuple[str, ...]) -> list[str]:
    """Return a server's outcome for each site with these options of `mcp add`."""
    options = [part for one in network for part in ("--network", one)]
    added = await larkspur(environ, "add", "db", "--yes", *options, "--", *DATABASE_SERVER, *sites)
    assert "larkspur mcp review db" in added
    listed = await larkspur(environ, "test", "db")
    await larkspur(environ, "remove", "db")
    return re.findall(r"- mcp__db__ask_\d+ .*\n  (.*)", listed)


@pytest.mark.postgres
async def test_a_driver_without_proxy_reaches_the_database_that_the_owner_names(
    environ: dict[str, str],
) -> None:
    port, other = shared_server().port, free_port()
    sites = (f"127.0.0.1:{port}", f"localhost:{port}", f"127.0.0.1:{other}", f"127.0.0.2:{port}")
    refused = "ConnectionRefusedError"
    network = (f"127.0.0.1:{port}", f"127.0.0.1:{other}")
    assert await answers(environ, *sites, network=network) == ["N", "N", refused, refused]
    # not named: not there
    assert await answers(environ, *sites[:1], network=("pypi.org",)) == [refused]
    by_name = await answers(environ, *sites[:2], network=(f"localhost:{port}",))
    assert by_name == ["N", "N"]


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("*.corp.example:5432", "Programs reach *.corp.example:5432 through the HTTP proxy"),
        ("127.0.0.1:5000-5010", "with one TCP port or none"),
    ],
)
async def test_what_cannot_be_reached_is_said_when_the_server_is_added(
    environ: dict[str, str], host: str, sentence: str
) -> None:
    said = await larkspur(environ, "add", "db", "--yes", "--network", host, "--", *DATABASE_SERVER)
    assert sentence in said


async def test_names_have_private_addresses_only_where_the_owner_allows_them(
    environ: dict[str, str],
) -> None:
    command = ("--network", "db.example:5432", "--private", "--", *DATABASE_SERVER)
    await larkspur(environ, "add", "db", "--yes", *command)
    assert "also with private addresses" in await larkspur(environ, "show", "db")


async def test_a_server_writes_in_the_folder_in_which_it_works(
    environ: dict[str, str], tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    script = f"touch saved; exec {shlex.join(DATABASE_SERVER)}"
    options = ("--cwd", str(project), "--write", str(project), "--read", DATABASE_SERVER[-1])
    await larkspur(environ, "add", "db", "--yes", *options, "--", "bash", "-c", script)
    assert (project / "saved").exists()
