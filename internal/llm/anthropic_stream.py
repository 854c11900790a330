"""Reads streamed responses of the Messages API and translates the errors inside of them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from internal.agent.domain.errors import ModelError, ModelUnreachable
from internal.agent.domain.messages import Part, Text, Thinking, ToolCall
from internal.agent.domain.react.steps import ReplyStop
from internal.agent.domain.text import replace_surrogates
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelResponse
from internal.llm.errors import ProviderInfo
from internal.llm.lenient_json import encode_json
from internal.llm.refusals.errors import error_from_type
from internal.llm.stream_reader import (
    ResponseReader,
    decode_event,
    parse_arguments,
    token_count,
)
from internal.llm.written_calls import WRITTEN_CALL

ANTHROPIC = ProviderInfo("Anthropic", "ANTHROPIC_API_KEY")


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None


class _Message(msgspec.Struct):
    model: str | None = None
    usage: _Usage | None = None


class _Block(msgspec.Struct):
    type: str | None = None
    id: str | int | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    input: dict[str, Any] | str | None = None


class _Delta(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | dict[str, Any] | None = None
    stop_reason: str | None = None
    name: str | None = None


class _Error(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Event(msgspec.Struct):
    """The fields of all event types, and of a whole message. Unknown ones are ignored."""

    type: str | None = None
    index: int | str | None = None
    message: _Message | str | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: _Error | str | None = None
    content: list[_Block] | str | None = None
    model: str | None = None
    stop_reason: str | None = None


_decode = msgspec.json.Decoder(_Event).decode


class AnthropicResponseReader(ResponseReader):
    """Reads one streamed response of the Messages API."""

    def __init__(
        self,
        model: str,
        request_id: str = "",
        *,
        tools: Sequence[ToolSpec] = (),
        begins_inside: bool = False,
    ) -> None:
        super().__init__(tools, begins_inside=begins_inside)
        self._model, self._request_id = model, request_id
        self._blocks: dict[int, _Growing] = {}
        self._usage = _Usage()

    def _reply(self) -> ModelResponse:
        usage = self._usage
        stop: ReplyStop = "length" if self._cut else self._stop or "end"
        last = max(self._blocks, default=None) if stop == "length" else None
        made = (self._blocks[n].part(cut=n == last) for n in sorted(self._blocks))
        parts, written = self._with_written([part for part in made if part is not None])
        if written and stop == "end":
            stop = "tools"
        # a response that was cut ends before the provider's count
        is_estimated = self._cut or not self.has_usage
        return ModelResponse(
            parts=(*parts, *written),
            usage=Usage(
                input_tokens=usage.input_tokens or 0,
                output_tokens=self._size // 4 if is_estimated else usage.output_tokens or 0,
                cache_read_tokens=usage.cache_read_input_tokens or 0,
                cache_write_tokens=usage.cache_creation_input_tokens or 0,
            ),
            stop=stop,
            model=self._model,
            request_id=self._request_id,
            repairs=(WRITTEN_CALL,) * len(written),
        )

    def _with_written(self, parts: list[Part]) -> tuple[list[Part], list[ToolCall]]:
        """Return the parts and the calls that the model wrote into its texts."""
        may_call = not any(isinstance(part, ToolCall) for part in parts)
        read: list[Part] = []
        written: list[ToolCall] = []
        is_first = True
        for part in parts:
            if not isinstance(part, Text):
                read.append(part)
                continue
            thought, answer, calls = self._read_content(
                part.text, is_first=is_first, may_call=may_call
            )
            is_first = False
            read += [Thinking(thought)] if thought else []
            read += [Text(answer)] if answer.strip() else []
            written += calls
        return read, written

    def _take(self, data: bytes) -> None:
        event = decode_event(data, _decode, _Event)
        if event.type == "content_block_delta" and event.delta is not None:
            index = event.index
            self._continue(index if type(index) is int else _number(index), event.delta)
        else:
            self._heed(event)

    def _heed(self, event: _Event) -> None:
        match event:
            case _Event(type="content_block_start", content_block=_Block() as block):
                self._begin(_number(event.index), block)
            case _Event(type="message_start", message=_Message() as message):
                self._model = replace_surrogates(message.model or "") or self._model
                self._count(message.usage)
            case _Event(type="message_delta"):
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._end_with(event.delta.stop_reason)
                    self.is_complete = True  # some servers send no stop event
            case _Event(type="message_stop"):
                self.is_finished = True
            case _Event(type="error") | _Event(error=_Error() | str()):
                raise _failure(event)
            case _Event(type="message" | None, content=list() | str()):
                self._take_message(event)
            case _:
                pass  # a ping or an unknown event type

    def _take_message(self, event: _Event) -> None:
        """Take a response that is one document."""
        self._model = replace_surrogates(event.model or "") or self._model
        self._count(event.usage)
        content = event.content or []
        blocks = [_Block("text", text=content)] if isinstance(content, str) else content
        for n, block in enumerate(blocks):
            self._begin(n, block)
        self._end_with(event.stop_reason or "end_turn")
        self.is_complete = self.is_finished = True

    def _begin(self, index: int, block: _Block) -> None:
        if block.type == "tool_use":
            if not block.name:
                raise ModelUnreachable("The provider sent a tool call without a name.")
            self._expect_no_written_calls()
        if any(each.is_text for each in self._blocks.values()):
            self._join_pieces()
            self._end_text()
        self._blocks[index] = _Growing(block)
        self._say(block.text)
        self._say(block.thinking, reasoning=True)

    def _continue(self, index: int, delta: _Delta) -> None:
        block = self._blocks.get(index)
        if block is None:
            raise ModelUnreachable(
                "The provider sent a delta for a content block that was never started."
            )
        if delta.type == "text_delta":  # almost all
            if delta.text:
                block.text.append(delta.text)
                self._say(delta.text)
            return
        block.add(delta)
        if delta.text:
            self._say(delta.text)
        if delta.thinking:
            self._say(delta.thinking, reasoning=True)
        if delta.partial_json:
            self._grow(len(delta.partial_json))

    def _count(self, usage: _Usage | None) -> None:
        """Take the largest token counts; each event carries the totals so far."""
        for name in _Usage.__struct_fields__:
            if (value := token_count(getattr(usage, name, None))) is not None:
                setattr(self._usage, name, max(value, getattr(self._usage, name) or 0))
                self.has_usage = True


class _Growing:
    """One content block while it is streamed."""

    def __init__(self, block: _Block) -> None:
        self._block = block
        self.text = [block.text or block.thinking or ""]
        self._signature = [block.signature or ""]
        self._json: list[str] = []

    @property
    def is_text(self) -> bool:
        """Whether the block has text for people."""
        return self._block.type == "text" and any(text.strip() for text in self.text)

    def add(self, delta: _Delta) -> None:
        self.text.append(delta.text or delta.thinking or "")
        if delta.signature:
            self._signature.append(delta.signature)
        if isinstance(delta.partial_json, dict):
            self._json.append(encode_json(delta.partial_json).decode())
        elif delta.partial_json:
            self._json.append(delta.partial_json)

    def part(self, *, cut: bool) -> Part | None:
        match self._block.type:
            case "text":
                text = replace_surrogates("".join(self.text))
                return Text(text) if text.strip() else None
            case "thinking":
                text = replace_surrogates("".join(self.text))
                thought = Thinking(text, signature=replace_surrogates("".join(self._signature)))
                return thought if thought.text or thought.signature else None
            case "redacted_thinking":
                return Thinking("", redacted=replace_surrogates(self._block.data or ""))
            case "tool_use":
                return self._call(cut=cut)
            case _:  # an unknown block type
                return None

    def _call(self, *, cut: bool) -> ToolCall:
        raw = "".join(self._json)
        block, given = self._block, self._block.input
        if not (raw or cut):
            raw = given if isinstance(given, str) else encode_json(given or {}).decode()
        call_id = "" if block.id is None else str(block.id)
        arguments = parse_arguments(raw, cut=cut)
        name = replace_surrogates(block.name or "")
        # gateways to Gemini sign the call itself
        opaque = {"signature": block.signature} if block.signature else None
        return ToolCall(replace_surrogates(call_id), name, *arguments, opaque)


def _number(index: int | str | None) -> int:
    if isinstance(index, str):
        return int(index) if index.isdecimal() else 0
    return index or 0


def _failure(event: _Event) -> ModelError:
    match event.error:
        case _Error(kind, message):
            return error_from_type(
                ANTHROPIC, kind or "api_error", replace_surrogates(message or "")
            )
        case str(message):
            return error_from_type(ANTHROPIC, "api_error", replace_surrogates(message))
        case _:
            message = event.message if isinstance(event.message, str) else ""
            return error_from_type(ANTHROPIC, "api_error", replace_surrogates(message))
