"""Corrects answers of servers that do not quite follow the protocol.

Usable parts are kept: null is the same as absent, and an invalid tool or part does not affect the
others. All functions work on JSON values; nothing depends on the SDK.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]

PROBLEM = "larkspur/problem"
"""The key in `_meta` of a listed tool that says why it cannot be used, the end of a sentence."""

TASK = "larkspur/task"
"""The key in `_meta` of a result that holds the task which a call has become."""

_MAX_DEPTH = 40
# Their content is the server's own, or a schema, where null is a value.
_FREE = frozenset({"structuredContent", "inputSchema", "outputSchema", "_meta", "default", "const"})
_VALUES = frozenset({"default", "const", "enum", "example", "examples"})
_TASK_SUPPORT = frozenset({"forbidden", "optional", "required"})
_TEXTS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}
"""The fields of each type of a part that must be texts."""


def corrected_result(method: str, result: Json) -> Json:
    """Return the result of a request in the form that the protocol asks for."""
    plain: Json = without_nulls(result)
    if not isinstance(plain.get("_meta", {}), dict):
        del plain["_meta"]
    correct = _CORRECTIONS.get(method)
    return correct(plain) if correct else plain


def without_nulls(value: Any, depth: int = _MAX_DEPTH) -> Any:
    """Return a JSON value without the members that are null, except in free content and schemas."""
    if depth == 0:
        return value
    match value:
        case dict():
            return {
                key: each if key in _FREE else without_nulls(each, depth - 1)
                for key, each in value.items()
                if each is not None
            }
        case list():
            return [without_nulls(each, depth - 1) for each in value]
        case _:
            return value


def _corrected_start(result: Json) -> Json:
    """Return the answer to `initialize`: a server without a version or capabilities is fine."""
    given = result.get("serverInfo")
    known = given if isinstance(given, dict) else {}
    info = {key: str(known.get(key, "")) for key in ("name", "version")}
    capabilities = result.get("capabilities")
    if not isinstance(capabilities, dict):
        capabilities = {}
    return {**result, "serverInfo": info, "capabilities": capabilities}


def _corrected_list(result: Json) -> Json:
    """Return a list of tools; unusable tools have the reason in `_meta`."""
    given = result.get("tools")
    tools = [_corrected_tool(each) for each in given] if isinstance(given, list) else []
    cursor = result.get("nextCursor")
    rest = {key: value for key, value in result.items() if key != "nextCursor"}
    # An empty cursor ends the list, as an absent one does.
    more = {} if cursor is None or cursor == "" else {"nextCursor": str(cursor)}
    return {**rest, "tools": tools, **more}


def _corrected_tool(given: Any) -> Json:
    """Return the supported fields of a tool.

    The schema of its results is left out: the SDK would check results against it on the event loop,
    with regular expressions from the server.
    """
    tool = given if isinstance(given, dict) else {}
    name, description = tool.get("name"), tool.get("description")
    schema = _corrected_schema(tool.get("inputSchema"))
    kept: Json = {
        "name": name if isinstance(name, str) else "",
        "description": description if isinstance(description, str) else "",
    }
    annotations = tool.get("annotations")
    title = tool.get("title") or (annotations if isinstance(annotations, dict) else {}).get("title")
    if title and isinstance(title, str):
        kept["title"] = title
    execution = tool.get("execution")
    if isinstance(execution, dict) and execution.get("taskSupport") in _TASK_SUPPORT:
        kept["execution"] = {"taskSupport": execution["taskSupport"]}
    if problem := _schema_problem(schema):
        return {**kept, "inputSchema": {"type": "object"}, "_meta": {PROBLEM: problem}}
    return {**kept, "inputSchema": schema}


def _corrected_schema(given: Any) -> Any:
    """Return the schema of arguments without null keywords; arguments are always an object."""
    schema = _schema_without_nulls(given)
    if isinstance(schema, dict) and "object" in _listed(schema.get("type", "object")):
        schema = {**schema, "type": "object"}
    return schema


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _schema_without_nulls(value: Any, depth: int = _MAX_DEPTH) -> Any:
    if depth == 0:
        return value
    match value:
        case dict():
            return {
                key: each if key in _VALUES else _schema_without_nulls(each, depth - 1)
                for key, each in value.items()
                if each is not None or key in _VALUES
            }
        case list():
            return [_schema_without_nulls(each, depth - 1) for each in value]
        case _:
            return value


def _schema_problem(schema: Any) -> str:
    """Return why a schema of arguments cannot be used, "" if it can."""
    match schema:
        case None:
            return "has no schema of its arguments"
        case {"type": "object"}:
            pass
        case _:
            return "has a schema that is not of an object"
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not all(
        isinstance(each, dict | bool) for each in properties.values()
    ):
        return "has arguments that are not described by schemas"
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        return "has a list of required arguments that is not one of names"
    return "has a $schema that is no address" if not _is_text(schema.get("$schema", "")) else ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _corrected_call(result: Json) -> Json:
    """Return the result of a call with a list of parts; results of other forms become a part."""
    if "inputRequests" in result or "requestState" in result:
        return result
    if isinstance(task := result.get("task"), dict) and "taskId" in task:
        return {"content": [], "_meta": {TASK: task}}
    content = result.get("content")
    structured = result.get("structuredContent")
    if content is None and structured is None:
        own = {key: each for key, each in result.items() if key not in {"isError", "_meta"}}
        content = [_as_text(own)] if own.keys() - {"resultType"} else []
    parts = [] if content is None else [_corrected_part(each) for each in _listed(content)]
    corrected = {**result, "content": parts, "isError": _is_true(result.get("isError"))}
    if structured is not None and not isinstance(structured, dict):
        # As SDKs of servers do it; the protocol only knew objects for long.
        corrected["structuredContent"] = {"result": structured}
    return corrected


def _is_true(value: Any) -> bool:
    return value.lower() == "true" if isinstance(value, str) else bool(value)


def _corrected_part(part: Any) -> Json:
    """Return a part of a result; a part of unknown type is replaced by its name and its text."""
    if not isinstance(part, dict):
        return _as_text(part)
    kind = part.get("type")
    if kind == "resource" and isinstance(part.get("resource"), dict):
        return {"type": kind, "resource": _corrected_resource(part["resource"])}
    if isinstance(kind, str) and kind in _TEXTS:
        return {"type": kind} | {name: _text_of(part.get(name, "")) for name in _TEXTS[kind]}
    if kind is None and "text" in part:
        return _as_text(part["text"])
    named = f"[A part of an unknown type, {_text_of(kind or 'none')[:40]}]"
    text = part.get("text")
    return _as_text(f"{named}\n{text}" if isinstance(text, str) else named)


def _corrected_resource(resource: Json) -> Json:
    kept = {name: _text_of(resource.get(name, "")) for name in ("uri", "mimeType")}
    if "blob" in resource and not resource.get("text"):
        return {**kept, "blob": _text_of(resource["blob"])}
    return {**kept, "text": _text_of(resource.get("text", ""))}


def _as_text(value: Any) -> Json:
    return {"type": "text", "text": _text_of(value)}


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_CORRECTIONS: Mapping[str, Callable[[Json], Json]] = {
    "initialize": _corrected_start,
    "tools/list": _corrected_list,
    "tools/call": _corrected_call,
    "tasks/result": _corrected_call,
}
