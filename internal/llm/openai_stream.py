"""Reads streamed responses of Chat Completions and translates the errors of its servers."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from internal.agent.domain.errors import ModelError, ModelUnreachable
from internal.agent.domain.messages import Part, Text, Thinking, ToolCall
from internal.agent.domain.react.steps import ReplyStop
from internal.agent.domain.text import replace_surrogates
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelResponse, TextDelta
from internal.llm.errors import ProviderInfo, error_from_status
from internal.llm.lenient_json import encode_json
from internal.llm.stream_reader import (
    MAX_LINE_BYTES,
    ResponseReader,
    decode_event,
    parse_arguments,
    token_count,
)

# There is no status inside a stream. A server that began to answer accepted the request, so unknown
# errors count as temporary.
_STATUS_OF = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "insufficient_quota": 402,
    "permission_error": 403,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
}
_FAULT = 500
_NO_TOOLS = re.compile(r"does not support (tools|function)|tool(s| use| calling) (is|are) not supp")
_TOOLS_ELSEWHERE = re.compile(r"function tools with reasoning_effort", re.IGNORECASE)


def error_from_body(
    peer: ProviderInfo, status: int | None, body: object, retry_after: float | None = None
) -> ModelError:
    """Translate the body of an error response, or an error inside a stream (`status` None)."""
    codes, message = _codes_and_message(body)
    if status is None:
        status = next((known for code in codes if (known := _status(code))), _FAULT)
    if _NO_TOOLS.search(message) or _TOOLS_ELSEWHERE.search(message):
        message += " Setting llm.tool_calls to text lets any model call tools."
    code = " ".join(map(str, codes))
    return error_from_status(peer, status, message, code=code, retry_after=retry_after)


def _status(code: object) -> int | None:
    try:
        status = int(str(code))
    except ValueError:
        return _STATUS_OF.get(str(code))
    return status if 400 <= status <= 599 else None  # noqa: PLR2004  # HTTP error statuses


def _codes_and_message(body: object) -> tuple[list[object], str]:
    """Return codes and message from `{error: {…}}`, `{error: "…"}`, `{detail}`, text or lists."""
    codes: list[object] = []
    match body:
        case [first, *_] | {"error": dict() | str() | list() as first}:
            return _codes_and_message(first)
        case {"message": str(message), **rest}:
            codes, message = _codes(rest), f"{message}{_upstream(rest)}"
        case str(message) | {"detail": str(message)}:
            pass
        case other:
            message = "" if other is None else encode_json(other).decode()
    return codes, message.strip() or "it gave no reason"


def _codes(error: Mapping[Any, Any]) -> list[object]:
    return [error[name] for name in ("code", "type") if error.get(name) not in {None, ""}]


def _upstream(error: Mapping[Any, Any]) -> str:
    """Return the message of the provider behind a router; the router's own is often empty."""
    match error:
        case {"metadata": {"raw": str(raw)}} if raw.strip():
            return f" ({raw.strip()})"
        case _:
            return ""


_STOPS: dict[str, ReplyStop] = {
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
    "refusal": "refused",
}
# DeepSeek and OpenRouter end a stream with these when they cannot continue.
_BROKEN_STOPS = {"error", "insufficient_system_resource"}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Piece(msgspec.Struct):
    text: str | None = None


class _Delta(msgspec.Struct):
    content: str | list[_Piece] | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None


class _Choice(msgspec.Struct):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: Any = None
    cache_write_tokens: Any = None


class _Usage(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: Any = None


class _Chunk(msgspec.Struct):
    """The fields of all events. Unknown fields are ignored."""

    object: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    message: Any = None
    code: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class OpenAIResponseReader(ResponseReader):
    """Reads one streamed response. `has_usage` is True once the provider sent token counts."""

    def __init__(self, peer: ProviderInfo, model: str, request_id: str = "") -> None:
        super().__init__()
        self.has_usage = False
        self._peer, self._model, self._request_id = peer, model, request_id
        self._document: list[bytes] | None = None
        self._document_bytes = 0
        self._begun = self._ended = False
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_Growing] = []
        self._usage = Usage()
        self._stop: ReplyStop | None = None

    def feed(self, chunk: bytes) -> list[TextDelta]:
        """Take the next bytes of the stream and return their text deltas, joined by kind."""
        if not self._begun and (start := chunk.lstrip()):
            self._begun = True
            if start.startswith(b"{"):  # some servers answer a streaming request with one document
                self._document = []
        if self._document is None:
            return super().feed(chunk)
        self._document.append(chunk)
        self._document_bytes += len(chunk)
        if self._document_bytes > MAX_LINE_BYTES:
            self._fail(
                ModelUnreachable("The provider sent a document that exceeds the size limit.")
            )
        return []

    def end(self) -> list[TextDelta]:
        """Take the end of the stream; return the text of a response sent as one document."""
        if self._document is None or self.is_finished:
            return []
        return super().feed(b"data: " + b"".join(self._document).replace(b"\n", b" ") + b"\n\n")

    def _reply(self) -> ModelResponse:
        text, thoughts = (replace_surrogates("".join(p)) for p in (self._text, self._thoughts))
        stop: ReplyStop = "length" if self._cut else self._stop or "end"
        cut = self._calls[-1:] if stop == "length" else []
        calls = tuple(
            call.made(cut=call in cut) for call in self._calls if call.name or call not in cut
        )
        parts: tuple[Part, ...] = (
            *((Thinking(thoughts),) if thoughts.strip() else ()),
            *((Text(text),) if text.strip() else ()),
            *calls,
        )
        if stop in {"end", "tools"}:  # many servers send `stop` after calls, or the other way round
            stop = "tools" if calls else "end"
        usage = self._usage
        if not self.has_usage:
            usage = Usage(output_tokens=self._size // 4)
        return ModelResponse(
            parts=parts,
            usage=usage,
            stop=stop,
            model=self._model,
            request_id=self._request_id,
        )

    def _take(self, data: bytes) -> None:
        if self._ended or data.strip() == b"[DONE]":
            if not (self.is_complete or self._text or self._calls):
                raise ModelUnreachable("The provider ended the stream without a response.")
            self.is_complete = self._ended = True
            return
        chunk = decode_event(data, _decode, _Chunk)
        self._model = replace_surrogates(chunk.model or "") or self._model
        if chunk.usage is not None:
            self._count(chunk.usage)
        for choice in chunk.choices or ():
            if not choice.index:
                self._hear(choice)
        if chunk.error:
            raise error_from_body(self._peer, None, chunk.error)
        if chunk.object == "error":
            raise error_from_body(self._peer, None, {"message": chunk.message, "code": chunk.code})
        stops = [choice.finish_reason for choice in chunk.choices or () if not choice.index]
        for reason in filter(None, stops):
            self._end(reason)

    def _hear(self, choice: _Choice) -> None:
        delta = choice.delta or choice.message
        if delta is None:
            return
        # servers that renamed the field send both names with the same content
        thought = delta.reasoning_content or delta.reasoning
        if isinstance(thought, str):
            self._thoughts.append(thought)
            self._say(thought, reasoning=True)
        content = delta.content or delta.refusal
        if isinstance(content, list):
            content = "".join(piece.text or "" for piece in content)
        if content:
            self._text.append(content)
            self._say(content)
        if delta.refusal:
            self._stop = "refused"
        for call in delta.tool_calls or ():
            self._call(call)
        if delta.function_call is not None:  # the API's older form of tool calls
            self._call(_Call(0, None, delta.function_call))

    def _end(self, reason: str) -> None:
        if reason in _BROKEN_STOPS:
            raise error_from_body(self._peer, None, f"the reply ended with {reason}")
        self._stop = self._stop or _STOPS.get(reason, "end")
        self.is_complete = True

    def _call(self, call: _Call) -> None:
        function = call.function or _Function()
        growing = self._growing(call, function)
        if growing is None:
            growing = _Growing(call.index, call.id or "")
            self._calls.append(growing)
        self._grow(growing.add(call.id, function))

    def _growing(self, call: _Call, function: _Function) -> "_Growing | None":
        """Return the call that this delta continues, or None if it starts a new one."""
        same = [c for c in self._calls if call.index is None or c.index == call.index][-1:]
        if not same:
            return None
        # servers with wrong or missing indexes still give each call its own id and name
        is_other = bool(call.id and same[0].call_id and call.id != same[0].call_id)
        if call.index is None:
            is_other = is_other or same[0].complete
        return None if is_other and function.name and same[0].name else same[0]

    def _count(self, usage: _Usage) -> None:
        """Take the newest counts. The API counts cached tokens as prompt; `Usage` does not."""
        prompt, output = token_count(usage.prompt_tokens), token_count(usage.completion_tokens)
        if prompt is None and output is None:
            return
        details = usage.prompt_tokens_details or _Details()
        hits = token_count(details.cached_tokens) or token_count(usage.prompt_cache_hit_tokens)
        read, written = hits or 0, token_count(details.cache_write_tokens) or 0
        self._usage = Usage(
            input_tokens=max(0, (prompt or 0) - read - written),
            output_tokens=output or 0,
            cache_read_tokens=read,
            cache_write_tokens=written,
        )
        self.has_usage = True


class _Growing:
    """One tool call while it is streamed."""

    def __init__(self, index: int | None, call_id: str) -> None:
        self.index, self.call_id, self.name = index, call_id, ""
        self._raw: list[str] = []
        self._arguments: dict[str, Any] | None = None

    def add(self, call_id: str | None, function: _Function) -> int:
        """Take a delta and return its length. A repeated name or id is ignored."""
        self.call_id = self.call_id or call_id or ""
        self.name = self.name or function.name or ""
        if isinstance(function.arguments, dict):
            self._arguments = function.arguments
            return len(function.arguments)
        self._raw.append(function.arguments or "")
        return len(function.arguments or "")

    @property
    def complete(self) -> bool:
        """Whether the arguments received so far are complete JSON."""
        raw = "".join(self._raw)
        return self._arguments is not None or bool(raw and parse_arguments(raw)[1] is None)

    def made(self, *, cut: bool = False) -> ToolCall:
        if not self.name:
            raise ModelUnreachable("The provider sent a tool call without a name.")
        raw = "".join(self._raw)
        if self._arguments is not None:
            raw = encode_json(self._arguments).decode()
        name, call_id = replace_surrogates(self.name), replace_surrogates(self.call_id)
        return ToolCall(call_id, name, *parse_arguments(raw, cut=cut))
