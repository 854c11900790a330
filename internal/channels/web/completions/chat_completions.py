"""The chat completions of OpenAI's API, for clients that already speak it.

A request is a task, and its answer the completion. The session keeps the conversation: a client
that names it in the header `x-larkspur-session` sends its new message only. Without the header, the
messages before the last one become part of the task, and the session is new.
"""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.responses import Response

from internal.agent.app.idempotency import RepeatableRequest, scoped_key
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Run
from internal.agent.domain.usage import Usage
from internal.channels.web.completions.answers import (
    MAX_RUN_SECONDS,
    answer_of,
    reached_limit,
    stop_error,
)
from internal.channels.web.completions.fields import CHAT_COMPLETION_FIELDS
from internal.channels.web.completions.messages import (
    CompletionInput,
    image_inputs,
    instruction_with_transcript,
)
from internal.channels.web.completions.models import DEFAULT_MODEL, chosen_model
from internal.channels.web.completions.run_text import RunText
from internal.channels.web.delivery import Delivery, errors_of_created_run
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.routes.attachments import store_attachments
from internal.channels.web.schemas import EmptyRequest, Key, RequestModel

SESSION_HEADER = "x-larkspur-session"


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream contains besides the answer."""

    include_usage: bool = False


Tool = Annotated[dict[str, Any], Meta(max_length=100)]


class ChatCompletionRequest(RequestModel, frozen=True, forbid_unknown_fields=False):
    """A request. `CHAT_COMPLETION_FIELDS` says what is done with fields that are not listed."""

    messages: Annotated[tuple[CompletionInput, ...], Meta(min_length=1, max_length=1_000)]
    model: str = DEFAULT_MODEL
    stream: bool = False
    stream_options: StreamOptions | None = None
    tools: Annotated[tuple[Tool, ...], Meta(max_length=1_000)] = ()


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
    """A completion. `larkspur` names the task and its session, for the other routes."""

    id: str
    created: int
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: CompletionUsage
    larkspur: Submitted
    object: Literal["chat.completion"] = "chat.completion"


async def create_chat_completion(
    request: ApiRequest[EmptyRequest, ChatCompletionRequest],
) -> Response:
    """Run a task and return its answer, at once or as a stream."""
    CHAT_COMPLETION_FIELDS.check(request.content)
    key = _key(request)
    with Delivery(request, is_repeatable=key is None) as delivery:
        submitted = await delivery.joined() or await _submit(request, key, delivery.repeatable)
        head = _head(request, submitted)
        headers = {SESSION_HEADER: str(submitted.session_id)}
        if request.body.stream:
            chunks = _CompletionStream(request, submitted, head).chunks()
            return delivery.stream(submitted, chunks, {**headers, "cache-control": "no-cache"})
        with errors_of_created_run(headers):
            run = await delivery.settled_run(submitted, MAX_RUN_SECONDS)
            content = await answer_of(request, submitted, run)
    completion = ChatCompletion(
        head["id"],
        head["created"],
        head["model"],
        (CompletionChoice(CompletionMessage(content), _finish_reason(run)),),
        _usage(run.usage),
        submitted,
    )
    return Response(msgspec.json.encode(completion), 200, headers, "application/json")


async def _submit(
    request: ApiRequest[EmptyRequest, ChatCompletionRequest],
    key: str | None,
    repeatable: RepeatableRequest | None,
) -> Submitted:
    body, services = request.body, request.services
    if body.tools:
        raise InvalidRequest("tools are not supported: the agent uses the tools of the gateway.")
    named = request.context.headers(SESSION_HEADER.encode())
    session_id = SessionId(named[0].decode("latin-1")) if named else None
    *earlier, last = body.messages
    if last.role != "user":
        raise InvalidRequest("The last message must be one of the user.")
    images = image_inputs(last)
    options = TaskOptions(model=chosen_model(services, body.model))
    submission = Submission(
        instruction=last.text if session_id else instruction_with_transcript(earlier, last),
        spec=build_run_spec(services.defaults, options, request.principal, None),
        channel=request.channel,
        session_id=session_id,
        attachments=await store_attachments(services.gateway.files, images, request.principal.id),
        idempotency_key=scoped_key("completions", key),
        one_shot=session_id is None,
        request=repeatable,
    )
    return await services.gateway.submit(submission, request.principal)


def _key(request: ApiRequest[EmptyRequest, ChatCompletionRequest]) -> str | None:
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


def _usage(usage: Usage) -> CompletionUsage:
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return CompletionUsage(prompt, usage.output_tokens, prompt + usage.output_tokens)


class _CompletionStream:
    """The chunks of a completion."""

    def __init__(
        self,
        request: ApiRequest[EmptyRequest, ChatCompletionRequest],
        submitted: Submitted,
        head: dict[str, Any],
    ) -> None:
        self._request = request
        self._submitted = submitted
        self._head = {**head, "object": "chat.completion.chunk"}

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield server-sent events: the text of all replies, the end, the usage if wanted."""
        yield self._chunk({"role": "assistant", "content": ""})
        text = RunText(self._request, self._submitted)
        async for piece in text.pieces():
            yield self._chunk({"content": piece}) if piece else b": still running\n\n"
        async for chunk in self._end(text):
            yield chunk

    async def _end(self, text: RunText) -> AsyncGenerator[bytes]:
        try:
            if (run := text.run) is None:
                raise stop_error(self._submitted)
            answer = await answer_of(self._request, self._submitted, run)
        except HttpError as error:
            yield _event({"error": {"message": str(error), "code": error.code}})
        else:
            if rest := text.missing(answer):
                yield self._chunk({"content": rest})
            yield self._chunk({}, _finish_reason(run))
            options = self._request.body.stream_options
            if options is not None and options.include_usage:
                yield _event({**self._head, "choices": [], "usage": _usage(run.usage)})
        yield b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event({**self._head, "choices": [choice]})


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(content) + b"\n\n"
