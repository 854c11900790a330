"""Tool calls as text, for models without native tool calling."""

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
from internal.llm.stream_reader import parse_arguments

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
    """Wraps a client: describes tools in the prompt and parses tool calls from the text."""

    def __init__(self, client: ProviderClient) -> None:
        self.provider = client.provider
        self._client = client

    def check_key(self) -> None:
        """Raise `ModelKeyRejected` if a required key is missing or malformed."""
        self._client.check_key()

    def preload(self) -> None:
        """Start slow work of the client."""
        self._client.preload()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._client.close()

    async def stream(self, request: ModelRequest, /) -> AsyncGenerator[ModelStreamEvent, None]:
        """Yield the text without its call blocks, then one `ModelResponse` with the calls."""
        found = ToolCallParser()
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


class ToolCallParser:
    """Splits streamed text into visible text and call blocks, however it is cut."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self._held = ""
        self._block: list[str] = []
        self._closing: str | None = None
        self._quoted = False

    def feed(self, text: str) -> str:
        """Take more text and return what can be shown; no part of a block is returned."""
        self._held += text
        shown: list[str] = []
        while self._closing is not None or self._opened(shown):
            if not self._closed():
                break
        return "".join(shown)

    def end(self) -> str:
        """Take the end of the text and return held text that belongs to no block."""
        shown: list[str] = []
        while (
            self._closing is not None
        ):  # an unclosed block, or one with an unbalanced quotation mark
            raw, closing = "".join(self._block) + self._held, self._closing
            block, _, self._held = (raw, "", "") if _is_json(raw) else raw.partition(closing)
            self._finish(block)
            shown.append(self.feed(""))
        rest, self._held = self._held, ""
        return "".join((*shown, rest))

    def _opened(self, shown: list[str]) -> bool:
        """Find the next block; the text before it is visible."""
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
        """Move the text of the block out of `held` and return whether the block is complete.

        A closing mark inside a JSON string, such as in a file being written, does not end the
        block.
        """
        closing = self._closing or ""
        marks = re.compile(rf'\\[\s\S]|"|{re.escape(closing)}')
        safe = max(0, len(self._held) - len(closing) + 1)  # the rest may be the start of a mark
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
    """Return how many characters at the end may start a block."""
    max_length = max(map(len, _BLOCKS)) - 1
    lengths = range(min(max_length, len(text)), 0, -1)
    return next((n for n in lengths if any(b.startswith(text[-n:]) for b in _BLOCKS)), 0)


def _with_calls(reply: ModelResponse, request: ModelRequest) -> ModelResponse:
    """Return the response with its blocks as calls, or without them if calls are not allowed."""
    history = repr(request.messages).encode("utf-8", "replace")
    digest = hashlib.blake2s(history, digest_size=8).hexdigest()
    parts: list[Part] = []
    made: list[ToolCall] = []
    for part in reply.parts:
        if not isinstance(part, Text):
            parts.append(part)
            continue
        found = ToolCallParser()
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
        case {"name": str(known), **rest} | {"tool": str(known), **rest} if known.strip():
            name, arguments = known, _given(rest)
    if isinstance(arguments, str):  # encoded twice
        arguments, unread = parse_arguments(arguments)
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
    """Return the request with tools, calls and results written as text."""
    names = {call.call_id: call.name for m in request.messages for call in m.calls}
    told = (
        Message(m.role, tuple(told for part in m.parts for told in _told(part, names)))
        for m in request.messages
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


def _told(part: Part, names: Mapping[str, str]) -> tuple[Part, ...]:
    match part:
        case ToolCall(_, name, arguments, malformed):
            call = encode_json({"name": name, "arguments": arguments}).decode()
            return (Text(f"\n<tool_call>\n{malformed or call}\n</tool_call>"),)
        case ToolResult(call_id, text, failed, images):
            how = ' failed="true"' if failed else ""
            name = names.get(call_id, "tool").replace('"', "")
            inner = text.replace(
                "</tool_result", "<\\/tool_result"
            )  # the block's end is written here
            result = Text(f'<tool_result name="{name}"{how}>\n{inner}\n</tool_result>\n')
            return (result, *images)
        case _:
            return (part,)
