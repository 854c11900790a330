"""Sends requests to a provider over persistent connections and reads the raw bytes of responses.

Connections come from `internal.egress`. The providers' SDKs are not used: see
docs/adr/0012-model-requests-without-the-sdk.md.
"""

import asyncio
import codecs
import contextlib
import math
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from internal.agent.app.background_task import wait_shielded
from internal.agent.domain.errors import ModelError, ModelRejected, ModelUnreachable
from internal.agent.domain.secrets import register_secret
from internal.egress.messages import SessionRequest, UploadedFile, encode_form
from internal.egress.policy import EgressPolicy, provider_policy
from internal.llm.errors import ProviderInfo, invalid_key_error, missing_key_error
from internal.llm.lenient_json import decode_json, one_line
from internal.llm.server_answers import is_page, is_wrong_address, wrong_address_error
from internal.llm.stream_reader import ResponseReader, StreamedText

if TYPE_CHECKING:
    from types import ModuleType

    from aiohttp import ClientResponse
    from yarl import URL

    from internal.egress.session import HttpSession

MAX_BODY_BYTES = 4 * 1024 * 1024
"""The most that is read of a response that is not a stream."""
MAX_REDIRECTS = 5
KEEPALIVE_SECONDS = 60.0
"""Seconds that an unused connection stays open."""
_CONNECT_SECONDS = 10.0
_TAIL_SECONDS = 1.0
_READ_INTERVAL_SECONDS = 0.02
"""Subscribers are shown new text of a reply at most so often, so nor is it read more often."""
_REDIRECTS = {HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT}
HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip, deflate",
    "user-agent": "Larkspur",
}


class ApiKey:
    """An API key that `repr`, `str` and formatting never show; `reveal` returns it.

    It is masked in everything that providers say.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        register_secret(value)

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def header(self, name: str) -> dict[str, str]:
        """Return the header with the key; `authorization` has a bearer token. {} without one."""
        bearer = "Bearer " if name == "authorization" else ""
        return {name: f"{bearer}{self._value}"} if self._value else {}

    @property
    def usable(self) -> bool:
        """Whether the key can be sent in an HTTP header."""
        value = self._value
        return bool(value) and value.isascii() and value.isprintable() and " " not in value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret('…')" if self._value else "Secret('')"


class ProviderErrorResponse(NamedTuple):
    """A response with an error status. `body` is decoded JSON, or text if it is not JSON."""

    status: int
    body: object
    headers: Mapping[str, str]


Refused = Callable[[ProviderErrorResponse], ModelError]
"""Makes the error that a response with an error status stands for."""


class _Stack(NamedTuple):
    """The imported HTTP stack, the address of the provider, and the way to it."""

    aiohttp: "ModuleType"
    open_session: "type[HttpSession]"
    make_url: "type[URL]"
    address: "URL"
    policy: EgressPolicy


class ProviderHttpClient:
    """HTTP client of one address. Creating one is instant; a thread imports the HTTP stack.

    `headers` are sent with every request, and the key if there is one: as a bearer token, or as it
    is in another `key_header`.
    `silence_seconds` is the longest wait for the next bytes of a connection.
    """

    def __init__(
        self,
        peer: ProviderInfo,
        address: str,
        key: ApiKey,
        *,
        silence_seconds: float,
        headers: Mapping[str, str] | None = None,
        key_header: str = "authorization",
    ) -> None:
        self._peer, self._address, self._key = peer, address, key
        self._key_header = key_header
        self._headers = {**HEADERS, **(headers or {})}
        self._silence = silence_seconds
        self._stack: Future[_Stack] | None = None
        self._session: HttpSession | None = None

    def check_key(self, *, needed: bool) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        if needed and not self._key:
            raise missing_key_error(self._peer)
        if self._key and not self._key.usable:
            raise invalid_key_error(self._peer)

    def preload(self) -> None:
        """Start importing the HTTP stack in the background; the first call waits for it."""
        self._loading()

    async def load(self) -> None:
        """Wait until the HTTP stack is imported, so that the time of a call does not include it."""
        loading = self._loading()
        if not loading.done():
            # shielded: all runs await the same import, and one of them may be cancelled
            await wait_shielded(asyncio.wrap_future(loading))

    def _loading(self) -> "Future[_Stack]":
        if self._stack is None:
            self._stack = Future()
            # no daemon thread: a process that exits while OpenSSL reads certificates may crash
            threading.Thread(target=self._load, args=(self._stack,)).start()
        return self._stack

    def _load(self, stack: "Future[_Stack]") -> None:
        try:
            import aiohttp  # noqa: PLC0415  # slow import; this is its only place
            from yarl import URL  # noqa: PLC0415  # comes with it

            from internal.egress.session import HttpSession  # noqa: PLC0415  # imports aiohttp

            # not `/`, which would quote the path of the address again
            address, policy = URL(self._address.rstrip("/")), provider_policy()
            # raises if it cannot be used
            policy.proxies.find(address.scheme, address.host or "", address.port or 0)
            stack.set_result(_Stack(aiohttp, HttpSession, URL, address, policy))
        except Exception as error:  # noqa: BLE001  # any failure must reach the waiting run
            reason = one_line(str(error))
            sentence = f"Cannot create the client for {self._peer.name}: {reason}"
            refused = ModelRejected(sentence, detail=reason)
            refused.__cause__ = error
            stack.set_exception(refused)

    async def post(self, path: str, body: bytes, refused: Refused) -> "ClientResponse":
        """Send a JSON document and return the response, whose body is not read yet.

        Raises:
            ModelError: the error that `refused` makes of a status other than 2xx.
            ModelUnreachable: the connection failed.
        """
        return await self._exchange(path, body, "application/json", refused)

    async def upload(
        self, path: str, fields: Mapping[str, str], file: UploadedFile, refused: Refused
    ) -> bytes:
        """Send a form with a file and return the body of the response; raises as `post` does.

        A body of more than `MAX_BODY_BYTES` is cut.
        """
        media_type, body = encode_form(fields, file)
        response = await self._exchange(path, body, media_type, refused)
        stack = self._loading().result()
        async with self._time_limit():
            return await stack.open_session.read_body(response, MAX_BODY_BYTES)

    async def _exchange(
        self, path: str, body: bytes, media_type: str, refused: Refused
    ) -> "ClientResponse":
        await self.load()
        stack = self._loading().result()
        headers = {**self._headers, "content-type": media_type}
        headers |= self._key.header(self._key_header)
        url = stack.make_url(f"{stack.address}{path}")
        async with self._time_limit():
            response = await self._follow(stack, SessionRequest("POST", url, headers, body))
            if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
                return response
            refusal = _as_refusal(
                response, await stack.open_session.read_body(response, MAX_BODY_BYTES)
            )
        if is_wrong_address(refusal.status, refusal.headers, refusal.body):
            detail = f"{self._address}: {refusal.body}"
            raise wrong_address_error(self._peer.name, refusal.status, detail)
        raise refused(refusal)

    @contextlib.asynccontextmanager
    async def _time_limit(self) -> AsyncGenerator[None, None]:
        """Limit the time of a block that uses a connection, and translate its errors."""
        try:
            async with asyncio.timeout(self._silence + _CONNECT_SECONDS):
                yield
        except self._broken as error:
            raise self._unreachable(error) from error

    @property
    def _broken(self) -> tuple[type[Exception], ...]:
        """The errors of connections."""
        stack = self._loading().result()
        return stack.aiohttp.ClientError, OSError

    async def _follow(self, stack: _Stack, request: SessionRequest) -> "ClientResponse":
        """Send a request and follow redirects that repeat it, without the key to other servers."""
        for _ in range(MAX_REDIRECTS):
            response = await self._send(stack, request)
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or not location:
                return response
            response.close()
            try:
                target = request.url.join(stack.make_url(location))
            except ValueError as error:
                raise stack.aiohttp.InvalidURL(location, str(error)) from error
            headers = dict(request.headers)
            if not _is_same_server(request.url, target):
                headers.pop(self._key_header, None)
            request = request._replace(url=target, headers=headers)
        return await self._send(stack, request)

    async def _send(self, stack: _Stack, request: SessionRequest) -> "ClientResponse":
        if self._session is None:
            # no limit of connections: `llm.concurrency` limits the calls
            self._session = stack.open_session(
                stack.policy,
                keepalive_seconds=KEEPALIVE_SECONDS,
                connect_seconds=_CONNECT_SECONDS,
                silence_seconds=self._silence,
            )
        return await self._session.send(request)

    async def read(
        self, response: "ClientResponse", reader: ResponseReader
    ) -> AsyncGenerator[StreamedText, None]:
        """Feed the response to the reader and yield its text deltas. Closes the response.

        The first text is yielded as soon as it arrives; what follows in many small packets is read
        every `_READ_INTERVAL_SECONDS`. After the model's response is complete, the rest is read
        for a moment to get the token counts and to keep the connection usable; a failure there is
        ignored.

        Raises:
            ModelUnreachable: the connection broke before the response was complete.
            ModelAddressWrong: the response is a web page.
        """
        pace = _ReadPace(response)
        # pages only: a stream that is called text/html by its server is read
        may_be_page = response.content_type == "text/html"
        try:
            async with contextlib.aclosing(self._chunks(response)) as chunks:
                async for chunk in chunks:
                    if may_be_page and is_page(chunk[:1_024].decode("utf-8", "replace")):
                        raise wrong_address_error(self._peer.name, response.status, self._address)
                    begun, size = asyncio.get_running_loop().time(), reader.size
                    for words in reader.feed(chunk):
                        yield words
                    if reader.is_complete or reader.is_finished:
                        break
                    if reader.size > size:
                        await pace.wait(begun)
                for words in await _tail(chunks, reader) if reader.is_complete else ():
                    yield words
            for words in reader.end():
                yield words
        finally:
            response.close()  # without effect where the whole response was read

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        if self._session is not None:
            await self._session.close()

    async def _chunks(self, response: "ClientResponse") -> AsyncGenerator[bytes, None]:
        while True:
            try:
                # ours as well: the transport ignores its own after it fails to parse a chunk
                async with asyncio.timeout(self._silence):
                    chunk = await response.content.readany()
            except self._broken as error:
                raise self._unreachable(error) from error
            if not chunk:
                return
            yield chunk

    def _unreachable(self, error: Exception) -> ModelUnreachable:
        reason = one_line(str(error)) or type(error).__name__
        detail = f"{self._address}: {reason}"
        no_connection = self._loading().result().aiohttp.ConnectionTimeoutError
        if isinstance(error, TimeoutError) and not isinstance(error, no_connection):
            sentence = f"{self._peer.name} sent nothing for {self._silence:g} s."
            return ModelUnreachable(sentence, detail=detail)
        return ModelUnreachable(f"Cannot connect to {self._peer.name}.", detail=detail)


class _ReadPace:
    """The minimum time between two reads of a response whose text arrives in many packets.

    It ends early at the end of the response. The timer of the connection, which would be set again
    for every packet, is switched off: each read has a time limit.
    """

    def __init__(self, response: "ClientResponse") -> None:
        self._loop = asyncio.get_running_loop()
        self._last = -math.inf
        self._ended = asyncio.Event()
        response.content.on_eof(self._ended.set)
        connection = response.connection
        protocol = None if connection is None else connection.protocol
        if protocol is not None:
            protocol.read_timeout = None

    async def wait(self, since: float) -> None:
        """Wait until text can be read again, after text that was read at a time."""
        is_dense = since - self._last < 2 * _READ_INTERVAL_SECONDS
        self._last = since
        until = since + _READ_INTERVAL_SECONDS
        if is_dense and not self._ended.is_set() and self._loop.time() < until:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._ended.wait()


def _is_same_server(url: "URL", target: "URL") -> bool:
    """Return True if both are one server, also if the redirect only adds TLS."""
    if url.origin() == target.origin():
        return True
    adds_tls = (url.scheme, target.scheme) == ("http", "https")
    return adds_tls and url.host == target.host and url.is_default_port()


def _as_refusal(response: "ClientResponse", body: bytes) -> ProviderErrorResponse:
    try:
        content = decode_json(body)
    except (ValueError, RecursionError):
        content = body.decode(_charset(response), "replace").strip()
    return ProviderErrorResponse(response.status, content, response.headers)


def _charset(response: "ClientResponse") -> str:
    try:
        return codecs.lookup(response.charset or "utf-8").name
    except LookupError:
        return "utf-8"


async def _tail(chunks: AsyncGenerator[bytes, None], reader: ResponseReader) -> list[StreamedText]:
    words: list[StreamedText] = []
    with contextlib.suppress(TimeoutError, ModelUnreachable):
        async with asyncio.timeout(_TAIL_SECONDS):
            async for chunk in chunks:
                words += reader.feed(chunk)
                if reader.is_finished:
                    break
    return words
