"""Checks of the sandbox for `larkspur doctor`: its restrictions and its capabilities."""

import asyncio
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from internal.agent.domain.errors import SandboxUnavailable
from internal.agent.ports.sandbox import RUNTIME_PROGRAMS, SandboxCapabilities
from internal.channels.cli.application import Check, CheckState
from internal.config.loader import Loaded
from internal.sandbox.packages import PackageEnvironment, find_packages
from internal.sandbox.selection import ContainerSettings, Inspection, inspect_sandbox
from internal.sandbox.workspaces import SessionFolders
from larkspur.file_storage import packages_folder, private_places

_NOT_ISOLATED = "Commands are not isolated: they run with your permissions once they are allowed."
_ADVICE = "Allow only what you would run yourself, or set sandbox.provider to auto."
_BOUNDS = {
    "command": "The bounds of memory and processes hold for a whole command.",
    "process": "The bound of memory holds for each process of a command.",
    "none": "Nothing bounds the memory and the processes of a command.",
}


def check_sandbox(loaded: Loaded) -> list[Check]:
    """Try to get out of the sandbox. The last check is about the sandbox that is used."""
    settings = loaded.settings.sandbox
    checks, packages = [], None
    if settings.packages:
        try:
            packages = find_packages(Path(settings.packages), packages_folder(loaded))
        except SandboxUnavailable as error:
            checks.append(Check("packages", "fail", str(error)))
        else:
            checks += [] if packages else [_not_installed(settings.packages)]
    inspections = _inspect(loaded, packages)
    used = inspections[-1]
    broken: CheckState = "warn" if settings.provider == "auto" else "fail"
    checks += [check for each in inspections for check in _walls(each, broken)]
    if used.holds or used.provider == "native":
        name = f"sandbox {used.provider}"
        checks += [Check(name, "ok", each) for each in describe_capabilities(used.capabilities)]
    if used.provider == "native":
        advice = _ADVICE if settings.provider == "native" else ""
        checks.append(Check("sandbox", "warn", _NOT_ISOLATED, advice))
    return checks


def describe_capabilities(able: SandboxCapabilities) -> Iterator[str]:
    """Yield sentences about the capabilities of a sandbox."""
    if able.isolated:
        yield _isolation(able)
    yield _network(able)
    yield _BOUNDS[able.bounds]
    if able.isolated and able.bounded_together:
        yield f"All commands together leave a part of {_join(able.bounded_together)} to Larkspur."
    elif able.isolated:
        yield "Nothing bounds all commands together: this needs writable control groups."
    missing = _join(each for each in RUNTIME_PROGRAMS if each not in able.runtimes)
    but = f", not {missing}" if missing else ""
    yield f"run_code runs {_join(able.runtimes) or 'nothing'}{but}."
    if able.isolated and able.read_only:
        yield f"Commands also read {_join(able.read_only)}."
    if able.packages:
        yield f"python3 has these packages: {', '.join(able.packages)}."


def _isolation(able: SandboxCapabilities) -> str:
    seen = "" if able.hides else "see the names of other files"
    changed = "" if able.protects else "can change the protected files of a workspace"
    exceptions = _join(filter(None, (seen, changed)))
    return f"Commands are isolated, but {exceptions}." if exceptions else "Commands are isolated."


def _network(able: SandboxCapabilities) -> str:
    if able.hosts:
        return "Commands have no network but the hosts that are permitted."
    if able.isolated:
        return "Commands have no network, and no host can be permitted."
    return "Commands reach what your user reaches."


def _walls(found: Inspection, broken: CheckState) -> Iterator[Check]:
    """Yield the findings of the probe about a sandbox."""
    name = f"sandbox {found.provider}"
    if found.missing:
        yield Check(name, broken, found.missing)
    for wall in found.walls:
        if wall.holds:
            yield Check(name, "ok", wall.sentence)
        else:
            yield Check(name, broken, f"This does not hold: {wall.sentence}", wall.reason)


def _inspect(loaded: Loaded, packages: PackageEnvironment | None) -> list[Inspection]:
    settings = loaded.settings.sandbox
    with tempfile.TemporaryDirectory(prefix="larkspur-homes-") as homes:
        probing = inspect_sandbox(
            settings.provider,
            SessionFolders(Path(homes).resolve()),
            private_places(loaded),
            read_only=settings.read_only,
            packages=packages,
            container=ContainerSettings(settings.engine, settings.image),
        )
        with ThreadPoolExecutor(1) as thread:  # this one may run an event loop
            return thread.submit(asyncio.run, probing).result()


def _not_installed(file: str) -> Check:
    return Check("packages", "ok", f"The next start installs the packages of {file}.")


def _join(words: Iterable[str]) -> str:
    listed = list(words)
    return " and ".join(filter(None, (", ".join(listed[:-1]), *listed[-1:])))
