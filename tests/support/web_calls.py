"""Calls to the web application without a network."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from starlette.responses import Response
from uvicorn.config import Config

from internal.channels.web.http_protocol import HttpConnection, OpenConnections


class InMemoryReply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Call = Callable[..., Awaitable[InMemoryReply]]


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[HttpConnection, socket.socket]]:
    """Yield a connection and the socket of its client."""
    config = Config(Response(status_code=204), lifespan="off")
    config.load()
    connection = HttpConnection(config, OpenConnections(), {})
    ours, theirs = socket.socketpair()
    with theirs:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: connection, sock=ours)
        yield connection, theirs
        transport.abort()
