"""The reply of the plain model: one request to it, without a run, tools or a session.

For requests of chat programs that are not tasks, such as requests for a title or for tags.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from internal.agent.app.plain_completions import (
    MAX_TEMPERATURE,
    DailyLimitReached,
    PlainAnswer,
    PlainRequest,
)
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
from internal.channels.web.completions.messages import ConversationMessage
from internal.channels.web.completions.replies import ReplyEnd
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import RETRY_HEADER, HttpError

_NO_RETRY = {RETRY_HEADER: "false"}


class ReplyLimits(NamedTuple):
    """Limits that a client requests for a plain reply; None uses the settings and the model."""

    max_tokens: int | None
    temperature: float | None

    def check(self) -> None:
        """Check the ranges.

        Raises:
            InvalidRequest: a number is out of its range.
        """
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InvalidRequest("The maximum number of tokens must be at least 1.")
        if self.temperature is not None and not 0 <= self.temperature <= MAX_TEMPERATURE:
            raise InvalidRequest(f"temperature must be between 0 and {MAX_TEMPERATURE:g}.")


class PlainReply:
    """A reply of the plain model; see `CompletionReply`. Who leaves ends the request to it."""

    def __init__(
        self,
        request: ApiRequest[Any, Any],
        messages: Sequence[ConversationMessage],
        limits: ReplyLimits,
    ) -> None:
        """Prepare the request.

        Raises:
            NotFound: there is no plain model here.
            InvalidRequest: the messages have files, the last one is not of the user, or a limit is
                out of its range.
        """
        limits.check()
        services = request.services
        if services.plain is None:
            raise NotFound(f"There is no model {request.body.model} here.")
        self.id = f"plain-{new_ksuid()}"
        spec = build_run_spec(services.defaults, TaskOptions(), request.principal, None)
        wanted = PlainRequest(*_conversation(messages), *limits)
        self._stream = services.plain.stream(wanted, request.principal, spec.limits)
        self._first: str | PlainAnswer | None = None
        self._answer: PlainAnswer | None = None

    async def start(self) -> None:
        """Wait for the first text, so that a failure before it has a status of HTTP.

        Raises:
            HttpError: as of `whole`.
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

    async def whole(self) -> ReplyEnd:
        """Return the reply."""
        async with aclosing(self.pieces()) as pieces:
            async for _ in pieces:
                pass
        return await self.end()

    async def end(self) -> ReplyEnd:
        """Return the end of the reply, whose text was yielded."""
        answer = self._answer
        assert answer is not None  # noqa: S101 - the stream ends with it or with an error
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


def _conversation(messages: Sequence[ConversationMessage]) -> tuple[str, tuple[Message, ...]]:
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
