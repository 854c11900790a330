"""A relay of PyPI and npm on the loopback address, for machines whose registries are elsewhere.

Larkspur lets isolated installers reach public addresses, and with a setting also addresses of this
machine and of private networks. On some machines the names of the registries lead to addresses of
neither kind; there this relay is configured as the index. It forwards the requests of `uv` and
`npm`.
"""

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address

PLACES = {
    "npm": "https://registry.npmjs.org",
    "pypi": "https://pypi.org",
    "files": "https://files.pythonhosted.org",
}
_PASSED = ("accept", "range", "if-none-match")
_ANSWERED = ("content-type", "content-range", "etag", "accept-ranges", "cache-control")


def is_needed() -> bool:
    """Say whether the registries have addresses that are not public."""
    host = PLACES["pypi"].removeprefix("https://")
    found = {each[4][0] for each in socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)}
    return not all(ip_address(address).is_global for address in found)


class _Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name, _, path = self.path[1:].partition("/")
        if name not in PLACES:
            self.send_error(404)
            return
        headers = {each: self.headers[each] for each in _PASSED if each in self.headers}
        request = urllib.request.Request(f"{PLACES[name]}/{path}", headers=headers)  # noqa: S310 - https only
        try:
            response = urllib.request.urlopen(request, timeout=120)  # noqa: S310 - https only
        except urllib.error.HTTPError as error:
            response = error
        with response:
            self._answer(response.status, response.headers, response.read())

    do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

    def _answer(self, status: int, headers: Message, body: bytes) -> None:
        if "json" in headers.get("content-type", "") or "html" in headers.get("content-type", ""):
            own = f"http://{self.headers['host']}"
            for name, url in PLACES.items():
                body = body.replace(url.encode(), f"{own}/{name}".encode())
        self.send_response(status)
        for name in _ANSWERED:
            if name in headers:
                self.send_header(name, headers[name])
        self.send_header("content-length", str(len(body)))
        self.send_header("connection", "close")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its parent
        pass


class _RelayServer(ThreadingHTTPServer):
    request_queue_size = 128


@contextmanager
def relay() -> Generator[str]:
    """Serve the relay; give its address, by the name of the machine.

    Programs in a sandbox reach a name through Larkspur, and 127.0.0.1 as their own machine.
    """
    server = _RelayServer(("127.0.0.1", 0), _Relay)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{socket.gethostname()}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
