"""The Python packages of commands: installed once from a requirements file, read-only afterwards.

The name of an environment's folder depends on its inputs, so a changed file or another interpreter
makes a new one.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from internal.agent.domain.errors import SandboxUnavailable, ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.network import NO_NETWORK, NetworkAccess
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import truncate
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand
from internal.open_files.paths import resolve_links

PACKAGES_SESSION = SessionId("packages")

_TIMEOUT_SECONDS = 1_800.0
_PYTHON = str(Path(sys.executable).resolve())
_MAX_REQUIREMENTS_BYTES = 1_000_000
_MAX_ERROR_CHARS = 500
_VARIABLES = {"PIP_CONFIG_FILE": os.devnull}


class PackageEnvironment:
    """An installed environment.

    Args:
        folder: where it is.
        installed: name and version of each package, such as numpy==2.4.0.
    """

    def __init__(self, folder: Path, installed: tuple[str, ...]) -> None:
        self.installed = installed
        self.programs = str(folder / "bin")
        """The folder of its programs, such as python3, for PATH."""
        self.read_only = tuple(dict.fromkeys((str(folder), *_interpreter())))
        """Paths that commands must see to use it."""


SandboxOpener = Callable[[], AbstractAsyncContextManager[Sandbox]]


async def install_packages(
    requirements: Path, folder: Path, open_sandbox: SandboxOpener, network: NetworkAccess
) -> PackageEnvironment:
    """Return the environment of a requirements file; install it if this has not been done yet.

    Where the sandbox does not isolate, only wheels are installed: they run no code.

    Args:
        requirements: a file for `pip install -r`.
        folder: the folder of all environments.
        open_sandbox: opens the sandbox that runs pip, if it is needed.
        network: the package indexes.

    Raises:
        SandboxUnavailable: the file cannot be read, or a package cannot be installed.
    """
    try:
        content = await asyncio.to_thread(_read, requirements)
        place = _place(content, folder)
        with contextlib.ExitStack() as stack:
            await asyncio.to_thread(stack.enter_context, _locked(folder))
            if not _is_complete(place):
                async with open_sandbox() as sandbox:
                    await _install(content, place, sandbox, network)
            return _installed(place)
    except OSError as error:
        raise _unusable(error) from error


def find_packages(requirements: Path, folder: Path) -> PackageEnvironment | None:
    """Return the environment of a requirements file if it is installed.

    Raises:
        SandboxUnavailable: the file cannot be read.
    """
    try:
        place = _place(_read(requirements), folder)
        return _installed(place) if _is_complete(place) else None
    except OSError as error:
        raise _unusable(error) from error


async def _install(content: bytes, place: Path, sandbox: Sandbox, network: NetworkAccess) -> None:
    await asyncio.to_thread(_create, place, content)
    python, pip = str(place / "bin" / "python"), ("-m", "pip", "--disable-pip-version-check")
    install = ("install", "--quiet", "--no-cache-dir", "--no-input", "-r", "requirements.txt")
    wheels = () if sandbox.capabilities.isolated else ("--only-binary", ":all:")
    try:
        await _run(sandbox, place, (_PYTHON, "-m", "venv", str(place)))
        await _run(sandbox, place, (python, *pip, *install, *wheels), network)
        listed = await _run(sandbox, place, (python, *pip, "freeze", "--all"))
        _list(place).write_text(listed, encoding="utf-8")
    except ToolError as error:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        message = f"The packages of sandbox.packages cannot be installed: {error}"
        raise SandboxUnavailable(message) from error


async def _run(
    sandbox: Sandbox,
    place: Path,
    argv: tuple[str, ...],
    network: NetworkAccess = NO_NETWORK,
) -> str:
    """Run a command in the folder of an environment and return its output.

    Raises:
        ToolError: it failed.
    """
    output = bytearray()
    done = await sandbox.run(
        SandboxCommand(
            argv,
            str(place),
            _TIMEOUT_SECONDS,
            PACKAGES_SESSION,
            environment=_VARIABLES,
            access=FileAccess((str(place),), _interpreter(), resolve_links(_interpreter())),
            network=network,
        ),
        output.extend,
    )
    text = output.decode(errors="replace").strip()
    if done.timed_out:
        raise ToolError(f"they took more than {_TIMEOUT_SECONDS / 60:g} minutes")
    if done.exit_code and "ensurepip" in text:
        raise ToolError("this Python cannot make environments; install python3-venv")
    if done.exit_code:
        errors = re.findall("(?m)^ERROR: (.*)$", text) or text.splitlines()[-1:]
        hosts = f"; it tried to reach {', '.join(done.refused)}" if done.refused else ""
        raise ToolError(f"{truncate(' '.join(errors), _MAX_ERROR_CHARS)}{hosts}")
    return text


def _place(content: bytes, folder: Path) -> Path:
    """Return the folder of the environment that these requirements make with this Python."""
    key = hashlib.sha256(content + sys.version.encode() + sys.executable.encode())
    return folder / key.hexdigest()[:16]


def _list(place: Path) -> Path:
    """Return the file that lists the packages of an environment.

    It is written last: without it an environment is not complete. It lies beside the environment,
    where an installation cannot put a link in its place.
    """
    return place.with_suffix(".txt")


def _is_complete(place: Path) -> bool:
    return _list(place).exists() and place.is_dir()


def _installed(place: Path) -> PackageEnvironment:
    return PackageEnvironment(place, tuple(_list(place).read_text(encoding="utf-8").split()))


def _unusable(error: OSError) -> SandboxUnavailable:
    return SandboxUnavailable(f"sandbox.packages: {describe_system_error(error)}")


def _create(place: Path, content: bytes) -> None:
    _list(place).unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    (place / "requirements.txt").write_bytes(content)


def _read(requirements: Path) -> bytes:
    with requirements.expanduser().open("rb") as file:
        content = file.read(_MAX_REQUIREMENTS_BYTES + 1)
    if len(content) > _MAX_REQUIREMENTS_BYTES:
        raise SandboxUnavailable(f"sandbox.packages: {requirements} is larger than 1 MB.")
    return content


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Let only one process install at a time; the others wait."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / ".lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _interpreter() -> tuple[str, ...]:
    """Return the folders of the interpreter that the environments use."""
    return tuple(dict.fromkeys((sys.base_prefix, str(Path(sys.base_prefix).resolve()))))
