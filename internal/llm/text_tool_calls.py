"""Tool calls as text, for models without native tool calling."""

import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from msgspec.structs import replace

from internal.agent.domain.messages import Message, Part, Text, ToolCall, ToolResult
from internal.agent.ports.llm import (
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    ReplyRevised,
    TextDelta,
)
from internal.llm.lenient_json import encode_json
from internal.llm.retry import ProviderClient
from internal.llm.written_calls import WrittenCalls

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
        found = WrittenCalls(request.tools, lenient=True)
        async with aclosing(self._client.stream(_in_words(request))) as pieces:
            async for piece in pieces:
                match piece:
                    case TextDelta(text, n, False):
                        if shown := found.feed(text):
                            yield TextDelta(shown, n)
                    case ReplyRevised(reasoning, answer):
                        found = WrittenCalls(request.tools, lenient=True)
                        yield ReplyRevised(reasoning, found.feed(answer))
                    case ModelResponse(stop=stop):
                        if shown := found.end(is_cut=stop == "length"):
                            yield TextDelta(shown)
                        yield _with_calls(piece, request)
                    case _:
                        yield piece


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
        found = WrittenCalls(request.tools, lenient=True)
        words = found.feed(part.text) + found.end(is_cut=reply.stop == "length")
        if words.strip():
            parts.append(Text(words))
        made += found.calls
    if request.tool_choice == "none":
        made = []
    calls = (replace(call, call_id=f"text_{digest}_{n}") for n, call in enumerate(made, 1))
    stop = "tools" if made and reply.stop == "end" else reply.stop
    return replace(reply, parts=(*parts, *calls), stop=stop)


def _in_words(request: ModelRequest) -> ModelRequest:
    """Return the request with tools, calls and results written as text."""
    names = {call.call_id: call.name for m in request.messages for call in m.calls}
    told = (
        Message(m.role, tuple(told for part in m.parts for told in _told(part, names)), m.origin)
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
