"""Connections of clients that are slow."""

import asyncio
import socket

from tests.support.web_calls import connected


async def test_a_connection_tells_once_that_it_cannot_be_written_to() -> None:
    async with connected() as (connection, client):
        told: list[str] = []
        connection.disable_buffering()
        connection.on_unready(lambda: told.append("paused"))
        writer = connection.writer
        assert writer is not None
        writer.write(b"x")
        assert (told, connection.is_writing) == ([], False)
        size = 10_000_000  # more than the buffers of the sockets take
        writer.write(bytes(size))
        assert (told, connection.is_writing, connection.writer) == (["paused"], True, None)
        await asyncio.to_thread(read_bytes, client, size + 1)
        await connection.flow.drain()
        assert connection.writer is not None


async def test_a_lost_connection_tells_that_it_cannot_be_written_to() -> None:
    async with connected() as (connection, client):
        lost = asyncio.Event()
        connection.on_unready(lost.set)
        client.close()
        await lost.wait()
        assert connection.writer is None


def read_bytes(client: socket.socket, count: int) -> None:
    while count:
        count -= len(client.recv(min(count, 1_000_000)))


async def test_a_connection_is_stalled_until_its_request_head_is_complete() -> None:
    loop = asyncio.get_running_loop()
    async with connected() as (connection, client):
        later = loop.time() + 5.0
        connection.data_received(b"GET / HTTP/1.1\r\nhost: x")
        assert not connection.is_stalled(later, stall_seconds=1.0, head_seconds=60.0)
        assert connection.is_stalled(later, stall_seconds=1.0, head_seconds=4.0)
        connection.data_received(b"\r\n\r\n")
        assert not connection.is_stalled(later, stall_seconds=1.0, head_seconds=4.0)
        assert await asyncio.to_thread(client.recv, 1000)
