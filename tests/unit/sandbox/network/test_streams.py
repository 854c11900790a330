"""Joined connections: every byte arrives."""

import asyncio
import socket

import pytest

from internal.sandbox.network.streams import close, join, serve

SMALL = 4_096


@pytest.mark.parametrize("size", [10_000, 40_000, 70_000, 100_000])
async def test_the_end_of_one_does_not_lose_what_the_other_has_not_read(size: int) -> None:
    sent = asyncio.Event()

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # up to the end of the client's side
        writer.write(bytes(size))
        writer.close()
        await writer.wait_closed()
        sent.set()

    async with await asyncio.start_server(send, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            target = await asyncio.open_connection("127.0.0.1", port)
            try:
                assert await join((reader, writer), target)
            finally:
                await close(target[1])

        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)  # its connections get it
        listener.setblocking(False)
        address = listener.getsockname()
        async with serve(listener, relay):
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
                client.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_connect(client, address)
                client.shutdown(socket.SHUT_WR)
                await sent.wait()
                total = 0
                while part := await loop.sock_recv(client, SMALL):
                    total += len(part)
    assert total == size
