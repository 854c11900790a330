"""A server with configured answers per path, including answers of model servers.

It answers the requests of `internal.llm.addresses` for both wire formats and records request heads.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from queue import Queue
from threading import Thread
from typing import NamedTuple

WIRES = ("openai", "anthropic")
PAGE = "<!DOCTYPE html><html><head><title>Open WebUI</title></head><body>Hello</body></html>"
LOGIN = "<html><form>Sign in<input type='password'></form></html>"


_COMPLETION = {
    "id": "c",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "It works."},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2},
}


class SiteAnswer(NamedTuple):
    """An answer. A mapping or a list is sent as JSON, a text unchanged."""

    body: object = ""
    status: int = 200
    headers: Mapping[str, str] = {}


class SiteRequest(NamedTuple):
    """A received request. The names in `headers` are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


Handler = Callable[[SiteRequest], SiteAnswer]


def page(body: str = PAGE, status: int = 200) -> SiteAnswer:
    """Return a web page."""
    return SiteAnswer(body, status, {"content-type": "text/html; charset=utf-8"})


def not_found(_request: SiteRequest) -> SiteAnswer:
    """Answer as frameworks do where there is no path."""
    return SiteAnswer({"detail": "Not Found"}, 404)


def model_server(
    prefix: str,
    *,
    wire: str = "openai",
    key: str = "",
    models: Sequence[str] = ("m-large", "m-small"),
    otherwise: Handler = not_found,
) -> Handler:
    """Return a model server whose paths start with `prefix`; "" as a key takes every key.

    A server of OpenAI's format answers requests with one short document.
    """
    lists, replies = {
        "openai": ("/models", "/chat/completions"),
        "anthropic": ("/v1/models", "/v1/messages"),
    }[wire]

    def answer(request: SiteRequest) -> SiteAnswer:
        path = request.path.partition("?")[0]
        if path not in {prefix + lists, prefix + replies}:
            return otherwise(request)
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if key and given != key:
            return SiteAnswer({"error": {"message": f"Invalid API key {given}."}}, 401)
        if path == prefix + lists and request.method == "GET":
            return SiteAnswer({"data": [{"id": name} for name in models]})
        if request.body not in {b"", b"{}"} and wire == "openai":
            return SiteAnswer(_COMPLETION)
        if path == prefix + replies and request.method == "POST":
            return SiteAnswer({"error": {"message": "model is required"}}, 400)
        return SiteAnswer({"detail": "Method Not Allowed"}, 405)

    return answer


class ModelSite:
    """A running server. `requests` holds the received requests in order."""

    def __init__(self, handler: Handler, host: str = "127.0.0.1") -> None:
        self.handler, self._host = handler, host
        self.requests: list[SiteRequest] = []
        self.port = 0
        self.scheme = "http"

    @property
    def origin(self) -> str:
        """The address without a path."""
        return f"{self.scheme}://{self._host}:{self.port}"

    @property
    def keys(self) -> set[str]:
        """The keys that were received, "" for a request without one."""
        return {one.headers.get("authorization", "") for one in self.requests}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                request = await self._read(reader)
                self.requests.append(request)
                writer.write(_encode(self.handler(request)))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the client left
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader) -> SiteRequest:
        first_byte = await reader.readexactly(1)
        if not first_byte.isalpha():
            raise ConnectionError("this is not HTTP")  # TLS, which servers refuse at once
        head = (first_byte + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split(" ", 2)
        fields = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return SiteRequest(method, path, headers, body)


def _encode(answer: SiteAnswer) -> bytes:
    is_text = isinstance(answer.body, str)
    body = str(answer.body).encode() if is_text else json.dumps(answer.body).encode()
    if isinstance(answer.body, bytes):
        body = answer.body
    headers = {"content-type": "text/plain" if is_text else "application/json", **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


@asynccontextmanager
async def model_site(
    handler: Handler = not_found, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncGenerator[ModelSite]:
    """Serve at an address of this machine, such as 127.0.0.2."""
    site = ModelSite(handler, host)
    connections = set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(site.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(accept, host, 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    site.scheme = "https" if tls is not None else "http"
    try:
        yield site
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        if connections:
            await asyncio.wait(list(connections))


@contextmanager
def background_site(handler: Handler) -> Generator[ModelSite]:
    """Serve in a thread, for tests that have no event loop."""
    started = Queue[tuple[ModelSite, asyncio.AbstractEventLoop, asyncio.Event]]()

    async def work() -> None:
        ended = asyncio.Event()
        async with model_site(handler) as site:
            started.put((site, asyncio.get_running_loop(), ended))
            await ended.wait()

    thread = Thread(target=asyncio.run, args=(work(),))
    thread.start()
    site, loop, ended = started.get()
    try:
        yield site
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
