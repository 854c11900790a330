"""The stream of Chat Completions, read into our pieces. No I/O: bytes in, pieces out.

Read as leniently as the many servers that speak it write it.
"""

from typing import Any, Literal

import msgspec

from internal.agent.domain.budgets import Usage
from internal.agent.domain.errors import ModelUnreachable
from internal.agent.domain.messages import Part, Text, Thinking, ToolCall
from internal.agent.ports.llm import Reply, Words
from internal.llm.errors import Peer
from internal.llm.openai_errors import error_of_body
from internal.llm.reading import ReplyReader, arguments_of, decoded
from internal.llm.sse import MAX_LINE_BYTES

_Stop = Literal["end", "tools", "length", "refused"]
_STOPS: dict[str, _Stop] = {
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
    "refusal": "refused",
}
# DeepSeek and OpenRouter end a stream like this when they could not go on.
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
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None


class _Chunk(msgspec.Struct):
    """Every event at once; new fields may come at any time and are ignored."""

    object: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    message: Any = None
    code: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class OpenAIReader(ReplyReader):
    """Reads one reply of Chat Completions. `counted` once the provider has said its usage."""

    def __init__(self, peer: Peer, model: str, request_id: str = "") -> None:
        super().__init__()
        self.counted = False
        self._peer, self._model, self._request_id = peer, model, request_id
        self._document: list[bytes] | None = None
        self._document_bytes = 0
        self._begun = self._ended = False
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_Growing] = []
        self._usage = Usage()
        self._stop: _Stop | None = None

    def feed(self, chunk: bytes) -> list[Words]:
        """Take the next bytes of the stream; return the words in them, joined by kind."""
        if not self._begun and (start := chunk.lstrip()):
            self._begun = True
            if start.startswith(b"{"):  # asked for a stream, some servers give a document
                self._document = []
        if self._document is None:
            return super().feed(chunk)
        self._document.append(chunk)
        self._document_bytes += len(chunk)
        if self._document_bytes > MAX_LINE_BYTES:
            self._fail(ModelUnreachable("The provider sent a document without end."))
        return []

    def end(self) -> list[Words]:
        """Take the end of the stream; return the words of a reply that came as one document."""
        if self._document is None or self.over:
            return []
        return super().feed(b"data: " + b"".join(self._document).replace(b"\n", b" ") + b"\n\n")

    def _reply(self) -> Reply:
        text, thoughts = "".join(self._text), "".join(self._thoughts)
        calls = tuple(call.made() for call in self._calls)
        parts: tuple[Part, ...] = (
            *((Thinking(thoughts),) if thoughts.strip() else ()),
            *((Text(text),) if text.strip() else ()),
            *calls,
        )
        stop = self._stop or "end"
        if stop in {"end", "tools"}:  # many say `stop` after calls, some say `tool_calls` without
            stop = "tools" if calls else "end"
        usage = self._usage
        if not self.counted:
            usage = Usage(output_tokens=self._size // 4)
        return Reply(
            parts=parts,
            usage=usage,
            stop="length" if self._cut else stop,
            model=self._model,
            request_id=self._request_id,
        )

    def _take(self, data: bytes) -> None:
        if self._ended or data.strip() == b"[DONE]":
            self.whole = self._ended = True
            return
        chunk = decoded(data, _decode, _Chunk)
        self._model = chunk.model or self._model
        if chunk.usage is not None:
            self._count(chunk.usage)
        for choice in chunk.choices or ():
            if not choice.index:
                self._hear(choice)
        if chunk.error:
            raise error_of_body(self._peer, None, chunk.error)
        if chunk.object == "error":
            raise error_of_body(self._peer, None, {"message": chunk.message, "code": chunk.code})
        stops = [choice.finish_reason for choice in chunk.choices or () if not choice.index]
        for reason in filter(None, stops):
            self._end(reason)

    def _hear(self, choice: _Choice) -> None:
        delta = choice.delta or choice.message
        if delta is None:
            return
        # both names at once hold the same: servers that renamed the field keep the old one a while
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
        if delta.function_call is not None:  # before there were tools
            self._call(_Call(0, None, delta.function_call))

    def _end(self, reason: str) -> None:
        if reason in _BROKEN_STOPS:
            raise error_of_body(self._peer, None, f"the reply ended with {reason}")
        self._stop = self._stop or _STOPS.get(reason, "end")
        self.whole = True

    def _call(self, call: _Call) -> None:
        function = call.function or _Function()
        growing = self._growing(call, function)
        if growing is None:
            growing = _Growing(call.index, call.id or "")
            self._calls.append(growing)
        self._grow(growing.add(call.id, function))

    def _growing(self, call: _Call, function: _Function) -> "_Growing | None":
        """Return the call that this piece goes on with, None when it begins one."""
        same = [c for c in self._calls if call.index is None or c.index == call.index][-1:]
        if not same:
            return None
        # servers that count wrongly, or not at all, give each call its own id and name
        is_other = bool(call.id and same[0].call_id and call.id != same[0].call_id)
        if call.index is None:
            is_other = is_other or same[0].complete
        return None if is_other and function.name and same[0].name else same[0]

    def _count(self, usage: _Usage) -> None:
        """Take the newest counts. Cached tokens are among the prompt's here, not so with us."""
        if usage.prompt_tokens is None and usage.completion_tokens is None:
            return
        details = usage.prompt_tokens_details or _Details()
        read = details.cached_tokens or usage.prompt_cache_hit_tokens or 0
        written = details.cache_write_tokens or 0
        self._usage = Usage(
            input_tokens=max(0, (usage.prompt_tokens or 0) - read - written),
            output_tokens=max(0, usage.completion_tokens or 0),
            cache_read_tokens=max(0, read),
            cache_write_tokens=max(0, written),
        )
        self.counted = True


class _Growing:
    """One call while it comes."""

    def __init__(self, index: int | None, call_id: str) -> None:
        self.index, self.call_id, self.name = index, call_id, ""
        self._raw: list[str] = []
        self._arguments: dict[str, Any] | None = None

    def add(self, call_id: str | None, function: _Function) -> int:
        """Take a piece; return its length. A name and an id that come again are not new ones."""
        self.call_id = self.call_id or call_id or ""
        self.name = self.name or function.name or ""
        if isinstance(function.arguments, dict):
            self._arguments = function.arguments
            return len(function.arguments)
        self._raw.append(function.arguments or "")
        return len(function.arguments or "")

    @property
    def complete(self) -> bool:
        """Whether its arguments are all there, as far as one can see."""
        raw = "".join(self._raw)
        return self._arguments is not None or bool(raw and arguments_of(raw)[1] is None)

    def made(self) -> ToolCall:
        if not self.name:
            raise ModelUnreachable("The provider sent a tool call without a name.")
        if self._arguments is not None:
            return ToolCall(self.call_id, self.name, self._arguments)
        arguments, malformed = arguments_of("".join(self._raw))
        return ToolCall(self.call_id, self.name, arguments, malformed)
