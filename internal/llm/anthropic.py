"""Client of Anthropic's Messages API, at Anthropic or at a compatible address.

API version 2026-10-21. Error types: https://platform.claude.com/docs/en/api/errors
"""

import contextlib
import logging
import re
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from internal.agent.domain.errors import ModelError, ModelRejected, ModelUnreachable
from internal.agent.domain.messages import (
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from internal.agent.domain.react.request_messages import encode_messages
from internal.agent.domain.react.steps import ReplyStop
from internal.agent.domain.text import replace_surrogates
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import MISSING_IMAGE, ModelRequest, ModelResponse, ModelStreamEvent
from internal.llm.errors import ProviderInfo, error_from_status, retry_after
from internal.llm.lenient_json import encode_json
from internal.llm.stream_reader import (
    ResponseReader,
    decode_event,
    parse_arguments,
    token_count,
)
from internal.llm.transport import ApiKey, ProviderErrorResponse, ProviderHttpClient

if TYPE_CHECKING:
    from aiohttp import ClientResponse

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
        "messages": _messages(request, thinking=thinking),
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


def _messages(request: ModelRequest, *, thinking: bool) -> msgspec.Raw:
    """Return the encoded messages. The last one has a breakpoint, so it is encoded by itself."""
    messages, last = request.messages[:-1], request.messages[-1:]
    encode = partial(_message, images=request.images, thinking=thinking)
    kept_as = "anthropic" if thinking else "anthropic without thinking"
    encoded = encode_messages(messages, kept_as, encode)
    encoded += [encode(message, is_last=True) for message in last]
    return msgspec.Raw(b"[%s]" % b",".join(encoded))


def _message(
    message: Message, *, images: Mapping[str, str], thinking: bool, is_last: bool = False
) -> bytes:
    content: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Text):  # at once: most parts of a long history are texts
            if part.text.strip():
                content.append({"type": "text", "text": part.text})
        elif thinking or not isinstance(part, Thinking):
            content += filter(None, [_block(part, images)])
    content = content or [dict(_EMPTY)]
    # thinking blocks cannot carry a breakpoint
    if is_last and "thinking" not in content[-1]["type"]:
        content[-1]["cache_control"] = _BREAKPOINT
    return encode_json({"role": message.role, "content": content})


def _block(
    part: Image | Thinking | ToolCall | ToolResult, images: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the content block of a part, or None for a part that the API would reject."""
    match part:
        case Image():
            return _image(part, images)
        case Thinking(redacted=redacted) if redacted:
            return {"type": "redacted_thinking", "data": redacted}
        case Thinking(text, signature):  # thinking of another provider has no signature
            block = {"type": "thinking", "thinking": text, "signature": signature}
            return block if signature else None
        case ToolCall(call_id, name, arguments):
            call = {"type": "tool_use", "id": _own(call_id), "name": _own(name)}
            return {**call, "input": arguments}
        case ToolResult(call_id, text, failed, pictures):
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _own(call_id)}
            if pictures:
                words = [{"type": "text", "text": text}] if text.strip() else []
                result["content"] = [*words, *(_image(each, images) for each in pictures)]
            elif text.strip():
                result["content"] = text
            return {**result, "is_error": True} if failed else result
        case _ as never:
            assert_never(never)


def _image(image: Image, images: Mapping[str, str]) -> dict[str, Any]:
    data = images.get(image.sha256)
    if data is None:
        return {"type": "text", "text": MISSING_IMAGE}
    source = {"type": "base64", "media_type": image.media_type, "data": data}
    return {"type": "image", "source": source}


def _own(name: str) -> str:
    """Replace the characters of a name or id that this API does not accept."""
    return _FOREIGN.sub("_", name)[:128] or "_"


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
    return isinstance(error, ModelRejected) and bool(_STALE_THINKING.search(error.detail.lower()))


_STOPS: dict[str, ReplyStop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None


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
        self._stop: ReplyStop | None = None

    def _reply(self) -> ModelResponse:
        usage = self._usage
        stop: ReplyStop = "length" if self._cut else self._stop or "end"
        last = max(self._blocks, default=None) if stop == "length" else None
        parts = (self._blocks[n].part(cut=n == last) for n in sorted(self._blocks))
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
            stop=stop,
            model=self._model,
            request_id=self._request_id,
        )

    def _take(self, data: bytes) -> None:
        if self.is_complete:  # events after the end are ignored
            return
        event = decode_event(data, _decode, _Event)
        if event.type == "content_block_delta" and event.delta is not None:
            self._continue(event.index, event.delta)
        else:
            self._heed(event)

    def _heed(self, event: _Event) -> None:
        match event:
            case _Event(type="content_block_start", index=index, content_block=_Block() as block):
                self._begin(index, block)
            case _Event(type="message_start", message=_Message() as message):
                self._model = replace_surrogates(message.model) or self._model
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
        if delta.type == "text_delta":  # almost all
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
        """Take the newest token counts; each event carries the totals so far."""
        for name in _Usage.__struct_fields__:
            if (value := token_count(getattr(usage, name, None))) is not None:
                setattr(self._usage, name, value)


class _Growing:
    """One content block while it is streamed."""

    def __init__(self, block: _Block) -> None:
        self._block = block
        self.text = [block.text or block.thinking]
        self._signature = [block.signature]
        self._json: list[str] = []

    def add(self, delta: _Delta) -> None:
        self.text.append(delta.text or delta.thinking)
        if delta.signature:
            self._signature.append(delta.signature)
        if delta.partial_json:
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
                return Thinking("", redacted=replace_surrogates(self._block.data))
            case "tool_use":
                return self._call(cut=cut)
            case _:  # an unknown block type
                return None

    def _call(self, *, cut: bool) -> ToolCall:
        raw = "".join(self._json)
        block = self._block
        if not (raw or cut):
            raw = encode_json(block.input).decode()
        given = parse_arguments(raw, cut=cut)
        return ToolCall(replace_surrogates(block.id), replace_surrogates(block.name), *given)


def _failure(error: _Error) -> ModelError:
    return error_from_type(error.type, replace_surrogates(error.message))


ADDRESS = "https://api.anthropic.com"
API_VERSION = "2026-10-21"
_log = logging.getLogger(__name__)


class AnthropicModel:
    """Client of the Messages API. Creating one is instant; a thread imports the HTTP stack.

    `silence_seconds` is the longest wait for the next bytes of a connection.
    """

    provider = "anthropic"

    def __init__(
        self, key: ApiKey, *, base_url: str | None = None, silence_seconds: float = 120.0
    ) -> None:
        self._http = ProviderHttpClient(
            ANTHROPIC,
            base_url or ADDRESS,
            key,
            silence_seconds=silence_seconds,
            headers={"anthropic-version": API_VERSION},
        )
        self._told_temperature = False

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        self._http.check_key(needed=True)

    def preload(self) -> None:
        """Start importing the HTTP stack in the background; the first call waits for it."""
        self._http.preload()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield text deltas, then one `ModelResponse`. See `ModelClient.stream` for the errors."""
        self.check_key()
        self._tell_temperature(request)
        response = await self._open(request)
        reader = AnthropicResponseReader(request.model, response.headers.get("request-id", ""))
        async with contextlib.aclosing(self._http.read(response, reader)) as deltas:
            async for delta in deltas:
                yield delta
        yield reader.reply()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._http.close()

    async def _open(self, request: ModelRequest) -> "ClientResponse":
        """Send the request and return the streaming response."""
        try:
            return await self._post(encode_request(request))
        except ModelError as error:
            if not (is_stale_thinking(error) and has_thinking(request)):
                raise
            _log.warning("earlier thinking refused, left out", extra={"model": request.model})
        return await self._post(encode_request(request, thinking=False))

    async def _post(self, body: bytes) -> "ClientResponse":
        return await self._http.post("/v1/messages", body, self._refused)

    def _refused(self, refusal: ProviderErrorResponse) -> ModelError:
        match refusal.body:
            case {"error": {"message": str(message)}}:
                pass
            case other:
                message = str(other or "it gave no reason")
        wait = retry_after(refusal.headers)
        return error_from_status(ANTHROPIC, refusal.status, message, retry_after=wait)

    def _tell_temperature(self, request: ModelRequest) -> None:
        if request.temperature is not None and not self._told_temperature:
            self._told_temperature = True
            _log.warning("Anthropic takes no temperature any more: the setting has no effect")
