"""Reads streamed responses of the Messages API and translates its errors.

Error types: https://platform.claude.com/docs/en/api/errors
"""

import re
from typing import Any, Literal

import msgspec

from internal.agent.domain.errors import ModelError, ModelRejected, ModelUnreachable
from internal.agent.domain.messages import Part, Text, Thinking, ToolCall
from internal.agent.domain.text import replace_surrogates
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelResponse
from internal.llm.errors import ProviderInfo, error_from_status
from internal.llm.stream_reader import ResponseReader, decode_event, parse_arguments

ANTHROPIC = ProviderInfo("Anthropic", "ANTHROPIC_API_KEY")

_STATUS_OF = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_STALE_THINKING = re.compile(r"thinking.*(signature|bound|cannot be modified)|signature.*thinking")


def error_from_type(kind: str, message: str) -> ModelError:
    """Translate an error that was sent inside a stream, where there is no HTTP status."""
    return error_from_status(ANTHROPIC, _STATUS_OF.get(kind, 400), message)


def is_stale_thinking(error: ModelError) -> bool:
    """Return True if the provider rejected earlier thinking blocks, not the request."""
    return isinstance(error, ModelRejected) and bool(_STALE_THINKING.search(str(error).lower()))


_STOPS: dict[str, Literal["end", "tools", "length", "refused"]] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct):
    model: str = ""
    usage: _Usage | None = None


class _Block(msgspec.Struct):
    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: dict[str, Any] = {}


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Error(msgspec.Struct):
    type: str = "api_error"
    message: str = ""


class _Event(msgspec.Struct):
    """The fields of all event types. Unknown types and fields are ignored."""

    type: str
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: _Error | None = None


_decode = msgspec.json.Decoder(_Event).decode


class AnthropicResponseReader(ResponseReader):
    """Reads one streamed response of the Messages API."""

    def __init__(self, model: str, request_id: str = "") -> None:
        super().__init__()
        self._model, self._request_id = model, request_id
        self._blocks: dict[int, _Growing] = {}
        self._usage = _Usage()
        self._stop: Literal["end", "tools", "length", "refused"] | None = None

    def _reply(self) -> ModelResponse:
        parts = (self._blocks[index].part() for index in sorted(self._blocks))
        usage = self._usage
        # a response that was cut ends before the provider's count
        written = self._size // 4 if self._cut else usage.output_tokens or 0
        return ModelResponse(
            parts=tuple(part for part in parts if part is not None),
            usage=Usage(
                input_tokens=usage.input_tokens or 0,
                output_tokens=written,
                cache_read_tokens=usage.cache_read_input_tokens or 0,
                cache_write_tokens=usage.cache_creation_input_tokens or 0,
            ),
            stop="length" if self._cut else self._stop or "end",
            model=self._model,
            request_id=self._request_id,
        )

    def _take(self, data: bytes) -> None:
        if not self.is_complete:  # events after the end are ignored
            self._heed(decode_event(data, _decode, _Event))

    def _heed(self, event: _Event) -> None:
        match event:
            case _Event(type="content_block_delta", index=index, delta=_Delta() as delta):
                self._continue(index, delta)
            case _Event(type="content_block_start", index=index, content_block=_Block() as block):
                self._begin(index, block)
            case _Event(type="message_start", message=_Message() as message):
                self._model = message.model or self._model
                self._count(message.usage)
            case _Event(type="message_delta", delta=_Delta() as delta, usage=usage):
                self._count(usage)
                reason = delta.stop_reason
                self._stop = self._stop if reason is None else _STOPS.get(reason, "end")
            case _Event(type="message_stop"):
                self.is_complete = self._stop is not None
                self.is_finished = not self.is_complete
            case _Event(type="error", error=error):
                raise _failure(error or _Error())
            case _:
                pass  # a ping or an unknown event type

    def _begin(self, index: int, block: _Block) -> None:
        if block.type == "tool_use" and not (block.id and block.name):
            raise ModelUnreachable("The provider sent a tool call without id or name.")
        self._blocks[index] = _Growing(block)
        self._say(block.text)
        self._say(block.thinking, reasoning=True)

    def _continue(self, index: int, delta: _Delta) -> None:
        block = self._blocks.get(index)
        if block is None:
            raise ModelUnreachable(
                "The provider sent a delta for a content block that was never started."
            )
        block.add(delta)
        self._say(delta.text)
        self._say(delta.thinking, reasoning=True)
        self._grow(len(delta.partial_json))

    def _count(self, usage: _Usage | None) -> None:
        """Take the newest token counts; each event carries the totals so far."""
        for name in _Usage.__struct_fields__:
            if (value := getattr(usage, name, None)) is not None:
                setattr(self._usage, name, value)


class _Growing:
    """One content block while it is streamed."""

    def __init__(self, block: _Block) -> None:
        self._block = block
        self._text = [block.text or block.thinking]
        self._signature = [block.signature]
        self._json: list[str] = []

    def add(self, delta: _Delta) -> None:
        self._text.append(delta.text or delta.thinking)
        if delta.signature:
            self._signature.append(delta.signature)
        if delta.partial_json:
            self._json.append(delta.partial_json)

    def part(self) -> Part | None:
        match self._block.type:
            case "text":
                text = "".join(self._text)
                return Text(text) if text.strip() else None
            case "thinking":
                thought = Thinking("".join(self._text), signature="".join(self._signature))
                return thought if thought.text or thought.signature else None
            case "redacted_thinking":
                return Thinking("", redacted=self._block.data)
            case "tool_use":
                return self._call()
            case _:  # an unknown block type
                return None

    def _call(self) -> ToolCall:
        raw = "".join(self._json)
        arguments, malformed = parse_arguments(raw) if raw.strip() else (self._block.input, None)
        return ToolCall(self._block.id, self._block.name, arguments, malformed)


def _failure(error: _Error) -> ModelError:
    return error_from_type(error.type, replace_surrogates(error.message))
