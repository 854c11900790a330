"""The tools that a server lists: within bounds, without hidden characters, with unique names."""

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from internal.agent.domain.text import (
    MAX_NESTING,
    escape_hidden,
    find_invisible,
    replace_surrogates_in,
    truncate_line,
)

PREFIX = "mcp__"
MAX_TOOLS = 500
MAX_SCHEMA_BYTES = 65_536
MAX_DESCRIPTION_CHARS = 2_000
MAX_TITLE_CHARS = 60
MAX_MANIFEST_BYTES = 4_000_000
"""The descriptions and schemas of all tools of a server together."""
MAX_TOOL_NAME_CHARS = 64
"""The longest name of a tool that all model providers accept."""
MAX_PROBLEMS = 20
MAX_DIFF_LINES = 2_000

_MAX_LISTED_NAME_CHARS = 200
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_HASH_CHARS = 8


class ListedTool(msgspec.Struct, frozen=True):
    """A tool as a server lists it. `schema` is the JSON Schema of its arguments.

    `title` is the name shown to people, "" to show `name`. `problem` is the reason why it cannot be
    used, the end of a sentence; "" if nothing is wrong.
    """

    name: str
    description: str
    schema: dict[str, Any]
    title: str = ""
    problem: str = ""


class ManifestTool(msgspec.Struct, frozen=True):
    """A tool that can be offered: `offered_name` to the model, `name` to the server.

    `sha256` covers the name, the description and the schema as the server lists them. A `title`
    that is another one than the accepted one is not used.
    """

    name: str
    offered_name: str
    description: str
    schema: dict[str, Any]
    sha256: str
    title: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """The tools of a server with the definition of this hash. `problems` are sentences."""

    definition: str
    tools: tuple[ManifestTool, ...] = ()
    problems: tuple[str, ...] = ()


class _Unusable(Exception):
    """A tool cannot be offered. The message ends a sentence."""


def build_manifest(server: str, definition: str, listed: Sequence[ListedTool]) -> Manifest:
    """Return the tools of a server. Those that cannot be offered are problems."""
    tools: dict[str, ManifestTool] = {}
    problems: list[str] = []
    remaining = MAX_MANIFEST_BYTES
    for each in listed[:MAX_TOOLS]:
        shown = truncate_line(escape_hidden(each.name), 80)
        try:
            tool, size = _usable(server, each)
            _check_room(tool, tools.get(tool.offered_name), remaining - size)
        except _Unusable as error:
            problems.append(f"The tool {shown} of {server} is not offered: it {error}.")
            continue
        remaining -= size
        tools[tool.offered_name] = tool
    if len(listed) > MAX_TOOLS:
        problems.insert(0, f"{server} has more than {MAX_TOOLS} tools; the first ones are offered.")
    if (more := len(problems) - MAX_PROBLEMS) > 0:
        problems[MAX_PROBLEMS:] = [f"{more} more tools are not offered."]
    return Manifest(definition, tuple(tools.values()), tuple(problems))


def offered_name(server: str, tool: str) -> str:
    """Return the name of a tool for models and rules: `mcp__server__tool`, at most 64 characters.

    Characters that providers refuse become `_`; a name that is too long ends in a hash.
    """
    start = f"{PREFIX}{server}__"
    room = MAX_TOOL_NAME_CHARS - len(start)
    name = _ODD.sub("_", tool)
    if len(name) > room:
        name = f"{name[: room - _HASH_CHARS - 1]}_{_digest(tool)[:_HASH_CHARS]}"
    return f"{start}{name}"


def server_rule(server: str) -> str:
    """Return the permission rule for all tools of a server."""
    return f"{PREFIX}{server}"


def describe_changes(
    accepted: Iterable[ManifestTool], found: Iterable[ManifestTool]
) -> tuple[str, ...]:
    """Return the lines of a unified diff between two lists of tools, by name. Bounded."""
    before, after = ({tool.name: tool for tool in tools} for tools in (accepted, found))
    lines: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = (_lines(tools.get(name)) for tools in (before, after))
        lines += difflib.unified_diff(old, new, name, name, lineterm="")
        if len(lines) > MAX_DIFF_LINES:
            return (*lines[:MAX_DIFF_LINES], "… more lines are left out …")
    return tuple(lines)


def _usable(server: str, listed: ListedTool) -> tuple[ManifestTool, int]:
    """Return a tool within bounds, and its size in bytes.

    Raises:
        _Unusable: it cannot be offered.
    """
    if not listed.name or len(listed.name) > _MAX_LISTED_NAME_CHARS or find_invisible(listed.name):
        raise _Unusable("has a name that is empty, too long or has hidden characters")
    if listed.problem:
        raise _Unusable(listed.problem)
    try:
        written = json.dumps(listed.schema, sort_keys=True, ensure_ascii=False)
        if len(written.encode("utf-8", "surrogatepass")) > MAX_SCHEMA_BYTES:
            raise _Unusable(f"has a schema of more than {MAX_SCHEMA_BYTES:,} bytes")
        schema = _visible(replace_surrogates_in(listed.schema))
    except (ValueError, RecursionError) as error:
        raise _Unusable(f"has a schema nested more than {MAX_NESTING} deep") from error
    if schema.get("type") != "object":
        raise _Unusable("has a schema that is not of an object")
    description = escape_hidden(listed.description[: 2 * MAX_DESCRIPTION_CHARS])
    if len(description) > MAX_DESCRIPTION_CHARS or len(listed.description) > len(description):
        description = f"{description[: MAX_DESCRIPTION_CHARS - 1]}…"
    tool = ManifestTool(
        name=listed.name,
        offered_name=offered_name(server, listed.name),
        description=description,
        schema=schema,
        sha256=_digest(json.dumps([listed.name, listed.description, written])),
        title=escape_hidden(truncate_line(listed.title.strip(), MAX_TITLE_CHARS)),
    )
    return tool, len(written) + len(description)


def _check_room(tool: ManifestTool, other: ManifestTool | None, remaining: int) -> None:
    """Check that a tool can be offered beside those before it; `other` has the same name.

    Raises:
        _Unusable: it cannot.
    """
    if other is not None:
        raise _Unusable(f"has the same name as {other.name}: {tool.offered_name}")
    if remaining < 0:
        raise _Unusable(f"exceeds the {MAX_MANIFEST_BYTES:,} bytes of all tools together")


def _visible(value: Any) -> Any:
    """Return a JSON value with the hidden characters of its texts escaped.

    Raises:
        _Unusable: the name of an argument has hidden characters.
    """
    match value:
        case str():
            return escape_hidden(value)
        case dict():
            if any(find_invisible(key) for key in value):
                raise _Unusable("has an argument whose name has hidden characters")
            return {key: _visible(each) for key, each in value.items()}
        case list():
            return [_visible(each) for each in value]
        case _:
            return value


def _lines(tool: ManifestTool | None) -> list[str]:
    if tool is None:
        return []
    schema = json.dumps(tool.schema, indent=2, ensure_ascii=False)
    # the hash shows a change in the part that is cut off
    return [*tool.description.splitlines(), *schema.splitlines(), f"sha256 {tool.sha256}"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
