"""A hook that is a command: the operator's own program, outside of the sandbox."""

import asyncio
import contextlib
import os
import pwd
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.text import truncate
from internal.hooks.answer import (
    MAX_ANSWER_BYTES,
    MAX_REASON_CHARACTERS,
    HookAnswer,
    HookFailed,
    parse_answer,
)

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REFUSED = 2


class _Printed(NamedTuple):
    code: int
    output: bytes
    errors: bytes


async def ask_command(
    argv: Sequence[str], content: bytes, *, folder: Path, timeout_seconds: float
) -> HookAnswer:
    """Run a command with `content` on its standard input and return its answer.

    It gets PATH, LANG and HOME and no other variable, and a process group of its own, which is
    killed when the command has ended, timed out or is cancelled.

    Raises:
        HookFailed: it cannot be started, failed, printed too much, or did not end in time.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            printed = await _run(argv, content, folder)
    except TimeoutError as error:
        raise HookFailed(f"did not end within {timeout_seconds:g} s") from error
    except (OSError, ValueError) as error:
        reason = describe_system_error(error) if isinstance(error, OSError) else str(error)
        raise HookFailed(f"cannot be started: {reason}") from error
    words = truncate(printed.errors.decode("utf-8", "replace").strip(), MAX_REASON_CHARACTERS)
    if printed.code == _REFUSED:
        return HookAnswer("refuse", words)
    if printed.code < 0:
        raise HookFailed(f"was killed by {signal.Signals(-printed.code).name}")
    if printed.code:
        raise HookFailed(f"ended with exit code {printed.code}{words and f': {words}'}")
    return parse_answer(printed.output)


async def _run(argv: Sequence[str], content: bytes, folder: Path) -> _Printed:
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryFile() as stdin:  # a file: the hook need not read it
        stdin.write(content)
        stdin.seek(0)
        transport, process = await loop.subprocess_exec(
            _HookProcess,
            *argv,
            stdin=stdin,
            cwd=folder,
            env={"PATH": _PATH, "LANG": "C.UTF-8", "HOME": pwd.getpwuid(os.getuid()).pw_dir},
            start_new_session=True,
        )
    try:
        await process.ended.wait()
        _kill(transport.get_pid())  # what it left behind may hold the pipes open
        if not process.is_too_long:
            await process.closed.wait()
    finally:
        _kill(transport.get_pid())
        await process.exited.wait()
        transport.close()
    if process.is_too_long:
        raise HookFailed(f"printed more than {MAX_ANSWER_BYTES} bytes")
    return _Printed(transport.get_returncode() or 0, *map(bytes, process.printed.values()))


class _HookProcess(asyncio.SubprocessProtocol):
    """Collects the output of a process, up to a limit.

    It has `ended` when it has `exited` or printed too much; its pipes are `closed` when no other
    process holds them open either.
    """

    def __init__(self) -> None:
        self.ended, self.exited, self.closed = (asyncio.Event() for _ in range(3))
        self.printed = {1: bytearray(), 2: bytearray()}
        self.is_too_long = False
        self._open = set(self.printed)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep the output."""
        self.printed[fd] += data
        if len(self.printed[fd]) > MAX_ANSWER_BYTES:
            self.is_too_long = True
            self.printed[fd].clear()
            self.ended.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - the interface
        """Note that a pipe is closed."""
        self._open.discard(fd)
        if not self._open:
            self.closed.set()

    def process_exited(self) -> None:
        """Note that the process has exited."""
        self.exited.set()
        self.ended.set()


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
