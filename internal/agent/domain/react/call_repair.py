"""Repair of tool calls whose meaning is clear, before anything is decided about them.

Models and the servers in front of them write calls in forms that their schema does not have: null
for an argument that may be left out, lists as JSON text, names with a namespace. An unambiguous
call is repaired; an ambiguous one is left unchanged, and its error names the field. Gates,
permissions, hooks and people see the repaired call only.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from internal.agent.domain.messages import Part, ToolCall
from internal.agent.domain.permissions.targets import (
    MCP_PREFIX,
    OutsidePathTarget,
    PathTarget,
    mcp_server,
)
from internal.agent.domain.react.deferred_tools import unwrap_call
from internal.agent.domain.react.gates import UseToolCall
from internal.agent.domain.tools import ToolSpec

RepairKind = Literal[
    "tool_name",  # another case, `-` for `_`, a namespace
    "parallel",  # `multi_tool_use.parallel` became its calls
    "null",  # for an argument that may be left out
    "json_text",  # a list, an object, a number or a boolean as text
    "encoded_twice",  # the arguments are JSON text of JSON text
    "rest_after_object",  # markup of the model's own format after the arguments
    "repeated_object",  # an empty or equal object before the arguments
    "joined_calls",  # two calls in one entry
    "object_as_text",  # an object as the text of a file
    "file_url",  # `file://` before a path
]
MAX_JOINED_CALLS = 64
"""Calls that one entry may hold."""
MAX_DEPTH = 8
"""Depth to which lists and objects in arguments are repaired."""

_PARALLEL = re.compile(r"(multi_tool_use[._])?parallel", re.IGNORECASE)
_NUMBERED = re.compile(r":\d+$")  # Kimi: functions.read_file:0
_SEPARATORS = re.compile(r"[_-]")
_INTEGER = re.compile(r"[+-]?\d{1,30}(\.0+)?")
_REST = re.compile(
    r"(?:\s|</?[A-Za-z][\w:.-]{0,40}>|</?[|｜][^<>\n]{1,40}[|｜]>"  # noqa: RUF001 - DeepSeek's bars
    r"|\[/?[A-Z_]{2,20}\]|`{3}|[\]})>;])*"
)
_FILE_TEXTS = {"content", "contents", "file_content", "file_text"}
_decoder = json.JSONDecoder(strict=False)
_Types = frozenset[str] | None


class RepairedParts(NamedTuple):
    """The parts of a reply with its repaired calls, and the kinds of repairs."""

    parts: tuple[Part, ...]
    kinds: tuple[RepairKind, ...]


def repair_calls(
    parts: Sequence[Part],
    tools: Sequence[ToolSpec],
    deferred: Sequence[ToolSpec] = (),
    *,
    is_cut: bool = False,
) -> RepairedParts:
    """Return the parts of a reply with repaired calls.

    The last call of a reply that `is_cut` at the output limit keeps arguments that are not whole.
    A call of `use_tool` becomes the call that it stands for.
    """
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if not calls:
        return RepairedParts(tuple(parts), ())
    repair = _Repair(tools, deferred)
    repaired: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall) and not (is_cut and part is calls[-1] and part.malformed):
            repaired += repair.call(part)
        else:
            repaired.append(part)
    return RepairedParts(tuple(repaired), tuple(repair.kinds))


def resolve_tool_name(name: str, names: Collection[str]) -> str | None:
    """Return the tool that a name stands for, None if there is none or more than one.

    The name of a tool may differ in case and in `-` and `_`, and may have a prefix that ends with
    `.` or `:`. A tool of an MCP server is also known as `server.tool`.
    """
    if name in names:
        return name
    given = _NUMBERED.sub("", name.partition("<|")[0].strip())  # gpt-oss: read_file<|channel|>json
    pieces = re.split(r"[.:]", given)
    for start in range(len(pieces)):
        if wanted := _plain("".join(pieces[start:])):
            found = [each for each in names if wanted in _plain_names(each)]
            if found:
                return found[0] if len(found) == 1 else None
    return None


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


def _plain_names(tool: str) -> tuple[str, ...]:
    own = _plain(tool)
    return (own, _plain(tool.removeprefix(MCP_PREFIX))) if mcp_server(tool) else (own,)


class _Repair:
    """Repairs the calls of one reply."""

    def __init__(self, tools: Sequence[ToolSpec], deferred: Sequence[ToolSpec]) -> None:
        self.kinds: list[RepairKind] = []
        self._deferred = deferred
        self._specs = {tool.name: tool for tool in (*tools, *deferred)}

    def call(self, call: ToolCall) -> list[ToolCall]:
        """Return the calls that a call stands for: almost always itself."""
        return [
            self._unwrapped(self._with_arguments(self._named(each)))
            for one in self._readable(call)
            for each in self._separate(one)
        ]

    def _readable(self, call: ToolCall) -> list[ToolCall]:
        """Return a call with malformed arguments as calls with the objects in them."""
        if call.malformed is None:
            return [call]
        read = _read_objects(call.malformed)
        if read is None:
            return [call]
        objects, kinds = read
        self.kinds += kinds
        first, *others = (
            msgspec.structs.replace(call, arguments=each, malformed=None) for each in objects
        )
        return [first, *(msgspec.structs.replace(each, call_id="", opaque=None) for each in others)]

    def _separate(self, call: ToolCall) -> list[ToolCall]:
        """Return the calls of `multi_tool_use.parallel`, which some models call by themselves."""
        if call.name in self._specs or not _PARALLEL.fullmatch(call.name):
            return [call]
        uses = call.arguments.get("tool_uses")
        if isinstance(uses, str):
            uses = _decode(uses)
        if not isinstance(uses, list) or not 0 < len(uses) <= MAX_JOINED_CALLS:
            return [call]
        calls = [used for use in uses if (used := _used_call(use)) is not None]
        if len(calls) < len(uses):
            return [call]
        calls[0] = msgspec.structs.replace(calls[0], call_id=call.call_id, opaque=call.opaque)
        self.kinds.append("parallel")
        return calls

    def _named(self, call: ToolCall) -> ToolCall:
        name = resolve_tool_name(call.name, self._specs)
        if name is None or name == call.name:
            return call
        self.kinds.append("tool_name")
        return msgspec.structs.replace(call, name=name)

    def _with_arguments(self, call: ToolCall) -> ToolCall:
        spec = self._specs.get(call.name)
        if spec is None or call.malformed is not None or not call.arguments:
            return call
        kinds = len(self.kinds)
        arguments = _ArgumentRepair(spec, self.kinds).repair(call.arguments, spec.parameters)
        if len(self.kinds) == kinds:
            return call
        return msgspec.structs.replace(call, arguments=arguments)

    def _unwrapped(self, call: ToolCall) -> ToolCall:
        """Return the call that a call of `use_tool` stands for, repaired in the same way."""
        if call.name != UseToolCall.tool or not self._deferred:
            return call
        name = call.arguments.get("name")
        names = {tool.name for tool in self._deferred}
        found = resolve_tool_name(name, names) if isinstance(name, str) else None
        if found is not None and found != name:
            self.kinds.append("tool_name")
            call = msgspec.structs.replace(call, arguments={**call.arguments, "name": found})
        inner = unwrap_call(call, self._deferred)
        return call if inner is call else self._with_arguments(inner)


class _ArgumentRepair:
    """Repairs the arguments of one call by the schema of its tool."""

    def __init__(self, spec: ToolSpec, kinds: list[RepairKind]) -> None:
        self._root = spec.parameters
        self._kinds = kinds
        self._paths = {
            target.argument
            for target in spec.targets
            if isinstance(target, PathTarget | OutsidePathTarget)
        }
        self._is_foreign = bool(mcp_server(spec.name))

    def repair(
        self, given: Mapping[str, Any], schema: Mapping[str, Any], depth: int = 0
    ) -> dict[str, Any]:
        """Return an object with repaired values; optional values that are null are left out."""
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, dict):
            return dict(given)
        needed = required if isinstance(required, list) else []
        repaired: dict[str, Any] = {}
        for name, value in given.items():
            known = self._resolved(properties.get(name))
            if known is None:
                repaired[name] = value
            elif self._is_absent(value, known) and name not in needed:
                self._kinds.append("null")
            else:
                repaired[name] = self._value(value, known, name, depth)
        return repaired

    def _is_absent(self, value: object, schema: Mapping[str, Any]) -> bool:
        if value is not None and value not in ("null", "None"):
            return False
        types = self._types(schema)
        if types is None or "null" in types:
            return False
        return value is None or "string" not in types

    def _value(self, value: Any, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        types = self._types(schema)
        if isinstance(value, str):
            if types is not None and "string" not in types:
                value = self._read(value, types)
            elif self._is_path(name):
                value = self._local_path(value)
        elif types == frozenset({"string"}) and name in _FILE_TEXTS and _is_document(value):
            self._kinds.append("object_as_text")
            return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        return self._nested(value, schema, name, depth + 1) if depth < MAX_DEPTH else value

    def _nested(self, value: Any, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        fitting = self._alternative(value, schema)
        if isinstance(value, dict):
            return self.repair(value, fitting, depth)
        items = self._resolved(fitting.get("items"))
        if isinstance(value, list) and items is not None:
            return [self._value(item, items, name, depth) for item in value]
        return value

    def _alternative(self, value: object, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the only alternative of a schema that takes a value of this type, or itself."""
        options = schema.get("anyOf") or schema.get("oneOf")
        if not isinstance(options, list) or not isinstance(value, dict | list):
            return schema
        kind = "object" if isinstance(value, dict) else "array"
        resolved = filter(None, map(self._resolved, options))
        fitting = [each for each in resolved if kind in (self._types(each) or ())]
        return fitting[0] if len(fitting) == 1 else schema

    def _read(self, text: str, types: frozenset[str]) -> Any:
        """Return the value that a text holds, if it is one that the schema wants."""
        stripped = text.strip()
        value: Any = text
        if types & {"array", "object"} and stripped[:1] in {"[", "{"}:
            decoded = _decode(stripped)
            if ("array" if isinstance(decoded, list) else "object") in types:
                value = decoded
        elif "boolean" in types and stripped.lower() in {"true", "false"}:
            value = stripped.lower() == "true"
        elif types & {"integer", "number"} and _INTEGER.fullmatch(stripped):
            value = int(stripped.partition(".")[0])
        elif "number" in types:
            number = _decode(stripped)
            value = number if isinstance(number, float) else text
        if value is None or value is text:
            return text
        self._kinds.append("json_text")
        return value

    def _is_path(self, name: str) -> bool:
        return "path" in name.lower() if self._is_foreign else name in self._paths

    def _local_path(self, text: str) -> str:
        """Return the path of a `file` URL of this machine; any other text unchanged."""
        if text[:7].lower() != "file://":
            return text
        try:
            parts = urlsplit(text)
        except ValueError:
            return text
        path = unquote(parts.path)
        if parts.netloc not in {"", "localhost"} or parts.query or parts.fragment or not path:
            return text
        self._kinds.append("file_url")
        return path

    def _resolved(self, schema: object) -> Mapping[str, Any] | None:
        """Return a schema with its reference to a definition of the tool followed."""
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, dict):
                return None
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            found: Any = self._root
            for piece in reference.removeprefix("#/").split("/"):
                found = found.get(piece) if isinstance(found, dict) else None
            schema = found
        return None

    def _types(self, schema: Mapping[str, Any], depth: int = 0) -> _Types:
        """Return the JSON types that a schema takes, None if they are unspecified."""
        match schema:
            case {"type": str(kind)}:
                return frozenset({kind})
            case {"type": list(kinds)}:
                return frozenset(map(str, kinds))
            case {"enum": list(values)}:
                return frozenset(map(_type_of, values))
            case {"const": value}:
                return frozenset({_type_of(value)})
            case {"anyOf": list(options)} | {"oneOf": list(options)} if depth < MAX_DEPTH:
                return self._types_of_any(options, depth + 1)
            case _:
                return None

    def _types_of_any(self, options: Iterable[object], depth: int) -> _Types:
        found: set[str] = set()
        for option in options:
            known = self._resolved(option)
            types = None if known is None else self._types(known, depth)
            if types is None:
                return None
            found |= types
        return frozenset(found)


def _read_objects(raw: str) -> tuple[list[dict[str, Any]], list[RepairKind]] | None:
    """Return the objects that malformed arguments consist of, and the kinds of repairs.

    None if there is anything besides whole objects, followed by markup.
    """
    values, rest = _decode_sequence(raw)
    if not values or not _REST.fullmatch(rest):
        return None
    kinds: list[RepairKind] = ["rest_after_object"] if rest.strip() else []
    if any(isinstance(value, str) for value in values):
        kinds.append("encoded_twice")
    decoded = [_decoded_again(value) for value in values]
    objects: list[dict[str, Any]] = [each for each in decoded if isinstance(each, dict)]
    if len(objects) < len(values):
        return None
    different = [each for n, each in enumerate(objects) if each not in objects[:n]]
    meant = [each for each in different if each] or different[:1]
    if len(meant) < len(objects):
        kinds.append("repeated_object")
    if len(meant) > 1:
        kinds.append("joined_calls")
    return meant, kinds


def _decoded_again(value: object) -> object:
    """Return the value that a JSON text holds; any other value unchanged."""
    return _decode(value) if isinstance(value, str) else value


def _used_call(use: object) -> ToolCall | None:
    """Return the call of an entry of `multi_tool_use.parallel`."""
    match use:
        case {"recipient_name": str(name), **given}:
            arguments = given.get("parameters") or {}
            if isinstance(arguments, str):
                arguments = _decode(arguments)
            return ToolCall("", name, arguments) if isinstance(arguments, dict) else None
        case _:
            return None


def _decode_sequence(raw: str) -> tuple[list[Any], str]:
    """Return the JSON values at the start of a text, and the rest of it."""
    values: list[Any] = []
    raw = raw.strip()
    while raw and len(values) < MAX_JOINED_CALLS:
        try:
            value, end = _decoder.raw_decode(raw)
        except (ValueError, RecursionError):
            break
        values.append(value)
        raw = raw[end:].lstrip()
    return values, raw


def _decode(text: str) -> Any:
    """Return the value of a JSON text, None if it is not one."""
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError):
        return None


def _is_document(value: object) -> bool:
    """Return True for a value that only a JSON file has: a list of texts may also be its lines."""
    if isinstance(value, list):
        return bool(value) and not any(isinstance(item, str) for item in value)
    return isinstance(value, dict)


_TYPE_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}


def _type_of(value: object) -> str:
    return _TYPE_NAMES.get(type(value), "object")
