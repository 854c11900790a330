"""Installations by programs that stand for npm, in a sandbox without isolation."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.network import NO_NETWORK
from internal.mcp.launch.downloaders import parse_package_command
from internal.mcp.launch.program_files import ProgramFiles
from internal.mcp.packages.installation import InstallationFailed, Installer, install
from internal.mcp.packages.program_names import InstalledProgram
from internal.mcp.packages.registry_settings import RegistrySettings
from tests.support.tools import native_sandbox

INSTALLS = """#!/bin/sh
echo run >> {log}
mkdir -p node_modules/server node_modules/.bin cache
echo '{{"dependencies": {{"server": "1"}}}}' > package.json
echo '{{"name": "server", "version": "1.2.3", "bin": "cli.js"}}' > node_modules/server/package.json
touch node_modules/.bin/server
printenv | grep -E 'npm_config|TOKEN' > node_modules/environment
"""
FAILS = """#!/bin/sh
echo run >> {log}
mkdir half
echo 'npm error code E401' >&2
exit 1
"""


class Place(NamedTuple):
    folder: Path
    log: Path
    start: Callable[[str], Installer]

    @property
    def runs(self) -> int:
        return len(self.log.read_text().split())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    programs, log = tmp_path / "bin", tmp_path / "log"
    programs.mkdir()

    def start(script: str) -> Installer:
        (programs / "npm").write_text(script.format(log=shlex.quote(str(log))))
        (programs / "npm").chmod(0o755)
        indexes = RegistrySettings(
            (), {"npm_config_registry": "https://a.example"}, (), ("~/.npmrc",)
        )
        return Installer(
            native_sandbox(tmp_path),
            ProgramFiles(("/",), path="/usr/bin:/bin", own_path="", home=tmp_path),
            "",
            indexes,
            NO_NETWORK,
            SessionId("mcp-tested"),
            {"npm_config_color": "false", "MY_TOKEN": "canary"},
        )

    return Place(tmp_path / "mcp-packages" / "tested", log, start)


async def installed(place: Place, script: str, *argv: str) -> InstalledProgram:
    # sandboxes look programs up in a PATH of their own
    npx = place.folder.parents[1] / "bin" / "npx"
    command = parse_package_command(str(npx), argv or ("server",))
    assert command is not None
    seconds: list[int] = []
    found = await install(command, place.folder, place.start(script), seconds.append)
    assert seconds[:1] in ([], [0])
    return found


async def test_a_package_is_installed_once(place: Place) -> None:
    found = await installed(place, INSTALLS)
    assert found.command == str(place.folder / "node_modules" / ".bin" / "server")
    assert (found.package, found.failed_scripts) == ("server@1.2.3", False)
    assert not (place.folder / "cache").exists()
    assert await installed(place, INSTALLS, "-y", "server", "--flag") == found
    assert place.runs == 1
    await installed(place, INSTALLS, "server@1.2.3")
    assert place.runs == 2


async def test_only_variables_for_installers_are_given(place: Place) -> None:
    await installed(place, INSTALLS)
    given = (place.folder / "node_modules" / "environment").read_text()
    assert "npm_config_registry=https://a.example\n" in given
    assert "npm_config_color=false\n" in given
    assert "canary" not in given


async def test_nothing_is_left_of_an_installation_that_fails(place: Place) -> None:
    with pytest.raises(InstallationFailed) as caught:
        await installed(place, FAILS)
    assert str(caught.value) == (
        "npx cannot install server: npm error code E401; the login in ~/.npmrc is not given to"
        " installers"
    )
    assert [each.suffix for each in place.folder.parent.iterdir()] == [".lock"]


async def test_an_installation_that_was_interrupted_is_begun_again(place: Place) -> None:
    place.folder.mkdir(parents=True)
    (place.folder / "half").touch()
    await installed(place, INSTALLS)
    assert not (place.folder / "half").exists()


async def test_a_missing_installer_is_named(place: Place) -> None:
    command = parse_package_command("bunx", ("server",))
    assert command is not None
    with pytest.raises(InstallationFailed, match="there is no program bun on this machine"):
        await install(command, place.folder, place.start(INSTALLS), lambda _seconds: None)
