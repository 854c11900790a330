"""Chat Completions: OpenAI, and everyone else who speaks its wire format."""

import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from internal.agent.domain.errors import ModelError
from internal.agent.ports.llm import ModelRequest, ModelResponse, ModelStreamEvent
from internal.llm.api_key import ApiKey
from internal.llm.errors import ProviderInfo, retry_after
from internal.llm.openai_request import (
    MOST_LESSONS,
    Dialect,
    adapt_to_error,
    encode_request,
    estimated_tokens,
)
from internal.llm.openai_stream import OpenAIReader, error_of_body
from internal.llm.transport import Refusal, SdkClient

if TYPE_CHECKING:
    from types import ModuleType

# The SDK would add what it finds in the environment, such as the organisation of an OpenAI account
# or headers of the user's: only these leave the house, so that nobody else is told.
_OURS = {
    *("accept", "accept-encoding", "authorization", "connection", "content-length"),
    *("content-type", "host", "user-agent"),
}
_NO_KEY = "none"  # the SDK insists on one
_log = logging.getLogger(__name__)


class Service(NamedTuple):
    """Somebody who speaks Chat Completions: our name, who it is, its address and its dialect."""

    provider: str
    peer: ProviderInfo
    address: str
    dialect: Dialect = Dialect()


class OpenAIModel:
    """A way to one service. Making one is instant; the SDK is imported by a thread of its own.

    A service at an address of the user's own needs no key. `silence_seconds` is the longest wait
    for a connection's next bytes. What a refusal teaches about a model is kept for later calls.
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
        self._sdk = SdkClient(service.peer, self._address, key, self._made, silence_seconds)
        self._dialects: dict[str, Dialect] = {}
        self._uncounted: set[str] = set()

    def check_key(self) -> None:
        """Raise ModelKeyRefused, in one sentence, when no call could succeed."""
        self._sdk.check_key(needed=self._needs_key)

    def warm(self) -> None:
        """Start importing the SDK now; the first call waits for what is left of it."""
        self._sdk.warm()

    def _made(self, timeout: Any) -> "tuple[ModuleType, Any]":
        import openai  # noqa: PLC0415  # the one import point of this slow package

        kept = _OURS if self._key else _OURS - {"authorization"}

        async def bare(request: Any) -> None:
            for name in [name for name in request.headers if name.lower() not in kept]:
                del request.headers[name]

        client = openai.AsyncOpenAI(
            api_key=self._key.reveal() or _NO_KEY,
            base_url=self._address,
            timeout=timeout,
            max_retries=0,  # internal/llm/retry.py is the only layer that tries again
            http_client=openai.DefaultAioHttpClient(event_hooks={"request": [bare]}),
        )
        return openai, client

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the reply as it comes, then one Reply. The port says what is raised."""
        self.check_key()
        response = await self._open(request)
        request_id = response.headers.get("x-request-id", "")
        reader = OpenAIReader(self._service.peer, request.model, request_id)
        async with contextlib.aclosing(self._sdk.read(response, reader)) as said:
            async for words in said:
                yield words
        reply = reader.reply()
        yield reply if reader.counted else self._estimated(reply, request)

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._sdk.close()

    async def _open(self, request: ModelRequest) -> Any:
        """Send the request; when it is refused for a way of saying it, say it otherwise."""
        dialect = self._dialects.get(request.model, self._service.dialect)
        for _ in range(MOST_LESSONS):
            try:
                return await self._post(request, dialect)
            except ModelError as refusal:
                better = adapt_to_error(dialect, refusal)
                if better is None:
                    raise
                fields = {"model": request.model, "refusal": str(refusal)}
                _log.info("request refused, said otherwise from now on", extra=fields)
                dialect = self._dialects[request.model] = better
        return await self._post(request, dialect)

    async def _post(self, request: ModelRequest, dialect: Dialect) -> Any:
        # said here too: headers from the environment would come before the client's own key
        headers = {"authorization": f"Bearer {self._key.reveal() or _NO_KEY}"}
        body = encode_request(request, dialect)
        return await self._sdk.post("/chat/completions", body, headers, self._refused)

    def _refused(self, refusal: Refusal) -> ModelError:
        wait = retry_after(refusal.headers)
        error = error_of_body(self._service.peer, refusal.status, refusal.body, wait)
        error.args = (self._sdk.hide_key_in(str(error)),)
        return error

    def _estimated(self, reply: ModelResponse, request: ModelRequest) -> ModelResponse:
        """Return the reply with a guess at its input: no count at all would cost nothing."""
        if request.model not in self._uncounted:
            self._uncounted.add(request.model)
            fields = {"provider": self.provider, "model": request.model}
            _log.warning("the provider counts no tokens: they are estimated", extra=fields)
        return replace(reply, usage=replace(reply.usage, input_tokens=estimated_tokens(request)))
