"""A local Chat Completions API with scripted replies: wire format, request checks and faults.

`scripted_model.py` describes scripts and start; ``python -m tests.support.openai_server`` starts a
process. The rules come from OpenAI's API reference and, depending on `Manners`, from other servers
of the same format. Stricter than any real server, it rejects unknown fields.

A reply's `quirks`: `no_done`, `no_usage`, `reasoning` (the other name of that field), `no_ids`,
`same_ids`, `no_index`, `same_index`, `names_again`, `objects` (arguments that are not text),
`legacy_call`, `stop_after_calls`, `in_parts` (content as a list), `message` (all in one chunk),
`document` (no stream at all).
"""

import asyncio
import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

import msgspec

from tests.support.scripted_model import (
    Answer,
    Call,
    Refusal,
    Reply,
    Script,
    ScriptedServer,
    Seen,
    encode,
    need,
    pieces_of,
    serve,
)

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_LONGEST_ID = 40
_FIELDS = {
    *("model", "messages", "stream", "stream_options", "temperature", "tools", "tool_choice"),
    *("reasoning_effort", "max_tokens", "max_completion_tokens"),
}
_MESSAGE_FIELDS = {
    "system": {"content"},
    "user": {"content"},
    "assistant": {"content", "tool_calls"},
    "tool": {"content", "tool_call_id"},
}
_OPAQUE = {"extra_content", "reasoning_details"}
_ERROR_TYPES = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
}
_IMAGE = re.compile(r"^data:image/(png|jpeg|gif|webp);base64,(.*)$", re.DOTALL)


class Manners(msgspec.Struct, frozen=True):
    """Requirements of a server: the name of the limit, returned thoughts, no effort with tools,
    its own temperature, no `stream_options`, no `tool_choice`, no key, the header of the key, and
    further fields.

    `opaque`: the server accepts its own opaque fields in later requests.
    """

    limit: Literal["max_tokens", "max_completion_tokens", ""] = ""
    thoughts: bool = False
    no_effort: bool = False
    no_temperature: bool = False
    no_stream_options: bool = False
    no_tool_choice: bool = False
    no_key: bool = False
    key_header: str = "authorization"
    fields: tuple[str, ...] = ()
    opaque: bool = False


def check_request(
    headers: Mapping[str, str], body: Any, manners: Manners, api_key: str | None = None
) -> None:
    """Raise Refusal where such a server would answer 400 or 401."""
    _check_key(headers, manners, api_key)
    need(isinstance(body, dict), "We could not parse the JSON body of your request.")
    for name in body:
        need(name in {*_FIELDS, *manners.fields}, f"Unrecognized request argument supplied: {name}")
    need(isinstance(body.get("model"), str) and body["model"], "you must provide a model parameter")
    _check_limit(body, manners)
    if "stream_options" in body:
        need(not manners.no_stream_options, "Unknown parameter: 'stream_options'.")
        need(body.get("stream"), "The 'stream_options' parameter is only allowed with 'stream'.")
    if "temperature" in body:
        need(
            not manners.no_temperature,
            "Unsupported value: 'temperature' does not support 0.3 with this model. Only the "
            "default (1) value is supported.",
        )
        need(0 <= body["temperature"] <= 2, "Invalid 'temperature': decimal above maximum value.")
    _check_tools(body, manners)
    _check_messages(body.get("messages"), manners)


def _check_key(headers: Mapping[str, str], manners: Manners, api_key: str | None) -> None:
    given = headers.get(manners.key_header, "")
    if manners.key_header != "authorization":
        need("authorization" not in headers, "only one credential is wanted here")
        given = f"Bearer {given}" if given else ""
    if manners.no_key:
        need(not given, "no key is wanted here")
        return
    if not given.startswith("Bearer "):
        raise Refusal(401, "You didn't provide an API key.")
    if api_key is not None and given != f"Bearer {api_key}":
        raise Refusal(401, "Incorrect API key provided.")


def _check_limit(body: Mapping[str, Any], manners: Manners) -> None:
    given = [name for name in ("max_tokens", "max_completion_tokens") if name in body]
    need(len(given) <= 1, "max_tokens and max_completion_tokens cannot both be set")
    for name in given:
        need(isinstance(body[name], int) and body[name] > 0, f"Invalid '{name}'")
        if manners.limit == "max_completion_tokens":
            need(
                name == manners.limit,
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                "'max_completion_tokens' instead.",
            )
        if manners.limit == "max_tokens":
            need(name == manners.limit, f"Unrecognized request argument supplied: {name}")


def _check_tools(body: Mapping[str, Any], manners: Manners) -> None:
    tools = body.get("tools")
    if tools is None:
        need("tool_choice" not in body, "'tool_choice' is only allowed when 'tools' are specified.")
        return
    need(isinstance(tools, list) and tools, "[] is too short - 'tools'")
    for n, tool in enumerate(tools):
        function = tool.get("function", {})
        need(set(tool) == {"type", "function"}, f"Invalid 'tools[{n}]'")
        need(tool["type"] == "function", f"Invalid value: 'tools[{n}].type'")
        need(_NAME.match(function.get("name", "")), f"Invalid 'tools[{n}].function.name'")
        need(set(function) == {"name", "description", "parameters"}, f"Invalid 'tools[{n}]'")
        need(function["parameters"].get("type") == "object", f"Invalid schema for 'tools[{n}]'")
    need(not manners.no_tool_choice or "tool_choice" not in body, "tool_choice is not supported")
    need(body.get("tool_choice", "auto") in {"auto", "none", "required"}, "Invalid 'tool_choice'")
    need(
        not manners.no_effort or body.get("reasoning_effort") == "none",
        f"Function tools with reasoning_effort are not supported for {body['model']} in "
        "/v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort "
        "to 'none'.",
    )


def _check_messages(messages: Any, manners: Manners) -> None:
    need(isinstance(messages, list) and messages, "[] is too short - 'messages'")
    waiting: list[str] = []
    for n, message in enumerate(messages):
        role = message.get("role")
        need(role in _MESSAGE_FIELDS, f"Invalid value: 'messages[{n}].role'")
        extra = set(message) - _MESSAGE_FIELDS[role] - {"role"}
        if role == "assistant" and manners.thoughts:
            extra -= {"reasoning_content"}
        if role == "assistant" and manners.opaque:
            extra -= _OPAQUE
        need(not extra, f"Unknown parameter: 'messages[{n}].{min(extra, default='')}'.")
        need(role != "system" or n == 0, f"Invalid 'messages[{n}]': the system message is first")
        if role == "tool":
            need(
                message.get("tool_call_id") in waiting,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                "message with 'tool_calls'.",
            )
            waiting.remove(message["tool_call_id"])
            need(isinstance(message.get("content"), str), f"Invalid 'messages[{n}].content'")
            continue
        need(
            not waiting,
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            f"to each 'tool_call_id'. Missing: {', '.join(waiting)}",
        )
        if role == "assistant":
            waiting = _check_assistant(n, message, manners)
        else:
            _check_content(n, message.get("content"), images=role == "user")
    need(not waiting, "An assistant message with 'tool_calls' must be followed by tool messages")


def _check_assistant(n: int, message: Mapping[str, Any], manners: Manners) -> list[str]:
    calls = message.get("tool_calls")
    if calls is None:
        need(isinstance(message.get("content"), str), f"Invalid value for 'messages[{n}].content'")
        need(message["content"].strip(), f"Invalid 'messages[{n}].content': empty")
        return []
    need(isinstance(calls, list) and calls, f"[] is too short - 'messages[{n}].tool_calls'")
    if manners.thoughts:
        need(
            isinstance(message.get("reasoning_content"), str),
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
        )
    for call in calls:
        function = call.get("function", {})
        known = set(call) - _OPAQUE if manners.opaque else set(call)
        need(known == {"id", "type", "function"}, f"Invalid 'messages[{n}].tool_calls'")
        need(_NAME.match(function.get("name", "")), f"Invalid 'messages[{n}]': function.name")
        need(0 < len(call["id"]) <= _LONGEST_ID, f"Invalid 'messages[{n}]': id is too long")
        arguments = msgspec.json.decode(function.get("arguments", ""))
        need(isinstance(arguments, dict), f"Invalid 'messages[{n}]': arguments")
    ids = [call["id"] for call in calls]
    need(len(ids) == len(set(ids)), f"Duplicate value for 'tool_call_id' in 'messages[{n}]'")
    return ids


def _check_content(n: int, content: Any, *, images: bool) -> None:
    if isinstance(content, str):
        need(content.strip(), f"Invalid 'messages[{n}].content': empty")
        return
    need(isinstance(content, list) and content, f"Invalid type for 'messages[{n}].content'")
    for part in content:
        match part:
            case {"type": "text", "text": str(text)} if text.strip():
                pass
            case {"type": "image_url", "image_url": {"url": str(url)}} if images:
                found = _IMAGE.match(url)
                need(found, "Invalid image: expected a base64-encoded data URL")
                try:
                    data = base64.b64decode(found[2] if found else "", validate=True)
                except (binascii.Error, ValueError):
                    raise Refusal(400, "Invalid base64 image_url.") from None
                need(data, "Invalid image: empty")
            case _:
                raise Refusal(400, f"Invalid value: 'messages[{n}].content'")


def _seen_in(body: Mapping[str, Any]) -> Seen:
    last_user = last_result = last_text = ""
    results = all_results = 0
    for message in body["messages"]:
        words = _words(message.get("content"))
        if message["role"] == "tool":
            results, all_results, last_result = results + 1, all_results + 1, words
        elif message["role"] != "system":
            if message["role"] == "user":
                last_user, results = words, 0
            last_text = words or last_text
    return Seen(last_user, results, all_results, last_result, last_text, str(body.get("model")))


def _words(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


class _Answer:
    """A reply to one request, in the shapes in which servers give it."""

    def __init__(self, reply: Reply, request: Mapping[str, Any], raw: bytes) -> None:
        self.reply = reply
        self._quirks = set(reply.quirks)
        self._model = request["model"]
        self._key = hashlib.sha256(raw).hexdigest()[:20]
        self._counts = bool(request.get("stream_options", {}).get("include_usage"))
        size = len(reply.text) + len(reply.thinking or "")
        self._usage: dict[str, Any] = {
            "prompt_tokens": max(1, len(raw) // 4),
            "completion_tokens": max(1, size // 4),
            "prompt_tokens_details": {"cached_tokens": 0},
            **reply.usage,
        }

    def _chunk(self, kind: str = "chat.completion.chunk", **fields: Any) -> dict[str, Any]:
        names = {"id": f"chatcmpl-{self._key}", "object": kind, "created": 1, "model": self._model}
        return {**names, **fields}

    def _delta(self, delta: Mapping[str, Any], stop: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
        return sse(self._chunk(choices=[choice], usage=None))

    @property
    def _stop(self) -> str:
        calls = self.reply.calls and "stop_after_calls" not in self._quirks
        called = "function_call" if "legacy_call" in self._quirks else "tool_calls"
        return self.reply.stop_reason or (called if calls else "stop")

    def events(self) -> list[bytes]:
        if "document" in self._quirks:
            return [self.whole()]
        if "message" in self._quirks:
            choice = {"index": 0, "message": self._message(), "finish_reason": self._stop}
            return [sse(self._chunk(choices=[choice], usage=self._usage)), b"data: [DONE]\n\n"]
        begun = {"role": "assistant", "content": None, "refusal": None, **self.reply.opaque}
        events = [self._delta(begun)]
        events += self._said()
        for n, call in enumerate(self.reply.calls):
            events += self._called(n, call)
        events.append(self._delta({}, self._stop))
        if self._counts and "no_usage" not in self._quirks:
            events.append(sse(self._chunk(choices=[], usage=self._usage)))
        if "no_done" not in self._quirks:
            events.append(b"data: [DONE]\n\n")
        if self.reply.crlf:
            events = [event.replace(b"\n", b"\r\n") for event in events]
        return events

    def whole(self) -> bytes:
        choice = {"index": 0, "message": self._message(), "finish_reason": self._stop}
        return encode(self._chunk("chat.completion", choices=[choice], usage=self._usage))

    def _said(self) -> Iterator[bytes]:
        reply, name = self.reply, self._thoughts
        for piece in pieces_of(reply.thinking, reply.pieces) if reply.thinking else ():
            yield self._delta({name: piece})
        for piece in pieces_of(reply.text, reply.pieces) if reply.text else ():
            parts = [{"type": "text", "text": piece}]
            yield self._delta({"content": parts if "in_parts" in self._quirks else piece})

    @property
    def _thoughts(self) -> str:
        return "reasoning" if "reasoning" in self._quirks else "reasoning_content"

    def _called(self, n: int, call: Call) -> Iterator[bytes]:
        raw = call.raw if call.raw is not None else encode(call.input).decode()
        pieces = [] if raw == "{}" else pieces_of(raw, 3)
        if "legacy_call" in self._quirks:
            yield self._delta({"function_call": {"name": call.name, "arguments": ""}})
            for piece in pieces:
                yield self._delta({"function_call": {"arguments": piece}})
            return
        start: dict[str, Any] = {"name": call.name, "arguments": ""}
        if "objects" in self._quirks:
            start["arguments"], pieces = call.input, []
        begun = {"id": self._id(n, call), "type": "function", "function": start, **call.opaque}
        yield self._piece(n, begun)
        again = {"name": call.name} if "names_again" in self._quirks else {}
        for piece in pieces:
            yield self._piece(n, {"function": {**again, "arguments": piece}})

    def _piece(self, n: int, piece: dict[str, Any]) -> bytes:
        index = {"index": 0 if "same_index" in self._quirks else n}
        if "no_index" in self._quirks:
            index = {}
        if "no_ids" in self._quirks:
            piece = {name: value for name, value in piece.items() if name != "id"}
        return self._delta({"tool_calls": [{**index, **piece}]})

    def _id(self, n: int, call: Call) -> str:
        return call.id or f"call_{self._key}{0 if 'same_ids' in self._quirks else n:02d}"

    def _message(self) -> dict[str, Any]:
        reply = self.reply
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.thinking:
            message[self._thoughts] = reply.thinking
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": self._id(n, call),
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": call.raw or encode(call.input).decode(),
                    },
                }
                for n, call in enumerate(reply.calls)
            ]
        return message


def sse(payload: Mapping[str, Any]) -> bytes:
    """Return one event as the API writes it."""
    return b"data: %s\n\n" % encode(payload)


def answer_to(reply: Reply, body: Mapping[str, Any], raw: bytes) -> Answer:
    """Return the reply in the API's shapes."""
    return _Answer(reply, body, raw)


class ScriptedOpenAI(ScriptedServer):
    """The server. Use it as an async context manager; leaving it closes every connection."""

    path = "/v1/chat/completions"
    id_header = "x-request-id"
    delta_mark = b'"delta":{"content":"'

    def __init__(
        self,
        script: Script = (),
        *,
        port: int = 0,
        api_key: str | None = None,
        record: bool = True,
        manners: Manners | None = None,
    ) -> None:
        super().__init__(script, port=port, api_key=api_key, record=record)
        self._manners = manners or Manners()

    @property
    def base_url(self) -> str:
        return super().base_url + "/v1"

    def check(self, headers: Mapping[str, str], body: Any, api_key: str | None) -> None:
        check_request(headers, body, self._manners, api_key)

    def seen(self, body: Mapping[str, Any]) -> Seen:
        return _seen_in(body)

    def answer(self, reply: Reply, body: Mapping[str, Any], raw: bytes) -> Answer:
        return _Answer(reply, body, raw)

    def error(self, status: int, message: str, kind: str | None) -> dict[str, Any]:
        known, code = _ERROR_TYPES.get(status, ("server_error", None))
        error = {"message": message, "type": known, "param": None, "code": kind or code}
        return {"error": error}

    def error_event(self, kind: str | None, message: str) -> bytes:
        error: dict[str, Any] = {"message": message, "type": kind or "server_error", "code": None}
        return sse({"error": error})


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(ScriptedOpenAI, __doc__))
