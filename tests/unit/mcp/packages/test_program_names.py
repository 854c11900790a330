"""Choice of the program to start in an installation."""

import json
from pathlib import Path
from typing import Any

import pytest

from internal.mcp.launch.downloaders import PackageCommand, parse_package_command
from internal.mcp.limits import ServerFailure
from internal.mcp.packages.program_names import find_program


def parsed(command: str, *args: str) -> PackageCommand:
    found = parse_package_command(command, args)
    assert found is not None
    return found


def python_package(place: Path, *programs: str, own: tuple[str, ...] = ()) -> Path:
    environment = place / "tools" / "my-server"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").touch()
    for name in programs:
        (environment / "bin" / name).touch()
    (place / "bin").mkdir()
    for name in own:
        (place / "bin" / name).symlink_to(environment / "bin" / name)
    packages = environment / "lib" / "python3.12" / "site-packages"
    (packages / "my_server-1.2.dist-info").mkdir(parents=True)
    return environment


def npm_package(place: Path, name: str, programs: Any) -> Path:
    modules = place / "node_modules"
    (modules / name).mkdir(parents=True)
    manifest = {"name": name, "version": "3.4.5", "bin": programs}
    (modules / name / "package.json").write_text(json.dumps(manifest))
    (modules / ".bin").mkdir()
    (place / "package.json").write_text(json.dumps({"dependencies": {name: "^3"}}))
    for each in programs if isinstance(programs, dict) else [name.rpartition("/")[2]]:
        (modules / ".bin" / each).touch()
    return modules / ".bin"


def test_a_program_has_the_name_of_its_package(tmp_path: Path) -> None:
    environment = python_package(tmp_path, "my-server", "other")
    found = find_program(parsed("uvx", "My-Server[x]==1.2"), tmp_path)
    assert found.command == str(environment / "bin" / "my-server")
    assert found.package == "my-server==1.2"


def test_the_only_program_of_a_package_may_have_another_name(tmp_path: Path) -> None:
    environment = python_package(tmp_path, "serve", own=("serve",))
    found = find_program(parsed("uvx", "my-server"), tmp_path)
    assert found.command == str(environment / "bin" / "serve")


def test_of_several_programs_one_has_to_be_named(tmp_path: Path) -> None:
    environment = python_package(tmp_path, "a", "b", own=("a", "b"))
    with pytest.raises(ServerFailure, match="has no program my-server, only a, b; name one of"):
        find_program(parsed("uvx", "my-server"), tmp_path)
    found = find_program(parsed("uvx", "--from", "my-server", "b"), tmp_path)
    assert found.command == str(environment / "bin" / "b")


@pytest.mark.parametrize(
    ("programs", "program"),
    [
        ("cli.js", "server"),
        ({"serve": "cli.js"}, "serve"),
        ({"a": "a.js", "server": "b.js"}, "server"),
    ],
)
def test_npx_starts_the_only_program_or_that_of_the_package(
    tmp_path: Path, programs: Any, program: str
) -> None:
    folder = npm_package(tmp_path, "@scope/server", programs)
    found = find_program(parsed("npx", "-y", "@scope/server@latest"), tmp_path)
    assert found.command == str(folder / program)
    assert found.package == "@scope/server@3.4.5"


def test_a_package_of_an_address_is_the_one_that_was_installed(tmp_path: Path) -> None:
    folder = npm_package(tmp_path, "server", "cli.js")
    found = find_program(parsed("npx", "github:ada/server"), tmp_path)
    assert found.command == str(folder / "server")


def test_a_package_without_programs_is_refused(tmp_path: Path) -> None:
    npm_package(tmp_path, "server", {})
    with pytest.raises(ServerFailure, match="server has no program that could be started"):
        find_program(parsed("npx", "server"), tmp_path)
    with pytest.raises(ServerFailure, match="was not installed as a package with programs"):
        find_program(parsed("uvx", "server"), tmp_path)
