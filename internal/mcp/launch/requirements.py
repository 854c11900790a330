"""What a definition lacks for its command to start in the sandbox."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from internal.agent.ports.sandbox import SandboxCapabilities
from internal.mcp.definitions import ServerDefinition
from internal.mcp.launch.downloaders import (
    PackageCommand,
    parse_package_command,
    starts_containers,
)
from internal.mcp.launch.program_files import ProgramFiles

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
"""Programs that download what they start, with the command that installs it instead."""
_SOURCES: Mapping[str, str] = {
    "uv": "uv (https://docs.astral.sh/uv)",
    "npx": "Node.js with npm (https://nodejs.org)",
    "pipx": "pipx (https://pipx.pypa.io)",
    "pnpm": "pnpm (https://pnpm.io)",
    "bun": "bun (https://bun.sh)",
}
"""What brings a program that is missing."""
_BRING = {"uvx": "uv", "npm": "npx", "node": "npx", "pnpx": "pnpm", "bunx": "bun"}
_NETWORK = "registries"


class Requirements(NamedTuple):
    """What to change in a definition.

    `missing` are programs that are not on this machine. `command` is how the sandbox finds the
    program: its path if it `is_elsewhere` than in the PATH of commands. `read_only` and `network`
    are to be added, `path` is the PATH to set, "" for none. `download` are packages to install
    first, whose program is started instead. `needs_hosts` is true if the network cannot be granted
    by this sandbox, `needs_service` if the command needs a service of the machine. `install` is a
    command that makes the network unnecessary, "" if none is known.
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
    install: str = ""

    @property
    def is_hopeless(self) -> bool:
        """True if no option of `larkspur mcp add` helps."""
        return bool(self.missing or self.needs_hosts or self.needs_service)

    @property
    def problem(self) -> str:
        """Why the command cannot start as it is defined, as the end of a sentence."""
        name = Path(self.command).name
        if self.missing:
            return _describe_missing(self.missing)
        if self.needs_service:
            return (
                f"{name} starts containers with a service of this machine, which isolated commands"
                " do not reach; add the package of the server, with uvx or npx, or its address,"
                " with --url"
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
        """What makes the network unnecessary, as the end of a sentence; "" if nothing is known."""
        return f"run {self.install} and add the program that it installs" if self.install else ""

    def complete(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry of `mcpServers` with all of it."""
        completed = {**entry, "command": self.command}
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
    """Return what a command lacks to start in a sandbox with these capabilities. Blocks.

    `own_path` is the PATH of the person. None if nothing is known to be lacking, or if nothing can
    be known: of an address, and of a container, which has programs of its own.
    """
    if not definition.command or not able.path:
        return None
    if able.isolated and starts_containers(definition.command):
        return Requirements(definition.command, definition.args, needs_service=True)
    files = program_files(definition, able, own_path=own_path)
    path = files.path
    command = files.add_program(definition.command)
    if files.missing:
        return Requirements(command, definition.args, missing=tuple(files.missing))
    name = Path(command).name
    downloads = definition.command and Path(definition.command).name in _INSTALLERS
    install = _install(_INSTALLERS.get(name, ""), definition.args)
    if downloads and able.isolated and not able.hosts:
        if not definition.network:
            return Requirements(command, definition.args, needs_hosts=True, install=install)
    elif (download := parse_package_command(definition.command, definition.args)) is not None:
        return Requirements(command, definition.args, download=download, install=install)
    if able.isolated:
        for argument in definition.args:
            value = argument.partition("=")[2] if argument.startswith("-") else argument
            if value.startswith("/") and Path(value).exists():
                files.add_argument(Path(value))
    found = Requirements(
        command,
        definition.args,
        read_only=files.added,
        network=_NETWORK if downloads and able.isolated and not definition.network else "",
        path=files.path if files.path != path else "",
        is_elsewhere=command != definition.command,
    )
    is_lacking = found.read_only or found.network or found.path or found.is_elsewhere
    return found if is_lacking else None


def program_files(
    definition: ServerDefinition, able: SandboxCapabilities, *, own_path: str
) -> ProgramFiles:
    """Return what finds the files of programs for the command of a definition."""
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


def _install(template: str, args: tuple[str, ...]) -> str:
    """Return the command that installs the package that the arguments name first."""
    package = next((each for each in args if not each.startswith("-")), "")
    return template.format(package=shlex.quote(package)) if template and package else ""
