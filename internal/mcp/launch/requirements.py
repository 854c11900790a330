"""Missing requirements of a definition whose command is to start in the sandbox."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from internal.agent.ports.sandbox import SandboxCapabilities
from internal.mcp.definitions import ServerDefinition
from internal.mcp.launch.downloaders import (
    PackageCommand,
    parse_package_command,
    starts_containers,
)
from internal.mcp.launch.program_files import ProgramFiles
from internal.mcp.launch.project_runs import ProjectRun, find_project_run

_INSTALLERS: Mapping[str, str] = {
    "uvx": "uv tool install {package}",
    "npx": "npm install --global {package}",
    "uv": "",
    "npm": "",
    "pnpm": "",
    "pnpx": "",
    "yarn": "",
    "bunx": "",
    "bun": "",
    "pipx": "",
    "deno": "",
}
"""Programs that download the program to start, with the command that installs it instead."""
_SOURCES: Mapping[str, str] = {
    "uv": "uv (https://docs.astral.sh/uv)",
    "npx": "Node.js with npm (https://nodejs.org)",
    "pipx": "pipx (https://pipx.pypa.io)",
    "pnpm": "pnpm (https://pnpm.io)",
    "bun": "bun (https://bun.sh)",
}
"""Ways to install a missing program."""
_BRING = {"uvx": "uv", "npm": "npx", "node": "npx", "pnpx": "pnpm", "bunx": "bun"}
_NETWORK = "registries"


class Requirements(NamedTuple):
    """Changes that a definition needs.

    `missing` are programs that are not on this machine. `command` is the name by which the sandbox
    finds the program: its path if it `is_elsewhere` than in the PATH of commands. `read_only` and
    `network` are to be added, `path` is the PATH to set, "" to leave it. `download` are packages to
    install first, whose program is started instead. `needs_hosts` is true if this sandbox cannot
    grant the network, `needs_service` if the command needs a service of the machine. `unsynced` is
    a project without an environment, `run` the program of a project that is started instead.
    `install` is a command that makes the network unnecessary, "" if none is known.
    """

    command: str
    args: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    network: str = ""
    path: str = ""
    is_elsewhere: bool = False
    download: PackageCommand | None = None
    needs_hosts: bool = False
    needs_service: bool = False
    unsynced: str = ""
    run: ProjectRun | None = None
    install: str = ""

    @property
    def is_hopeless(self) -> bool:
        """True if no option of `larkspur mcp add` helps."""
        return bool(self.missing or self.needs_hosts or self.needs_service or self.unsynced)

    @property
    def problem(self) -> str:
        """The reason why the command cannot start as defined, as the end of a sentence."""
        name = Path(self.command).name
        if self.missing:
            return _describe_missing(self.missing)
        if self.needs_service:
            return (
                f"{name} starts containers with a service of this machine, which isolated commands"
                " do not reach; add the package of the server, with uvx or npx, or its address,"
                " with --url"
            )
        if self.unsynced:
            return (
                f"the project {self.unsynced} has no environment, and isolated commands cannot make"
                f" one there; run: uv sync --directory {shlex.quote(self.unsynced)}"
            )
        if self.needs_hosts:
            return f"{name} downloads what it starts, and commands reach no hosts in this sandbox"
        if self.download is not None:
            return f"{name} downloads what it starts, and {self.download.shown} is not installed"
        reasons = [f"commands do not find {name}"] if self.is_elsewhere else []
        if self.read_only:
            reasons.append(f"isolated commands do not see {', '.join(self.read_only)}")
        if self.network:
            reasons.append(
                f"{name} downloads what it starts, and isolated commands have no network"
            )
        if self.path:
            reasons.append("a program that it starts is not in their PATH")
        return "; ".join(reasons)

    @property
    def instead(self) -> str:
        """A way to do without the network, as the end of a sentence; "" if none is known."""
        return f"run {self.install} and add the program that it installs" if self.install else ""

    def complete(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry of `mcpServers` with all of it."""
        completed = {**entry, "command": self.command}
        if self.run is not None:
            kept = _last(tuple(entry.get("args", ())), self.run.kept)
            completed["args"] = [*self.run.argv[1:], *kept]
        if self.read_only:
            completed["read_only"] = [*entry.get("read_only", ()), *self.read_only]
        if self.network:
            completed["network"] = self.network
        if self.path:
            completed["env"] = {**entry.get("env", {}), "PATH": self.path}
        return completed


def find_requirements(
    definition: ServerDefinition, able: SandboxCapabilities, *, own_path: str
) -> Requirements | None:
    """Return the missing requirements of a command for a sandbox with these capabilities. Blocks.

    `own_path` is the PATH of the person. Returns None if nothing is known to be missing. That is
    always so for an address, and for a container, which has programs of its own.
    """
    if not definition.command or not able.path:
        return None
    if able.isolated and (obstacle := _find_obstacle(definition, able)) is not None:
        return obstacle
    download = parse_package_command(definition.command, definition.args)
    run = find_project_run(definition.command, definition.args, definition.cwd)
    if run is not None and able.isolated:
        args = (*run.argv[1:], *_last(definition.args, run.kept))
        definition = msgspec.structs.replace(definition, command=run.argv[0], args=args)
        download = None
    files = program_files(definition, able, own_path=own_path)
    path = files.path
    command = files.add_program(definition.command)
    if files.missing:
        return Requirements(command, definition.args, missing=tuple(files.missing))
    if download is not None:
        install = _install(definition)
        return Requirements(command, definition.args, download=download, install=install)
    if able.isolated:
        _add_arguments(files, definition, run)
    needs_network = able.isolated and downloads(definition) and not definition.network
    found = Requirements(
        command,
        definition.args,
        read_only=files.added,
        network=_NETWORK if needs_network else "",
        path=files.path if files.path != path else "",
        is_elsewhere=run is not None or command != definition.command,
        run=run if able.isolated else None,
    )
    is_lacking = found.read_only or found.network or found.path or found.is_elsewhere
    return found if is_lacking else None


def _find_obstacle(definition: ServerDefinition, able: SandboxCapabilities) -> Requirements | None:
    """Return the obstacle that no option removes in an isolating sandbox, None if none is known."""
    command, args = definition.command, definition.args
    if starts_containers(command):
        return Requirements(command, args, needs_service=True)
    run = find_project_run(command, args, definition.cwd)
    if run is not None:
        return None if run.argv else Requirements(command, args, unsynced=str(run.folder))
    if not able.hosts and not definition.network and downloads(definition):
        return Requirements(command, args, needs_hosts=True, install=_install(definition))
    return None


def _last(args: tuple[str, ...], count: int) -> tuple[str, ...]:
    return args[len(args) - count :]


def _add_arguments(
    files: ProgramFiles, definition: ServerDefinition, run: ProjectRun | None
) -> None:
    """Make the paths among the arguments readable, and the project of a program."""
    if run is not None:
        files.add_argument(run.folder)
    for argument in definition.args:
        value = argument.partition("=")[2] if argument.startswith("-") else argument
        if value.startswith("/") and Path(value).exists():
            files.add_argument(Path(value))


def downloads(definition: ServerDefinition) -> bool:
    """Return True for a command that may download the program that it starts."""
    return Path(definition.command).name in _INSTALLERS


def program_files(
    definition: ServerDefinition, able: SandboxCapabilities, *, own_path: str
) -> ProgramFiles:
    """Return the collector of program files for the command of a definition."""
    granted = (*definition.read_only, *definition.writable)
    readable = (*granted, *able.read_only, *((definition.cwd,) if definition.cwd else ()))
    return ProgramFiles(
        readable if able.isolated else ("/",),
        path=definition.env.get("PATH", able.path),
        own_path=own_path,
        home=Path.home(),
    )


def _describe_missing(missing: tuple[str, ...]) -> str:
    names = [Path(name).name for name in missing]
    brought = dict.fromkeys(_SOURCES.get(_BRING.get(name, name), "") for name in names)
    sources = [source for source in brought if source]
    also = f"; install {' and '.join(sources)}" if sources else ""
    return f"there is no program {', '.join(missing)} on this machine{also}"


def _install(definition: ServerDefinition) -> str:
    """Return the command that installs the package that the arguments name first."""
    template = _INSTALLERS.get(Path(definition.command).name, "")
    package = next((each for each in definition.args if not each.startswith("-")), "")
    return template.format(package=shlex.quote(package)) if template and package else ""
