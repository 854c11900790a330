"""Our request in the words of Anthropic's Messages API, version 2026-10-21."""

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

# Models that think by default. They withhold the text of it unless asked, and with it what they say
# between tool calls: a person would see nothing for minutes. Others refuse the field or would start
# to think because of it, so it is sent to these alone.
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
    """Return the JSON body of a streaming call.

    The prompt is cached after the tools, after the system prompt and at the end. This version of
    the API knows no sampling parameters, so `temperature` is left out. `thinking=False` leaves out
    what the model thought earlier: the provider refuses it once the history before it changed.
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
    """Return whether the history gives the model thoughts of its own back."""
    return any(isinstance(part, Thinking) for m in request.messages for part in m.parts)


def _messages(messages: Iterable[Message], *, thinking: bool) -> list[dict[str, Any]]:
    encoded: list[dict[str, Any]] = []
    for message in messages:
        parts = (part for part in message.parts if thinking or not isinstance(part, Thinking))
        content = [block for part in parts if (block := _block(part)) is not None]
        encoded.append({"role": message.role, "content": content or [dict(_EMPTY)]})
    if encoded:
        last = encoded[-1]["content"][-1]
        if "thinking" not in last["type"]:  # the one kind that cannot carry a breakpoint
            last["cache_control"] = _BREAKPOINT
    return encoded


def _block(part: Part) -> dict[str, Any] | None:
    """Return the content block of a part, None when the API would refuse it."""
    match part:
        case Text(text):
            return {"type": "text", "text": text} if text.strip() else None
        case Image(media_type, data):
            source = {"type": "base64", "media_type": media_type, "data": data}
            return {"type": "image", "source": source}
        case Thinking(redacted=redacted) if redacted:
            return {"type": "redacted_thinking", "data": redacted}
        case Thinking(text, signature):  # another provider's thinking has no signature
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
    """Return a name or id that another provider's model made, in the characters allowed here."""
    return _FOREIGN.sub("_", name)[:128] or "_"
