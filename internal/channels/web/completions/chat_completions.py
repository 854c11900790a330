"""The chat completions of OpenAI's API, for clients that already speak it.

A request is the next turn of a conversation, and the text of its run is the completion;
`conversation` finds the session. A request for the plain model is answered without a run.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response, StreamingResponse

from internal.agent.app.idempotency import scoped_key
from internal.agent.app.runs.creation import Submitted
from internal.agent.app.task_options import TaskOptions
from internal.channels.web.completions.completion_objects import (
    ChatCompletion,
    CompletionChoice,
    CompletionMessage,
    completion_usage,
    finish_reason,
)
from internal.channels.web.completions.completion_stream import CompletionHead, CompletionStream
from internal.channels.web.completions.conversation import TurnRequest, take_turn
from internal.channels.web.completions.fields import CHAT_COMPLETION_FIELDS
from internal.channels.web.completions.messages import CompletionInput, read_messages
from internal.channels.web.completions.models import DEFAULT_MODEL, PLAIN_MODEL, chosen_model
from internal.channels.web.completions.offered_tools import refuse_demanded_tools
from internal.channels.web.completions.plain_reply import PlainReply, ReplyLimits
from internal.channels.web.completions.replies import CompletionReply, ReplyEnd
from internal.channels.web.completions.request_headers import (
    idempotency_key,
    named_session,
    named_user,
)
from internal.channels.web.completions.run_reply import RunReply
from internal.channels.web.delivery import SESSION_HEADER, Delivery, errors_of_created_run
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.requests import while_connected
from internal.channels.web.schemas import EmptyRequest, RequestModel


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

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


ChatRequest = ApiRequest[EmptyRequest, ChatCompletionRequest]


async def create_chat_completion(request: ChatRequest) -> Response:
    """Run a task, or ask the plain model, and return the answer, at once or as a stream."""
    body = request.body
    refuse_demanded_tools(tool_choice=body.tool_choice, function_call=body.function_call)
    CHAT_COMPLETION_FIELDS.check(request.content)
    return await (_plain_completion if body.model == PLAIN_MODEL else _run_completion)(request)


async def _run_completion(request: ChatRequest) -> Response:
    body, key = request.body, idempotency_key(request)
    with Delivery(request, is_repeatable=key is None) as delivery:
        turn_request = TurnRequest(
            read_messages(body.messages),
            TaskOptions(model=chosen_model(request.services, body.model)),
            session=named_session(request),
            user=named_user(request, body.user),
            idempotency_key=scoped_key("completions", key),
        )
        turn = await take_turn(request, turn_request, delivery)
        reply, submitted = RunReply(request, turn, delivery), turn.submitted
        headers = {SESSION_HEADER: str(submitted.session_id)}
        if body.stream:
            chunks = _stream(request, reply).chunks()
            return delivery.stream(submitted, chunks, {**headers, "cache-control": "no-cache"})
        with errors_of_created_run(headers):
            end = await reply.whole()
    return _completion(request, reply, end, headers=headers, submitted=submitted)


async def _plain_completion(request: ChatRequest) -> Response:
    body = request.body
    limits = ReplyLimits(body.max_completion_tokens or body.max_tokens, body.temperature)
    reply = PlainReply(request, read_messages(body.messages), limits)
    if body.stream:
        await while_connected(request.receive, reply.start())
        chunks = _stream(request, reply).chunks()
        return StreamingResponse(chunks, 200, {"cache-control": "no-cache"}, "text/event-stream")
    end = await while_connected(request.receive, reply.whole())
    return _completion(request, reply, end, headers={}, submitted=UNSET)


def _stream(request: ChatRequest, reply: CompletionReply) -> CompletionStream:
    includes_usage = request.body.includes_usage
    return CompletionStream(reply, _head(request, reply), includes_usage=includes_usage)


def _completion(
    request: ChatRequest,
    reply: CompletionReply,
    end: ReplyEnd,
    *,
    headers: dict[str, str],
    submitted: Submitted | UnsetType,
) -> Response:
    choice = CompletionChoice(CompletionMessage(end.answer), finish_reason(is_cut=end.is_cut))
    completion = ChatCompletion(
        *_head(request, reply), (choice,), completion_usage(end.usage), submitted
    )
    return Response(msgspec.json.encode(completion), 200, headers, "application/json")


def _head(request: ChatRequest, reply: CompletionReply) -> CompletionHead:
    created = int(request.services.clock.now().timestamp())
    return CompletionHead(f"chatcmpl-{reply.id}", created, request.body.model)
