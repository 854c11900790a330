"""A request through a vendor's SDK, and the bytes of its reply: what both wire formats share.

The SDK makes the request (address, key, time limits, connections); the bytes of the reply are ours.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from internal.agent.domain.errors import ModelError, ModelRejected, ModelUnreachable
from internal.agent.ports.llm import TextDelta
from internal.llm.api_key import ApiKey
from internal.llm.errors import ProviderInfo, key_missing, key_unusable
from internal.llm.lenient_json import one_line
from internal.llm.stream_reader import ReplyReader

if TYPE_CHECKING:
    from types import ModuleType

_CONNECT_SECONDS = 10.0
_TAIL_SECONDS = 1.0


class Refusal(NamedTuple):
    """A provider's answer that is no reply. `body` is decoded JSON, or the text that it was."""

    status: int
    body: object
    headers: Mapping[str, str]


class Made(Protocol):
    """Imports an SDK and makes its client, which must try nothing again by itself.

    Both vendors' SDKs are generated alike: the names used here are in each of them.
    """

    def __call__(self, timeout: Any, /) -> "tuple[ModuleType, Any]":
        """Return the SDK and its client. `timeout` is in the terms of httpx2."""
        ...


class _Sdk(NamedTuple):
    module: "ModuleType"
    httpx2: "ModuleType"
    broken: tuple[type[Exception], ...]
    client: Any


class SdkClient:
    """A client of one address. Making one is instant; the SDK is imported by a thread of its own.

    `silence_seconds` is the longest wait for a connection's next bytes.
    """

    def __init__(
        self, peer: ProviderInfo, address: str, key: ApiKey, made: Made, silence_seconds: float
    ) -> None:
        self._peer, self._address, self._key = peer, address, key
        self._made = made
        self._silence = silence_seconds
        self._sdk: Future[_Sdk] | None = None

    def check_key(self, *, needed: bool) -> None:
        """Raise ModelKeyRefused, in one sentence, when no call could succeed."""
        if needed and not self._key:
            raise key_missing(self._peer)
        if self._key and not self._key.usable:
            raise key_unusable(self._peer)

    def warm(self) -> None:
        """Start importing the SDK now; the first call waits for what is left of it."""
        self._loading()

    def _loading(self) -> "Future[_Sdk]":
        if self._sdk is None:
            self._sdk = Future()
            # a daemon: somebody who leaves at once does not wait seconds for an import
            threading.Thread(target=self._load, args=(self._sdk,), daemon=True).start()
        return self._sdk

    def _load(self, sdk: "Future[_Sdk]") -> None:
        try:
            sdk.set_result(self._imported())
        except Exception as error:  # noqa: BLE001  # whatever it is: a run waits for an outcome
            said = f"The client for {self._peer.name} cannot be made: {one_line(str(error))}"
            refused = ModelRejected(said)
            refused.__cause__ = error
            sdk.set_exception(refused)

    def _imported(self) -> _Sdk:
        import aiohttp  # noqa: PLC0415  # the one import point of this slow package
        import httpx2  # noqa: PLC0415  # the one import point of this slow package

        module, client = self._made(httpx2.Timeout(self._silence, connect=_CONNECT_SECONDS))
        # A stream that breaks raises what its transport raises: the SDK wraps the request alone.
        broken = (httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError)
        return _Sdk(module, httpx2, broken, client)

    async def post(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        refused: Callable[[Refusal], ModelError],
    ) -> Any:
        """Send a request; return the response whose status is 200 and whose body is to come.

        Raises:
            ModelError: what `refused` makes of another status.
            ModelUnreachable: there is no connection.
        """
        # shielded: all runs wait for one import, and one of them may be cancelled
        sdk = await asyncio.shield(asyncio.wrap_future(self._loading()))
        try:
            return await sdk.client.post(
                path,
                content=body,
                options={"headers": {"content-type": "application/json", **headers}},
                cast_to=sdk.httpx2.Response,
                stream=True,
                stream_cls=sdk.module.AsyncStream[object],
            )
        except sdk.module.APIStatusError as error:
            refusal = Refusal(error.status_code, error.body, error.response.headers)
            raise refused(refusal) from error
        except (sdk.module.APIConnectionError, *sdk.broken) as error:
            raise self._unreachable(error.__cause__ or error) from error

    async def read(self, response: Any, reader: ReplyReader) -> AsyncGenerator[TextDelta, None]:
        """Feed the response to the reader, yield the words in it, and let go of the response.

        Once the reply is whole, neither silence nor a break can harm it: it is read on for a
        moment, for its counts and so that the connection can be used again.

        Raises:
            ModelUnreachable: the connection broke before the reply was whole.
        """
        sdk = self._loading().result()  # there is a response, so there is an SDK
        try:
            async with contextlib.aclosing(self._chunks(sdk, response)) as chunks:
                async for chunk in chunks:
                    for words in reader.feed(chunk):
                        yield words
                    if reader.whole or reader.over:
                        break
                for words in await _tail(chunks, reader) if reader.whole else ():
                    yield words
            for words in reader.end():
                yield words
        finally:
            with contextlib.suppress(*sdk.broken):  # it is closed, whatever it had to say
                await response.aclose()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        sdk = self._sdk
        if sdk is not None and sdk.done() and sdk.exception() is None:  # else there are none
            await sdk.result().client.close()

    def hide_key_in(self, text: str) -> str:
        """Return the text without the key, should the provider have quoted it."""
        return self._key.hide_in(text)

    async def _chunks(self, sdk: _Sdk, response: Any) -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except sdk.broken as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: BaseException) -> ModelUnreachable:
        said = one_line(self._key.hide_in(str(error))) or type(error).__name__
        return ModelUnreachable(f"No connection to {self._peer.name} at {self._address}: {said}")


async def _tail(chunks: AsyncGenerator[bytes, None], reader: ReplyReader) -> list[TextDelta]:
    words: list[TextDelta] = []
    with contextlib.suppress(TimeoutError, ModelUnreachable):
        async with asyncio.timeout(_TAIL_SECONDS):
            async for chunk in chunks:
                words += reader.feed(chunk)
                if reader.over:
                    break
    return words
