"""An HTTP server that gives fixed answers, for tests of clients."""

import http.server
from typing import Any


class AnsweringServer(http.server.ThreadingHTTPServer):
    """Answers each path with a status and a body of one type, and records the requests."""

    answers: dict[str, tuple[int, bytes]]
    asked: list[tuple[str, str, str | None]]
    bodies: list[bytes]
    media_type = "application/json"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers, self.asked, self.bodies = {}, [], []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Any = self.server
        server.bodies.append(self.rfile.read(int(self.headers.get("content-length", 0))))
        path = self.path.partition("?")[0]
        server.asked.append((self.command, path, self.headers["last-event-id"]))
        status, body = server.answers[path]
        self.send_response(status)
        self.send_header("content-type", server.media_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the names that http.server looks for

    def log_message(self, *words: object) -> None:
        pass
