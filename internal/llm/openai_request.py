"""Encodes Chat Completions requests, in the dialect that a server accepts."""

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import msgspec
from msgspec.structs import replace

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
from internal.agent.ports.llm import MISSING_IMAGE, ModelRequest, ModelResponse
from internal.llm.history_fit import (
    CONTINUE,
    NO_REASONING,
    READ,
    Target,
    call_id_for,
    first_with_system,
    fitted,
    in_words,
    is_unanswered,
    target_of,
)
from internal.llm.lenient_json import encode_json
from internal.llm.model_family import is_same_family
from internal.model_providers.dialect import UNSEEN_PICTURE, Dialect

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
    if dialect.extra_fields:
        body |= msgspec.json.decode(dialect.extra_fields)
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


def with_estimated_input(reply: ModelResponse, request: ModelRequest) -> ModelResponse:
    """Return a response without token counts with estimated ones, so that its cost is not zero."""
    return replace(reply, usage=replace(reply.usage, input_tokens=estimate_tokens(request)))


def _messages(request: ModelRequest, dialect: Dialect) -> bytes:
    """Return the encoded system prompt and messages, which are kept for each kind of dialect."""
    messages = fitted(request.messages, dialect, request.origin)
    encode = partial(_message, target=target_of(request, dialect))
    encoded = encode_messages(messages, _format_name(request.origin, dialect), encode)
    if not is_unanswered(messages):
        encoded.append(encode(CONTINUE))
    if (first := first_with_system(request, messages, dialect)) is not None:
        encoded[0] = encode(first)
    elif request.system.strip():
        encoded.insert(0, encode_json({"role": "system", "content": request.system}))
    return b"[%s]" % b",".join(encoded)


@lru_cache(256)
def _format_name(origin: str, dialect: Dialect) -> str:
    """Return the name under which encodings are kept: all that they depend on."""
    flags = (
        dialect.resend_reasoning,
        dialect.resend_opaque,
        dialect.pictures,
        dialect.user_after_results,
        dialect.tools,
        dialect.text_with_calls,
    )
    form = f"{dialect.call_ids} {dialect.missing_signature}"
    return f"openai {origin} {form} {''.join(str(int(flag)) for flag in flags)}"


def _message(message: Message, *, target: Target) -> bytes:
    """Return a message as one or more encoded messages of this API, separated by commas."""
    if not target.dialect.tools:
        message = in_words(message)
    is_own = is_same_family(message.origin, target.origin)
    if message.role == "assistant":
        return encode_json(_assistant(message, target, is_own=is_own))
    return b",".join(map(encode_json, _user(message, target, is_own=is_own)))


def _assistant(message: Message, target: Target, *, is_own: bool) -> _Json:
    dialect, text = target.dialect, message.text
    calls = [_call(call, target, is_own=is_own) for call in message.calls]
    encoded: _Json = {"role": "assistant", "content": text if text.strip() else None}
    thoughts = [part for part in message.parts if isinstance(part, Thinking)]
    if is_own and dialect.resend_opaque:
        for thought in thoughts:
            encoded |= thought.opaque or {}
    if calls:
        encoded["tool_calls"] = calls
        if dialect.missing_signature and not (is_own and calls[0].get("extra_content")):
            signature = {"thought_signature": dialect.missing_signature}
            calls[0]["extra_content"] = {"google": signature}
        if dialect.resend_reasoning:  # required with every call, even without reasoning
            known = thoughts if is_own or not message.origin else []
            words = "".join(thought.text for thought in known)
            encoded["reasoning_content"] = words if words.strip() else NO_REASONING
    elif not text.strip():
        encoded["content"] = _EMPTY
    return encoded


def _user(message: Message, target: Target, *, is_own: bool) -> Iterator[_Json]:
    """Yield the tool results, which are text in this API, and then a message with the images."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        text = f"Error: {result.text}" if result.failed else result.text
        content = text if text.strip() else _EMPTY
        call_id = _id(result, target, is_own=is_own)
        yield {"role": "tool", "tool_call_id": call_id, "content": content}
    shown = [_image(image, target) for result in results for image in result.images]
    others = (_block(part, target) for part in message.parts)
    blocks = [*shown, *(block for block in others if block is not None)]
    if results and blocks and not target.dialect.user_after_results:
        yield {"role": "assistant", "content": READ}
    if all(block["type"] == "text" for block in blocks):  # every server accepts plain text
        text = "\n\n".join(block["text"] for block in blocks)
        if text or not results:
            yield {"role": "user", "content": text or _EMPTY}
    else:
        yield {"role": "user", "content": blocks}


def _block(part: Part, target: Target) -> _Json | None:
    match part:
        case Text(text) if text.strip():
            return {"type": "text", "text": text}
        case Image():
            return _image(part, target)
        case _:  # results are messages of their own
            return None


def _image(image: Image, target: Target) -> _Json:
    if not target.dialect.pictures:
        return {"type": "text", "text": UNSEEN_PICTURE}
    data = target.images.get(image.sha256)
    if data is None:
        return {"type": "text", "text": MISSING_IMAGE}
    url = f"data:{image.media_type};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url}}


def _call(call: ToolCall, target: Target, *, is_own: bool) -> _Json:
    name = _FOREIGN.sub("_", call.name)[:_MAX_NAME_CHARACTERS] or "_"
    function = {"name": name, "arguments": encode_json(call.arguments).decode()}
    call_id = _id(call, target, is_own=is_own)
    opaque = call.opaque if is_own and target.dialect.resend_opaque and call.opaque else {}
    return {**opaque, "id": call_id, "type": "function", "function": function}


def _id(part: ToolCall | ToolResult, target: Target, *, is_own: bool) -> str:
    return call_id_for(part, target.ids, is_own=is_own) or _own_id(part.call_id)


def _own_id(call_id: str) -> str:
    """Replace the characters of an id that this API does not accept, and shorten it.

    A changed id carries a digest of the original, so that two ids never become equal.
    """
    own = _FOREIGN.sub("_", call_id)[:_MAX_ID_CHARACTERS]
    if own == call_id and own:
        return own
    digest = hashlib.blake2s(call_id.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{own[: _MAX_ID_CHARACTERS - len(digest) - 1]}_{digest}"
