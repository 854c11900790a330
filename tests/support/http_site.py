"""A local HTTP server, a resolver and a fetcher for tests of web_fetch and web_search."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from internal.tools.http_client import Fetcher


class HttpSite:
    """A real local server that sends the `answers` by path and records the requests in `asked`.

    A path is looked up with its query first, then without it; other paths get `missing`. `bodies`
    holds the bodies of the requests.
    """

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.bodies: list[bytes] = []
        self.missing = b"HTTP/1.1 404 Not Found\r\n\r\n"
        self.port = 0
        self.hold = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            path = head[0].split(" ")[1]
            fields = dict(line.split(": ", 1) for line in head[1:] if line)
            self.bodies.append(await reader.readexactly(int(fields.get("Content-Length", 0))))
            self.asked.append((path, fields))
            usual = self.answers.get(path.partition("?")[0], self.missing)
            writer.write(self.answers.get(path, usual))
            await writer.drain()
            if path.startswith("/hang"):
                await self.hold.wait()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # a test may make the client close the connection
        finally:
            writer.close()

    def page(
        self, path: str, body: bytes, kind: str = "text/plain", *more: str, status: int = 200
    ) -> None:
        fields = [f"Content-Length: {len(body)}", f"Content-Type: {kind}", *more]
        head = "\r\n".join([f"HTTP/1.1 {status} Any", *fields]).encode()
        self.answers[path] = head + b"\r\n\r\n" + body

    def redirect(self, path: str, location: str, status: int = 302) -> None:
        head = f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nSet-Cookie: a=b\r\n"
        self.answers[path] = f"{head}Content-Length: 0\r\n\r\n".encode()


class FakeResolver:
    """A resolver with one list of addresses per query of a host; the last list is repeated."""

    def __init__(self, **hosts: list[list[str]]) -> None:
        self.hosts = {name.replace("_", "."): answers for name, answers in hosts.items()}
        self.questions: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.questions.append(host)
        if host not in self.hosts:
            return [host] if host[0].isdigit() or ":" in host else []
        answers = self.hosts[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


def local_fetcher(names: FakeResolver | None = None, **more: object) -> Fetcher:
    """Return a fetcher that permits private networks and resolves the hosts of the tests."""
    resolver = names or FakeResolver(site_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    return Fetcher(allow_private_networks=True, resolver=resolver, **more)  # type: ignore[arg-type] # passed on as given


@pytest.fixture
async def site() -> AsyncIterator[HttpSite]:
    site = HttpSite()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    yield site
    site.hold.set()
    server.close()
    await server.wait_closed()
