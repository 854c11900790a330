"""An HTTP proxy for tests that opens tunnels (CONNECT) to servers of this machine."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class ConnectProxy:
    """Every tunnel leads to 127.0.0.1, whatever host is asked for. `tunnels` are the hosts."""

    def __init__(self, login: str = "") -> None:
        self.tunnels: list[str] = []
        self.port = 0
        self._login = login
        """`user:password` required from clients, or ""."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with _closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.split(" ", 2)
            expected = "Basic " + base64.b64encode(self._login.encode()).decode()
            if method != "CONNECT":
                writer.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            elif self._login and f"roxy-Authorization: {expected}\r\n" not in head:
                writer.write(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
                )
            else:
                self.tunnels.append(target)
                port = int(target.rpartition(":")[2])
                inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                async with _closing(inner_writer), asyncio.TaskGroup() as tasks:
                    tasks.create_task(_copy(reader, inner_writer))
                    tasks.create_task(_copy(inner_reader, writer))


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncGenerator[None]:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        try:
            yield
        finally:
            writer.close()
            await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def open_connect_proxy(login: str = "") -> AsyncGenerator[ConnectProxy]:
    """Serve a proxy on 127.0.0.1."""
    proxy, serving = ConnectProxy(login), set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(proxy.serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        if serving:
            await asyncio.wait(list(serving))
