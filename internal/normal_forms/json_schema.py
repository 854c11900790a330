"""JSON Schemas of types, with the same text on every Python version."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import msgspec


def type_schema(
    kind: Any, *, schema_hook: Callable[[type], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the JSON Schema of a type; see `msgspec.json.schema`."""
    schema = msgspec.json.schema(kind, schema_hook=schema_hook)
    _clean_descriptions(schema)
    return schema


def schema_components(
    kinds: Iterable[Any], *, ref_template: str
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Return the JSON Schemas of types, and of the types that they refer to by name."""
    schemas, components = msgspec.json.schema_components(kinds, ref_template=ref_template)
    _clean_descriptions([*schemas, components])
    return schemas, components


def _clean_descriptions(schema: Any) -> None:
    """Remove the indentation of docstrings; Python 3.13 began to do so when it compiles them."""
    if isinstance(schema, list | tuple):
        for each in schema:
            _clean_descriptions(each)
    elif isinstance(schema, dict):
        for name, value in schema.items():
            if name == "description" and isinstance(value, str):
                schema[name] = inspect.cleandoc(value)
            elif name not in {"const", "default", "enum", "examples"}:
                _clean_descriptions(value)
