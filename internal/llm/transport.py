"""Sends requests through a provider's SDK and reads the raw bytes of the response.

The SDK handles addresses, keys, timeouts and connections; decoding the stream is done here.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from internal.agent.domain.errors import ModelError, ModelRejected, ModelUnreachable
from internal.agent.domain.secrets import register_secret
from internal.agent.ports.llm import TextDelta
from internal.llm.errors import ProviderInfo, invalid_key_error, missing_key_error
from internal.llm.lenient_json import one_line
from internal.llm.stream_reader import ResponseReader


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

    @property
    def usable(self) -> bool:
        """Whether the key can be sent in an HTTP header."""
        value = self._value
        return bool(value) and value.isascii() and value.isprintable() and " " not in value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret('…')" if self._value else "Secret('')"


if TYPE_CHECKING:
    from types import ModuleType

MAX_BODY_BYTES = 4 * 1024 * 1024
"""The most that is read of a response that is not a stream."""
_CONNECT_SECONDS = 10.0
_TAIL_SECONDS = 1.0


class ProviderErrorResponse(NamedTuple):
    """A response with an error status. `body` is decoded JSON, or text if it is not JSON."""

    status: int
    body: object
    headers: Mapping[str, str]


UploadedFile = tuple[str, bytes, str]
"""The name, content and media type of a file in a form."""


class SdkFactory(Protocol):
    """Imports an SDK and creates its client, with the SDK's own retries off.

    Both SDKs come from the same generator, so the names used here exist in each of them.
    """

    def __call__(self, timeout: Any, /) -> "tuple[ModuleType, Any]":
        """Return the SDK module and its client. `timeout` is an `httpx2.Timeout`."""
        ...


class _Sdk(NamedTuple):
    module: "ModuleType"
    httpx2: "ModuleType"
    broken: tuple[type[Exception], ...]
    client: Any


class SdkClient:
    """Client of one address. Creating one is instant; a thread imports the SDK.

    `silence_seconds` is the longest wait for the next bytes of a connection.
    """

    def __init__(
        self,
        peer: ProviderInfo,
        address: str,
        key: ApiKey,
        *,
        factory: SdkFactory,
        silence_seconds: float,
    ) -> None:
        self._peer, self._address, self._key = peer, address, key
        self._factory = factory
        self._silence = silence_seconds
        self._sdk: Future[_Sdk] | None = None

    def check_key(self, *, needed: bool) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        if needed and not self._key:
            raise missing_key_error(self._peer)
        if self._key and not self._key.usable:
            raise invalid_key_error(self._peer)

    def preload(self) -> None:
        """Start importing the SDK in the background; the first call waits for it."""
        self._loading()

    async def load(self) -> None:
        """Wait until the SDK is imported, so that the time of a call does not include it."""
        await self._load_once()

    def _loading(self) -> "Future[_Sdk]":
        if self._sdk is None:
            self._sdk = Future()
            # a daemon thread, so that the process can exit without waiting for the import
            threading.Thread(target=self._load, args=(self._sdk,), daemon=True).start()
        return self._sdk

    def _load(self, sdk: "Future[_Sdk]") -> None:
        try:
            sdk.set_result(self._imported())
        except Exception as error:  # noqa: BLE001  # any failure must reach the waiting run
            sentence = f"Cannot create the client for {self._peer.name}."
            refused = ModelRejected(sentence, detail=one_line(str(error)))
            refused.__cause__ = error
            sdk.set_exception(refused)

    def _imported(self) -> _Sdk:
        import aiohttp  # noqa: PLC0415  # slow import; this is its only place
        import httpx2  # noqa: PLC0415  # slow import; this is its only place

        module, client = self._factory(httpx2.Timeout(self._silence, connect=_CONNECT_SECONDS))
        # A broken stream raises the transport's errors: the SDK wraps those of the request only.
        broken = (httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError)
        return _Sdk(module, httpx2, broken, client)

    async def post(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        refused: Callable[[ProviderErrorResponse], ModelError],
    ) -> Any:
        """Send a request and return the streaming response with status 200.

        Raises:
            ModelError: the error that `refused` makes of another status.
            ModelUnreachable: the connection failed.
        """
        options = {"headers": {"content-type": "application/json", **headers}}
        async with self._errors(refused) as sdk:
            return await _post(sdk, path, content=body, options=options)

    async def upload(
        self,
        path: str,
        fields: Mapping[str, str],
        file: UploadedFile,
        refused: Callable[[ProviderErrorResponse], ModelError],
    ) -> bytes:
        """Send a form with a file and return the body of the response; raises as `post` does.

        A body of more than `MAX_BODY_BYTES` is cut.
        """
        options = {"headers": {"content-type": "multipart/form-data"}}
        async with self._errors(refused) as sdk:
            response = await _post(
                sdk, path, body=dict(fields), files={"file": file}, options=options
            )
            body = bytearray()
            try:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BODY_BYTES:
                        break
            finally:
                await response.aclose()
            return bytes(body[:MAX_BODY_BYTES])

    @contextlib.asynccontextmanager
    async def _errors(
        self, refused: Callable[[ProviderErrorResponse], ModelError]
    ) -> AsyncGenerator[_Sdk, None]:
        """Limit the time of a request in a block, and translate its errors."""
        sdk = await self._load_once()
        try:
            async with asyncio.timeout(self._silence + _CONNECT_SECONDS):
                yield sdk
        except sdk.module.APIStatusError as error:
            refusal = ProviderErrorResponse(error.status_code, error.body, error.response.headers)
            raise refused(refusal) from error
        except (sdk.module.APIConnectionError, *sdk.broken) as error:
            raise self._unreachable(error.__cause__ or error) from error

    async def _load_once(self) -> _Sdk:
        # shielded: all runs await the same import, and one of them may be cancelled
        return await asyncio.shield(asyncio.wrap_future(self._loading()))

    async def read(self, response: Any, reader: ResponseReader) -> AsyncGenerator[TextDelta, None]:
        """Feed the response to the reader and yield its text deltas. Closes the response.

        After the model's response is complete, the rest is read for a moment to get the token
        counts and to keep the connection usable; a failure there is ignored.

        Raises:
            ModelUnreachable: the connection broke before the response was complete.
        """
        sdk = self._loading().result()  # a response implies a loaded SDK
        try:
            async with contextlib.aclosing(self._chunks(sdk, response)) as chunks:
                async for chunk in chunks:
                    for words in reader.feed(chunk):
                        yield words
                    if reader.is_complete or reader.is_finished:
                        break
                for words in await _tail(chunks, reader) if reader.is_complete else ():
                    yield words
            for words in reader.end():
                yield words
        finally:
            with contextlib.suppress(*sdk.broken):  # it is being closed anyway
                async with asyncio.timeout(_TAIL_SECONDS):
                    await response.aclose()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        sdk = self._sdk
        if (
            sdk is not None and sdk.done() and sdk.exception() is None
        ):  # otherwise there are no connections
            await sdk.result().client.close()

    async def _chunks(self, sdk: _Sdk, response: Any) -> AsyncGenerator[bytes, None]:
        body = response.aiter_bytes()
        while True:
            try:
                # ours as well: the transport ignores its own after it fails to parse a chunk
                async with asyncio.timeout(self._silence):
                    chunk = await anext(body, None)
            except sdk.broken as error:
                raise self._unreachable(error) from error
            if chunk is None:
                return
            yield chunk

    def _unreachable(self, error: BaseException) -> ModelUnreachable:
        reason = one_line(str(error)) or type(error).__name__
        detail = f"{self._address}: {reason}"
        if isinstance(error, TimeoutError):
            sentence = f"{self._peer.name} sent nothing for {self._silence:g} s."
            return ModelUnreachable(sentence, detail=detail)
        return ModelUnreachable(f"Cannot connect to {self._peer.name}.", detail=detail)


async def _post(sdk: _Sdk, path: str, **request: Any) -> Any:
    """Return the response itself: the SDK would parse its body, and trust its size."""
    return await sdk.client.post(
        path,
        **request,
        cast_to=sdk.httpx2.Response,
        stream=True,
        stream_cls=sdk.module.AsyncStream[object],
    )


async def _tail(chunks: AsyncGenerator[bytes, None], reader: ResponseReader) -> list[TextDelta]:
    words: list[TextDelta] = []
    with contextlib.suppress(TimeoutError, ModelUnreachable):
        async with asyncio.timeout(_TAIL_SECONDS):
            async for chunk in chunks:
                words += reader.feed(chunk)
                if reader.is_finished:
                    break
    return words
