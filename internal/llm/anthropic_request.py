"""Encodes requests for Anthropic's Messages API, version 2026-10-21."""

import re
from collections.abc import Iterable
from typing import Any, assert_never

from internal.agent.domain.messages import (
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from internal.agent.ports.llm import ModelRequest
from internal.llm.lenient_json import encode_json

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


def encode_request(request: ModelRequest, *, thinking: bool = True) -> bytes:
    """Return the JSON body of a streaming request.

    Cache breakpoints follow the tools, the system prompt and the last message. This version of the
    API has no sampling parameters, so `temperature` is omitted. `thinking=False` omits earlier
    thinking blocks: the provider rejects them after the history before them has changed.
    """
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "stream": True,
        "messages": _messages(request.messages, thinking=thinking),
    }
    if request.system.strip():
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
    if request.model.startswith(_THINKS):
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    return encode_json(body)


def has_thinking(request: ModelRequest) -> bool:
    """Return True if the request sends the model's earlier thinking back."""
    return any(isinstance(part, Thinking) for m in request.messages for part in m.parts)


def _messages(messages: Iterable[Message], *, thinking: bool) -> list[dict[str, Any]]:
    encoded: list[dict[str, Any]] = []
    for message in messages:
        parts = (part for part in message.parts if thinking or not isinstance(part, Thinking))
        content = [block for part in parts if (block := _block(part)) is not None]
        encoded.append({"role": message.role, "content": content or [dict(_EMPTY)]})
    if encoded:
        last = encoded[-1]["content"][-1]
        if "thinking" not in last["type"]:  # thinking blocks cannot carry a breakpoint
            last["cache_control"] = _BREAKPOINT
    return encoded


def _block(part: Part) -> dict[str, Any] | None:
    """Return the content block of a part, or None for a part that the API would reject."""
    match part:
        case Text(text):
            return {"type": "text", "text": text} if text.strip() else None
        case Image(media_type, data):
            source = {"type": "base64", "media_type": media_type, "data": data}
            return {"type": "image", "source": source}
        case Thinking(redacted=redacted) if redacted:
            return {"type": "redacted_thinking", "data": redacted}
        case Thinking(text, signature):  # thinking of another provider has no signature
            block = {"type": "thinking", "thinking": text, "signature": signature}
            return block if signature else None
        case ToolCall(call_id, name, arguments):
            call = {"type": "tool_use", "id": _own(call_id), "name": _own(name)}
            return {**call, "input": arguments}
        case ToolResult(call_id, text, failed):
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _own(call_id)}
            if text.strip():
                result["content"] = text
            return {**result, "is_error": True} if failed else result
        case _ as never:
            assert_never(never)


def _own(name: str) -> str:
    """Replace the characters of a name or id that this API does not accept."""
    return _FOREIGN.sub("_", name)[:128] or "_"
