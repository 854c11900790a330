"""The program of the installed packages that a command line starts."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from internal.mcp.launch.downloaders import PackageCommand, npm_name, python_name
from internal.mcp.limits import ServerFailure

_MAX_SHOWN = 8


class InstalledProgram(msgspec.Struct, frozen=True):
    """A program, by its path, and the package that it is of, with the version.

    `failed_scripts` is true for packages that were installed without their own scripts, since these
    failed.
    """

    command: str
    package: str
    failed_scripts: bool = False


def find_program(command: PackageCommand, place: Path) -> InstalledProgram:
    """Return the program in a folder with installed packages. Blocks.

    Raises:
        ServerFailure: there is none of this name; the programs that there are are named.
    """
    if command.ecosystem == "python":
        return _find_python_program(command, place)
    return _find_npm_program(command, place)


def _find_python_program(command: PackageCommand, place: Path) -> InstalledProgram:
    environment = next(
        (
            one.parent
            for folder in ("tools", "venvs")
            for one in place.glob(f"{folder}/*/pyvenv.cfg")
        ),
        None,
    )
    if environment is None:
        raise ServerFailure(f"{command.shown} was not installed as a package with programs")
    name = environment.name
    own = sorted(one.name for one in (place / "bin").glob("*"))
    names = [command.program] if command.program else [_typed_name(command), name, *own[:1]]
    if not command.program and len(own) != 1:
        names = names[:2]
    package = f"{name}=={_python_version(environment, name)}"
    for each in filter(None, names):
        program = environment / "bin" / each
        if program.is_file():
            return InstalledProgram(str(program), package)
    raise _no_program(
        command, names[0] or name, own, f"uvx --from {shlex.quote(command.packages[0])}"
    )


def _typed_name(command: PackageCommand) -> str:
    first = command.packages[0]
    normal = python_name(first)
    return first[: len(normal)] if normal else ""


def _python_version(environment: Path, name: str) -> str:
    for found in environment.glob("lib/python3*/site-packages/*.dist-info"):
        package, _, version = found.name.removesuffix(".dist-info").partition("-")
        if python_name(package) == python_name(name):
            return version
    return "?"


def _find_npm_program(command: PackageCommand, place: Path) -> InstalledProgram:
    modules = place / "node_modules"
    listed = _json(place / "package.json").get("dependencies")
    dependencies = [*listed] if isinstance(listed, Mapping) else []
    wanted = npm_name(command.packages[0])
    others = {npm_name(one) for one in command.packages[1:]}
    left = [one for one in dependencies if one not in others]
    name = wanted if wanted in dependencies else next(iter(left), wanted)
    manifest = _json(modules / name / "package.json")
    package = f"{name}@{manifest.get('version', '?')}"
    programs = _npm_programs(name, manifest)
    chosen = command.program or _default_program(name, programs)
    program = modules / ".bin" / chosen
    if chosen and program.exists():
        return InstalledProgram(str(program), package)
    raise _no_program(
        command, chosen or name, sorted(programs), f"npx -y -p {shlex.quote(command.packages[0])}"
    )


def _npm_programs(name: str, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the programs of a package with their files."""
    given = manifest.get("bin")
    if isinstance(given, str):
        return {name.rpartition("/")[2]: given}
    if isinstance(given, Mapping):
        return {str(key).rpartition("/")[2]: str(value) for key, value in given.items()}
    return {}


def _default_program(name: str, programs: Mapping[str, str]) -> str:
    """Return the program that `npx` starts: the only one, or that with the name of the package."""
    if len(set(programs.values())) == 1:
        return next(iter(programs))
    unscoped = name.rpartition("/")[2]
    return unscoped if unscoped in programs else ""


def _no_program(
    command: PackageCommand, wanted: str, programs: list[str], start: str
) -> ServerFailure:
    if not programs:
        return ServerFailure(f"{command.shown} has no program that could be started")
    listed = ", ".join(programs[:_MAX_SHOWN])
    return ServerFailure(
        f"{command.shown} has no program {wanted}, only {listed}; name one of them:"
        f" {start} {programs[0]}"
    )


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
