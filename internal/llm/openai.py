"""Client of OpenAI's Chat Completions API, at OpenAI or at a compatible provider."""

import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from internal.agent.domain.errors import ModelError
from internal.agent.ports.llm import ModelRequest, ModelResponse, ModelStreamEvent
from internal.llm.errors import ProviderInfo, retry_after
from internal.llm.openai_request import (
    MAX_DIALECT_CHANGES,
    Dialect,
    adapt_to_error,
    encode_request,
    estimate_tokens,
)
from internal.llm.openai_stream import OpenAIResponseReader, error_from_body
from internal.llm.transport import ApiKey, ProviderErrorResponse, SdkClient

if TYPE_CHECKING:
    from types import ModuleType

# The SDK adds headers from the environment, such as an OpenAI organisation. Only these are sent, so
# that another provider never receives them.
_OURS = {
    *("accept", "accept-encoding", "authorization", "connection", "content-length"),
    *("content-type", "host", "user-agent"),
}
_NO_KEY = "none"  # the SDK requires a key
_log = logging.getLogger(__name__)


def create_client(address: str, key: ApiKey, timeout: Any) -> "tuple[ModuleType, Any]":
    """Import the SDK and return it with a client of an address; see `SdkFactory`."""
    import openai  # noqa: PLC0415  # slow import; this is its only place

    kept = _OURS if key else _OURS - {"authorization"}

    async def bare(request: Any) -> None:
        for name in [name for name in request.headers if name.lower() not in kept]:
            del request.headers[name]

    client = openai.AsyncOpenAI(
        api_key=key.reveal() or _NO_KEY,
        base_url=address,
        timeout=timeout,
        max_retries=0,  # internal/llm/retry.py is the only retry layer
        http_client=openai.DefaultAioHttpClient(event_hooks={"request": [bare]}),
    )
    return openai, client


class Service(NamedTuple):
    """A server that implements Chat Completions: name, provider, address and request dialect."""

    provider: str
    peer: ProviderInfo
    address: str
    dialect: Dialect = Dialect()


class OpenAIModel:
    """Client of one service. Creating one is instant; a thread imports the SDK.

    A service at an address of the user's own needs no key. `silence_seconds` is the longest wait
    for the next bytes of a connection. A dialect that an error response taught is kept per model.
    """

    def __init__(
        self,
        service: Service,
        key: ApiKey,
        *,
        base_url: str | None = None,
        silence_seconds: float = 120.0,
    ) -> None:
        self.provider = service.provider
        self._service, self._key = service, key
        self._address = base_url or service.address
        self._needs_key = service.peer.key_name is not None and base_url is None
        self._sdk = SdkClient(
            service.peer,
            self._address,
            key,
            factory=self._create,
            silence_seconds=silence_seconds,
        )
        self._dialects: dict[str, Dialect] = {}
        self._uncounted: set[str] = set()

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        self._sdk.check_key(needed=self._needs_key)

    def preload(self) -> None:
        """Start importing the SDK in the background; the first call waits for it."""
        self._sdk.preload()

    def _create(self, timeout: Any) -> "tuple[ModuleType, Any]":
        return create_client(self._address, self._key, timeout)

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield text deltas, then one `ModelResponse`. See `ModelClient.stream` for the errors."""
        self.check_key()
        response = await self._open(request)
        request_id = response.headers.get("x-request-id", "")
        reader = OpenAIResponseReader(self._service.peer, request.model, request_id)
        async with contextlib.aclosing(self._sdk.read(response, reader)) as deltas:
            async for delta in deltas:
                yield delta
        reply = reader.reply()
        yield reply if reader.has_usage else self._estimated(reply, request)

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._sdk.close()

    async def _open(self, request: ModelRequest) -> Any:
        """Send the request; if the server rejects a field, adapt the dialect and send it again."""
        dialect = self._dialects.get(request.model, self._service.dialect)
        for _ in range(MAX_DIALECT_CHANGES):
            try:
                return await self._post(request, dialect)
            except ModelError as refusal:
                better = adapt_to_error(dialect, refusal)
                if better is None:
                    raise
                fields = {"model": request.model, "refusal": refusal.detail}
                _log.info("request rejected, dialect changed", extra=fields)
                dialect = self._dialects[request.model] = better
        return await self._post(request, dialect)

    async def _post(self, request: ModelRequest, dialect: Dialect) -> Any:
        # set here as well: headers from the environment would override the client's key
        headers = {"authorization": f"Bearer {self._key.reveal() or _NO_KEY}"}
        body = encode_request(request, dialect)
        return await self._sdk.post("/chat/completions", body, headers, self._refused)

    def _refused(self, refusal: ProviderErrorResponse) -> ModelError:
        wait = retry_after(refusal.headers)
        return error_from_body(self._service.peer, refusal.status, refusal.body, wait)

    def _estimated(self, reply: ModelResponse, request: ModelRequest) -> ModelResponse:
        """Return the response with estimated input tokens, so that its cost is not zero."""
        if request.model not in self._uncounted:
            self._uncounted.add(request.model)
            fields = {"provider": self.provider, "model": request.model}
            _log.warning("the provider counts no tokens: they are estimated", extra=fields)
        return replace(reply, usage=replace(reply.usage, input_tokens=estimate_tokens(request)))
