"""Servers that are packages: added by one command, from an index of this machine."""

import asyncio
import json
import re
import shlex
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from internal.channels.cli.exit_codes import FAILED, OK, WAITING
from tests import ROOT
from tests.support.gateway_process import LARKSPUR
from tests.support.package_index import PackageIndex, serve_index

pytestmark = [pytest.mark.slow, pytest.mark.needs("namespaces")]

UV = ROOT / ".uv" / "bin"
FAILURE = 2


class Ended(NamedTuple):
    code: int
    output: str


class Person:
    """A person with programs in `~/.local/bin`, which the PATH of a service lacks."""

    def __init__(self, environ: dict[str, str], index: PackageIndex) -> None:
        self.home, self.index = Path(environ["HOME"]), index
        self.environ = {
            **environ,
            **index.environ,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LARKSPUR_SANDBOX__PROVIDER": "bubblewrap",
            "LARKSPUR_SANDBOX__ALLOW_PRIVATE_NETWORKS": "true",
        }
        programs = self.home / ".local" / "bin"
        programs.mkdir(parents=True)
        for name in ("uv", "uvx"):
            found = shutil.which(name, path=f"{UV}:{environ['PATH']}")
            assert found is not None, "uv is not installed; make setup does so"
            shutil.copy(found, programs / name)

    @property
    def packages(self) -> Path:
        return Path(self.environ["LARKSPUR_HOME"]) / "mcp-packages"

    async def mcp(self, *argv: str, **environ: str) -> Ended:
        process = await asyncio.create_subprocess_exec(
            LARKSPUR,
            "mcp",
            *argv,
            env={**self.environ, **environ},
            cwd=self.home,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return Ended(process.returncode, output.decode())

    def write(self, servers: dict[str, object]) -> None:
        home = Path(self.environ["LARKSPUR_HOME"])
        home.mkdir(exist_ok=True)
        (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    def entry(self, name: str) -> dict[str, object]:
        document = json.loads((Path(self.environ["LARKSPUR_HOME"]) / "mcp.json").read_text())
        return dict(document["mcpServers"][name])


@pytest.fixture
def index() -> Generator[PackageIndex]:
    with serve_index() as served:
        served.publish_wheel("lake-server", "1.0")
        yield served


@pytest.fixture
def person(environ: dict[str, str], index: PackageIndex) -> Person:
    return Person(environ, index)


async def test_uvx_in_the_home_is_added_by_one_command_and_stays_as_it_is(person: Person) -> None:
    added = await person.mcp("add", "lake", "--yes", "--", "uvx", "lake-server")
    assert added.code == OK, added.output
    assert "Downloading lake-server …\n" in added.output
    assert "lake starts. Its tools (1): mcp__lake__count_herons\n" in added.output
    entry = person.entry("lake")
    assert (entry["package"], entry["download"]) == ("lake-server==1.0", ["uvx", "lake-server"])
    assert "network" not in entry
    person.index.publish_wheel("lake-server", "2.0")
    person.index.asked.clear()
    reviewed = await person.mcp("review", "lake", "--yes")
    assert reviewed.code == OK, reviewed.output
    assert "package: lake-server==1.0" in reviewed.output
    assert "Version 1.0." in reviewed.output
    assert person.index.asked == []
    assert (await person.mcp("remove", "lake")).code == OK
    assert not (person.packages / "lake").exists()
    again = await person.mcp("add", "lake", "--yes", "--", "uvx", "lake-server@latest")
    assert again.code == OK, again.output
    assert person.entry("lake")["package"] == "lake-server==2.0"


async def test_variables_stay_as_they_are_written(person: Person) -> None:
    command = ("--", "uvx", "lake-server", "", "--key=${LAKE_KEY}")
    added = await person.mcp("add", "lake", "--yes", *command, LAKE_KEY="canary-4711")
    assert added.code == OK, added.output
    entry = person.entry("lake")
    assert (entry["args"], entry["download"]) == (["", "--key=${LAKE_KEY}"], [*command[1:]])


@pytest.mark.needs("program:npx")
async def test_npx_is_added_by_one_command(person: Person) -> None:
    person.index.publish_npm("lake-server", "3.1.0")
    added = await person.mcp("add", "lake", "--yes", "--", "npx", "-y", "lake-server")
    assert added.code == OK, added.output
    assert "Its tools (1): mcp__lake__count_herons" in added.output
    assert person.entry("lake")["package"] == "lake-server@3.1.0"


async def test_nothing_is_downloaded_without_a_yes(person: Person) -> None:
    refused = await person.mcp("add", "lake", "--", "uvx", "lake-server")
    assert refused.code == WAITING
    host = person.index.url.removeprefix("http://")
    assert f"lake is a package: lake-server, from {host}." in refused.output
    assert person.index.asked == []
    assert not person.packages.exists()


async def test_a_package_that_does_not_exist_leaves_nothing(person: Person) -> None:
    failed = await person.mcp("add", "lake", "--yes", "--", "uvx", "no-such-server")
    assert failed.code == FAILURE
    assert "uvx cannot install no-such-server: " in failed.output
    assert "no-such-server was not found in the package registry" in failed.output
    assert not (person.packages / "lake").exists()
    assert "No MCP servers" in (await person.mcp("list")).output


async def test_the_hint_about_a_missing_variable_mends_it(person: Person) -> None:
    failed = await person.mcp("add", "lake", "--yes", "--", "uvx", "lake-server", "wordy")
    assert failed.code == FAILED
    assert "the environment variable LAKE_TOKEN is not set; add it with: " in failed.output
    assert "step 0 of" not in failed.output
    command = re.findall(r"add it with: larkspur mcp (.+)\.\n", failed.output)[0]
    assert command == "add lake --env 'LAKE_TOKEN=…' -- uvx lake-server wordy"
    person.index.asked.clear()
    words = shlex.split(command.replace("…", "${LAKE_TOKEN}"))
    mended = await person.mcp(*words[:2], "--yes", *words[2:], LAKE_TOKEN="canary-4711")  # noqa: S106 - of a test
    assert mended.code == OK, mended.output
    assert person.index.asked == []
    assert "canary-4711" not in mended.output


async def test_a_project_file_is_imported_with_its_packages(person: Person) -> None:
    entry = {"command": "uvx", "args": ["lake-server"]}
    servers = {"lake": entry, "other": {"command": "docker", "args": ["run", "mcp/time"]}}
    (person.home / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    person.environ["PATH"] = f"{person.environ['PATH']}:{person.home}/.local/bin"
    imported = await person.mcp("import", ".mcp.json", "--yes")
    assert imported.code == FAILED
    assert "Its tools (1): mcp__lake__count_herons" in imported.output
    assert "docker starts containers with a service of this machine" in imported.output
    assert person.entry("lake")["package"] == "lake-server==1.0"


@pytest.mark.parametrize("page", ["mcp.md", "mcp.zh.md"])
async def test_the_first_example_of_the_documentation_works(person: Person, page: str) -> None:
    person.index.publish_wheel("mcp-server-time", "1.0")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    block = text.partition("```console\n")[2].partition("```")[0]
    lines = [line.removeprefix("$ ").partition("#")[0] for line in block.splitlines()]
    add, review = [shlex.split(line)[2:] for line in lines if " time" in line][:2]
    assert (add[0], review[0]) == ("add", "review")
    added = await person.mcp("add", "--yes", *add[1:])
    assert added.code == OK, added.output
    reviewed = await person.mcp(*review, "--yes")
    assert reviewed.code == OK, reviewed.output


async def test_a_server_of_a_file_says_how_it_is_installed(person: Person) -> None:
    person.write({"lake": {"command": "uvx", "args": ["lake-server"]}})
    failed = await person.mcp("test", "lake")
    assert "lake-server is not installed; add it with: " in failed.output
    command = re.findall(r"add it with: larkspur mcp (.+), which installs it", failed.output)[0]
    words = shlex.split(command)
    added = await person.mcp(words[0], "--yes", *words[1:])
    assert added.code == OK, added.output
