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
_CHUNK_BYTES = 65_536


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
    with tempfile.TemporaryFile() as stdin:  # a file: the hook need not read it
        stdin.write(content)
        stdin.seek(0)
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env={"PATH": _PATH, "LANG": "C.UTF-8", "HOME": pwd.getpwuid(os.getuid()).pw_dir},
            start_new_session=True,
        )
    try:
        async with asyncio.TaskGroup() as tasks:
            output = tasks.create_task(_read(process.stdout))
            errors = tasks.create_task(_read(process.stderr))
            await _wait_for_exit(process.pid)
            _kill(process.pid)  # what it left behind may hold the pipes open
    except ExceptionGroup as group:
        raise group.exceptions[0] from group
    finally:
        _kill(process.pid)
        await _wait_for_exit(process.pid)
    return _Printed(await process.wait(), output.result(), errors.result())


async def _read(pipe: asyncio.StreamReader | None) -> bytes:
    content = b""
    while pipe is not None and (chunk := await pipe.read(_CHUNK_BYTES)):
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            raise HookFailed(f"printed more than {MAX_ANSWER_BYTES} bytes")
    return content


async def _wait_for_exit(pid: int) -> None:
    """Wait until a child has ended; its pipes may still be open in other processes."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:  # it has ended and was reaped
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
