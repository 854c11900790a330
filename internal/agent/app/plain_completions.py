"""Plain completions: one reply of a model, without a run, tools or a session."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from datetime import UTC
from functools import partial

import msgspec

from internal.agent.domain.errors import Forbidden, InvalidRequest, ModelError
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.messages import Message, Text, join_messages
from internal.agent.domain.principals import Principal
from internal.agent.domain.usage import RunLimits, Usage
from internal.agent.ports.llm import (
    ModelBook,
    ModelClient,
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    ReplyRevised,
    StreamRestarted,
    TextDelta,
)
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

TIMEOUT_SECONDS = 300.0
"""Maximum duration of a completion, its reply included."""
MAX_TEMPERATURE = 2.0

_BEGIN = Text("(The conversation begins with your message.)")
"""Stands before a reply that comes first: providers want a message of the user there."""


class DailyLimitReached(InvalidRequest):
    """The person has used the spending limit of the day."""


class PlainRequest(msgspec.Struct, frozen=True):
    """A conversation to continue with one reply.

    `max_tokens` is at most that of the model, which is also used for None; for `temperature` it is
    the value of the settings.
    """

    system: str
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None


class PlainAnswer(msgspec.Struct, frozen=True):
    """The complete reply. `is_cut`: it reached the maximum length."""

    text: str
    usage: Usage
    is_cut: bool


class PlainCompletions:
    """Asks a model for single replies and records their usage."""

    def __init__(
        self,
        database: Database,
        stores: Stores,
        clock: Clock,
        *,
        model: ModelClient,
        model_name: str,
        book: ModelBook,
    ) -> None:
        self._database, self._stores, self._clock = database, stores, clock
        self._model, self._model_name, self._book = model, model_name, book

    async def stream(
        self, request: PlainRequest, principal: Principal, limits: RunLimits
    ) -> AsyncGenerator[str | PlainAnswer]:
        """Yield the text of the reply as it arrives, then the answer, which is recorded by then.

        Closing the generator ends the request to the model. Nothing is repeated.

        Raises:
            Forbidden: the person may not submit tasks.
            DailyLimitReached: a daily limit of the person is reached.
            ModelError: the model cannot answer.
            TimeoutError: it did not answer in time.
        """
        if not principal.may("talk"):
            raise Forbidden("You may not use the model here.")
        await self._check_daily_limit(principal, limits)
        text, sent = "", ""
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            aclosing(self._model.stream(self._request(request))) as events,
        ):
            async for event in events:
                if isinstance(event, ModelResponse):
                    await self._record(principal, event)
                    answer = _answer(event)
                    if rest := _missing(answer.text, sent):
                        yield rest
                    yield answer
                    return
                text = _text_after(text, event)
                if text.startswith(sent) and len(text) > len(sent):
                    yield text[len(sent) :]
                    sent = text
        raise ModelError("The model's reply ended early.")

    async def _check_daily_limit(self, principal: Principal, limits: RunLimits) -> None:
        if not limits.has_daily_limit:
            return
        today = self._clock.now().astimezone(UTC).date().isoformat()
        used = await self._database.read(
            partial(self._stores.usage.get_of_person, principal.id, today)
        )
        if used.exceeds(limits):
            raise DailyLimitReached("Your limit for today is reached. Tomorrow (UTC) it is new.")

    def _request(self, request: PlainRequest) -> ModelRequest:
        most = self._book.limits(self._model_name).max_output_tokens
        temperature = request.temperature
        return ModelRequest(
            self._model_name,
            request.system,
            alternating(request.messages),
            max_output_tokens=min(request.max_tokens or most, most),
            temperature=self._book.temperature if temperature is None else temperature,
            patience_seconds=0.0,
        )

    async def _record(self, principal: Principal, response: ModelResponse) -> None:
        await self._database.write(
            partial(
                self._stores.usage.add_of_person,
                principal.id,
                response.model,
                usage=response.usage,
                cost=self._book.prices.cost(response.model, response.usage),
                now=rfc3339(self._clock.now()),
            )
        )


def alternating(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages whose roles alternate and start with `user`; neighbours are joined."""
    joined: list[Message] = []
    for message in messages:
        if not joined and message.role != "user":
            joined.append(Message("user", (_BEGIN,)))
        if joined and joined[-1].role == message.role:
            joined[-1] = join_messages(joined[-1], message)
        else:
            joined.append(message)
    return tuple(joined)


def _text_after(text: str, event: ModelStreamEvent) -> str:
    """Return the text of the reply after an event."""
    match event:
        case TextDelta(reasoning=False):
            return text + event.text
        case ReplyRevised():
            return event.answer
        case StreamRestarted():
            return ""
        case _:
            return text


def _missing(text: str, sent: str) -> str:
    """Return the text that has to follow the sent text; all of it if the model began again."""
    return text.removeprefix(sent) if text.startswith(sent) else f"\n\n{text}"


def _answer(response: ModelResponse) -> PlainAnswer:
    text = "".join(part.text for part in response.parts if isinstance(part, Text))
    return PlainAnswer(text, response.usage, response.stop == "length")
