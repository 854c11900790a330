"""Hosts as processes: a second host without the first one's files is refused, and sessions move."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from internal.config.home import prepare
from tests.support.gateway_process import LARKSPUR, running_gateway

FAILED = 1


class Hosts:
    """Hosts with home folders of their own on one database."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self._environ = environ
        self._folder = folder
        prepare(folder / "database")

    def home(self, name: str) -> Path:
        return self._folder / name

    def environ(self, name: str, **settings: str) -> dict[str, str]:
        return {
            **self._environ,
            "LARKSPUR_HOME": str(self.home(name)),
            "LARKSPUR_DATABASE__URL": f"sqlite:///{self._folder}/database/larkspur.db",
            "LARKSPUR_ATTACHMENTS__FOLDER": str(self._folder / "attachments"),
            "LARKSPUR_DISPATCH__HOST": name,
            "LARKSPUR_LLM__PROVIDER": "offline",
            **settings,
        }

    def run(self, name: str, *argv: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [LARKSPUR, *argv],
            env=self.environ(name, **settings),
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    async def serve_once(self, name: str) -> None:
        async with running_gateway(self.environ(name), prepare(self.home(name))):
            pass


@pytest.fixture
def hosts(environ: dict[str, str], tmp_path: Path) -> Hosts:
    return Hosts(environ, tmp_path)


@pytest.mark.slow
async def test_a_host_with_other_files_is_refused_when_it_starts(hosts: Hosts) -> None:
    await hosts.serve_once("one")
    refused = await asyncio.to_thread(hosts.run, "two", "serve", "--port", "0")
    assert refused.returncode == FAILED
    assert refused.stderr.count("\n") == 1
    assert "has another token than those of the other hosts" in refused.stderr
    (hosts.home("two") / "token").write_bytes((hosts.home("one") / "token").read_bytes())
    own = {"LARKSPUR_ATTACHMENTS__FOLDER": str(hosts.home("two") / "attachments")}
    refused = await asyncio.to_thread(hosts.run, "two", "serve", "--port", "0", **own)
    assert refused.returncode == FAILED
    assert refused.stderr.count("\n") == 1
    assert "are not those of the other hosts that use the database" in refused.stderr
    await hosts.serve_once("two")


@pytest.mark.slow
async def test_a_session_is_moved_from_the_command_line(hosts: Hosts) -> None:
    async with running_gateway(hosts.environ("one"), prepare(hosts.home("one"))) as gateway:
        body = {"task": "list the files here"}
        made = await gateway.client.request("POST", "/api/tasks?wait=30", body)
        session_id = made.json()["session_id"]
    moved = await asyncio.to_thread(hosts.run, "one", "sessions", "move", session_id, "--any-host")
    assert (moved.returncode, moved.stderr) == (0, "")
    assert moved.stdout == (
        f"The next task of {session_id} is executed by any host.\n"
        "The files of the session stay on host one; it starts without.\n"
    )
    again = ("sessions", "move", session_id, "--to-host", "one", "--json")
    moved = await asyncio.to_thread(hosts.run, "one", *again)
    expected = {"session_id": session_id, "host": "one", "previous": "", "saved": ""}
    assert json.loads(moved.stdout) == expected
    unknown = ("sessions", "move", session_id, "--to-host", "three")
    moved = await asyncio.to_thread(hosts.run, "one", *unknown)
    assert moved.stderr == "There is no host three; known hosts: one.\n"
    assert moved.returncode != 0
    without = await asyncio.to_thread(hosts.run, "one", "sessions", "move", session_id)
    assert "move ID --any-host" in without.stderr
