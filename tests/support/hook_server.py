"""A local HTTP server that receives POST requests, for hooks and event webhooks."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self


class Posted(NamedTuple):
    """A request that the server read."""

    headers: dict[str, str]
    body: bytes


class HookServer:
    """The server, an async context manager. The last of its `answers` is repeated.

    An answer is a status and a body; the status 0 means that there is none.
    """

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.answers = list(answers or [(200, b"")])
        self.requests: list[Posted] = []
        self._arrived = asyncio.Condition()
        self._left = asyncio.Event()

    @property
    def url(self) -> str:
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}/hook"

    async def until(self, count: int) -> list[Posted]:
        """Wait for this many requests and return them."""
        async with asyncio.timeout(30), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests

    async def until_events(self, count: int) -> list[Posted]:
        """Wait for this many events and return the first request of each."""

        def events() -> dict[str, Posted]:
            return {each.headers["webhook-id"]: each for each in reversed(self.requests)}

        async with asyncio.timeout(30), self._arrived:
            await self._arrived.wait_for(lambda: len(events()) >= count)
        return list(reversed(events().values()))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._left.set()
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.split(": ", 1) for line in head[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            body = await reader.readexactly(int(headers["content-length"]))
            status, content = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            async with self._arrived:
                self.requests.append(Posted(headers, body))
                self._arrived.notify_all()
            if not status:
                await self._left.wait()
            head_of_answer = f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n"
            writer.write(head_of_answer.encode() + b"Connection: close\r\n\r\n" + content)
            await writer.drain()
        writer.close()
