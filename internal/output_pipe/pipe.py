"""A pipe for the output of a child process, read concurrently in the event loop."""

import asyncio
import os
import socket
from collections.abc import Callable
from io import FileIO
from types import TracebackType
from typing import IO, Self

_CHUNK_BYTES = 65_536
_DRAIN_SECONDS = 0.5


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


class OutputPipe:
    """A pipe for the output of a process, read by a task.

    Args:
        on_output: gets the chunks.
        on_failure: is called if `on_output` raises an exception, which `drain` raises.
    """

    def __init__(
        self, on_output: Callable[[bytes], None], on_failure: Callable[[], None] = lambda: None
    ) -> None:
        self._on_output = on_output
        self._on_failure = on_failure
        self._output: FileIO
        self._reading: asyncio.Task[None]
        self.writer: IO[bytes]
        """The end for the process. It is closed in this process once the other has started."""

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
        """Wait for the rest of the output of a process that has ended.

        Raises:
            Exception: the exception of `on_output`.
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
