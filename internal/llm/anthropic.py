"""Client of Anthropic's Messages API, at Anthropic or at a compatible address."""

import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from internal.agent.domain.errors import ModelError
from internal.agent.ports.llm import ModelRequest, ModelStreamEvent
from internal.llm.anthropic_request import encode_request, has_thinking
from internal.llm.anthropic_stream import ANTHROPIC, AnthropicResponseReader, is_stale_thinking
from internal.llm.errors import error_from_status, retry_after
from internal.llm.transport import ApiKey, ProviderErrorResponse, SdkClient

if TYPE_CHECKING:
    from types import ModuleType

ADDRESS = "https://api.anthropic.com"
_log = logging.getLogger(__name__)


class AnthropicModel:
    """Client of the Messages API. Creating one is instant; a thread imports the SDK.

    `silence_seconds` is the longest wait for the next bytes of a connection.
    """

    provider = "anthropic"

    def __init__(
        self, key: ApiKey, *, base_url: str | None = None, silence_seconds: float = 120.0
    ) -> None:
        self._key = key
        self._address = base_url or ADDRESS
        self._sdk = SdkClient(
            ANTHROPIC,
            self._address,
            key,
            factory=self._create,
            silence_seconds=silence_seconds,
        )
        self._told_temperature = False

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        self._sdk.check_key(needed=True)

    def preload(self) -> None:
        """Start importing the SDK in the background; the first call waits for it."""
        self._sdk.preload()

    def _create(self, timeout: Any) -> "tuple[ModuleType, Any]":
        import anthropic  # noqa: PLC0415  # slow import; this is its only place

        client = anthropic.AsyncAnthropic(
            api_key=self._key.reveal(),
            base_url=self._address,
            timeout=timeout,
            max_retries=0,  # internal/llm/retry.py is the only retry layer
            http_client=anthropic.DefaultAioHttpClient(),
            open_telemetry=False,
        )
        return anthropic, client

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield text deltas, then one `ModelResponse`. See `ModelClient.stream` for the errors."""
        self.check_key()
        self._tell_temperature(request)
        response = await self._open(request)
        reader = AnthropicResponseReader(request.model, response.headers.get("request-id", ""))
        async with contextlib.aclosing(self._sdk.read(response, reader)) as said:
            async for words in said:
                yield words
        yield reader.reply()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._sdk.close()

    async def _open(self, request: ModelRequest) -> Any:
        """Send the request and return the streaming response with status 200."""
        try:
            return await self._post(encode_request(request))
        except ModelError as error:
            if not (is_stale_thinking(error) and has_thinking(request)):
                raise
            _log.warning("earlier thinking refused, left out", extra={"model": request.model})
        return await self._post(encode_request(request, thinking=False))

    async def _post(self, body: bytes) -> Any:
        return await self._sdk.post("/v1/messages", body, {}, self._refused)

    def _refused(self, refusal: ProviderErrorResponse) -> ModelError:
        match refusal.body:
            case {"error": {"message": str(said)}}:
                pass
            case other:
                said = str(other or "it gave no reason")
        wait = retry_after(refusal.headers)
        said = self._sdk.hide_key_in(said)
        return error_from_status(ANTHROPIC, refusal.status, said, retry_after=wait)

    def _tell_temperature(self, request: ModelRequest) -> None:
        if request.temperature is not None and not self._told_temperature:
            self._told_temperature = True
            _log.warning("Anthropic takes no temperature any more: the setting has no effect")
