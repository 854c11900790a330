"""Replies to requests of other APIs, while they are written: of a run, or of the plain model."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from internal.agent.app.plain_completions import DailyLimitReached, PlainAnswer, PlainRequest
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import (
    ContextTooLong,
    InvalidRequest,
    ModelError,
    ModelUnavailable,
    NotFound,
)
from internal.agent.domain.ids import new_ksuid
from internal.agent.domain.messages import Message, user_message
from internal.agent.domain.tasks import Status
from internal.agent.domain.usage import Usage
from internal.channels.web.completions.answers import reached_limit, settled_run
from internal.channels.web.completions.conversation import ConversationTurn
from internal.channels.web.completions.messages import SentMessage
from internal.channels.web.completions.run_text import RunText
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError

_NO_RETRY = {"x-should-retry": "false"}


class ReplyEnd(msgspec.Struct, frozen=True):
    """The end of a reply.

    `rest` is the part of the answer that was not yielded. `status` is that of the run.
    """

    answer: str
    rest: str
    usage: Usage
    is_cut: bool
    status: Status = "completed"


class Reply(Protocol):
    """A reply that is being written. `id` is unique, and that of the run if there is one."""

    id: str

    def pieces(self) -> AsyncGenerator[str]:
        """Yield new text, and "" when there was none for a while.

        Raises:
            HttpError: as of `end`.
        """
        ...

    async def end(self) -> ReplyEnd | None:
        """Return the end; None if the gateway stops. Without `pieces`, wait for it.

        Raises:
            HttpError: the run or the model failed.
        """
        ...

    async def leave(self) -> None:
        """Note that nobody reads on; no effect after the end."""
        ...


class RunReply:
    """The reply of a run. A reader who leaves does not stop the run."""

    def __init__(self, request: ApiRequest[Any, Any], turn: ConversationTurn) -> None:
        self.id: str = turn.submitted.run_id
        self._request, self._turn = request, turn
        self._text: RunText | None = None

    async def pieces(self) -> AsyncGenerator[str]:
        """Yield the text of all replies of the run."""
        self._text = RunText(self._request, self._turn.submitted)
        async with aclosing(self._text.pieces()) as pieces:
            async for piece in pieces:
                self._turn.hear(piece)
                yield piece

    async def end(self) -> ReplyEnd | None:
        """Return the end of the run, or the question that it waits with."""
        if self._text is None:
            run = await settled_run(self._request, self._turn.submitted)
        elif self._text.run is None:
            return None
        else:
            run = self._text.run
        answer = await self._turn.answer(run)
        rest = "" if self._text is None else self._text.missing(answer)
        self._turn.hear(rest)
        await self._turn.finish(run, answer)
        return ReplyEnd(answer, rest, run.usage, reached_limit(run), run.status)

    async def leave(self) -> None:
        """Let the conversation go on from what was read."""
        await self._turn.leave()


class PlainReply:
    """A reply of the plain model. A reader who leaves ends the request to it."""

    def __init__(
        self,
        request: ApiRequest[Any, Any],
        messages: Sequence[SentMessage],
        *,
        max_tokens: int | None,
        temperature: float | None,
    ) -> None:
        """Prepare the request.

        Raises:
            NotFound: there is no plain model here.
            InvalidRequest: the messages have files, or the last one is not of the user.
        """
        services = request.services
        if services.plain is None:
            raise NotFound(f"There is no model {request.body.model} here.")
        self.id = f"plain-{new_ksuid()}"
        spec = build_run_spec(services.defaults, TaskOptions(), request.principal, None)
        wanted = PlainRequest(*_conversation(messages), max_tokens, temperature)
        self._stream = services.plain.stream(wanted, request.principal, spec.limits)
        self._first: str | PlainAnswer | None = None
        self._answer: PlainAnswer | None = None

    async def start(self) -> None:
        """Wait for the first text, so that a failure before it has a status of HTTP.

        Raises:
            HttpError: as of `end`.
        """
        self._first = await self._next()

    async def pieces(self) -> AsyncGenerator[str]:
        """Yield the text of the reply."""
        async with aclosing(self._stream):
            piece = await self._next() if self._first is None else self._first
            while isinstance(piece, str):
                yield piece
                piece = await self._next()
            self._answer = piece

    async def end(self) -> ReplyEnd:
        """Return the end of the reply."""
        if self._answer is None:
            async with aclosing(self.pieces()) as pieces:
                async for _ in pieces:
                    pass
        assert self._answer is not None  # noqa: S101 - the stream ends with it or with an error
        answer = self._answer
        return ReplyEnd(answer.text, "", answer.usage, answer.is_cut)

    async def leave(self) -> None:
        """End the request to the model."""
        await self._stream.aclose()

    async def _next(self) -> str | PlainAnswer:
        try:
            return await anext(self._stream)
        except (ModelError, DailyLimitReached, TimeoutError) as error:
            raise plain_error(error) from error


def plain_error(error: Exception) -> HttpError:
    """Return the HTTP error for a failure of the plain model."""
    match error:
        case DailyLimitReached():
            return HttpError(429, "insufficient_quota", str(error), _NO_RETRY)
        case TimeoutError():
            return HttpError(504, "timeout", "The model did not answer in time.", _NO_RETRY)
        case ContextTooLong():
            return HttpError(400, "context_length_exceeded", str(error))
        case ModelUnavailable(retry_after=float(seconds)):
            return HttpError(503, error.code, str(error), {"retry-after": f"{seconds:.0f}"})
        case ModelUnavailable():
            return HttpError(503, error.code, str(error))
        case ModelError():
            return HttpError(502, error.code, str(error), _NO_RETRY)
        case _:
            raise error


def _conversation(messages: Sequence[SentMessage]) -> tuple[str, tuple[Message, ...]]:
    """Return the system prompt and the messages that have text."""
    if any(not isinstance(part, str) for message in messages for part in message.parts):
        raise InvalidRequest("This model reads text only. Send files to the model larkspur.")
    if not messages or messages[-1].role != "user":
        raise InvalidRequest("The last message must be one of the user.")
    system = [message.text for message in messages if message.role == "instructions"]
    said = [
        Message("assistant" if each.role == "assistant" else "user", user_message(text).parts)
        for each in messages
        if each.role != "instructions" and (text := f"{each.text}\n{each.calls}".strip())
    ]
    if not said or said[-1].role != "user":
        raise InvalidRequest("The last message has no text.")
    return "\n\n".join(filter(str.strip, system)), tuple(said)
