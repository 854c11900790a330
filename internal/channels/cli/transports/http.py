"""The blocking HTTP transport of commands."""

import http.client
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Literal

from internal.channels.cli.exit_codes import USAGE, CliExit
from internal.channels.cli.transports.interface import (
    USER_AGENT,
    RefusedStream,
    Response,
    Unreachable,
    Upload,
    drive,
)
from internal.config.home import HomeError
from internal.normal_forms.addresses import is_loopback
from internal.normal_forms.urls import split_url

RESPONSE_TIMEOUT_SECONDS = 30.0
HEALTH_TIMEOUT_SECONDS = 2.0
STREAM_TIMEOUT_SECONDS = 40.0
"""The gateway sends a heartbeat every 15 s; a stream that is silent for longer is broken."""

_CHUNK_BYTES = 65_536
_ERROR_STATUS = 400


class HttpEndpoint:
    """The address and token of one gateway.

    Every request uses a new connection and reads the token, so that neither can be stale.

    Args:
        url: the address of the gateway.
        token: returns the local token, or raises HomeError.

    Raises:
        CliExit: the address cannot be used.
    """

    def __init__(self, url: str, token: Callable[[], str]) -> None:
        self.url = url.rstrip("/")
        self._token = token
        try:
            parts = split_url(self.url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            parts, self._host, self._port = split_url(""), "", None
        if parts.scheme not in {"http", "https"} or not self._host:
            raise CliExit(USAGE, f"{url} is not a URL such as http://127.0.0.1:8420.")
        if parts.scheme == "http" and not is_loopback(self._host):
            raise CliExit(USAGE, f"{url} would send the token over the network unencrypted.")
        self._path = parts.path
        secure = parts.scheme == "https"
        self._connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection

    def answers(self) -> bool:
        """Return True if a gateway answers, healthy or not."""
        try:
            response = self._exchange("GET", "/health", timeout_seconds=HEALTH_TIMEOUT_SECONDS)
        except Unreachable:
            return False
        return b"{" in response.body

    def request(self, method: str, path: str, body: bytes | Upload | None = None) -> Response:
        """Send a request; see `Transport.request`."""
        return self._exchange(method, path, body)

    def stream(self, path: str, last_id: str | None) -> Iterator[bytes]:
        """Yield the bytes of a response; see `Transport.stream`."""
        headers = {**self._headers(), "Accept": "*/*"}
        if last_id is not None:
            headers["Accept"] = "text/event-stream"
        if last_id:
            headers["Last-Event-ID"] = last_id
        with closing(self._open(STREAM_TIMEOUT_SECONDS)) as connection:
            try:
                connection.request("GET", self._path + path, headers=headers)
                response = connection.getresponse()
                if response.status >= _ERROR_STATUS:
                    raise RefusedStream(Response(response.status, response.read()))
                while received := response.read1(_CHUNK_BYTES):
                    yield received
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(_reason(error)) from None

    @contextmanager
    def post(
        self, path: str, body: bytes, headers: Mapping[str, str]
    ) -> Generator[http.client.HTTPResponse]:
        """Send JSON with further headers, and read the response while the block runs.

        Raises:
            Unreachable: there is no response, or it breaks or is silent for too long in the block.
        """
        sent = {**self._headers(), **_body_headers(body), **headers}
        with closing(self._open(STREAM_TIMEOUT_SECONDS)) as connection:
            try:
                connection.request("POST", self._path + path, body, sent)
                yield connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(_reason(error)) from None

    def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | Upload | None = None,
        *,
        timeout_seconds: float = RESPONSE_TIMEOUT_SECONDS,
    ) -> Response:
        headers = {**self._headers(), **_body_headers(body)}
        content = body.chunks() if isinstance(body, Upload) else body
        with closing(self._open(timeout_seconds)) as connection:
            try:
                try:
                    connection.request(method, self._path + path, content, headers)
                except (BrokenPipeError, ConnectionResetError):
                    if not isinstance(body, Upload):
                        raise
                    # refused before all of it was sent: the response says why
                response = connection.getresponse()
                return Response(response.status, response.read())
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(_reason(error)) from None

    def _headers(self) -> dict[str, str]:
        try:
            token = self._token()
        except HomeError as error:
            raise Unreachable(str(error).rstrip(".")) from None
        return {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "User-Agent": USER_AGENT,
        }

    def _open(self, timeout_seconds: float) -> http.client.HTTPConnection:
        return self._connect(self._host, self._port, timeout=timeout_seconds)


class HttpTransport:
    """Transport that blocks in every request; run its client with `drive`, without an event loop.

    `find` returns the gateway's current endpoint, None while there is none: a restarted gateway may
    have another address.
    """

    via: Literal["gateway", "process"] = "gateway"

    def __init__(self, endpoint: HttpEndpoint, find: Callable[[], HttpEndpoint | None]) -> None:
        self._endpoint = endpoint
        self._find = find

    @property
    def address(self) -> str:
        """The gateway's URL."""
        return self._endpoint.url

    async def request(self, method: str, path: str, body: bytes | Upload | None = None) -> Response:
        """Send a request."""
        return self._endpoint.request(method, path, body)

    async def stream(self, path: str, last_id: str | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes of a response."""
        for received in self._endpoint.stream(path, last_id):
            yield received

    async def reconnect(self) -> bool:
        """Look up the gateway's current address."""
        found = self._find()
        self._endpoint = self._endpoint if found is None else found
        return self._endpoint.answers()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)  # noqa: ASYNC251 - there is no event loop to block

    async def run_blocking(self, work: Callable[[], None]) -> None:
        """Run the work in the calling thread: nothing else runs in this process."""
        work()

    def start_from_signal(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run the work in the signal handler."""
        drive(work())

    async def adopt(self, run_id: str) -> bool:  # noqa: ARG002 - as in Transport
        """Return False: the gateway executes all runs."""
        return False


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _body_headers(body: bytes | Upload | None) -> Mapping[str, str]:
    if isinstance(body, Upload):
        return {"Content-Type": body.media_type, "Content-Length": str(body.size)}
    return {} if body is None else {"Content-Type": "application/json"}
