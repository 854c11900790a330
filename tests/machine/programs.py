"""System programs required by tests. Run as a program, it installs or names the missing ones.

`make test` and `.ci/run` start it before the first test, with the Python of the system: it imports
nothing but the standard library.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_POLICY = Path("/usr/sbin/policy-rc.d")
_NO_SERVICES = "#!/bin/sh\nexit 101\n"


class Program(NamedTuple):
    """A program, or a library, and the Debian package that has it."""

    name: str
    package: str


PROGRAMS = (
    Program("git", "git"),
    Program("make", "make"),
    Program("rg", "ripgrep"),
    Program("bwrap", "bubblewrap"),
    Program("node", "nodejs"),
    Program("postgres", "postgresql"),
    Program("pgbouncer", "pgbouncer"),
    Program("chromium", "chromium"),
    # The Node.js that Playwright brings needs this library, which Debian does not always have.
    Program("libatomic.so.1", "libatomic1"),
    Program("openssl", "openssl"),
    Program("nginx", "nginx-light"),
    Program("caddy", "caddy"),
    Program("curl", "curl"),
    Program("ps", "procps"),
    Program("systemd-analyze", "systemd"),
    # Debian keeps this part of Python in a package of its own; sandbox.packages needs it.
    Program("ensurepip", "python3-venv"),
)


def find_program(name: str) -> str | None:
    """Return the path of a program, or None. Debian keeps PostgreSQL's programs out of PATH."""
    if name == "ensurepip":
        python = shutil.which("python3", path=SYSTEM_PATH) or sys.executable
        done = subprocess.run([python, "-c", "import ensurepip"], check=False, capture_output=True)
        return None if done.returncode else python
    if ".so." in name:
        try:
            ctypes.CDLL(name)
        except OSError:
            return None
        return name
    if name == "postgres":
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        return str(found[-1]) if found else None
    return shutil.which(name) or shutil.which(name, path=SYSTEM_PATH)


def find_missing() -> list[Program]:
    """Return the programs that are not on this machine."""
    return [program for program in PROGRAMS if find_program(program.name) is None]


@contextmanager
def _no_services() -> Generator[None]:
    """Let packages start no service: tests start their own servers on their own ports.

    Debian's packages ask this policy before they start one (README.policy-rc.d.gz of the package
    init-system-helpers).
    """
    if os.path.lexists(_POLICY):
        yield
        return
    _POLICY.write_text(_NO_SERVICES, encoding="utf-8")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()


def _apt_get(*arguments: str) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}  # noqa: TID251 - of apt-get
    command = ["apt-get", "-qq", *arguments]
    # Thousands of lines about packages would hide the messages printed here.
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
    return done.returncode == 0


def install(programs: Iterable[Program]) -> None:
    """Install packages as root on Debian or Ubuntu. One that cannot be had keeps out no other."""
    packages = [program.package for program in programs]
    print("Installing what the tests need:", " ".join(packages), flush=True)
    options = ("install", "--yes", "--no-install-recommends")
    with _no_services():
        if _apt_get("update") and not _apt_get(*options, *packages):
            for package in packages:
                _apt_get(*options, package)


def explain(missing: Iterable[Program], *, is_root: bool, has_apt_get: bool) -> str:
    """Return the sentence about programs that are missing, with the command that installs them."""
    programs = tuple(missing)
    names = ", ".join(program.name for program in programs)
    packages = " ".join(program.package for program in programs)
    if is_root and has_apt_get:
        advice = f"apt-get could not install {packages}"
    elif has_apt_get:
        advice = f"install them with `sudo apt-get install {packages}`"
    else:
        advice = f"Debian's packages with them are {packages}"
    return f"Missing: {names}; {advice}. Tests that need them are not run, and named at the end."


def main() -> None:
    """Install missing programs, or print before the first test which ones are missing."""
    is_root, has_apt_get = os.geteuid() == 0, shutil.which("apt-get") is not None
    missing = find_missing()
    if missing and is_root and has_apt_get:
        install(missing)
        missing = find_missing()
    if missing:
        print(explain(missing, is_root=is_root, has_apt_get=has_apt_get))


if __name__ == "__main__":
    main()
