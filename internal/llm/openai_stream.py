"""Reads streamed responses of Chat Completions."""

from collections.abc import Sequence
from typing import Any

import msgspec

from internal.agent.domain.errors import ModelUnreachable
from internal.agent.domain.messages import Part, Text, Thinking, ToolCall
from internal.agent.domain.react.steps import ReplyStop
from internal.agent.domain.text import replace_surrogates
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelResponse
from internal.llm.errors import ProviderInfo
from internal.llm.lenient_json import encode_json
from internal.llm.opaque_fields import CALL_FIELDS, MESSAGE_FIELDS, OpaqueFields
from internal.llm.refusals.errors import error_from_body
from internal.llm.reply_pictures import PICTURE_TYPES, ReplyPictures
from internal.llm.stream_reader import (
    ResponseReader,
    decode_event,
    parse_arguments,
    token_count,
)
from internal.llm.written_calls import WRITTEN_CALL

# DeepSeek and OpenRouter end a stream with these when they cannot continue.
_BROKEN_STOPS = {"error", "insufficient_system_resource"}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    index: int | str | None = None
    id: str | int | None = None
    function: _Function | None = None
    # opaque, see CALL_FIELDS
    extra_content: Any = None
    provider_specific_fields: Any = None
    thought_signature: Any = None
    encrypted_content: Any = None


class _Delta(msgspec.Struct):
    content: str | list[Any] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    images: Any = None
    refusal: str | None = None
    # opaque, see MESSAGE_FIELDS
    reasoning_details: Any = None
    extra_content: Any = None
    reasoning_opaque: Any = None
    encrypted_content: Any = None
    thinking_blocks: Any = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None


class _Choice(msgspec.Struct):
    index: int | str | None = None
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
    cached_tokens: Any = None
    total_tokens: Any = None


class _Chunk(msgspec.Struct):
    """The fields of all events. Unknown fields are ignored."""

    object: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    message: Any = None
    code: Any = None
    base_resp: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


def _error_in(chunk: _Chunk) -> object:
    """Return the error that a chunk reports, something empty if it reports none."""
    if chunk.error:
        return chunk.error
    if isinstance(chunk.base_resp, dict) and chunk.base_resp.get("status_code"):
        return chunk.base_resp
    if chunk.object == "error":
        return {"message": chunk.message, "code": chunk.code}
    return None


class OpenAIResponseReader(ResponseReader):
    """Reads one streamed response."""

    def __init__(
        self,
        peer: ProviderInfo,
        model: str,
        request_id: str = "",
        *,
        tools: Sequence[ToolSpec] = (),
        begins_inside: bool = False,
    ) -> None:
        super().__init__(tools, begins_inside=begins_inside)
        self._peer, self._model, self._request_id = peer, model, request_id
        self._names = frozenset(tool.name for tool in tools)
        self._ended = False
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_Growing] = []
        self._opaque = OpaqueFields(MESSAGE_FIELDS)
        self._pictures: ReplyPictures | None = None
        self._usage = Usage()

    def _reply(self) -> ModelResponse:
        text, thoughts = (replace_surrogates("".join(p)) for p in (self._text, self._thoughts))
        opaque = self._opaque.fields or None
        stop: ReplyStop = "length" if self._cut else self._stop or "end"
        cut = self._calls[-1:] if stop == "length" else []
        calls = [call.made(cut=call in cut) for call in self._calls if call.name or call not in cut]
        thought, text, written = self._read_content(text, is_first=True, may_call=not calls)
        thoughts = "\n\n".join(each for each in (thoughts, thought) if each.strip())
        parts: tuple[Part, ...] = (
            *((Thinking(thoughts, opaque=opaque),) if thoughts or opaque else ()),
            *((Text(text),) if text.strip() else ()),
            *calls,
            *written,
        )
        if stop in {"end", "tools"}:  # many servers send `stop` after calls, or the other way round
            stop = "tools" if calls or written else "end"
        usage = self._usage
        if not self.has_usage:
            usage = Usage(output_tokens=self._size // 4)
        return ModelResponse(
            parts=parts,
            usage=usage,
            stop=stop,
            model=self._model,
            request_id=self._request_id,
            repairs=(WRITTEN_CALL,) * len(written),
            pictures=tuple(self._pictures.pictures) if self._pictures else (),
        )

    @property
    def refused_pictures(self) -> int:
        """The number of pictures of the reply that cannot be kept."""
        return self._pictures.refused if self._pictures else 0

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
        choices = chunk.choices or ()
        for choice in choices:
            if not choice.index or choice.index == "0":
                self._hear(choice)
        if error := _error_in(chunk):
            raise error_from_body(self._peer, None, error)
        for choice in choices:
            if choice.finish_reason and (not choice.index or choice.index == "0"):
                self._end(choice.finish_reason)

    def _hear(self, choice: _Choice) -> None:
        delta = choice.delta or choice.message
        if delta is None:
            return
        # servers that renamed the field send both names with the same content
        thought = delta.reasoning_content or delta.reasoning
        if isinstance(thought, str):
            self._think(thought)
        self._grow(self._opaque.add(delta))
        content = delta.content or delta.refusal
        if isinstance(content, list):
            content = self._hear_pieces(content)
        if isinstance(delta.images, list):
            content = "".join((content or "", *map(self._picture, delta.images)))
        if content:
            self._text.append(content)
            self._say(content)
        if delta.refusal:
            self._stop = "refused"
        for call in delta.tool_calls or ():
            self._call(call)
        if delta.function_call is not None:  # the API's older form of tool calls
            self._call(_Call(0, None, delta.function_call))

    def _think(self, thought: str) -> None:
        self._thoughts.append(thought)
        self._say(thought, reasoning=True)

    def _hear_pieces(self, pieces: list[Any]) -> str:
        """Return the text of content that is a list; Mistral's has reasoning in it."""
        texts: list[str] = []
        for piece in pieces:
            match piece:
                case str():
                    texts.append(piece)
                case {"type": "thinking" | "reasoning", **given}:
                    self._think(_joined_text(given.get("thinking") or given.get("text")))
                case {"type": str(kind)} if kind in PICTURE_TYPES:
                    texts.append(self._picture(piece))
                case _:
                    texts.append(_joined_text([piece]))
        return "".join(texts)

    def _picture(self, piece: object) -> str:
        """Take a picture and return its replacement in the text: a line of its own."""
        if self._pictures is None:
            self._pictures = ReplyPictures()
        line = self._pictures.add(piece)
        return f"\n\n{line}\n\n" if line else ""

    def _end(self, reason: str) -> None:
        if reason == "null":
            return
        if reason in _BROKEN_STOPS:
            raise error_from_body(self._peer, None, f"the reply ended with {reason}")
        self._end_with(reason)
        self.is_complete = True

    def _call(self, call: _Call) -> None:
        self._expect_no_written_calls()
        function = call.function or _Function()
        index, call_id = _number(call.index), "" if call.id is None else str(call.id)
        growing = self._growing(index, call_id, function)
        if growing is None:
            growing = _Growing(index, call_id)
            self._calls.append(growing)
        self._grow(growing.add(call_id, function, self._names))
        self._grow(growing.opaque.add(call))

    def _growing(self, index: int | None, call_id: str, function: _Function) -> "_Growing | None":
        """Return the call that this delta continues, or None if it starts a new one."""
        same = [c for c in self._calls if index is None or c.index == index][-1:]
        if not same:
            return None
        # servers with wrong or missing indexes still give each call its own id and name
        is_other = bool(call_id and same[0].call_id and call_id != same[0].call_id)
        if index is None:
            is_other = is_other or same[0].complete
        return None if is_other and function.name and same[0].name else same[0]

    def _count(self, usage: _Usage) -> None:
        """Take the largest counts. The API counts cached tokens as prompt; `Usage` does not."""
        prompt, output = token_count(usage.prompt_tokens), token_count(usage.completion_tokens)
        if prompt is None and output is None:
            return
        details = usage.prompt_tokens_details or _Details()
        given = (details.cached_tokens, usage.prompt_cache_hit_tokens, usage.cached_tokens)
        hits = next(filter(None, map(token_count, given)), 0)
        # xAI and Gemini count the tokens of reasoning in the total only
        output = max(output or 0, (token_count(usage.total_tokens) or 0) - (prompt or 0))
        read, written = hits or 0, token_count(details.cache_write_tokens) or 0
        counted = Usage(
            input_tokens=max(0, (prompt or 0) - read - written),
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=written,
        )
        # counts only grow while a reply is streamed; a last event without them has zeros
        if counted.total >= self._usage.total:
            self._usage = counted
        self.has_usage = True


class _Growing:
    """One tool call while it is streamed."""

    def __init__(self, index: int | None, call_id: str) -> None:
        self.index, self.call_id, self.name = index, call_id, ""
        self.opaque = OpaqueFields(CALL_FIELDS)
        self._raw: list[str] = []
        self._arguments: dict[str, Any] | None = None

    def add(self, call_id: str, function: _Function, names: frozenset[str]) -> int:
        """Take a delta and return its length. A repeated name or id is ignored.

        `names` are the names of the tools: another name may continue.
        """
        self.call_id = self.call_id or call_id
        name = function.name or ""
        if not self.name:
            self.name = name
        elif name and name != self.name and names and self.name not in names and not self._raw:
            self.name = name if name.startswith(self.name) else self.name + name
        if isinstance(function.arguments, dict):
            self._arguments = function.arguments or self._arguments or {}
            return len(function.arguments)
        if function.arguments:
            self._raw.append(function.arguments)
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
        if self._arguments is not None and (self._arguments or not raw.strip()):
            raw = encode_json(self._arguments).decode()
        name, call_id = replace_surrogates(self.name), replace_surrogates(self.call_id)
        opaque = self.opaque.fields or None
        return ToolCall(call_id, name, *parse_arguments(raw, cut=cut), opaque)


def _number(index: int | str | None) -> int | None:
    if isinstance(index, str):
        return int(index) if index.isdecimal() else None
    return index


def _joined_text(content: object) -> str:
    """Return the text of a piece of content, or of a list of them."""
    match content:
        case str():
            return content
        case list():
            return "".join(map(_joined_text, content))
        case {"text": str(text)}:
            return text
        case _:
            return ""
