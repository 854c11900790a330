"""The chat completions of OpenAI's API, for clients that already speak it.

A request is the next turn of a conversation, and what its run says the completion; `conversation`
finds the session.
"""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response, StreamingResponse

from internal.agent.app.idempotency import scoped_key
from internal.agent.app.runs.creation import Submitted
from internal.agent.app.task_options import TaskOptions
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.tasks import Run
from internal.agent.domain.usage import Usage
from internal.channels.web.completions.answers import reached_limit, settled_run
from internal.channels.web.completions.conversation import (
    SESSION_HEADER,
    ConversationTurn,
    TurnRequest,
    take_turn,
)
from internal.channels.web.completions.fields import CHAT_COMPLETION_FIELDS
from internal.channels.web.completions.messages import CompletionInput, read_messages
from internal.channels.web.completions.models import DEFAULT_MODEL, chosen_model
from internal.channels.web.completions.offered_tools import refuse_demanded_tools
from internal.channels.web.completions.run_text import RunText
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.schemas import EmptyRequest, Key, RequestModel


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream contains besides the answer."""

    include_usage: bool = False


class ChatCompletionRequest(RequestModel, frozen=True, forbid_unknown_fields=False):
    """A request. `CHAT_COMPLETION_FIELDS` says what is done with fields that are not listed.

    `temperature` and the maximum numbers of tokens are for the plain model; a run has its own.
    """

    messages: Annotated[tuple[CompletionInput, ...], Meta(min_length=1, max_length=1_000)]
    model: str = DEFAULT_MODEL
    stream: bool = False
    stream_options: StreamOptions | None = None
    tool_choice: Any = None
    function_call: Any = None
    user: Annotated[str, Meta(max_length=1_000)] = ""
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


class CompletionMessage(msgspec.Struct, frozen=True):
    """The answer."""

    content: str
    role: Literal["assistant"] = "assistant"


class CompletionChoice(msgspec.Struct, frozen=True):
    """The only choice. `length`: a limit ended the run before it was done."""

    message: CompletionMessage
    finish_reason: Literal["stop", "length"]
    index: int = 0


class CompletionUsage(msgspec.Struct, frozen=True):
    """Tokens of the run; those that were read from a cache count as prompt."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(msgspec.Struct, frozen=True):
    """A completion. `larkspur` names the task and its session, for the other routes.

    A reply of the plain model has neither.
    """

    id: str
    created: int
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: CompletionUsage
    larkspur: Submitted | UnsetType = UNSET
    object: Literal["chat.completion"] = "chat.completion"


async def create_chat_completion(
    request: ApiRequest[EmptyRequest, ChatCompletionRequest],
) -> Response:
    """Run a task and return its answer, at once or as a stream."""
    turn = await _take_turn(request)
    submitted = turn.submitted
    head = _head(request, submitted)
    headers = {SESSION_HEADER: str(submitted.session_id)}
    if request.body.stream:
        headers["cache-control"] = "no-cache"
        chunks = _CompletionStream(request, turn, head).chunks()
        return StreamingResponse(chunks, 200, headers, "text/event-stream")
    run = await settled_run(request, submitted)
    content = await turn.answer(run)
    await turn.finish(run, content)
    completion = ChatCompletion(
        head["id"],
        head["created"],
        head["model"],
        (CompletionChoice(CompletionMessage(content), _finish_reason(run)),),
        completion_usage(run.usage),
        submitted,
    )
    return Response(msgspec.json.encode(completion), 200, headers, "application/json")


async def _take_turn(
    request: ApiRequest[EmptyRequest, ChatCompletionRequest],
) -> ConversationTurn:
    body = request.body
    refuse_demanded_tools(tool_choice=body.tool_choice, function_call=body.function_call)
    CHAT_COMPLETION_FIELDS.check(request.content)
    turn = TurnRequest(
        read_messages(body.messages),
        TaskOptions(model=chosen_model(request.services, body.model)),
        session=named_session(request),
        user=body.user,
        idempotency_key=scoped_key("completions", idempotency_key(request)),
    )
    return await take_turn(request, turn)


def named_session(request: ApiRequest[Any, Any]) -> str:
    """Return the session that the header of a request names, "" for none."""
    named = request.context.headers(SESSION_HEADER.encode())
    return named[0].decode("latin-1") if named else ""


def idempotency_key(request: ApiRequest[Any, Any]) -> str | None:
    """Return the key that the header of a request names.

    Raises:
        InvalidRequest: it is too long.
    """
    keys = request.context.headers(b"idempotency-key")
    try:
        return msgspec.convert(keys[0].decode("latin-1"), Key) if keys else None
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"Invalid header Idempotency-Key: {error}.") from error


def _head(
    request: ApiRequest[EmptyRequest, ChatCompletionRequest], submitted: Submitted
) -> dict[str, Any]:
    """Return the fields that all objects of a completion have."""
    created = int(request.services.clock.now().timestamp())
    return {"id": f"chatcmpl-{submitted.run_id}", "created": created, "model": request.body.model}


def _finish_reason(run: Run) -> Literal["stop", "length"]:
    return "length" if reached_limit(run) else "stop"


def completion_usage(usage: Usage) -> CompletionUsage:
    """Return the tokens as completions count them."""
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return CompletionUsage(prompt, usage.output_tokens, prompt + usage.output_tokens)


class _CompletionStream:
    """The chunks of a completion. A client that disconnects does not stop the run."""

    def __init__(
        self,
        request: ApiRequest[EmptyRequest, ChatCompletionRequest],
        turn: ConversationTurn,
        head: dict[str, Any],
    ) -> None:
        self._request = request
        self._turn = turn
        self._head = {**head, "object": "chat.completion.chunk"}

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield server-sent events: the text of all replies, the end, the usage if wanted."""
        yield self._chunk({"role": "assistant", "content": ""})
        text = RunText(self._request, self._turn.submitted)
        try:
            async for piece in text.pieces():
                yield self._text(piece) if piece else b": still running\n\n"
            async for chunk in self._end(text):
                yield chunk
        finally:
            await self._turn.leave()

    async def _end(self, text: RunText) -> AsyncGenerator[bytes]:
        if (run := text.run) is None:  # the gateway stops
            return
        try:
            answer = await self._turn.answer(run)
        except HttpError as error:
            yield server_sent({"error": {"message": str(error), "code": error.code}})
        else:
            if rest := text.missing(answer):
                yield self._text(rest)
            await self._turn.finish(run, answer)
            yield self._chunk({}, _finish_reason(run))
            options = self._request.body.stream_options
            if options is not None and options.include_usage:
                usage = completion_usage(run.usage)
                yield server_sent({**self._head, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def _text(self, piece: str) -> bytes:
        self._turn.hear(piece)
        return self._chunk({"content": piece})

    def _chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return server_sent({**self._head, "choices": [choice]})


def server_sent(content: dict[str, Any]) -> bytes:
    """Return a server-sent event without a name."""
    return b"data: " + msgspec.json.encode(content) + b"\n\n"
