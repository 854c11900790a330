"""Connections: accept them, copy their bytes in both directions."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable

_CHUNK_BYTES = 65_536

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def serve(
    listener: socket.socket, handle: Handler, max_line_bytes: int = _CHUNK_BYTES
) -> AsyncGenerator[None]:
    """Handle the connections to a listening socket; at the end it is closed, and they end."""
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        finally:
            await close(writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(connected(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(accept, sock=listener, limit=max_line_bytes)
    try:
        yield
    finally:
        server.close()
        for task in connections:
            task.cancel()
        if connections:
            await asyncio.wait(connections)


async def join(one: Connection, other: Connection) -> None:
    """Copy between two connections until both have ended or one breaks."""
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(one[0], other[1]))
            tasks.create_task(_copy(other[0], one[1]))
    except* OSError:
        pass


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection at once; what it has not sent yet is lost. Return when it is closed."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until it ends."""
    while chunk := await reader.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
