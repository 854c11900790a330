"""Receives the answer of a browser on this machine (RFC 8252)."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from internal.agent.ports.mcp import LoginAnswer
from internal.mcp.limits import ServerFailure

LOGIN_TIMEOUT_SECONDS = 300.0
"""Time that a person has to agree in the browser."""
_PATH = "/callback"
_MAX_HEAD_BYTES = 16_384
_HEAD_SECONDS = 10.0
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>Larkspur</title>"
    "<p>{text} You can close this window.</p>"
)


class LoopbackReceiver:
    """Waits for one redirect with the right state; other requests are refused and change nothing.

    `port` is the one of 127.0.0.1 that it listens on.
    """

    def __init__(self) -> None:
        self.port = 0
        self._state = ""
        self._found: asyncio.Future[LoginAnswer] = asyncio.get_running_loop().create_future()

    @property
    def redirect_uri(self) -> str:
        """The address that the browser is sent to."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    async def receive(self, state: str, seconds: float = LOGIN_TIMEOUT_SECONDS) -> LoginAnswer:
        """Return the answer that has this state.

        Raises:
            ServerFailure: there was none in time.
        """
        self._state = state
        try:
            async with asyncio.timeout(seconds):
                return await self._found
        except TimeoutError as error:
            raise ServerFailure(f"nobody signed in within {seconds / 60:g} minutes") from error

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a connection."""
        with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_HEAD_SECONDS):
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                except asyncio.LimitOverrunError:
                    head = b""
                status, text = self._answer(head)
                body = _PAGE.format(text=text).encode()
                lines = (
                    f"HTTP/1.1 {status} {status.phrase}",
                    "content-type: text/html; charset=utf-8",
                    f"content-length: {len(body)}",
                    "cache-control: no-store",
                    "connection: close",
                )
                writer.write("\r\n".join((*lines, "", "")).encode() + body)
                await writer.drain()
        writer.close()

    def _answer(self, head: bytes) -> tuple[HTTPStatus, str]:
        words = head.decode("ascii", "replace").split(" ", 2)
        target = urlsplit(words[1]) if len(words) > 2 and words[0] == "GET" else None  # noqa: PLR2004 - method, target, version
        if target is None or target.path != _PATH:
            return HTTPStatus.NOT_FOUND, "There is nothing here."
        answer = _read_answer(target.query)
        expected = self._state
        if not expected or not secrets.compare_digest(answer.state.encode(), expected.encode()):
            return HTTPStatus.BAD_REQUEST, "This is not the answer to a sign-in of Larkspur."
        if not self._found.done():
            self._found.set_result(answer)
        if answer.error:
            return HTTPStatus.OK, "The sign-in was refused."
        return HTTPStatus.OK, "Larkspur has received the answer."


@asynccontextmanager
async def listening() -> AsyncGenerator[LoopbackReceiver]:
    """Listen on a free port of 127.0.0.1 within the block."""
    receiver = LoopbackReceiver()
    server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0, limit=_MAX_HEAD_BYTES)
    async with server:
        receiver.port = server.sockets[0].getsockname()[1]
        yield receiver


def _read_answer(query: str) -> LoginAnswer:
    given = {name: values[-1] for name, values in parse_qs(query, max_num_fields=50).items()}
    error = "" if "code" in given else given.get("error", "there is no code")
    return LoginAnswer(given.get("code", ""), given.get("state", ""), given.get("iss"), error)
