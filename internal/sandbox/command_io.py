"""Standard input and output of a command, and its home folder."""

import asyncio
import os
import socket
import tempfile
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from internal.agent.domain.errors import StoreUnavailable, ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.domain.system_errors import describe_system_error
from internal.sandbox.workspaces import SessionFolders

_CHUNK_BYTES = 65_536
_DRAIN_SECONDS = 0.5


def open_stdin(content: bytes | int) -> IO[bytes]:
    """Return the standard input of a command: a file with the content, or /dev/null.

    An open file is given as its descriptor, which stays open.
    """
    if isinstance(content, int):
        return os.fdopen(os.dup(content), "rb", buffering=0)
    if not content:
        return open(os.devnull, "rb")  # noqa: PTH123  # a device; the caller closes it
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(content)  # a file, not a pipe: nothing has to write to it meanwhile
    file.seek(0)
    return file


async def wait_until_readable(file: IO[bytes] | socket.socket | int) -> None:
    """Wait until a pipe or socket that does not block has something to read, or has ended.

    The descriptor of a process (pidfd_open(2)) is readable when the process has ended.
    """
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(file, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(file)


def create_home(homes: SessionFolders, session_id: SessionId) -> str:
    """Return the private home folder of a session's commands. Blocks.

    Raises:
        ToolError: it cannot be created.
    """
    try:
        return homes.create(session_id)
    except StoreUnavailable as error:
        raise ToolError(str(error)) from error


def start_error(program: str, error: OSError | ValueError) -> ToolError:
    """Return the error of a command that cannot be started."""
    reason = describe_system_error(error) if isinstance(error, OSError) else error
    return ToolError(f"{Path(program).name} cannot be started: {reason}")


class OutputPipe:
    """A pipe for stdout and stderr of a command, from which a task reads.

    Args:
        on_output: gets the chunks.
        on_failure: is called if `on_output` raises an exception, which `drain` raises.
    """

    def __init__(self, on_output: Callable[[bytes], None], on_failure: Callable[[], None]) -> None:
        self._on_output = on_output
        self._on_failure = on_failure
        self._output: FileIO
        self._reading: asyncio.Task[None]
        self.writer: IO[bytes]
        """What the command gets. It is closed in this process once the command has started."""

    async def __aenter__(self) -> Self:
        # not a transport of the loop: uvloop closes the descriptor of one twice, and the second
        # time it may be that of something else
        output, writer = os.pipe()
        os.set_blocking(output, False)
        self._output = os.fdopen(output, "rb", buffering=0)
        self.writer = os.fdopen(writer, "wb", buffering=0)
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.writer.close()
        self._reading.cancel()
        try:
            await asyncio.wait({self._reading})
        finally:
            self._output.close()

    async def drain(self) -> None:
        """Wait for the rest of the output of a command that has ended.

        Raises:
            Exception: what `on_output` raised.
        """
        await asyncio.wait({self._reading}, timeout=_DRAIN_SECONDS)
        if self._reading.done():
            self._reading.result()

    async def _read(self) -> None:
        try:
            while chunk := await self._next_chunk():
                self._on_output(chunk)
        except Exception:
            self._on_failure()
            raise

    async def _next_chunk(self) -> bytes:
        """Return the next output, b"" at the end. Others have their turn before each."""
        chunk = None
        while chunk is None:
            await wait_until_readable(self._output)
            chunk = self._output.read(_CHUNK_BYTES)
        return chunk
