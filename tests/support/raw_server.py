"""A server that answers HTTP requests with given bytes, whatever they are."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

CLOSE = b""
"""In place of an answer: the server closes the connection after the request."""


def response(body: bytes = b"ok", *headers: str, status: int = 200) -> bytes:
    """Return a response with a length."""
    lines = [f"HTTP/1.1 {status} Any", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class RawServer:
    """Gives one of `answers` to each request, the last one again and again.

    `requests` holds the received requests, `connections` counts the connections, and `left` is set
    once a client closed one. An answer with `CLOSE` as its last item closes the connection.
    """

    def __init__(self, answers: Sequence[Sequence[bytes] | bytes]) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.left = asyncio.Event()
        self.port = 0
        self.close: Callable[[], None] = lambda: None
        """Accepts no more connections."""
        self._answers = list(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.requests.append(await _read_request(reader))
                self.asked.set()
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                for piece in [answer] if isinstance(answer, bytes) else answer:
                    if piece == CLOSE:
                        return
                    writer.write(piece)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    lengths = [line.partition(":")[2] for line in lines if line.startswith("content-length:")]
    return head + await reader.readexactly(int(lengths[0]) if lengths else 0)


@asynccontextmanager
async def raw_server(
    *answers: Sequence[bytes] | bytes, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[RawServer]:
    """Serve on 127.0.0.1."""
    served = RawServer(answers)
    connections = set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(served.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    served.close = server.close
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        if connections:
            await asyncio.wait(list(connections))
