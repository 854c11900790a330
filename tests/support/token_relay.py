"""A relay that adds the token to each request, for clients that cannot send one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class TokenRelay:
    """Passes each connection with one request to a port of this machine.

    The relay listens before the port is known: the server behind it has to know the relay's port.
    """

    def __init__(self, token: str) -> None:
        self.port = 0
        self.target = 0
        self._token = token

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
            kept = [line for line in lines if not line.lower().startswith("connection:")]
            added = [f"authorization: Bearer {self._token}", "connection: close"]
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.target)
            request = "\r\n".join([first, *kept, *added])
            inner_writer.write(f"{request}\r\n\r\n".encode("latin-1"))
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(_copy(reader, inner_writer))
                await _copy(inner_reader, writer)
                sending.cancel()
            inner_writer.close()
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def token_relay(token: str) -> AsyncGenerator[TokenRelay]:
    """Listen while the block runs."""
    relay = TokenRelay(token)
    async with await asyncio.start_server(relay.serve, "127.0.0.1", 0) as server:
        relay.port = server.sockets[0].getsockname()[1]
        yield relay
