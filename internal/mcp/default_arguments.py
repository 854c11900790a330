"""Arguments that a schema requires although it has a default for them: they may be left out."""

from collections.abc import Mapping
from typing import Any

_MAX_DEPTH = 10


def without_needless(schema: Mapping[str, Any], depth: int = _MAX_DEPTH) -> dict[str, Any]:
    """Return the schema of an object in which properties with a default are not required."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or depth == 0:
        return dict(schema)
    inner = {
        name: without_needless(each, depth - 1) if isinstance(each, dict) else each
        for name, each in properties.items()
    }
    changed = {**schema, "properties": inner}
    if isinstance(required, list):
        changed["required"] = [name for name in required if not _has_default(properties, name)]
        if not changed["required"]:
            del changed["required"]
    return changed


def with_defaults(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], depth: int = _MAX_DEPTH
) -> dict[str, Any]:
    """Return the arguments, with defaults for the required ones that are missing."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or depth == 0:
        return dict(arguments)
    names = required if isinstance(required, list) else []
    filled = {
        name: properties[name]["default"]
        for name in names
        if name not in arguments and _has_default(properties, name)
    }
    given = {
        name: with_defaults(each, value, depth - 1)
        if isinstance(value, dict) and isinstance(each := properties.get(name), dict)
        else value
        for name, value in arguments.items()
    }
    return {**given, **filled}


def _has_default(properties: Mapping[str, Any], name: object) -> bool:
    schema = properties.get(name) if isinstance(name, str) else None
    return isinstance(schema, dict) and "default" in schema
