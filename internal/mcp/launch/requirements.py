"""What a definition lacks for its command to start in the sandbox."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from internal.agent.ports.sandbox import SandboxCapabilities
from internal.mcp.definitions import ServerDefinition
from internal.mcp.launch.program_files import ProgramFiles

_INSTALLERS: Mapping[str, str] = {
    "uvx": "uv tool install {package}",
    "npx": "npm install --global {package}",
    "uv": "",
    "npm": "",
    "pnpm": "",
    "yarn": "",
    "bunx": "",
    "bun": "",
    "pipx": "",
}
"""Programs that download what they start, with the command that installs it instead."""
_NETWORK = "registries"


class Requirements(NamedTuple):
    """What to change in a definition.

    `missing` are programs that are not on this machine. `command` is how the sandbox finds the
    program: its path if it `is_elsewhere` than in the PATH of commands. `read_only` and `network`
    are to be added, `path` is the PATH to set, "" for none.
    `needs_hosts` is true if `network` cannot be granted by this sandbox. `install` is a command
    that makes the network unnecessary, "" if none is known.
    """

    command: str
    args: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    network: str = ""
    path: str = ""
    is_elsewhere: bool = False
    needs_hosts: bool = False
    install: str = ""

    @property
    def flags(self) -> str:
        """The options of `larkspur mcp add` to add, and the command line at its end."""
        options = [part for path in self.read_only for part in ("--read", path)]
        options += ["--network", self.network] if self.network else []
        options += ["--env", f"PATH={self.path}"] if self.path else []
        return shlex.join([*options, "--", self.command, *self.args])

    @property
    def problem(self) -> str:
        """Why the command cannot start as it is defined, as the end of a sentence."""
        if self.missing:
            return f"there is no program {', '.join(self.missing)} on this machine"
        if self.needs_hosts:
            return (
                f"{Path(self.command).name} downloads what it starts, and commands reach no"
                " hosts in this sandbox"
            )
        name = Path(self.command).name
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
    def advice(self) -> str:
        """The problem and what helps, as the end of a sentence."""
        if self.missing:
            return self.problem
        instead = f"{self.install} and add the program that it installs" if self.install else ""
        if self.needs_hosts:
            return f"{self.problem}{f'; run {instead}' if instead else ''}"
        also = f", or run {instead}" if instead else ""
        return f"{self.problem}; remove it and add it with {self.flags}{also}"

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
    path = definition.env.get("PATH", able.path)
    granted = (*definition.read_only, *definition.writable)
    readable = (*granted, *able.read_only, *((definition.cwd,) if definition.cwd else ()))
    files = ProgramFiles(
        readable if able.isolated else ("/",), path=path, own_path=own_path, home=Path.home()
    )
    command = files.add_program(definition.command)
    if files.missing:
        return Requirements(command, definition.args, missing=tuple(files.missing))
    network = install = ""
    if able.isolated:
        for argument in definition.args:
            value = argument.partition("=")[2] if argument.startswith("-") else argument
            if value.startswith("/") and Path(value).exists():
                files.add_argument(Path(value))
        name = Path(command).name
        if name in _INSTALLERS and not definition.network:
            network, install = _NETWORK, _INSTALLERS[name]
    found = Requirements(
        command,
        definition.args,
        read_only=files.added,
        network=network if able.hosts else "",
        path=files.path if files.path != path else "",
        is_elsewhere=command != definition.command,
        needs_hosts=bool(network) and not able.hosts,
        install=_install(install, definition.args),
    )
    is_lacking = found.read_only or network or found.path or found.is_elsewhere
    return found if is_lacking else None


def _install(template: str, args: tuple[str, ...]) -> str:
    """Return the command that installs the package that the arguments name first."""
    package = next((each for each in args if not each.startswith("-")), "")
    return template.format(package=shlex.quote(package)) if template and package else ""
