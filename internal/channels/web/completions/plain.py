"""Chat completions by the plain model: one reply, without a run, tools or a session.

For the requests of chat programs that are not tasks, such as those for a title or for tags.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse

from internal.agent.app.plain_completions import MAX_TEMPERATURE
from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.completions.attended_response import AttendedResponse
from internal.channels.web.completions.chat_completions import (
    ChatCompletion,
    ChatCompletionRequest,
    CompletionChoice,
    CompletionMessage,
    completion_usage,
    create_chat_completion,
    server_sent,
)
from internal.channels.web.completions.fields import CHAT_COMPLETION_FIELDS
from internal.channels.web.completions.messages import SentMessage, read_messages
from internal.channels.web.completions.models import PLAIN_MODEL
from internal.channels.web.completions.replies import PlainReply, ReplyEnd
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.schemas import EmptyRequest

ChatRequest = ApiRequest[EmptyRequest, ChatCompletionRequest]


async def answer_chat_completion(request: ChatRequest) -> Response:
    """Answer a chat completion: with the answer of a task, or with a plain reply."""
    if request.body.model != PLAIN_MODEL:
        return await create_chat_completion(request)
    body = request.body
    CHAT_COMPLETION_FIELDS.check(request.content)
    reply = plain_reply(
        request,
        read_messages(body.messages),
        max_tokens=body.max_completion_tokens or body.max_tokens,
        temperature=body.temperature,
    )
    return AttendedResponse(partial(_completion, request, reply))


def plain_reply(
    request: ApiRequest[Any, Any],
    messages: Sequence[SentMessage],
    *,
    max_tokens: int | None,
    temperature: float | None,
) -> PlainReply:
    """Return the reply of the plain model to messages.

    Raises:
        InvalidRequest: a number is out of its range, or the messages cannot be answered.
    """
    if max_tokens is not None and max_tokens < 1:
        raise InvalidRequest("The maximum number of tokens must be at least 1.")
    if temperature is not None and not 0 <= temperature <= MAX_TEMPERATURE:
        raise InvalidRequest(f"temperature must be between 0 and {MAX_TEMPERATURE:g}.")
    return PlainReply(request, messages, max_tokens=max_tokens, temperature=temperature)


async def _completion(request: ChatRequest, reply: PlainReply) -> Response:
    name, model = f"chatcmpl-{reply.id}", request.body.model
    created = int(request.services.clock.now().timestamp())
    if request.body.stream:
        await reply.start()
        headers = {"cache-control": "no-cache"}
        head = {"id": name, "created": created, "model": model, "object": "chat.completion.chunk"}
        chunks = _chunks(request, reply, head)
        return StreamingResponse(chunks, 200, headers, "text/event-stream")
    end = await reply.end()
    choice = CompletionChoice(CompletionMessage(end.answer), "length" if end.is_cut else "stop")
    completion = ChatCompletion(name, created, model, (choice,), completion_usage(end.usage))
    return Response(msgspec.json.encode(completion), media_type="application/json")


async def _chunks(
    request: ChatRequest, reply: PlainReply, head: dict[str, Any]
) -> AsyncGenerator[bytes]:
    yield _chunk(head, {"role": "assistant", "content": ""})
    try:
        async with aclosing(reply.pieces()) as pieces:
            async for piece in pieces:
                yield _chunk(head, {"content": piece})
        end: ReplyEnd = await reply.end()
    except HttpError as error:
        yield server_sent({"error": {"message": str(error), "code": error.code}})
    else:
        yield _chunk(head, {}, "length" if end.is_cut else "stop")
        options = request.body.stream_options
        if options is not None and options.include_usage:
            yield server_sent({**head, "choices": [], "usage": completion_usage(end.usage)})
    yield b"data: [DONE]\n\n"


def _chunk(head: dict[str, Any], delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return server_sent({**head, "choices": [choice]})
