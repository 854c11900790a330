"""Connections: accept them, copy their bytes in both directions."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Self

_CHUNK_BYTES = 65_536
_LINGER_NOT = struct.pack("ii", 1, 0)

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Connections:
    """Connections that are handled by tasks of their own; they end with the block."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @contextlib.asynccontextmanager
    async def accept(
        self, listener: socket.socket, handle: Handler, max_line_bytes: int = _CHUNK_BYTES
    ) -> AsyncGenerator[None]:
        """Handle the connections to a listening socket; at the end only the socket is closed."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await handle(reader, writer)
            finally:
                await close(writer)

        def add(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(connected(reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        server = await asyncio.start_server(add, sock=listener, limit=max_line_bytes)
        try:
            yield
        finally:
            server.close()


@contextlib.asynccontextmanager
async def serve(
    listener: socket.socket, handle: Handler, max_line_bytes: int = _CHUNK_BYTES
) -> AsyncGenerator[None]:
    """Handle the connections to a listening socket; at the end it is closed, and they end."""
    async with (
        Connections() as connections,
        connections.accept(listener, handle, max_line_bytes),
    ):
        yield


async def join(one: Connection, other: Connection, answer: Handler | None = None) -> bool:
    """Copy between two connections until both end or one breaks. Return whether both ended.

    `answer` copies the first data from the other connection, None to copy it unchanged.

    Data that one side sent before its end reaches the other, however slowly that one reads.
    """
    for _, writer in (one, other):
        # so that drain() returns when nothing is left here that close() would lose
        writer.transport.set_write_buffer_limits(high=0)
    whole = True
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(one[0], other[1]))
            tasks.create_task(_copy(other[0], one[1], answer))
    except* OSError:
        whole = False
    return whole


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection at once; unsent data is lost. Return when it is closed."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection: the other end gets an error, not an orderly end (ECONNRESET)."""
    opened = writer.get_extra_info("socket")
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    writer.transport.abort()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: Handler | None = None
) -> None:
    """Copy one direction until it ends."""
    if first is not None:
        await first(reader, writer)
    while chunk := await reader.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
