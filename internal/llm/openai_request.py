"""Encodes Chat Completions requests, in the dialect that a server accepts."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from internal.agent.domain.errors import ModelError, ModelRejected
from internal.agent.domain.messages import (
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    images_in,
)
from internal.agent.domain.react.request_messages import encode_messages
from internal.agent.ports.llm import MISSING_IMAGE, ModelRequest
from internal.llm.lenient_json import encode_json

MAX_DIALECT_CHANGES = 4


class Dialect(msgspec.Struct, frozen=True):
    """Which optional fields a server accepts.

    `limit_field` is the name of the output limit. `count_tokens`: ask for token counts.
    `temperature`: send a temperature. `resend_reasoning`: send earlier reasoning back with the tool
    calls it led to. `effort` is sent as `reasoning_effort` together with tools.
    """

    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    count_tokens: bool = True
    temperature: bool = True
    resend_reasoning: bool = False
    effort: str | None = None


# Patterns of error messages and the change each asks for, including the way back.
_LESSONS: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), change)
    for pattern, change in (
        (
            r"(?=.*max_completion_tokens).*(un(supported|known|recognized|expected)|not |extra)",
            {"limit_field": "max_tokens"},
        ),
        (r"max_completion_tokens", {"limit_field": "max_completion_tokens"}),
        (r"stream_options|include_usage", {"count_tokens": False}),
        (r"temperature", {"temperature": False}),
        (r"reasoning_content", {"resend_reasoning": True}),
        # https://developers.openai.com/api/docs/models/gpt-6-sol : tools only without reasoning
        (r"function tools with reasoning_effort.*'none'", {"effort": "none"}),
    )
)


def adapt_to_error(dialect: Dialect, refusal: ModelError) -> Dialect | None:
    """Return the dialect that an error asks for, or None if it asks for no known change."""
    if not isinstance(refusal, ModelRejected):
        return None
    detail = refusal.detail
    for pattern, change in _LESSONS:
        better = replace(dialect, **change)
        if better != dialect and pattern.search(detail):
            return better
    return None


_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARACTERS = 64
_MAX_ID_CHARACTERS = 40
_EMPTY = "(empty)"
_Json = dict[str, Any]


def encode_request(request: ModelRequest, dialect: Dialect) -> bytes:
    """Return the JSON body of a streaming request."""
    body: _Json = {
        "model": request.model,
        "messages": msgspec.Raw(_messages(request, dialect)),
        "stream": True,
        dialect.limit_field: request.max_output_tokens,
    }
    if dialect.count_tokens:
        body["stream_options"] = {"include_usage": True}
    if request.temperature is not None and dialect.temperature:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
        if request.tool_choice == "none":
            body["tool_choice"] = "none"
        if dialect.effort is not None:
            body["reasoning_effort"] = dialect.effort
    return encode_json(body)


def estimate_tokens(request: ModelRequest) -> int:
    """Estimate the input tokens: four bytes of UTF-8 per token, 1,000 tokens per image."""
    images = len(images_in(request.messages))
    size = len(_messages(replace(request, images={}), Dialect()))
    tools = [[tool.name, tool.description, tool.parameters] for tool in request.tools]
    return (size + len(encode_json({"tools": tools}))) // 4 + images * 1_000


def _messages(request: ModelRequest, dialect: Dialect) -> bytes:
    """Return the encoded system prompt and messages, which are kept for each kind of dialect."""
    encode = partial(_message, images=request.images, dialect=dialect)
    kept_as = "openai with reasoning" if dialect.resend_reasoning else "openai"
    encoded = encode_messages(request.messages, kept_as, encode)
    if request.system.strip():
        encoded.insert(0, encode_json({"role": "system", "content": request.system}))
    return b"[%s]" % b",".join(encoded)


def _message(message: Message, *, images: Mapping[str, str], dialect: Dialect) -> bytes:
    """Return a message as one or more encoded messages of this API, separated by commas."""
    if message.role == "assistant":
        return encode_json(_assistant(message, dialect))
    return b",".join(map(encode_json, _user(message, images)))


def _assistant(message: Message, dialect: Dialect) -> _Json:
    text = message.text
    calls = [_call(call) for call in message.calls]
    encoded: _Json = {"role": "assistant", "content": text if text.strip() else None}
    if calls:
        encoded["tool_calls"] = calls
        if dialect.resend_reasoning:  # required with every call, even without reasoning
            thoughts = (part.text for part in message.parts if isinstance(part, Thinking))
            encoded["reasoning_content"] = "".join(thoughts)
    elif not text.strip():
        encoded["content"] = _EMPTY
    return encoded


def _user(message: Message, images: Mapping[str, str]) -> Iterator[_Json]:
    """Yield the tool results, which are text in this API, and then a message with the images."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        text = f"Error: {result.text}" if result.failed else result.text
        content = text if text.strip() else _EMPTY
        yield {"role": "tool", "tool_call_id": _own_id(result.call_id), "content": content}
    shown = [_image(image, images) for result in results for image in result.images]
    others = (_block(part, images) for part in message.parts)
    blocks = [*shown, *(block for block in others if block is not None)]
    if all(block["type"] == "text" for block in blocks):  # every server accepts plain text
        text = "\n\n".join(block["text"] for block in blocks)
        if text or not results:
            yield {"role": "user", "content": text or _EMPTY}
    else:
        yield {"role": "user", "content": blocks}


def _block(part: Part, images: Mapping[str, str]) -> _Json | None:
    match part:
        case Text(text) if text.strip():
            return {"type": "text", "text": text}
        case Image():
            return _image(part, images)
        case _:  # results are messages of their own
            return None


def _image(image: Image, images: Mapping[str, str]) -> _Json:
    data = images.get(image.sha256)
    if data is None:
        return {"type": "text", "text": MISSING_IMAGE}
    url = f"data:{image.media_type};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url}}


def _call(call: ToolCall) -> _Json:
    name = _FOREIGN.sub("_", call.name)[:_MAX_NAME_CHARACTERS] or "_"
    function = {"name": name, "arguments": encode_json(call.arguments).decode()}
    return {"id": _own_id(call.call_id), "type": "function", "function": function}


def _own_id(call_id: str) -> str:
    """Replace the characters of an id that this API does not accept, and shorten it.

    A changed id carries a digest of the original, so that two ids never become equal.
    """
    own = _FOREIGN.sub("_", call_id)[:_MAX_ID_CHARACTERS]
    if own == call_id and own:
        return own
    digest = hashlib.blake2s(call_id.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{own[: _MAX_ID_CHARACTERS - len(digest) - 1]}_{digest}"
