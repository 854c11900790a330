"""A proxy in front of a PostgreSQL server that cuts a connection while it commits."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from enum import Enum

_COMMIT = b"Q\x00\x00\x00\x0bcommit\x00"  # https://www.postgresql.org/docs/current/protocol.html


class Cut(Enum):
    """The point at which the connection of the next commit is cut."""

    BEFORE_COMMIT = "the server does not get it"
    BEFORE_REPLY = "the server commits, and its reply is lost"


class PostgresProxy:
    """Forwards bytes. `cut` is the next fault; it is None again once it happened."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.cut: Cut | None = None

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
        replies = asyncio.create_task(_forward(server, to_client))
        try:
            while data := await client.read(65_536):
                if self.cut is None or not data.endswith(_COMMIT):
                    to_server.write(data)
                    continue
                cut, self.cut = self.cut, None
                if cut is Cut.BEFORE_REPLY:
                    replies.cancel()
                    await asyncio.wait([replies])
                    to_server.write(data)
                    await server.read(1)  # the first byte of its reply
                break
        except ConnectionError:
            pass
        finally:
            replies.cancel()
            await asyncio.wait([replies])
            to_server.close()
            to_client.close()
            for writer in (to_server, to_client):
                with suppress(ConnectionError):
                    await writer.wait_closed()


async def _forward(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65_536):
            target.write(data)
        target.close()


@asynccontextmanager
async def postgres_proxy(url: str) -> AsyncGenerator[tuple[PostgresProxy, str]]:
    """Yield a proxy and the URL of a database behind it."""
    before, _, rest = url.rpartition(":")
    port, _, name = rest.partition("/")
    proxy = PostgresProxy(int(port))
    server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
    own_port = server.sockets[0].getsockname()[1]
    try:
        yield proxy, f"{before}:{own_port}/{name}"
    finally:
        server.close()
