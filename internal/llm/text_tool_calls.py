"""Tool calls for models that have none: told in words, and read out of the model's words."""

import hashlib
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from internal.agent.domain.messages import Message, Part, Text, ToolCall, ToolResult
from internal.agent.ports.llm import ModelRequest, ModelResponse, ModelStreamEvent, TextDelta
from internal.llm.lenient_json import decode_json, encode_json
from internal.llm.retry import ProviderClient
from internal.llm.stream_reader import arguments_of

_BLOCKS = {"<tool_call>": "</tool_call>", "```tool_call": "```"}
_OPENING = re.compile("|".join(map(re.escape, _BLOCKS)))
_NAME = re.compile(r'"(?:name|tool)"\s*:\s*"([^"\\]{1,128})"')
_RULES = """\
You can call tools. To call one, write a block like this, and nothing after your last block:

<tool_call>
{"name": "NAME", "arguments": {"ARGUMENT": "VALUE"}}
</tool_call>

The block holds one JSON object: line breaks inside of its strings are written \\n. Several blocks \
are several calls. You then get a <tool_result> for each; never write one yourself. Without a \
block your words are the final answer. The tools, with the JSON Schema of their arguments:
"""
_FINAL = "You cannot call tools now: answer in words."


class TextToolCalls:
    """A model behind the same port, whose tool calls are text on the way there and back."""

    def __init__(self, client: ProviderClient) -> None:
        self.provider = client.provider
        self._client = client

    def check_key(self) -> None:
        """Raise ModelKeyRefused, in one sentence, when no call could succeed."""
        self._client.check_key()

    def warm(self) -> None:
        """Begin with what takes long, such as importing an SDK."""
        self._client.warm()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._client.close()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the reply as it comes, without its blocks, then one Reply with the calls in it."""
        found = CallFinder()
        async with aclosing(self._client.stream(_in_words(request))) as pieces:
            async for piece in pieces:
                match piece:
                    case TextDelta(text, n, False):
                        if shown := found.feed(text):
                            yield TextDelta(shown, n)
                    case ModelResponse():
                        if shown := found.end():
                            yield TextDelta(shown)
                        yield _with_calls(piece, request)
                    case _:
                        yield piece


class CallFinder:
    """Parts a text into words to show and blocks with calls in them, however it is cut."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self._held = ""
        self._block: list[str] = []
        self._closing: str | None = None
        self._quoted = False

    def feed(self, text: str) -> str:
        """Take more of the text; return what of it can be shown: never a part of a block."""
        self._held += text
        shown: list[str] = []
        while self._closing is not None or self._opened(shown):
            if not self._closed():
                break
        return "".join(shown)

    def end(self) -> str:
        """Take the end of the text; return what was held back and is none of a block."""
        shown: list[str] = []
        while self._closing is not None:  # a block without end, or with a quotation mark too many
            raw, closing = "".join(self._block) + self._held, self._closing
            block, _, self._held = (raw, "", "") if _is_json(raw) else raw.partition(closing)
            self._finish(block)
            shown.append(self.feed(""))
        rest, self._held = self._held, ""
        return "".join((*shown, rest))

    def _opened(self, shown: list[str]) -> bool:
        """Look for the next block; what stands before it can be shown."""
        opening = _OPENING.search(self._held)
        if opening is None:
            safe = len(self._held) - _begun(self._held)
            shown.append(self._held[:safe])
            self._held = self._held[safe:]
            return False
        shown.append(self._held[: opening.start()])
        self._held = self._held[opening.end() :]
        self._closing, self._quoted, self._block = _BLOCKS[opening.group()], False, []
        return True

    def _closed(self) -> bool:
        """Move what belongs to the block out of `held`; return whether it is at its end.

        A closing mark inside of a JSON string, in a file that is written for one, is no end.
        """
        closing = self._closing or ""
        marks = re.compile(rf'\\[\s\S]|"|{re.escape(closing)}')
        safe = max(0, len(self._held) - len(closing) + 1)  # a mark may still be growing after it
        place = 0
        for mark in marks.finditer(self._held):
            if mark.start() >= safe:
                break
            if mark.group() == closing and not self._quoted:
                self._block.append(self._held[place : mark.start()])
                self._held = self._held[mark.end() :]
                self._finish("".join(self._block))
                return True
            self._block.append(self._held[place : mark.end()])
            place = mark.end()
            self._quoted ^= mark.group() == '"'
        place, start = max(place, safe), place
        self._block.append(self._held[start:place])
        self._held = self._held[place:]
        return False

    def _finish(self, block: str) -> None:
        self.blocks.append(block)
        self._closing, self._block = None, []


def _begun(text: str) -> int:
    """Return how many characters at the end may be the beginning of a block."""
    most = max(map(len, _BLOCKS)) - 1
    lengths = range(min(most, len(text)), 0, -1)
    return next((n for n in lengths if any(b.startswith(text[-n:]) for b in _BLOCKS)), 0)


def _with_calls(reply: ModelResponse, request: ModelRequest) -> ModelResponse:
    """Return the reply with its blocks made calls; where none may be made they are left out."""
    said = repr(request.messages).encode("utf-8", "replace")
    digest = hashlib.blake2s(said, digest_size=8).hexdigest()
    parts: list[Part] = []
    made: list[ToolCall] = []
    for part in reply.parts:
        if not isinstance(part, Text):
            parts.append(part)
            continue
        found = CallFinder()
        words = found.feed(part.text) + found.end()
        if words.strip():
            parts.append(Text(words))
        made.extend(call for block in found.blocks for call in _calls(block))
    if request.tool_choice == "none":
        made = []
    calls = (replace(call, call_id=f"text_{digest}_{n}") for n, call in enumerate(made, 1))
    stop = "tools" if made and reply.stop == "end" else reply.stop
    return replace(reply, parts=(*parts, *calls), stop=stop)


def _calls(block: str) -> Iterator[ToolCall]:
    raw = block.strip()
    try:
        value = decode_json(raw.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        value = None
    for item in value if isinstance(value, list) and value else [value]:
        yield _made(item, raw)


def _made(item: object, raw: str) -> ToolCall:
    name, arguments = _guessed_name(raw), None
    match item:
        case {"name": str(said), **rest} | {"tool": str(said), **rest} if said.strip():
            name, arguments = said, _given(rest)
    if isinstance(arguments, str):  # encoded once too often
        arguments, unread = arguments_of(arguments)
        if unread is None:
            return ToolCall("", name, arguments)
    elif isinstance(arguments, dict):
        return ToolCall("", name, arguments)
    return ToolCall("", name, {}, raw)


def _given(item: Mapping[Any, Any]) -> Any:
    names = ("arguments", "parameters", "input")
    return next((item[name] for name in names if item.get(name) is not None), {})


def _guessed_name(raw: str) -> str:
    found = _NAME.search(raw)
    return found[1] if found else "tool_call"


def _is_json(raw: str) -> bool:
    try:
        decode_json(raw.strip().encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _in_words(request: ModelRequest) -> ModelRequest:
    """Return the request with its tools, calls and results told in words."""
    names = {call.call_id: call.name for m in request.messages for call in m.calls}
    told = (
        Message(m.role, tuple(_told(part, names) for part in m.parts)) for m in request.messages
    )
    system = "\n\n".join(filter(None, (request.system, _rules(request))))
    return replace(request, system=system, messages=tuple(told), tools=(), tool_choice="auto")


def _rules(request: ModelRequest) -> str:
    if not request.tools:
        return ""
    if request.tool_choice == "none":
        return _FINAL
    tools = (
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in request.tools
    )
    return "\n".join((_RULES, *(encode_json(tool).decode() for tool in tools)))


def _told(part: Part, names: Mapping[str, str]) -> Part:
    match part:
        case ToolCall(_, name, arguments, malformed):
            call = encode_json({"name": name, "arguments": arguments}).decode()
            return Text(f"\n<tool_call>\n{malformed or call}\n</tool_call>")
        case ToolResult(call_id, text, failed):
            how = ' failed="true"' if failed else ""
            name = names.get(call_id, "tool").replace('"', "")
            inner = text.replace("</tool_result", "<\\/tool_result")  # it ends where we say
            return Text(f'<tool_result name="{name}"{how}>\n{inner}\n</tool_result>\n')
        case _:
            return part
