"""Client of OpenAI's Chat Completions API, at OpenAI or at a compatible provider."""

import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, NamedTuple

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
from internal.llm.transport import ApiKey, ProviderErrorResponse, ProviderHttpClient

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_log = logging.getLogger(__name__)


class Service(NamedTuple):
    """A server that implements Chat Completions: name, provider, address and request dialect."""

    provider: str
    peer: ProviderInfo
    address: str
    dialect: Dialect = Dialect()


class OpenAIModel:
    """Client of one service. Creating one is instant; a thread imports the HTTP stack.

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
        self._service = service
        self._needs_key = service.peer.key_name is not None and base_url is None
        self._http = ProviderHttpClient(
            service.peer, base_url or service.address, key, silence_seconds=silence_seconds
        )
        self._dialects: dict[str, Dialect] = {}
        self._uncounted: set[str] = set()

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        self._http.check_key(needed=self._needs_key)

    def preload(self) -> None:
        """Start importing the HTTP stack in the background; the first call waits for it."""
        self._http.preload()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield text deltas, then one `ModelResponse`. See `ModelClient.stream` for the errors."""
        self.check_key()
        response = await self._open(request)
        request_id = response.headers.get("x-request-id", "")
        reader = OpenAIResponseReader(self._service.peer, request.model, request_id)
        async with contextlib.aclosing(self._http.read(response, reader)) as deltas:
            async for delta in deltas:
                yield delta
        reply = reader.reply()
        yield reply if reader.has_usage else self._estimated(reply, request)

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._http.close()

    async def _open(self, request: ModelRequest) -> "ClientResponse":
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

    async def _post(self, request: ModelRequest, dialect: Dialect) -> "ClientResponse":
        body = encode_request(request, dialect)
        return await self._http.post("/chat/completions", body, self._refused)

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
