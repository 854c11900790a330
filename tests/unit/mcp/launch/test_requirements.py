"""Missing requirements of definitions, and the sentences about them."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.ports.sandbox import SandboxCapabilities
from internal.mcp.definitions import ServerDefinition
from internal.mcp.launch.downloaders import PackageCommand
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


def test_what_a_downloader_starts_is_to_be_installed(programs: Path) -> None:
    found = lacking(programs, "uvx", "mcp-server-time", "--zone", "a b")
    assert found is not None
    assert found.download == PackageCommand(
        "uvx", "uv", "python", ("mcp-server-time",), args=("--zone", "a b")
    )
    assert found.problem == ("uvx downloads what it starts, and mcp-server-time is not installed")
    assert (found.is_hopeless, found.network) == (False, "")


def test_a_download_that_is_not_understood_needs_the_network(programs: Path) -> None:
    argv = ("uv", "run", "server.py")
    found = lacking(programs, *argv)
    assert found is not None
    assert (found.download, found.network) == (None, "registries")
    assert "uv downloads what it starts, and isolated commands have no network" in found.problem
    completed = found.complete({"command": "uv", "args": [*argv[1:]], "read_only": ["/data"]})
    assert completed == {
        "command": str(programs / "uv"),
        "args": ["run", "server.py"],
        "read_only": ["/data", str(programs / "uv")],
        "network": "registries",
    }
    again = lacking(
        programs,
        completed["command"],
        *completed["args"],
        read_only=tuple(completed["read_only"]),
        network=("network(registry.npmjs.org)",),
    )
    assert again is None


def test_a_complete_definition_lacks_nothing(programs: Path) -> None:
    assert lacking(programs, "sh", "-c", "true") is None
    server = programs / "uv"
    assert lacking(programs, str(server), "version", read_only=(str(programs),)) is not None
    assert lacking(programs, str(programs / "our-node"), read_only=(str(programs),)) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no-such", "there is no program no-such on this machine"),
        (
            "pipx",
            "there is no program pipx on this machine; install pipx (https://pipx.pypa.io)",
        ),
        (
            "bunx",
            "there is no program bunx on this machine; install bun (https://bun.sh)",
        ),
    ],
)
def test_a_missing_program_is_named_with_what_brings_it(
    programs: Path, name: str, problem: str
) -> None:
    found = lacking(programs, name, "x")
    assert found is not None
    assert (found.problem, found.is_hopeless) == (problem, True)


def test_without_hosts_a_downloader_cannot_be_used(programs: Path) -> None:
    able = SandboxCapabilities(isolated=True, path=PATH)
    found = lacking(programs, "npx", "-y", "@scope/server", able=able)
    assert found is not None
    assert found.is_hopeless
    assert found.problem == (
        "npx downloads what it starts, and commands reach no hosts in this sandbox"
    )
    assert found.instead == (
        "run npm install --global @scope/server and add the program that it installs"
    )


def test_a_container_is_refused_where_commands_are_isolated(programs: Path) -> None:
    found = lacking(programs, "docker", "run", "-i", "mcp/time")
    assert found is not None
    assert found.is_hopeless
    assert found.problem.startswith("docker starts containers with a service of this machine")
    assert lacking(programs, "sh", able=SandboxCapabilities(path=PATH)) is None


def test_the_program_of_a_project_is_started_with_arguments_as_they_are_written(
    programs: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    assert (lacking(programs, "uv", "--directory", str(project), "run", "serve")) is not None
    for name in ("python", "serve"):
        (project / ".venv" / "bin" / name).touch(0o755)
    argv = ("--directory", str(project), "run", "serve", "--key")
    found = lacking(programs, "uv", *argv, "canary")
    assert found is not None
    completed = found.complete({"command": "uv", "args": [*argv, "${KEY}"]})
    assert completed["command"] == f"{project}/.venv/bin/serve"
    assert completed["args"] == ["--key", "${KEY}"]
    assert completed["read_only"] == [str(project)]


def test_arguments_that_exist_are_readable(programs: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    found = lacking(programs, "sh", str(data), f"--more={programs}", "/no/such/folder", "word")
    assert found is not None
    assert found.read_only == (str(programs), str(data))


def test_without_isolation_only_the_path_of_the_program_is_needed(programs: Path) -> None:
    found = lacking(programs, "our-node", "x", able=SandboxCapabilities(path=PATH))
    assert found is not None
    assert found.complete({"args": ["x"]}) == {
        "command": str(programs / "our-node"),
        "args": ["x"],
    }


def test_a_program_that_another_one_starts_extends_the_path(programs: Path) -> None:
    (programs / "server").write_text("#!/usr/bin/env our-node\n")
    (programs / "server").chmod(0o755)
    found = lacking(programs, str(programs / "server"), env={"PATH": PATH, "A": "1"})
    assert found is not None
    assert "a program that it starts is not in their PATH" in found.problem
    entry = {"command": "server", "env": {"A": "1"}}
    assert found.complete(entry)["env"] == {"A": "1", "PATH": f"{programs}:{PATH}"}


def test_addresses_and_containers_have_no_program_here(programs: Path) -> None:
    address = ServerDefinition("tested", url="https://example.com/mcp")
    assert find_requirements(address, ISOLATED, own_path="") is None
    container = SandboxCapabilities(isolated=True)
    assert lacking(programs, "uvx", "mcp-server-time", able=container) is None
