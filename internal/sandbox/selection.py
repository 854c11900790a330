"""Opens the sandbox that the settings name, after proving that it isolates."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from internal.agent.domain.errors import SandboxUnavailable
from internal.agent.ports.sandbox import Sandbox
from internal.sandbox.bubblewrap import PROGRAM, BubblewrapSandbox
from internal.sandbox.limits.control_groups import ControlGroups
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.native import NativeSandbox
from internal.sandbox.probe import PROBE_SESSION, Wall, probe_sandbox
from internal.sandbox.workspaces import SessionFolders

logger = logging.getLogger(__name__)

Provider = Literal["auto", "bubblewrap", "native"]

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


@asynccontextmanager
async def open_sandbox(
    provider: Provider,
    homes: SessionFolders,
    hidden: Iterable[Path],
    *,
    private_networks: bool = False,
) -> AsyncGenerator[Sandbox]:
    """Open the sandbox. One that was chosen by name is used or refused: there is no fallback.

    `auto` takes bubblewrap if it isolates on this machine, else native.

    Args:
        provider: the value of `sandbox.provider`.
        homes: the private folders of the sessions.
        hidden: the files and folders of Larkspur itself.
        private_networks: let commands reach permitted hosts on private networks.

    Raises:
        SandboxUnavailable: the chosen sandbox is missing, or lets a command out.
    """
    async with AsyncExitStack() as stack:
        sandbox: Sandbox = NativeSandbox(homes)
        if provider != "native":
            try:
                isolating = await stack.enter_async_context(
                    _open_bubblewrap(homes, hidden, private_networks=private_networks)
                )
                await require_isolation(isolating, homes)
                sandbox = isolating
            except SandboxUnavailable as error:
                if provider != "auto":
                    raise
                logger.info("commands are not isolated", extra={"reason": str(error)})
        yield sandbox


async def require_isolation(sandbox: Sandbox, homes: SessionFolders) -> None:
    """Try to get out of a sandbox.

    Raises:
        SandboxUnavailable: it was possible.
    """
    for wall in await _probe(sandbox, homes):
        if not wall.holds:
            raise SandboxUnavailable(_REFUSED.format(reason=_explain(wall)))


async def inspect_sandbox(
    provider: Provider, homes: SessionFolders, hidden: Iterable[Path]
) -> list[Wall]:
    """Return the walls of the chosen sandbox, for people; none where nothing is isolated.

    Raises:
        SandboxUnavailable: the sandbox is missing.
    """
    if provider == "native":
        return []
    async with _open_bubblewrap(homes, hidden) as sandbox:
        return await _probe(sandbox, homes)


@asynccontextmanager
async def _open_bubblewrap(
    homes: SessionFolders, hidden: Iterable[Path], *, private_networks: bool = False
) -> AsyncGenerator[BubblewrapSandbox]:
    if not await asyncio.to_thread(Path(PROGRAM).exists):
        raise SandboxUnavailable(_MISSING)
    limits = ResourceLimits()
    groups = ControlGroups(limits.memory_bytes, limits.processes)
    try:
        yield BubblewrapSandbox(
            homes, hidden=hidden, limits=limits, private_networks=private_networks, groups=groups
        )
    finally:
        groups.close()


async def _probe(sandbox: Sandbox, homes: SessionFolders) -> list[Wall]:
    try:
        return await probe_sandbox(sandbox)
    finally:
        await homes.remove(PROBE_SESSION)


def _explain(wall: Wall) -> str:
    """Return why a wall does not hold, as the end of a sentence."""
    if "namespace" in wall.reason or "uid map" in wall.reason:
        return _NO_NAMESPACES.format(said=wall.reason)
    return wall.reason or f"this does not hold: {wall.sentence}"
