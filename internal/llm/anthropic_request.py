"""Encodes requests of Anthropic's Messages API, in the dialect that a server accepts."""

import re
from functools import lru_cache, partial
from typing import Any, assert_never

import msgspec

from internal.agent.domain.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from internal.agent.domain.react.request_messages import encode_messages
from internal.agent.ports.llm import MISSING_IMAGE, ModelRequest
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
from internal.model_providers.provider import plain_name

# Models that think by default. Without this field they return no summary of their thinking, and no
# text between tool calls, so people would see nothing for minutes. Other models reject the field or
# would start to think because of it.
_THINKS = (
    "claude-fable-5",
    "claude-mythos-5",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-5",
)
_BREAKPOINT = {"type": "ephemeral"}
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
_EMPTY = {"type": "text", "text": "(empty)"}


def encode_request(request: ModelRequest, dialect: Dialect) -> bytes:
    """Return the JSON body of a streaming request.

    Cache breakpoints follow the tools, the system prompt and the last message. This version of the
    API has no sampling parameters, so `temperature` is omitted. Without `resend_opaque` earlier
    thinking blocks are omitted: the provider rejects them after the history before them has
    changed.
    """
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "stream": True,
        "messages": _messages(request, dialect),
    }
    if request.system.strip() and dialect.system_role:
        block = {"type": "text", "text": request.system, "cache_control": _BREAKPOINT}
        body["system"] = [block]
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
        body["tools"][-1]["cache_control"] = _BREAKPOINT
        if request.tool_choice == "none":
            body["tool_choice"] = {"type": "none"}
    if plain_name(request.model).startswith(_THINKS):
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    if dialect.extra_fields:
        body |= msgspec.json.decode(dialect.extra_fields)
    return encode_json(body)


def _messages(request: ModelRequest, dialect: Dialect) -> msgspec.Raw:
    """Return the encoded messages. The last one has a breakpoint, so it is encoded by itself."""
    messages = fitted(request.messages, dialect, request.origin)
    encode = partial(_message, target=target_of(request, dialect))
    encoded = encode_messages(messages[:-1], _format_name(request.origin, dialect), encode)
    if is_unanswered(messages):
        encoded += [encode(messages[-1], is_last=True)]
    else:  # newer models do not continue a text of their own
        encoded += [encode(each) for each in messages[-1:]]
        encoded.append(encode(CONTINUE, is_last=True))
    if (first := first_with_system(request, messages, dialect)) is not None:
        encoded[0] = encode(first, is_last=len(encoded) == 1)
    return msgspec.Raw(b"[%s]" % b",".join(encoded))


@lru_cache(256)
def _format_name(origin: str, dialect: Dialect) -> str:
    """Return the name under which encodings are kept: all that they depend on."""
    flags = (
        dialect.resend_reasoning,
        dialect.resend_opaque,
        dialect.pictures,
        dialect.picture_results,
        dialect.user_after_results,
        dialect.tools,
        dialect.text_with_calls,
    )
    return f"anthropic {origin} {dialect.call_ids} {''.join(str(int(flag)) for flag in flags)}"


def _message(message: Message, *, target: Target, is_last: bool = False) -> bytes:
    """Return a message as one or more encoded messages of this API, separated by commas."""
    dialect = target.dialect
    if not dialect.tools:
        message = in_words(message)
    content = _content(message, target) or [dict(_EMPTY)]
    # thinking blocks cannot carry a breakpoint
    if is_last and "thinking" not in content[-1]["type"]:
        content[-1]["cache_control"] = _BREAKPOINT
    if dialect.user_after_results:
        return encode_json({"role": message.role, "content": content})
    results = [block for block in content if block["type"] == "tool_result"]
    others = [block for block in content if block["type"] != "tool_result"]
    turns = [(message.role, content)]
    if results and others:
        turns = [("user", results), ("assistant", [{"type": "text", "text": READ}])]
        turns.append(("user", others))
    return b",".join(encode_json({"role": role, "content": blocks}) for role, blocks in turns)


def _content(message: Message, target: Target) -> list[dict[str, Any]]:
    """Return the content blocks of a message."""
    dialect = target.dialect
    is_own = is_same_family(message.origin, target.origin)
    content: list[dict[str, Any]] = []
    shown: list[Image] = []
    for part in message.parts:
        if isinstance(part, Text):  # at once: most parts of a long history are texts
            if part.text.strip():
                content.append({"type": "text", "text": part.text})
        elif isinstance(part, Thinking):
            if dialect.resend_opaque and (is_own or not message.origin):
                content += filter(None, [_thinking(part, is_own=is_own and bool(message.calls))])
        else:
            if isinstance(part, ToolResult) and part.images and not dialect.picture_results:
                shown += part.images
                part = ToolResult(part.call_id, part.text, part.failed, (), part.wire_id)  # noqa: PLW2901 - without its images
            content.append(_block(part, target, is_own=is_own))
    if dialect.resend_reasoning and message.calls and "thinking" not in content[0]["type"]:
        content.insert(0, {"type": "thinking", "thinking": NO_REASONING, "signature": ""})
    return [*content, *(_image(image, target) for image in shown)]


def _thinking(part: Thinking, *, is_own: bool) -> dict[str, Any] | None:
    """Return the block of earlier thinking, None if the server would not accept it.

    DeepSeek and Kimi sign nothing, and expect the thinking that led to a call.
    """
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.redacted}
    block = {"type": "thinking", "thinking": part.text, "signature": part.signature}
    return block if part.signature or (is_own and part.text) else None


def _block(part: Image | ToolCall | ToolResult, target: Target, *, is_own: bool) -> dict[str, Any]:
    """Return the content block of a part."""
    match part:
        case Image():
            return _image(part, target)
        case ToolCall(_, name, arguments):
            call_id = _id(part, target, is_own=is_own)
            call = {"type": "tool_use", "id": call_id, "name": _own(name), "input": arguments}
            return {**_opaque(part, target, is_own=is_own), **call}
        case ToolResult(_, text, failed, pictures):
            call_id = _id(part, target, is_own=is_own)
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
            if pictures:
                words = [{"type": "text", "text": text}] if text.strip() else []
                result["content"] = [*words, *(_image(each, target) for each in pictures)]
            elif text.strip():
                result["content"] = text
            return {**result, "is_error": True} if failed else result
        case _ as never:
            assert_never(never)


def _id(part: ToolCall | ToolResult, target: Target, *, is_own: bool) -> str:
    return call_id_for(part, target.ids, is_own=is_own) or _own(part.call_id)


def _opaque(call: ToolCall, target: Target, *, is_own: bool) -> dict[str, Any]:
    return call.opaque if is_own and target.dialect.resend_opaque and call.opaque else {}


def _image(image: Image, target: Target) -> dict[str, Any]:
    if not target.dialect.pictures:
        return {"type": "text", "text": UNSEEN_PICTURE}
    data = target.images.get(image.sha256)
    if data is None:
        return {"type": "text", "text": MISSING_IMAGE}
    source = {"type": "base64", "media_type": image.media_type, "data": data}
    return {"type": "image", "source": source}


def _own(name: str) -> str:
    """Replace the characters of a name or id that this API does not accept."""
    return _FOREIGN.sub("_", name)[:128] or "_"
