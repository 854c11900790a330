"""Deferred tools: tools of MCP servers whose schemas would fill too much of every request.

The model finds them with `find_tools` and calls them with `use_tool`. A call of `use_tool` becomes
a call of the tool itself when it is added to the Turn, so that everything but the request sees the
real name and the real arguments. In the messages of a request it is a call of `use_tool` again,
because the request does not list the tool.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from internal.agent.domain.messages import Message, ToolCall, ToolResult
from internal.agent.domain.permissions.targets import mcp_server
from internal.agent.domain.react.context_window import tools_tokens, weigh
from internal.agent.domain.react.gates import FindToolsCall, UseToolCall
from internal.agent.domain.react.request_messages import WeighedMessage
from internal.agent.domain.react.tool_search import search_tools
from internal.agent.domain.text import truncate
from internal.agent.domain.tools import ToolSpec

MAX_TOOLS = 128
"""Tools of a request, as OpenAI limits them."""
MAX_FOUND_CHARS = 30_000
"""Characters of a result of `find_tools`."""
MAX_LIST_CHARS = 2_500
"""Characters of the lines about servers in the prompt, about 830 tokens."""
MAX_LISTED_SERVERS = 40
MAX_SCHEMA_CHARS = 4_000
"""Characters of the schema in the error of a call with wrong arguments."""

_MAX_NAME_CHARS = 100
_MIN_LINE_CHARS = 60
_encode = msgspec.json.Encoder().encode


def split_deferred(
    tools: Iterable[ToolSpec], max_tokens: float, max_tools: int = MAX_TOOLS
) -> tuple[tuple[ToolSpec, ...], tuple[ToolSpec, ...]]:
    """Return the tools of the requests and the deferred ones.

    The tools of MCP servers are deferred if their schemas together take more than `max_tokens`, or
    if there are more than `max_tools` in all: providers refuse requests with more.
    """
    known = tuple(tools)
    of_servers = tuple(tool for tool in known if mcp_server(tool.name))
    sizes = accumulate(tools_tokens([tool]) for tool in of_servers)  # megabytes are not counted
    if len(known) <= max_tools and not any(size > max_tokens for size in sizes):
        return known, ()
    return tuple(tool for tool in known if not mcp_server(tool.name)), of_servers


def list_servers(deferred: Iterable[ToolSpec], max_chars: int = MAX_LIST_CHARS) -> str:
    """Return a line for each server: its name, the number of its tools, and names of tools."""
    servers: dict[str, list[str]] = {}
    for tool in deferred:
        server = mcp_server(tool.name)
        servers.setdefault(server, []).append(_own_name(tool.name))
    share = max(max_chars // min(len(servers) or 1, MAX_LISTED_SERVERS), _MIN_LINE_CHARS)
    lines = [_line(*item, share) for item in list(servers.items())[:MAX_LISTED_SERVERS]]
    if (more := len(servers) - MAX_LISTED_SERVERS) > 0:
        lines.append(f"- {more} more servers")
    return "\n".join(lines)


def find_tools(deferred: Sequence[ToolSpec], call: FindToolsCall) -> str:
    """Return the results of a `find_tools` call: a tool a line as JSON, the best first."""
    if not call.query.strip():
        return f"The servers and their tools:\n{list_servers(deferred, MAX_FOUND_CHARS)}"
    found = search_tools(deferred, call.query)
    if not found:
        return f"No tool has these words. The servers and their tools:\n{list_servers(deferred)}"
    lines: list[str] = []
    room = MAX_FOUND_CHARS
    for tool in found[: call.limit]:
        line = _encode(
            {"name": tool.name, "description": tool.description, "arguments": tool.parameters}
        ).decode()
        room -= len(line)
        if room < 0 and lines:
            break
        lines.append(truncate(line, MAX_FOUND_CHARS))
    return "\n".join([f"{len(lines)} of {len(found)} tools that match:", *lines])


def found_tools(deferred: Sequence[ToolSpec], messages: Iterable[Message]) -> tuple[ToolSpec, ...]:
    """Return the deferred tools that the model knows: called in messages, or found there."""
    names: set[str] = set()
    searches: set[str] = set()
    results: list[str] = []
    for message in messages if deferred else ():
        for part in message.parts:
            if isinstance(part, ToolCall):
                names.add(part.name)
                if part.name == FindToolsCall.tool:
                    searches.add(part.call_id)
            elif isinstance(part, ToolResult) and part.call_id in searches:
                results.append(part.text)
    told = "\n".join(results)
    return tuple(tool for tool in deferred if tool.name in names or f'"{tool.name}"' in told)


def unwrap_call(call: ToolCall, deferred: Iterable[ToolSpec]) -> ToolCall:
    """Return the call that a call of `use_tool` stands for; any other call unchanged.

    A call of `use_tool` that is not valid, or names no deferred tool, is left unchanged. Some
    models send the arguments as text.
    """
    if call.name != UseToolCall.tool:
        return call
    arguments = call.arguments
    try:
        if isinstance(text := arguments.get("arguments"), str):
            arguments = {**arguments, "arguments": msgspec.json.decode(text)}
        used = msgspec.convert(arguments, UseToolCall)
    except (msgspec.MsgspecError, RecursionError):
        return call
    if all(used.name != tool.name for tool in deferred):
        return call
    return msgspec.structs.replace(call, name=used.name, arguments=used.arguments)


def wrap_calls(
    weighed: Sequence[WeighedMessage], deferred: Collection[ToolSpec]
) -> list[WeighedMessage]:
    """Return the messages for a request, in which `use_tool` replaces calls of deferred tools."""
    names = {tool.name for tool in deferred}
    return [_wrapped(each, names) for each in weighed] if names else [*weighed]


def unusable_name(
    call: UseToolCall, tools: Iterable[ToolSpec], deferred: Iterable[ToolSpec]
) -> str:
    """Return why `use_tool` does not call a tool of this name, as sentences for the model."""
    name = truncate(call.name, _MAX_NAME_CHARS)
    if any(call.name == tool.name for tool in tools):
        return f"Not run: {name} is not called with {UseToolCall.tool}. Call it directly."
    names = [tool.name for tool in deferred]
    same_end = [each for each in names if _own_name(each) == name]
    close = same_end or difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"Not run: there is no tool {name!r}.{hint} {FindToolsCall.tool} finds tools."


def argument_problem(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return the problems with the names of the arguments, as sentences for the model, or "".

    The model may not have seen the schema. The server checks the values.
    """
    required, known = spec.parameters.get("required"), spec.parameters.get("properties")
    names = required if isinstance(required, list) else ()
    missing = [name for name in names if isinstance(name, str) and name not in arguments]
    unknown = []
    if isinstance(known, dict) and not _is_open(spec.parameters):
        unknown = [name for name in arguments if name not in known]
    problems = [
        f"{label}: {truncate(', '.join(map(repr, names)), 500)}"
        for label, names in (("missing arguments", missing), ("unknown arguments", unknown))
        if names
    ]
    if not problems:
        return ""
    schema = truncate(spec.schema_text, MAX_SCHEMA_CHARS)
    return f"Not run: {'; '.join(problems)}. The arguments of {spec.name}: {schema}"


def _wrapped(weighed: WeighedMessage, names: Collection[str]) -> WeighedMessage:
    message = weighed.message
    if not weighed.is_exchange or not any(call.name in names for call in message.calls):
        return weighed
    parts = (
        msgspec.structs.replace(
            part, name=UseToolCall.tool, arguments={"name": part.name, "arguments": part.arguments}
        )
        if isinstance(part, ToolCall) and part.name in names
        else part
        for part in message.parts
    )
    return weigh(Message(message.role, tuple(parts), message.origin))


def _own_name(name: str) -> str:
    """Return the name of a tool without the name of its server."""
    return name.split("__", 2)[-1]


def _line(server: str, names: Sequence[str], max_chars: int) -> str:
    """Return the line of a server with as many names as fit."""
    head = f"- {server} ({len(names)} {'tool' if len(names) == 1 else 'tools'})"
    sizes = accumulate((len(name) + len(", ") for name in names), initial=len(f"{head}, …"))
    fitting = sum(size <= max_chars for size in sizes) - 1
    shown = [*names[: max(fitting, 0)], *(["…"] if fitting < len(names) else [])]
    return f"{head}: {', '.join(shown)}"


def _is_open(schema: Mapping[str, Any]) -> bool:
    """Return True if a schema lets arguments have names that `properties` lacks."""
    others = ("additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref")
    return any(schema.get(key) for key in others)
