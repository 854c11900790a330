"""A local Anthropic Messages API with scripted replies: wire format, request checks and faults.

`scripted_model.py` describes scripts and start. Requests are checked against the API reference for
versions 2023-06-01 and 2026-10-21, with one stricter rule: the real API joins adjacent messages of
one role, this server rejects them.
"""

import asyncio
import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from tests.support.scripted_model import (
    Answer,
    Call,
    Fault,
    Refusal,
    Reply,
    Rules,
    ScriptedServer,
    Seen,
    When,
    encode,
    need,
    pieces_of,
    serve,
)

__all__ = [
    "Answer",
    "Call",
    "Fault",
    "Refusal",
    "Reply",
    "Rules",
    "ScriptedAnthropic",
    "When",
    "answer_to",
    "check_request",
    "signature_of",
]

_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
_CALL_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
_VERSIONS = {"2023-06-01", "2026-10-21"}
_SAMPLING = {"temperature", "top_p", "top_k"}
_FIELDS = {
    *("model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "thinking"),
    *("stop_sequences", "metadata", "output_config", "service_tier", "cache_control"),
    *("container", "diagnostics", "inference_geo", "speed"),
}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def seen_in(request: Mapping[str, Any]) -> Seen:
    """Return the values of a request that rules compare with."""
    last_user = last_result = last_text = ""
    results = all_results = 0
    for message in request["messages"]:
        blocks = _blocks(message)
        words = "".join(block["text"] for block in blocks if block["type"] == "text")
        given = [block for block in blocks if block["type"] == "tool_result"]
        all_results += len(given)
        results += len(given)
        if given:
            last_result = _result_text(given[-1])
        if message["role"] == "user" and words and not given:
            last_user, results = words, 0
        last_text = words or last_text
    return Seen(last_user, results, all_results, last_result, last_text, str(request.get("model")))


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _result_text(block: Mapping[str, Any]) -> str:
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def signature_of(thinking: str) -> str:
    """Return the signature that this server gives to a thinking text, and demands back with it."""
    return "sig" + hashlib.sha256(thinking.encode("utf-8", "replace")).hexdigest()[:29]


def check_request(headers: Mapping[str, str], body: Any, api_key: str | None = None) -> None:
    """Raise Refusal where the real API would answer 400 or 401."""
    _check_key(headers, api_key)
    version = headers.get("anthropic-version")
    if version is None:
        raise Refusal(400, "anthropic-version: header is required")
    if version not in _VERSIONS:
        raise Refusal(400, f"anthropic-version: {version!r} is not a valid version")
    if not isinstance(body, dict):
        raise Refusal(400, "Input should be an object")
    known = _FIELDS | (_SAMPLING if version == "2023-06-01" else set())
    for name in body:
        if name not in known:
            raise Refusal(400, f"{name}: Extra inputs are not permitted")
    _check_fields(body)
    _check_messages(body["messages"])
    if _breakpoints(body) > 4:
        raise Refusal(400, "A maximum of 4 blocks with cache_control may be provided.")


def _check_key(headers: Mapping[str, str], api_key: str | None) -> None:
    given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if not given:
        raise Refusal(401, "x-api-key header is required")
    if api_key is not None and given != api_key:
        raise Refusal(401, "invalid x-api-key")


def _check_fields(body: Mapping[str, Any]) -> None:
    for name in ("model", "messages", "max_tokens"):
        need(name in body, f"{name}: Field required")
    need(isinstance(body["model"], str) and body["model"], "model: Input should be a valid string")
    limit = body["max_tokens"]
    need(
        isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0,
        "max_tokens: Input should be a valid integer",
    )
    need(isinstance(body.get("stream", False), bool), "stream: Input should be a valid boolean")
    system = body.get("system", "x")
    if not isinstance(system, str):
        for n, block in enumerate(system):
            need(block.get("type") == "text", f"system.{n}.type: Input should be 'text'")
            need(block.get("text", "").strip(), "system: text content blocks must be non-empty")
    names = set()
    for n, tool in enumerate(body.get("tools", ())):
        need(
            isinstance(tool.get("name"), str) and _TOOL_NAME.match(tool["name"]),
            f"tools.{n}.custom.name: String should match pattern '{_TOOL_NAME.pattern}'",
        )
        need(tool["name"] not in names, "tools: Tool names must be unique.")
        names.add(tool["name"])
        schema = tool.get("input_schema")
        need(
            isinstance(schema, dict) and schema.get("type") == "object",
            f"tools.{n}.custom.input_schema.type: Field required",
        )
        extra = set(tool) - {"name", "description", "input_schema", "cache_control", "type"}
        need(not extra, f"tools.{n}.custom.{min(extra, default='')}: Extra inputs not permitted")
    if "tool_choice" in body:
        need(body.get("tools"), "tool_choice may only be specified while providing tools")
        need(
            body["tool_choice"].get("type") in {"auto", "any", "tool", "none"},
            "tool_choice.type: unexpected value",
        )


def _check_messages(messages: Any) -> None:
    need(isinstance(messages, list) and messages, "messages: at least one message is required")
    open_calls: list[str] = []
    call_ids: set[str] = set()
    expected = "user"
    for n, message in enumerate(messages):
        where = f"messages.{n}"
        need(message.get("role") in {"user", "assistant"}, f"{where}: Unexpected role")
        need(
            message["role"] == expected,
            'messages: roles must alternate between "user" and "assistant", starting with '
            f'"user"; found {message["role"]!r} at {n}',
        )
        expected = "assistant" if expected == "user" else "user"
        blocks = _blocks(message)
        need(blocks, f"{where}: all messages must have non-empty content")
        for m, block in enumerate(blocks):
            _check_block(f"{where}.content.{m}", message["role"], block)
        _check_results(where, blocks, open_calls)
        open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        known, call_ids = len(call_ids), call_ids.union(open_calls)
        need(len(call_ids) == known + len(open_calls), f"{where}: `tool_use` ids must be unique")
    need(
        not open_calls,
        f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks "
        f"immediately after: {', '.join(open_calls)}.",
    )
    last = _blocks(messages[-1])[-1]
    if messages[-1]["role"] == "assistant" and last["type"] == "text":
        need(
            last["text"] == last["text"].rstrip(),
            "messages: final assistant content cannot end with trailing whitespace",
        )


def _check_results(where: str, blocks: Sequence[dict[str, Any]], open_calls: list[str]) -> None:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    missing = [call for call in open_calls if call not in results]
    need(
        not missing,
        f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` "
        "block in the next message.",
    )
    for call in results:
        need(
            call in open_calls,
            f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each "
            "`tool_result` block must have a corresponding `tool_use` block in the previous "
            "message.",
        )
    need(
        len(results) == len(set(results)),
        f"{where}: each tool_use must have a single result. Found multiple `tool_result` blocks",
    )
    kinds = [block["type"] == "tool_result" for block in blocks]
    need(kinds == sorted(kinds, reverse=True), f"{where}: `tool_result` blocks must come first")


def _check_block(where: str, role: str, block: Mapping[str, Any]) -> None:
    extra = set(block) - _BLOCKS.get(block.get("type", ""), set(block)) - {"type", "cache_control"}
    need(not extra, f"{where}.{min(extra, default='')}: Extra inputs are not permitted")
    match block.get("type"):
        case "text":
            need(isinstance(block.get("text"), str), f"{where}.text.text: Field required")
            need(block["text"], "messages: text content blocks must be non-empty")
            need(block["text"].strip(), "messages: text content blocks must contain non-whitespace")
        case "image" if role == "user":
            _check_image(where, block.get("source", {}))
        case "tool_result" if role == "user":
            need(isinstance(block.get("tool_use_id"), str), f"{where}.tool_use_id: Field required")
            content = block.get("content", "")
            for part in content if isinstance(content, list) else ():
                need(part.get("text", "x"), "messages: text content blocks must be non-empty")
        case "tool_use" if role == "assistant":
            need(_TOOL_NAME.match(block.get("name", "")), f"{where}.tool_use.name: bad name")
            need(_CALL_ID.match(block.get("id", "")), f"{where}.tool_use.id: bad pattern")
            need(isinstance(block.get("input"), dict), f"{where}.tool_use.input: not a dictionary")
        case "thinking" if role == "assistant":
            need(
                isinstance(block.get("thinking"), str) and isinstance(block.get("signature"), str),
                f"{where}.thinking.signature: Field required",
            )
            need(
                block["signature"] == signature_of(block["thinking"]),
                f"{where}: Invalid `signature` in `thinking` block",
            )
        case "redacted_thinking" if role == "assistant":
            need(block.get("data"), f"{where}.redacted_thinking.data: Field required")
        case kind:
            raise Refusal(400, f"{where}: {kind!r} blocks are not permitted for role {role!r}")
    need(
        "cache_control" not in block or "thinking" not in block["type"],
        f"{where}: `thinking` blocks may not have cache_control",
    )


_BLOCKS = {
    "text": {"text", "citations"},
    "image": {"source"},
    "tool_result": {"tool_use_id", "content", "is_error"},
    "tool_use": {"id", "name", "input", "caller"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}


def _check_image(where: str, source: Mapping[str, Any]) -> None:
    need(source.get("type") == "base64", f"{where}.image.source.type: unexpected value")
    need(
        source.get("media_type") in {"image/jpeg", "image/png", "image/gif", "image/webp"},
        f"{where}.image.source.base64.media_type: unexpected value",
    )
    try:
        base64.b64decode(source.get("data", ""), validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(400, f"{where}.image.source.base64: invalid base64 data") from None
    need(source.get("data"), f"{where}.image.source.base64.data: Field required")


def _breakpoints(body: Mapping[str, Any]) -> int:
    system = body.get("system", "")
    blocks = [*(system if isinstance(system, list) else ()), *body.get("tools", ())]
    for message in body["messages"]:
        blocks += _blocks(message)
    return sum("cache_control" in block for block in blocks)


def sse(name: str, payload: Mapping[str, Any]) -> bytes:
    """Return one event as the API writes it."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), encode(payload))


def _stop_of(reply: Reply) -> str:
    return reply.stop_reason or ("tool_use" if reply.calls else "end_turn")


def _event(index: int, delta: Mapping[str, Any]) -> bytes:
    return sse(
        "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    )


def _start(index: int, block: Mapping[str, Any]) -> bytes:
    return sse(
        "content_block_start",
        {"type": "content_block_start", "index": index, "content_block": block},
    )


def _stop(index: int) -> bytes:
    return sse("content_block_stop", {"type": "content_block_stop", "index": index})


@lru_cache(maxsize=64)
def _text_events(index: int, text: str, pieces: int) -> tuple[bytes, ...]:
    deltas = (_event(index, {"type": "text_delta", "text": p}) for p in pieces_of(text, pieces))
    return (_start(index, {"type": "text", "text": ""}), *deltas, _stop(index))


def _thinking_events(index: int, thinking: str, pieces: int) -> Iterable[bytes]:
    yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
    for piece in pieces_of(thinking, pieces) if thinking else ():
        yield _event(index, {"type": "thinking_delta", "thinking": piece})
    yield _event(index, {"type": "signature_delta", "signature": signature_of(thinking)})
    yield _stop(index)


def _call_events(index: int, call: Call, call_id: str) -> Iterable[bytes]:
    block = {"type": "tool_use", "id": call_id, "name": call.name, "input": {}}
    yield _start(index, block)
    raw = call.raw if call.raw is not None else encode(call.input).decode()
    yield _event(index, {"type": "input_json_delta", "partial_json": ""})
    for piece in pieces_of(raw, 3) if raw not in {"", "{}"} else ():
        yield _event(index, {"type": "input_json_delta", "partial_json": piece})
    yield _stop(index)


class _Answer:
    """A reply to one request, in the shapes in which the API gives it."""

    def __init__(self, reply: Reply, request: Mapping[str, Any], raw: bytes) -> None:
        self.reply = reply
        self._model = request["model"]
        self._key = hashlib.sha256(raw).hexdigest()[:20]
        size = len(reply.text) + len(reply.thinking or "")
        self._usage = {
            "input_tokens": max(1, len(raw) // 4),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": max(1, size // 4),
            "service_tier": "standard",
            **reply.usage,
        }

    def _call_id(self, n: int, call: Call) -> str:
        return call.id or f"toolu_{self._key}{n:02d}"

    def _message(self) -> dict[str, Any]:
        return {
            "id": f"msg_{self._key}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**self._usage, "output_tokens": 1},
        }

    def events(self) -> list[bytes]:
        """Return the events of the stream, encoded."""
        reply, index = self.reply, 0
        events = [sse("message_start", {"type": "message_start", "message": self._message()})]
        if reply.redacted is not None:
            block = {"type": "redacted_thinking", "data": reply.redacted}
            events += [_start(index, block), _stop(index)]
            index += 1
        if reply.thinking is not None:
            events += _thinking_events(index, reply.thinking, reply.pieces)
            index += 1
        if reply.text:
            events += _text_events(index, reply.text, reply.pieces)
            index += 1
        events.insert(2, sse("ping", {"type": "ping"}))
        for n, call in enumerate(reply.calls):
            events += _call_events(index, call, self._call_id(n, call))
            index += 1
        end = {"stop_reason": _stop_of(reply), "stop_sequence": None}
        usage = {k: v for k, v in self._usage.items() if k != "service_tier"}
        events.append(sse("message_delta", {"type": "message_delta", "delta": end, "usage": usage}))
        events.append(sse("message_stop", {"type": "message_stop"}))
        if reply.crlf:
            events = [event.replace(b"\n", b"\r\n") for event in events]
        return events

    def whole(self) -> bytes:
        """Return the message as one JSON body."""
        content: list[dict[str, Any]] = []
        if self.reply.redacted is not None:
            content.append({"type": "redacted_thinking", "data": self.reply.redacted})
        if (thinking := self.reply.thinking) is not None:
            signature = signature_of(thinking)
            content.append({"type": "thinking", "thinking": thinking, "signature": signature})
        if self.reply.text:
            content.append({"type": "text", "text": self.reply.text})
        content += (
            {
                "type": "tool_use",
                "id": self._call_id(n, call),
                "name": call.name,
                "input": call.input,
            }
            for n, call in enumerate(self.reply.calls)
        )
        ended = {"content": content, "stop_reason": _stop_of(self.reply), "usage": self._usage}
        return encode({**self._message(), **ended})


def answer_to(reply: Reply, body: Mapping[str, Any], raw: bytes) -> Answer:
    """Return the reply in the API's shapes."""
    return _Answer(reply, body, raw)


class ScriptedAnthropic(ScriptedServer):
    """The server. Use it as an async context manager; leaving it closes every connection."""

    path = "/v1/messages"
    id_header = "request-id"
    delta_mark = b'"text_delta"'

    def check(self, headers: Mapping[str, str], body: Any, api_key: str | None) -> None:
        check_request(headers, body, api_key)

    def seen(self, body: Mapping[str, Any]) -> Seen:
        return seen_in(body)

    def answer(self, reply: Reply, body: Mapping[str, Any], raw: bytes) -> Answer:
        return _Answer(reply, body, raw)

    def error(self, status: int, message: str, kind: str | None) -> dict[str, Any]:
        kind = kind or _ERROR_TYPES.get(status, "api_error")
        error = {"type": kind, "message": message}
        return {"type": "error", "error": error, "request_id": self.request_id()}

    def error_event(self, kind: str | None, message: str) -> bytes:
        error = {"type": kind or "overloaded_error", "message": message}
        return sse("error", {"type": "error", "error": error})


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(ScriptedAnthropic, __doc__))
