"""Runs git so that a repository cannot run anything: fresh environment, fixed configuration."""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import truncate
from internal.landlock.rules import (
    LOOK,
    MIN_VERSION,
    READ,
    WRITE,
    LandlockRule,
    create_ruleset,
    supported_version,
)

TIMEOUT_SECONDS = 300.0
MAX_OUTPUT_BYTES = 256 * 1024 * 1024
_MAX_ERROR_BYTES = 4_096
_MAX_REASON_CHARACTERS = 300
_CHUNK = 65_536
_EXIT_SECONDS = 10.0  # after the end of the output
_PATH = "/usr/local/bin:/usr/bin:/bin"
_NOWHERE = "/nonexistent"

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_MIN_LANDLOCK = 2  # before, no file can be moved to another folder
# The arguments: a ruleset of Landlock, a program and its arguments. 38: PR_SET_NO_NEW_PRIVS, 446:
# landlock_restrict_self.
_CONFINE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.syscall(446, int(sys.argv[1]), 0):
    sys.exit("Landlock refuses to confine git")
os.close(int(sys.argv[1]))
os.execv(sys.argv[2], sys.argv[2:])
"""

_ENVIRONMENT = {
    "PATH": _PATH,
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "HOME": _NOWHERE,
    "XDG_CONFIG_HOME": _NOWHERE,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_SSH_COMMAND": "false",
    "GIT_AUTHOR_NAME": "Larkspur",
    "GIT_AUTHOR_EMAIL": "larkspur@localhost",
    "GIT_COMMITTER_NAME": "Larkspur",
    "GIT_COMMITTER_EMAIL": "larkspur@localhost",
}
# These take precedence over the configuration of a repository.
_CONFIGURATION = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.alternateRefsCommand=true",
    "core.bare=false",
    "core.logAllRefUpdates=false",
    "credential.helper=",
    "submodule.recurse=false",
    "maintenance.auto=false",
    "gc.auto=0",
)


class GitFailed(LarkspurError):
    """Git failed, takes too long or returned too much. The sentence has its first line.

    `code` is the exit code of git, None if it did not end by itself.
    """

    def __init__(self, sentence: str, code: int | None = None) -> None:
        super().__init__(sentence)
        self.code = code


class OutputTooLarge(GitFailed):
    """Git returned more than is taken."""


def run_git(
    *arguments: str,
    folder: str,
    variables: Mapping[str, str] | None = None,
    content: bytes = b"",
    max_bytes: int = MAX_OUTPUT_BYTES,
    timeout_seconds: float = TIMEOUT_SECONDS,
    only: Iterable[str] = (),
) -> bytes:
    """Run git in a folder with standard input `content`, and return its output. Blocks.

    Args:
        arguments: the command and its arguments.
        folder: the current directory.
        variables: environment variables such as GIT_DIR. Without GIT_DIR git looks for a repository
            in `folder` and above.
        content: the standard input.
        max_bytes: the maximum size of its output.
        timeout_seconds: its time limit.
        only: absolute paths of folders; where the kernel has Landlock, git reads and changes only
            files in these and of the system, wherever links lead, and executes none in these.

    Raises:
        GitFailed: it did not succeed in this time.
        OutputTooLarge: it printed more.
    """
    program = shutil.which("git", path=_PATH)
    if program is None:
        raise GitFailed("git is not installed on this machine.")
    settings = [part for entry in _CONFIGURATION for part in ("-c", entry)]
    with _confined(only) as (prefix, descriptors):
        process = subprocess.Popen(  # noqa: S603 - fixed programs with arguments from this package
            [*prefix, program, *settings, *arguments],
            cwd=folder,
            env={**_ENVIRONMENT, **(variables or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
            pass_fds=descriptors,
        )
    with process:
        try:
            ends_at = time.monotonic() + timeout_seconds
            output, errors = _communicate(process, content, max_bytes, ends_at)
            code = process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git {arguments[0]} takes too long.") from error
        finally:
            _kill(process)
    if code:
        lines = errors.decode("utf-8", "replace").strip().splitlines() or [f"exit code {code}"]
        reason = truncate(lines[0], _MAX_REASON_CHARACTERS)
        raise GitFailed(f"git {arguments[0]} failed: {reason}", code)
    return output


@contextmanager
def _confined(only: Iterable[str]) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """Yield a program in front of git that confines it to some folders, and its descriptors.

    Raises:
        GitFailed: the path of a folder passes a symbolic link.
    """
    folders, version = tuple(only), supported_version()
    if not folders or version < _MIN_LANDLOCK:
        yield [], ()
        return
    rules = [
        *(LandlockRule(path, READ) for path in _SYSTEM),
        *(LandlockRule(path, LOOK | WRITE) for path in ("/dev/null", "/dev/zero")),
        *(LandlockRule(path, LOOK) for path in ("/dev/random", "/dev/urandom", "/etc")),
        *(LandlockRule(path, LOOK | WRITE, is_exact=True) for path in folders),
    ]
    try:
        ruleset = create_ruleset(rules, min(version, MIN_VERSION))
    except OSError as error:
        raise GitFailed(f"git was not started: {describe_system_error(error)}") from error
    try:
        yield [sys.executable, "-I", "-S", "-c", _CONFINE, str(ruleset)], (ruleset,)
    finally:
        os.close(ruleset)


def _communicate(
    process: subprocess.Popen[bytes], content: bytes, max_bytes: int, ends_at: float
) -> tuple[bytes, bytes]:
    """Return the output, and the beginning of the messages."""
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - pipes
    output, errors, rest = bytearray(), bytearray(), memoryview(content)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, output)
        selector.register(process.stderr, selectors.EVENT_READ, errors)
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            remaining = ends_at - time.monotonic()
            if remaining <= 0:
                raise subprocess.TimeoutExpired("git", 0)
            for key, _ in selector.select(remaining):
                if key.fileobj is process.stdin:
                    rest = _write(process.stdin, rest)
                    if not rest:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data is output:
                    output += chunk
                else:
                    errors += chunk[: _MAX_ERROR_BYTES - len(errors)]
            if len(output) > max_bytes:
                raise OutputTooLarge(f"git returned more than {max_bytes:,} bytes.")
    return bytes(output), bytes(errors)


def _write(stdin: IO[bytes], content: memoryview) -> memoryview:
    """Write a part and return the rest; nothing is left for a process that reads no more."""
    if not content:
        return content
    try:
        return content[os.write(stdin.fileno(), content[:_CHUNK]) :]
    except BlockingIOError:
        return content
    except BrokenPipeError:
        return content[len(content) :]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process that is still running, and its child processes."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
