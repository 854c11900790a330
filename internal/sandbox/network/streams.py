"""Copies the bytes of a connection in both directions."""

import asyncio
import contextlib

_CHUNK_BYTES = 65_536

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def join(one: Connection, other: Connection) -> None:
    """Copy between two connections until both have ended or one breaks."""
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(one[0], other[1]))
            tasks.create_task(_copy(other[0], one[1]))
    except* OSError:
        pass


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until it ends."""
    while chunk := await reader.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
