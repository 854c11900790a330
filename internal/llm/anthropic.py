"""Client of Anthropic's Messages API, at Anthropic or at a compatible address.

API version 2026-10-21. Error types: https://platform.claude.com/docs/en/api/errors
"""

import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any, Protocol

from internal.agent.domain.errors import ModelError
from internal.agent.ports.llm import ModelRequest, ModelStreamEvent
from internal.llm.anthropic_request import encode_request
from internal.llm.anthropic_stream import ANTHROPIC, AnthropicResponseReader
from internal.llm.errors import ProviderInfo
from internal.llm.lessons.book import LessonBook, server_at
from internal.llm.lessons.negotiation import Negotiator
from internal.llm.openai_request import with_estimated_input
from internal.llm.refusals.errors import error_from_body
from internal.llm.stream_reader import ClosingTags, ResponseReader, StreamedText, offered_tools
from internal.llm.transport import ApiKey, ProviderErrorResponse, ProviderHttpClient, Refused
from internal.model_providers.dialect import Dialect

ADDRESS = "https://api.anthropic.com"
API_VERSION = "2026-10-21"
_DEFAULT = Dialect()
_log = logging.getLogger(__name__)


class MessagesTransport(Protocol):
    """The way to a server of the Messages API, as `ProviderHttpClient` is one."""

    def check_key(self, *, needed: bool) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""

    def preload(self) -> None:
        """Start slow work in the background; the first call waits for it."""

    async def post(self, path: str, body: bytes, refused: Refused) -> Any:
        """Send a JSON document and return the response, which has `headers`."""

    def read(self, response: Any, reader: ResponseReader) -> AsyncGenerator[StreamedText, None]:
        """Feed the response to the reader and yield its text deltas. Closes the response."""

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""


class AnthropicModel:
    """Client of the Messages API. Creating one is instant; a thread imports the HTTP stack.

    `silence_seconds` is the longest wait for the next bytes of a connection. `dialect_of` returns
    what is known about requests to a model; what the server refuses is kept in `lessons`. `http` is
    the way to another `provider` that serves the API, which errors call `peer`.
    """

    def __init__(
        self,
        key: ApiKey,
        *,
        base_url: str | None = None,
        silence_seconds: float = 120.0,
        lessons: LessonBook | None = None,
        dialect_of: Callable[[str], Dialect] = lambda _model: _DEFAULT,
        provider: str = "anthropic",
        peer: ProviderInfo = ANTHROPIC,
        http: MessagesTransport | None = None,
    ) -> None:
        self.provider, self._peer = provider, peer
        self._http: MessagesTransport = http or ProviderHttpClient(
            ANTHROPIC,
            base_url or ADDRESS,
            key,
            silence_seconds=silence_seconds,
            headers={"anthropic-version": API_VERSION},
        )
        # a cloud's own address depends on its region, which its SDK knows
        own_address = ADDRESS if http is None else ""
        self._negotiator = Negotiator(
            server_at(self.provider, base_url or own_address),
            dialect_of,
            LessonBook() if lessons is None else lessons,
            encode=encode_request,
            post=partial(self._http.post, "/v1/messages", refused=self._refused),
        )
        self._told_temperature = False
        self._closing_tags = ClosingTags()

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        self._http.check_key(needed=True)

    def preload(self) -> None:
        """Start importing the HTTP stack in the background; the first call waits for it."""
        self._http.preload()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield text deltas, then one `ModelResponse`. See `ModelClient.stream` for the errors."""
        self.check_key()
        self._tell_temperature(request)
        sent = await self._negotiator.send(request)
        for note in sent.notes:
            yield note
        response = sent.response
        reader = AnthropicResponseReader(
            request.model,
            response.headers.get("request-id", ""),
            tools=offered_tools(sent.prepared.request),
            begins_inside=request.model in self._closing_tags,
        )
        async with contextlib.aclosing(self._http.read(response, reader)) as deltas:
            async for delta in deltas:
                yield delta
        reply = sent.prepared.restored(reader.reply())
        self._closing_tags.learn(request.model, reader.closed_alone)
        yield reply if reader.has_usage else with_estimated_input(reply, request)

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._http.close()

    def _refused(self, refusal: ProviderErrorResponse) -> ModelError:
        return error_from_body(self._peer, refusal.status, refusal.body, refusal.headers)

    def _tell_temperature(self, request: ModelRequest) -> None:
        if request.temperature is not None and not self._told_temperature:
            self._told_temperature = True
            _log.warning("Anthropic takes no temperature any more: the setting has no effect")
