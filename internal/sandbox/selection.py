"""Opens the sandbox that the settings name, after proving that it isolates."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import structs

from internal.agent.domain.errors import SandboxUnavailable
from internal.agent.ports.sandbox import Sandbox, SandboxCapabilities
from internal.landlock.rules import MIN_VERSION, supported_version
from internal.sandbox.bubblewrap import PROGRAM, BubblewrapSandbox
from internal.sandbox.container import ContainerSandbox
from internal.sandbox.environment import DEFAULT_PATH, CommandEnvironment
from internal.sandbox.landlock import LandlockSandbox
from internal.sandbox.limits.control_groups import ControlGroups
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.limits.system_calls import calls_denied_without_namespaces
from internal.sandbox.native import NativeSandbox
from internal.sandbox.packages import PackageEnvironment
from internal.sandbox.probe import Wall, probe_sandbox
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.workspaces import SessionFolders

logger = logging.getLogger(__name__)

Provider = Literal["auto", "bubblewrap", "landlock", "container", "native"]

_NO_LANDLOCK = (
    "This machine does not offer Landlock as it is needed here (version {found}; needed: {needed},"
    " which is Linux 6.12 or newer, on x86-64 or ARM64). Use bubblewrap, or set sandbox.provider to"
    " native."
)
_NO_IMAGE = (
    "The sandbox container needs an image with bash that is on this machine: name it in"
    " sandbox.image."
)
_MISSING = (
    f"bubblewrap is not installed ({PROGRAM}). Install it, for example with"
    " apt-get install bubblewrap, or set sandbox.provider to native."
)
_REFUSED = (
    "Commands cannot be isolated on this machine: {reason} See docs/sandbox.md, or set"
    " sandbox.provider to native to run commands without isolation."
)
_NO_NAMESPACES = (
    "the kernel, AppArmor or a container's seccomp profile refuses user namespaces ({said})."
)


class ContainerSettings(NamedTuple):
    """The container engine: docker, podman or the path of a program like them; and the image."""

    engine: str = "docker"
    image: str = ""


_NO_CONTAINER = ContainerSettings()


class Inspection(NamedTuple):
    """Findings about one sandbox; `missing` is the reason why there is none to probe."""

    provider: str
    walls: list[Wall]
    missing: str = ""
    capabilities: SandboxCapabilities = SandboxCapabilities()

    @property
    def holds(self) -> bool:
        """True if the sandbox isolates."""
        return self.capabilities.isolated and all(wall.holds for wall in self.walls)


@asynccontextmanager
async def open_sandbox(
    provider: Provider,
    homes: SessionFolders,
    private: PrivatePlaces,
    *,
    private_networks: bool = False,
    read_only: Iterable[Path] = (),
    skills: Iterable[Path] = (),
    packages: PackageEnvironment | None = None,
    container: ContainerSettings = _NO_CONTAINER,
    time_zone: str = "",
) -> AsyncGenerator[Sandbox]:
    """Open the sandbox. A sandbox chosen by name is used or refused: there is no fallback.

    `auto` takes the strongest that isolates on this machine: bubblewrap, landlock, else native.

    Args:
        provider: the value of `sandbox.provider`.
        homes: the private folders of the sessions.
        private: the files and folders of Larkspur itself.
        private_networks: let commands reach permitted hosts on private networks.
        read_only: paths that every command may read besides the programs of the machine.
        skills: the folders of skills, which commands may read.
        packages: the Python packages of commands.
        container: for the provider `container`.
        time_zone: the time zone of commands; "" for the machine's.

    Raises:
        SandboxUnavailable: the chosen sandbox is missing, or lets a command out.
    """
    readable = tuple(map(str, read_only))
    options = _Options(
        homes,
        private,
        private_networks,
        readable,
        skills=tuple(map(str, skills)),
        packages=packages,
        container=container,
        time_zone=time_zone,
    )
    async with AsyncExitStack() as stack:
        sandbox: Sandbox | None = None
        for candidate in _candidates(provider):
            try:
                found = await stack.enter_async_context(_open(candidate, options))
                await require_isolation(found, homes)
            except SandboxUnavailable as error:
                if provider != "auto":
                    raise
                logger.info(
                    "this sandbox is not used",
                    extra={"provider": candidate, "reason": str(error)},
                )
            else:
                sandbox = found
                break
        if sandbox is None:
            native = sandbox = options.native()
            stack.callback(native.close)
        able = options.complete(sandbox.capabilities)
        path = "" if sandbox.provider == "container" else options.environment().path
        sandbox.capabilities = structs.replace(able, path=path)
        yield sandbox


async def require_isolation(sandbox: Sandbox, homes: SessionFolders) -> None:
    """Try to get out of a sandbox, and note in its capabilities which runtimes it has.

    Raises:
        SandboxUnavailable: it was possible.
    """
    for wall in await _probe(sandbox, homes):
        if not wall.holds:
            raise SandboxUnavailable(_REFUSED.format(reason=_explain(wall)))


async def inspect_sandbox(
    provider: Provider,
    homes: SessionFolders,
    private: PrivatePlaces,
    *,
    read_only: Iterable[Path] = (),
    packages: PackageEnvironment | None = None,
    container: ContainerSettings = _NO_CONTAINER,
) -> list[Inspection]:
    """Return the findings about the chosen sandbox; for `auto`, about all up to the selected one.

    The last one is selected if it holds or is `native`.
    """
    inspections: list[Inspection] = []
    readable = tuple(map(str, read_only))
    options = _Options(homes, private, read_only=readable, packages=packages, container=container)
    for candidate in _candidates(provider):
        try:
            async with _open(candidate, options) as sandbox:
                walls = await _probe(sandbox, homes)
                able = options.complete(sandbox.capabilities)
        except SandboxUnavailable as error:
            inspections.append(Inspection(candidate, [], str(error)))
            continue
        inspections.append(Inspection(candidate, walls, capabilities=able))
        if inspections[-1].holds:
            return inspections
    if provider in {"auto", "native"}:
        native = options.complete(options.native().capabilities)
        inspections.append(Inspection("native", [], capabilities=native))
    return inspections


def _candidates(provider: Provider) -> tuple[Provider, ...]:
    """Return the sandboxes to try, the strongest first."""
    if provider == "auto":
        return ("bubblewrap", "landlock")
    return () if provider == "native" else (provider,)


def path_of_commands(read_only: Iterable[str]) -> str:
    """Return the PATH of isolated commands: further folders come last."""
    return os.pathsep.join([DEFAULT_PATH, *(f"{folder}/bin" for folder in read_only)])


class _Options(NamedTuple):
    """Options common to all sandboxes; see `open_sandbox`."""

    homes: SessionFolders
    private: PrivatePlaces
    private_networks: bool = False
    read_only: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    packages: PackageEnvironment | None = None
    container: ContainerSettings = _NO_CONTAINER
    time_zone: str = ""

    def environment(self) -> CommandEnvironment:
        """Return the environment of commands.

        The programs of the packages come first, programs in further folders last.
        """
        first = [self.packages.programs] if self.packages else []
        path = os.pathsep.join([*first, path_of_commands(self.read_only)])
        return CommandEnvironment(path, timezone=self.time_zone)

    def readable(self) -> tuple[str, ...]:
        """Return the paths that every command may read besides the programs of the machine."""
        packages = self.packages.read_only if self.packages else ()
        return (*self.read_only, *self.skills, *packages)

    def native(self) -> NativeSandbox:
        """Return the sandbox without isolation."""
        return NativeSandbox(self.homes, self.environment())

    def complete(self, capabilities: SandboxCapabilities) -> SandboxCapabilities:
        """Return the capabilities of a sandbox with these paths and packages."""
        installed = self.packages.installed if self.packages else ()
        return structs.replace(capabilities, read_only=self.read_only, packages=installed)


@asynccontextmanager
async def _open(provider: Provider, options: _Options) -> AsyncGenerator[Sandbox]:
    """Open a sandbox that isolates, without a check.

    Raises:
        SandboxUnavailable: it is missing.
    """
    await _require(provider, options.container)
    limits = ResourceLimits()
    common: dict[str, Any] = {
        "private": options.private,
        "read_only": options.readable(),
        "limits": limits,
        "environment": options.environment(),
    }
    if provider == "container":
        engine, image = options.container
        sandbox = ContainerSandbox(engine, image, options.homes, **common)
        await sandbox.remove_stale()
        yield sandbox
        return
    groups = ControlGroups(limits.memory_bytes, limits.processes)
    try:
        if provider == "landlock":
            with contextlib.closing(
                LandlockSandbox(options.homes, groups=groups, **common)
            ) as landlock:
                yield landlock
        else:
            private = options.private_networks
            yield BubblewrapSandbox(
                options.homes, groups=groups, private_networks=private, **common
            )
    finally:
        groups.close()


async def _require(provider: Provider, container: ContainerSettings) -> None:
    """Check the requirements of a sandbox on the machine and the settings.

    Raises:
        SandboxUnavailable: one is not met.
    """
    if provider == "landlock":
        version = supported_version()
        if version < MIN_VERSION or not calls_denied_without_namespaces():
            raise SandboxUnavailable(_NO_LANDLOCK.format(found=version, needed=MIN_VERSION))
    elif provider == "container":
        if not container.image:
            raise SandboxUnavailable(_NO_IMAGE)
    elif not await asyncio.to_thread(Path(PROGRAM).exists):
        raise SandboxUnavailable(_MISSING)


async def _probe(sandbox: Sandbox, homes: SessionFolders) -> list[Wall]:
    """Return the walls of a sandbox, and store its runtimes in its capabilities."""
    walls, runtimes = await probe_sandbox(sandbox, homes)
    sandbox.capabilities = structs.replace(sandbox.capabilities, runtimes=runtimes)
    return walls


def _explain(wall: Wall) -> str:
    """Return why a wall does not hold, as the end of a sentence."""
    if "namespace" in wall.reason or "uid map" in wall.reason:
        return _NO_NAMESPACES.format(said=wall.reason)
    return wall.reason or f"this does not hold: {wall.sentence}"
