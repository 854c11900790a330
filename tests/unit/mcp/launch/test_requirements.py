"""What definitions lack, and how it is told."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.ports.sandbox import SandboxCapabilities
from internal.mcp.definitions import ServerDefinition
from internal.mcp.launch.requirements import Requirements, find_requirements

PATH = "/usr/bin:/bin"
ISOLATED = SandboxCapabilities(isolated=True, hosts=True, path=PATH)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("uv", "uvx", "npx", "our-node"):
        (folder / name).write_text("\x7fELF")
        (folder / name).chmod(0o755)
    return folder


def lacking(
    programs: Path, *argv: str, able: SandboxCapabilities = ISOLATED, **options: Any
) -> Requirements | None:
    definition = ServerDefinition("tested", command=argv[0], args=argv[1:], **options)
    return find_requirements(definition, able, own_path=str(programs))


def test_a_downloader_gets_the_files_and_the_network(programs: Path) -> None:
    found = lacking(programs, "uvx", "mcp-server-time", "--zone", "a b")
    assert found is not None
    uv, uvx = programs / "uv", programs / "uvx"
    assert found.flags == (
        f"--read {uv} --read {uvx} --network registries -- {uvx} mcp-server-time --zone 'a b'"
    )
    assert found.advice == (
        f"commands do not find uvx; isolated commands do not see {uv}, {uvx}; uvx downloads what it"
        f" starts, and isolated commands have no network; remove it and add it with {found.flags},"
        " or run uv tool install mcp-server-time and add the program that it installs"
    )
    entry = {"command": "uvx", "args": ["mcp-server-time"], "read_only": ["/data"], "risk": "read"}
    assert found.complete(entry) == {
        "command": str(uvx),
        "args": ["mcp-server-time"],
        "read_only": ["/data", str(uv), str(uvx)],
        "network": "registries",
        "risk": "read",
    }


def test_a_complete_definition_lacks_nothing(programs: Path) -> None:
    assert lacking(programs, "sh", "-c", "true") is None
    complete = lacking(
        programs,
        str(programs / "uvx"),
        "mcp-server-time",
        read_only=(str(programs),),
        network=("network(pypi.org)",),
    )
    assert complete is None


def test_a_completed_definition_lacks_nothing(programs: Path) -> None:
    found = lacking(programs, "uvx", "mcp-server-time")
    assert found is not None
    assert (
        lacking(
            programs,
            found.command,
            *found.args,
            read_only=found.read_only,
            network=(found.network,),
        )
        is None
    )


def test_a_missing_program_is_named(programs: Path) -> None:
    found = lacking(programs, "no-such", "x")
    assert found is not None
    assert found.advice == "there is no program no-such on this machine"


def test_without_hosts_a_downloader_cannot_be_used(programs: Path) -> None:
    able = SandboxCapabilities(isolated=True, path=PATH)
    found = lacking(programs, "npx", "-y", "@scope/server", able=able)
    assert found is not None
    assert (found.network, found.needs_hosts) == ("", True)
    assert found.advice == (
        "npx downloads what it starts, and commands reach no hosts in this sandbox;"
        " run npm install --global @scope/server and add the program that it installs"
    )


def test_arguments_that_exist_are_readable(programs: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    found = lacking(programs, "sh", str(data), f"--more={programs}", "/no/such/folder", "word")
    assert found is not None
    assert found.read_only == (str(programs), str(data))


def test_without_isolation_only_the_path_of_the_program_is_needed(programs: Path) -> None:
    found = lacking(programs, "uvx", "mcp-server-time", able=SandboxCapabilities(path=PATH))
    assert found is not None
    assert found.flags == f"-- {programs / 'uvx'} mcp-server-time"


def test_a_program_that_another_one_starts_extends_the_path(programs: Path) -> None:
    (programs / "server").write_text("#!/usr/bin/env our-node\n")
    (programs / "server").chmod(0o755)
    found = lacking(programs, str(programs / "server"), env={"PATH": PATH, "A": "1"})
    assert found is not None
    assert f"--env PATH={programs}:{PATH} --" in found.flags
    assert "a program that it starts is not in their PATH" in found.problem
    entry = {"command": "server", "env": {"A": "1"}}
    assert found.complete(entry)["env"] == {"A": "1", "PATH": f"{programs}:{PATH}"}


def test_addresses_and_containers_have_no_program_here(programs: Path) -> None:
    address = ServerDefinition("tested", url="https://example.com/mcp")
    assert find_requirements(address, ISOLATED, own_path="") is None
    container = SandboxCapabilities(isolated=True)
    assert lacking(programs, "uvx", "mcp-server-time", able=container) is None
