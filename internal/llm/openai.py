"""Client of OpenAI's Chat Completions API, at OpenAI or at a compatible provider."""

import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import NamedTuple

from internal.agent.domain.errors import ModelError, ModelKeyRejected
from internal.agent.domain.left_out import RequestLoss
from internal.agent.ports.llm import ModelRequest, ModelResponse, ModelStreamEvent
from internal.llm.errors import ProviderInfo
from internal.llm.lessons.book import LessonBook, server_at
from internal.llm.lessons.negotiation import Negotiator
from internal.llm.openai_request import encode_request, with_estimated_input
from internal.llm.openai_stream import OpenAIResponseReader
from internal.llm.refusals.errors import error_from_body
from internal.llm.stream_reader import ClosingTags, offered_tools
from internal.llm.transport import ApiKey, ProviderErrorResponse, ProviderHttpClient
from internal.model_providers.dialect import Dialect

_log = logging.getLogger(__name__)


class Service(NamedTuple):
    """A server that implements Chat Completions: name, provider, address and request dialect.

    `dialect_of` returns that of a model, instead of the same `dialect` for all. `key_header` is the
    header of the key. `key_elsewhere`: the user's own address needs the key as well.
    `address_variable` is the environment variable of the address, for messages.
    """

    provider: str
    peer: ProviderInfo
    address: str
    dialect: Dialect = Dialect()
    dialect_of: Callable[[str], Dialect] | None = None
    key_header: str = "authorization"
    key_elsewhere: bool = False
    address_variable: str = ""

    def dialect_for(self, model: str) -> Dialect:
        """Return the dialect of requests to a model."""
        return self.dialect if self.dialect_of is None else self.dialect_of(model)


class OpenAIModel:
    """Client of one service. Creating one is instant; a thread imports the HTTP stack.

    A service at an address of the user's own needs no key. `silence_seconds` is the longest wait
    for the next bytes of a connection. What the server refuses once is kept in the book of lessons.
    """

    def __init__(
        self,
        service: Service,
        key: ApiKey,
        *,
        base_url: str | None = None,
        silence_seconds: float = 120.0,
        lessons: LessonBook | None = None,
    ) -> None:
        self.provider = service.provider
        self._service = service
        has_own_key = base_url is None or service.key_elsewhere
        self._needs_key = service.peer.key_name is not None and has_own_key
        self._address = base_url or service.address
        self._http = ProviderHttpClient(
            service.peer,
            self._address,
            key,
            silence_seconds=silence_seconds,
            key_header=service.key_header,
        )
        self._negotiator = Negotiator(
            server_at(service.provider, self._address),
            service.dialect_for,
            LessonBook() if lessons is None else lessons,
            encode=encode_request,
            post=partial(self._http.post, "/chat/completions", refused=self._refused),
        )
        self._uncounted: set[str] = set()
        self._closing_tags = ClosingTags()

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a required key or address is missing, or one is malformed."""
        self._http.check_key(needed=self._needs_key)
        if not self._address:
            raise ModelKeyRejected(
                f"{self._service.peer.name} needs the address of your resource: set"
                f" {self._service.address_variable} or llm.base_url."
            )

    def preload(self) -> None:
        """Start importing the HTTP stack in the background; the first call waits for it."""
        self._http.preload()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield text deltas, then one `ModelResponse`. See `ModelClient.stream` for the errors."""
        self.check_key()
        sent = await self._negotiator.send(request)
        for note in sent.notes:
            yield note
        response = sent.response
        request_id = response.headers.get("x-request-id", "")
        begins_inside = self._service.dialect_for(request.model).reasoning_in_content
        reader = OpenAIResponseReader(
            self._service.peer,
            request.model,
            request_id,
            tools=offered_tools(sent.prepared.request),
            begins_inside=begins_inside or request.model in self._closing_tags,
        )
        async with contextlib.aclosing(self._http.read(response, reader)) as deltas:
            async for delta in deltas:
                yield delta
        self._closing_tags.learn(request.model, reader.closed_alone)
        reply = sent.prepared.restored(reader.reply())
        if reader.refused_pictures:
            yield RequestLoss("reply_pictures", reader.refused_pictures)
        yield reply if reader.has_usage else self._estimated(reply, request)

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._http.close()

    def _refused(self, refusal: ProviderErrorResponse) -> ModelError:
        peer = self._service.peer
        return error_from_body(peer, refusal.status, refusal.body, refusal.headers)

    def _estimated(self, reply: ModelResponse, request: ModelRequest) -> ModelResponse:
        """Return the response with estimated input tokens, so that its cost is not zero."""
        if request.model not in self._uncounted:
            self._uncounted.add(request.model)
            fields = {"provider": self.provider, "model": request.model}
            _log.warning("the provider counts no tokens: they are estimated", extra=fields)
        return with_estimated_input(reply, request)
