"""Connections of clients that are slow."""

import asyncio
import socket

from starlette.responses import Response
from uvicorn.config import Config
from uvicorn.server import ServerState

from internal.channels.web.http_protocol import HttpConnection


async def test_a_connection_is_stalled_until_its_request_head_is_complete() -> None:
    config = Config(Response(status_code=204), lifespan="off")
    config.load()
    connection = HttpConnection(config, ServerState(), {})
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with theirs:
        transport, _ = await loop.create_connection(lambda: connection, sock=ours)
        later = loop.time() + 5.0
        connection.data_received(b"GET / HTTP/1.1\r\nhost: x")
        assert not connection.is_stalled(later, stall_seconds=1.0, head_seconds=60.0)
        assert connection.is_stalled(later, stall_seconds=1.0, head_seconds=4.0)
        connection.data_received(b"\r\n\r\n")
        assert not connection.is_stalled(later, stall_seconds=1.0, head_seconds=4.0)
        assert await asyncio.to_thread(theirs.recv, 1000)
        transport.abort()
