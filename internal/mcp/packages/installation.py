"""Installation of the packages of one server in the sandbox, in a folder for this server alone.

Commands can read the folder but not change it: the reviewed program is the one that runs. Versions
change only when the server is added again.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.network import NetworkAccess
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import escape_hidden
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand, SandboxResult
from internal.mcp.launch.downloaders import PackageCommand
from internal.mcp.launch.program_files import ProgramFiles
from internal.mcp.limits import ServerFailure
from internal.mcp.output_end import end_of_output
from internal.mcp.packages.interpreters import find_pythons
from internal.mcp.packages.program_names import InstalledProgram, find_program
from internal.mcp.packages.registry_settings import RegistrySettings
from internal.open_files.paths import resolve_links

INSTALL_TIMEOUT_SECONDS = 1_200.0
"""Time limit of the download and installation of a server."""
PROGRESS_SECONDS = 5.0
_MAX_REASON_CHARS = 600
_KEPT_LINES = 30
_MAX_LINE_CHARS = 2_000
_OWN_VARIABLES = ("UV_", "PIP_", "PIPX_", "npm_config_", "NPM_CONFIG_", "NODE_")
"""Variables of the definition that installers get: those for them."""
_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")

OnProgress = Callable[[int], None]
"""Is told every few seconds for how many seconds an installation has run."""


class Installed(msgspec.Struct, frozen=True):
    """The requested packages of a folder, and the program to start."""

    wanted: tuple[str, ...]
    program: InstalledProgram


class Installer(NamedTuple):
    """Dependencies for installing the packages of a server.

    `files` finds the programs of the person, `indexes` are the person's package indexes, `network`
    allows them. `variables` come from the definition, `session_id` identifies the private home.
    """

    sandbox: Sandbox
    files: ProgramFiles
    own_path: str
    indexes: RegistrySettings
    network: NetworkAccess
    session_id: SessionId
    variables: Mapping[str, str] = {}


class InstallationFailed(ServerFailure):
    """Packages cannot be installed. The message is the end of a sentence."""


async def install(
    command: PackageCommand, place: Path, installer: Installer, on_progress: OnProgress
) -> InstalledProgram:
    """Install the packages of a command line, and return the program to start.

    An existing installation of the same packages is reused.

    Raises:
        InstallationFailed: they cannot be installed; the folder is removed.
    """
    try:
        with contextlib.ExitStack() as stack:
            await asyncio.to_thread(stack.enter_context, _locked(place))
            known = await asyncio.to_thread(_read, place)
            wanted = _wanted(command)
            if known is not None and known.wanted == wanted:
                return known.program
            await asyncio.to_thread(remove_installation, place)
            await asyncio.to_thread(place.mkdir, mode=0o700)
            try:
                scripts = await _install(command, place, installer, on_progress)
                found = await asyncio.to_thread(find_program, command, place)
                found = msgspec.structs.replace(found, failed_scripts=not scripts)
                await asyncio.to_thread(_finish, place, Installed(wanted, found))
            except BaseException:
                await asyncio.to_thread(remove_installation, place)
                raise
            return found
    except OSError as error:
        raise InstallationFailed(
            f"its packages cannot be stored: {describe_system_error(error)}"
        ) from error


def remove_installation(place: Path) -> None:
    """Remove the installation in a folder. Blocks."""
    _record(place).unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)


async def _install(
    command: PackageCommand, place: Path, installer: Installer, on_progress: OnProgress
) -> bool:
    """Run the installer of a command line. Return False if scripts of packages were left out.

    Raises:
        InstallationFailed: it is missing, fails, or takes too long.
    """
    program = await asyncio.to_thread(_add_programs, command, installer)
    arguments = _arguments(command, place, installer.indexes)
    ticks = asyncio.create_task(_tick(on_progress))
    try:
        done, said = await _run(program, arguments, place, installer)
        if done.exit_code and done.refused and Path(command.installer).name == "npm":
            # downloads that a script wanted are often for optional parts
            plain = [arguments[0], "--ignore-scripts", *arguments[1:]]
            again, _ = await _run(program, plain, place, installer)
            if not again.exit_code and not again.timed_out:
                return False
    finally:
        ticks.cancel()
    if done.timed_out or done.exit_code:
        raise _failure(command, installer.indexes, done, said)
    return True


async def _run(
    program: str, arguments: Sequence[str], place: Path, installer: Installer
) -> tuple[SandboxResult, str]:
    """Run an installer in the sandbox. Return its result and the end of its output.

    Raises:
        InstallationFailed: it cannot be started.
    """
    last: deque[str] = deque(maxlen=_KEPT_LINES)
    part = bytearray()

    def take(chunk: bytes) -> None:
        part.extend(chunk)
        *lines, rest = bytes(part).replace(b"\r", b"\n").split(b"\n")
        part[:] = rest[-_MAX_LINE_CHARS:]
        last.extend(_text(line) for line in lines)

    readable = installer.files.added
    sandboxed = SandboxCommand(
        (program, *arguments),
        str(place),
        INSTALL_TIMEOUT_SECONDS,
        installer.session_id,
        environment=_environment(place, installer),
        access=FileAccess((str(place),), readable, resolve_links(readable)),
        network=installer.network,
    )
    try:
        done = await installer.sandbox.run(sandboxed, take)
    except ToolError as error:
        raise InstallationFailed(f"its packages cannot be installed: {error}") from error
    last.append(_text(bytes(part)))
    return done, end_of_output(last, _MAX_REASON_CHARS)


async def _tick(on_progress: OnProgress) -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    while True:
        on_progress(round(loop.time() - begin))
        await asyncio.sleep(PROGRESS_SECONDS)


def _add_programs(command: PackageCommand, installer: Installer) -> str:
    """Make the installer readable, with its interpreters. Return how it is called.

    Raises:
        InstallationFailed: it is not on this machine.
    """
    files = installer.files
    program = files.add_program(command.installer)
    if files.missing:
        raise InstallationFailed(f"there is no program {', '.join(files.missing)} on this machine")
    if command.ecosystem == "python":
        for python in find_pythons(installer.own_path, Path.home()):
            files.add_interpreter(python)
    return program


def _arguments(command: PackageCommand, place: Path, indexes: RegistrySettings) -> list[str]:
    name = Path(command.installer).name
    first, *further = command.packages
    options = list(command.options)
    match name:
        case "uv":
            also = [part for one in further for part in ("--with", one)]
            return ["tool", "install", *options, *also, "--", first]
        case "pipx":
            also = [part for one in further for part in ("--preinstall", one)]
            return ["install", *options, *also, first]
        case "npm":
            quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
            rest = [*options, *indexes.options, "--", *command.packages]
            return ["install", "--prefix", str(place), *quiet, *rest]
        case "pnpm":
            folders = ("--dir", str(place), "--store-dir", str(place / "cache"))
            return ["add", *folders, *indexes.options, *command.packages]
        case _:
            return ["add", "--cwd", str(place), *command.packages]


def _environment(place: Path, installer: Installer) -> dict[str, str]:
    cache = str(place / "cache")
    certificates = next((one for one in _CERTIFICATES if Path(one).is_file()), "")
    trust = {
        "SSL_CERT_FILE": certificates,
        "NODE_EXTRA_CA_CERTS": certificates,
        "PIP_CERT": certificates,
    }
    own = {
        name: value
        for name, value in installer.variables.items()
        if name.startswith(_OWN_VARIABLES)
    }
    return {
        **(trust if certificates else {}),
        **installer.indexes.variables,
        **own,
        "PATH": installer.files.path,
        "UV_TOOL_DIR": str(place / "tools"),
        "UV_TOOL_BIN_DIR": str(place / "bin"),
        "UV_CACHE_DIR": cache,
        "UV_COMPILE_BYTECODE": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "PIPX_HOME": str(place),
        "PIPX_BIN_DIR": str(place / "bin"),
        "PIPX_MAN_DIR": str(place / "man"),
        "PIP_CACHE_DIR": cache,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_cache": cache,
        "BUN_INSTALL_CACHE_DIR": cache,
        "NO_COLOR": "1",
        # browsers of their own are downloaded from hosts that are no registries
        "PUPPETEER_SKIP_DOWNLOAD": "1",
        "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
    }


def _failure(
    command: PackageCommand, indexes: RegistrySettings, done: SandboxResult, said: str
) -> InstallationFailed:
    name = Path(command.downloader).name
    if done.timed_out:
        return InstallationFailed(
            f"{name} did not install {command.shown} in {INSTALL_TIMEOUT_SECONDS / 60:g} minutes"
        )
    if done.exceeded:
        return InstallationFailed(f"{name} used more {done.exceeded} than it may")
    reason = f"{name} cannot install {command.shown}: {said or f'exit code {done.exit_code}'}"
    if done.refused_addresses:
        reason += f"; the address of {', '.join(done.refused_addresses)} is of a private network"
    if done.forbidden:
        reason += f"; the address of {', '.join(done.forbidden)} is never reached"
    if indexes.secrets and any(code in said for code in ("401", "403", "E401", "E403")):
        reason += f"; the login in {', '.join(indexes.secrets)} is not given to installers"
    return InstallationFailed(
        reason, refused=done.refused, refused_addresses=done.refused_addresses
    )


def _wanted(command: PackageCommand) -> tuple[str, ...]:
    return (command.installer, command.program, *command.options, "--", *command.packages)


def _record(place: Path) -> Path:
    """Return the file that is written last: without it an installation is not complete.

    It lies beside the folder, where an installation cannot put a link in its place.
    """
    return place.with_name(f"{place.name}.json")


def _read(place: Path) -> Installed | None:
    try:
        found = msgspec.json.decode(_record(place).read_bytes(), type=Installed)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if Path(found.program.command).exists() else None


def _finish(place: Path, installed: Installed) -> None:
    shutil.rmtree(place / "cache", ignore_errors=True)
    _record(place).write_text(json.dumps(msgspec.to_builtins(installed)), encoding="utf-8")


@contextlib.contextmanager
def _locked(place: Path) -> Generator[None]:
    """Let one process at a time install the packages of a server.

    Raises:
        OSError: the folder cannot be made.
    """
    place.parent.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(
        place.with_name(f"{place.name}.lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _text(line: bytes) -> str:
    return escape_hidden(line[:_MAX_LINE_CHARS].decode(errors="replace"))
