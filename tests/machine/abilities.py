"""Abilities of a machine that tests need, each found out once by a trial.

An installed program may still be unable to work: a container or a chroot forbids namespaces, a
kernel has no Landlock, a browser finds no shared memory.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import playwright

from internal.landlock.rules import (
    MIN_VERSION,
    READ,
    LandlockRule,
    create_ruleset,
    supported_version,
)
from internal.sandbox.environment import DEFAULT_PATH
from tests.machine.programs import find_program
from tests.support.document_samples import PUBLIC_SAMPLES, fetch_samples
from tests.support.postgres_server import create_cluster, find_binaries

CHROMIUM_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_TIMEOUT_SECONDS = 60.0


class Failed(Exception):
    """The machine cannot do it; the text says why."""


class Ability(NamedTuple):
    """Something that a machine can do.

    `attempt` does it and raises Failed if it is not possible. Without `is_required` it is for
    `make chaos` only, so `REQUIRE=all` does not ask for it.
    """

    name: str
    title: str
    attempt: Callable[[], None]
    is_required: bool = True


def run_program(*command: str, path: str | None = None, seconds: float = _TIMEOUT_SECONDS) -> str:
    """Run a program and return its output. What it started is ended as well when time is over.

    Raises:
        Failed: the program is missing, failed or did not end.
    """
    program = shutil.which(command[0], path=path) or find_program(command[0])
    if program is None:
        raise Failed(f"{command[0]} is not installed")
    with subprocess.Popen(
        [program, *command[1:]],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"{command[0]} did not end in {seconds:g} s") from error
    if process.returncode:
        lines = errors.strip().splitlines() or [f"exit code {process.returncode}"]
        raise Failed(f"{command[0]}: {lines[-1]}")
    return output


def _program(name: str, *arguments: str) -> Callable[[], None]:
    def attempt() -> None:
        run_program(name, *arguments)

    return attempt


def _create_namespaces() -> None:
    root = ("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/mnt")
    run_program("bwrap", "--unshare-all", "--die-with-parent", *root, "--", "true")


def _mount_in_namespace() -> None:
    namespace = ("unshare", "--map-root-user", "--mount", "--propagation", "private")
    run_program(*namespace, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt")


def _create_landlock_rule() -> None:
    if (found := supported_version()) < MIN_VERSION:
        raise Failed(f"the kernel has version {found} of Landlock, {MIN_VERSION} is needed")
    try:
        os.close(create_ruleset([LandlockRule("/usr", READ)]))
    except OSError as error:
        raise Failed(str(error)) from error


def _run_node() -> None:
    # Commands of an agent see this PATH, so a Node elsewhere does not count.
    if run_program("node", "-e", "console.log(6 * 7)", path=DEFAULT_PATH).strip() != "42":
        raise Failed("node does not run programs")


def _create_database() -> None:
    binaries = find_binaries()
    if binaries is None:
        raise Failed("postgres is not installed")
    run_program("pgbouncer", "--version")
    folder = Path(tempfile.mkdtemp(prefix="larkspur-try-"))
    try:
        create_cluster(binaries, folder)
    except (RuntimeError, OSError, KeyError) as error:
        raise Failed(f"initdb: {str(error).strip().splitlines()[-1]}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _show_page() -> None:
    # Playwright starts Chromium with a Node.js of its own
    run_program(str(Path(playwright.__file__).with_name("driver") / "node"), "--version")
    with tempfile.TemporaryDirectory(prefix="larkspur-try-", ignore_cleanup_errors=True) as profile:
        where = f"--user-data-dir={profile}"
        page = "data:text/html,<title>x</title><p id=a><script>a.textContent=6*7</script>"
        if ">42<" not in run_program("chromium", *CHROMIUM_FLAGS, where, "--dump-dom", page):
            raise Failed("chromium does not show a page")


def _run_containers() -> None:
    for name in ("podman", "runc", "busybox"):
        if find_program(name) is None:
            raise Failed(f"{name} is not installed")
    run_program("podman", "info")


def _fetch_samples() -> None:
    if not PUBLIC_SAMPLES.is_dir():
        try:
            fetch_samples()
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode(errors="replace").strip().splitlines()
            raise Failed(f"they cannot be downloaded: {lines[-1] if lines else error}") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise Failed(f"they cannot be downloaded: {error}") from error


ABILITIES = (
    Ability("namespaces", "namespaces made by bubblewrap", _create_namespaces),
    Ability("mounts", "mounts in a namespace of an ordinary user", _mount_in_namespace),
    Ability("landlock", "Landlock", _create_landlock_rule),
    Ability("node", "Node.js", _run_node),
    Ability("postgres", "PostgreSQL and PgBouncer", _create_database),
    Ability("browser", "Chromium", _show_page),
    Ability("ripgrep", "ripgrep", _program("rg", "--version")),
    Ability("openssl", "OpenSSL", _program("openssl", "version")),
    Ability("nginx", "nginx", _program("nginx", "-v")),
    Ability("caddy", "Caddy", _program("caddy", "version")),
    Ability("curl", "curl", _program("curl", "--version")),
    Ability("ps", "ps", _program("ps", "--version")),
    Ability("systemd", "systemd-analyze", _program("systemd-analyze", "--version")),
    Ability("libreoffice", "LibreOffice", _program("soffice", "--version"), is_required=False),
    Ability(
        "public_samples",
        "the sample files that Python packages ship",
        _fetch_samples,
        is_required=False,
    ),
    Ability("podman", "podman with runc and busybox", _run_containers, is_required=False),
)
_BY_NAME = {ability.name: ability for ability in ABILITIES}
_PROGRAM = "program:"


def find_ability(name: str) -> Ability | None:
    """Return an ability by its name; `program:NAME` is a program that isolated commands see."""
    if name.startswith(_PROGRAM):
        program = name.removeprefix(_PROGRAM)
        return Ability(name, program, lambda: _find_visible(program), is_required=False)
    return _BY_NAME.get(name)


def _find_visible(program: str) -> None:
    if shutil.which(program, path=DEFAULT_PATH) is None:
        raise Failed(f"{program} is not in {DEFAULT_PATH}")


def find_reason(ability: Ability) -> str:
    """Try an ability and return the reason why the machine lacks it, or an empty text."""
    try:
        ability.attempt()
    except Failed as error:
        return str(error) or "it failed"
    return ""


def find_reasons(abilities: Iterable[Ability]) -> dict[str, str]:
    """Try abilities at the same time and return the result of `find_reason` by name."""
    tried = tuple(abilities)
    with ThreadPoolExecutor(len(tried) or 1) as pool:
        reasons = list(pool.map(find_reason, tried))
    return {ability.name: reason for ability, reason in zip(tried, reasons, strict=True)}
