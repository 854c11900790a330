"""The part of JSON Schema that all providers accept for the arguments of a tool.

What a schema says beyond it helps the model, but a server that does not know one keyword refuses
the whole request. Arguments are checked with the schema as the tool has it.

Refused somewhere: `$schema` and unknown keywords (Gemini), a list without `items` (OpenAI, Azure),
anything beside `anyOf` (Kimi, Gemini), alternatives at the top (OpenAI, Anthropic), `type` as a
list, `const`, `oneOf`, exclusive bounds and values that are no text (Gemini), empty schemas in
`additionalProperties` (Kimi).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from internal.agent.domain.tools import ToolSpec

_Schema = dict[str, Any]

_KEPT = frozenset(
    {
        *("type", "description", "title", "default", "enum", "pattern", "format"),
        *("properties", "required", "items", "anyOf", "$ref", "$defs", "additionalProperties"),
        *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
    }
)
_FORMATS = frozenset({"date-time"})
_NOTES = ("description", "title", "default", "$defs")
"""Keywords that may stand beside a choice or a reference: they restrict nothing."""
_ANYTHING: _Schema = {
    "anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "object")]
}
_MAX_DEPTH = 40
_CACHE = "common_schema"


def with_common_schemas(tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return the tools with schemas that every provider accepts; computed once for each tool."""
    common = tuple(map(_cached, tools))
    is_same = all(new is old for new, old in zip(common, tools, strict=True))
    return tools if is_same else common


def common_schema(parameters: Mapping[str, Any]) -> _Schema:
    """Return the schema of a tool's arguments without the parts that some providers refuse.

    The top is an object with `properties` and without alternatives.
    """
    top = {name: value for name, value in parameters.items() if name not in _CHOICES}
    schema = _simplified({**top, "type": "object"}, 0)
    properties = schema.setdefault("properties", {})
    if isinstance(required := schema.pop("required", None), list):
        known = [name for name in required if isinstance(name, str) and name in properties]
        schema |= {"required": known} if known else {}
    return schema


_CHOICES = ("anyOf", "oneOf", "allOf")


def _cached(tool: ToolSpec) -> ToolSpec:
    known: ToolSpec | None = tool.__dict__.get(_CACHE)
    if known is None:
        schema = common_schema(tool.parameters)
        known = tool if schema == tool.parameters else replace(tool, parameters=schema)
        tool.__dict__[_CACHE] = known
    return known


def _simplified(schema: Any, depth: int) -> _Schema:
    """Return a schema in the common subset; a non-object becomes a schema without limits."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return {}
    schema = _with_known_keywords(schema)
    kept = {name: value for name, value in schema.items() if name in _KEPT}
    for name in ("properties", "$defs"):
        if isinstance(named := kept.pop(name, None), Mapping):
            kept[name] = {key: _simplified(each, depth + 1) for key, each in named.items()}
    if isinstance(others := kept.pop("additionalProperties", None), Mapping) and others:
        kept["additionalProperties"] = _simplified(others, depth + 1)
    if kept.get("format") not in _FORMATS:
        kept.pop("format", None)
    _simplify_list(kept, depth)
    choices = kept.pop("anyOf", None)
    if isinstance(choices, list) and choices:
        kept["anyOf"] = [_simplified(each, depth + 1) for each in choices]
    return _with_values(_without_siblings(kept))


def _with_known_keywords(schema: Mapping[str, Any]) -> _Schema:
    """Return a schema with widely known keywords in place of rare ones."""
    known = dict(schema)
    if "const" in known:
        known.setdefault("enum", [known["const"]])
    if isinstance(known.get("definitions"), Mapping):
        known.setdefault("$defs", known["definitions"])
    if isinstance(reference := known.get("$ref"), str):
        known["$ref"] = reference.replace("#/definitions/", "#/$defs/")
    for name, bound, step in (
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ):
        limit = known.get(name)
        if type(limit) is int and known.get("type") == "integer":
            known.setdefault(bound, limit + step)
    for one in _mappings(known.pop("allOf", ())):
        known = {**one, **known, "properties": {**_named(one), **_named(known)}}
        if not known["properties"]:
            del known["properties"]
    if alternatives := [*_mappings(known.pop("oneOf", ())), *_mappings(known.get("anyOf", ()))]:
        known["anyOf"] = alternatives
    kinds = known.get("type")
    if isinstance(kinds, list):
        said = {name: known[name] for name in known.keys() - {"type", "anyOf", *_NOTES}}
        known = {name: known[name] for name in _NOTES if name in known}
        named = [kind for kind in kinds if isinstance(kind, str)]
        known["anyOf"] = [{**said, "type": kind} for kind in named if kind != "null"]
    return known


def _named(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _mappings(values: Any) -> Iterable[Mapping[str, Any]]:
    return (
        [each for each in values if isinstance(each, Mapping)] if isinstance(values, list) else ()
    )


def _simplify_list(schema: _Schema, depth: int) -> None:
    """Let a list have `items`, which is one schema for all places."""
    items = schema.pop("items", None)
    if isinstance(items, Mapping):
        schema["items"] = _simplified(items, depth + 1) or _ANYTHING
    elif isinstance(items, list) and items:
        # An empty schema takes anything, and so does a choice that has one.
        is_limited = all(_simplified(each, depth + 1) for each in items)
        schema["items"] = (is_limited and _simplified({"anyOf": items}, depth + 1)) or _ANYTHING
    elif schema.get("type") == "array":
        schema["items"] = _ANYTHING


def _without_siblings(schema: _Schema) -> _Schema:
    """Let a reference or a choice stand by itself; its restrictions move into the choices."""
    notes = {name: schema[name] for name in _NOTES if name in schema}
    if "$ref" in schema:
        return {
            "$ref": schema["$ref"],
            **{name: schema[name] for name in ("$defs",) if name in notes},
        }
    if "anyOf" not in schema:
        return schema
    shared = {name: schema[name] for name in schema.keys() - {"anyOf", *_NOTES}}
    choices = [each for each in schema["anyOf"] if each and each != {"type": "null"}]
    choices = [each if "$ref" in each else _fitting({**shared, **each}) for each in choices]
    match choices:
        case []:
            return {**notes, **shared}
        case [only] if "$ref" not in only:
            return {**only, **notes}
        case _:
            return {**notes, "anyOf": choices}


def _fitting(schema: _Schema) -> _Schema:
    """Return a choice without the keywords that do not apply to its type."""
    kind = schema.get("type")
    if kind != "array":
        schema.pop("items", None)
    elif "items" not in schema:
        schema["items"] = _ANYTHING
    if kind not in {None, "object"}:
        schema = {name: value for name, value in schema.items() if name not in _OF_OBJECTS}
    return schema


_OF_OBJECTS = frozenset({"properties", "required", "additionalProperties"})


def _with_values(schema: _Schema) -> _Schema:
    """Let `enum` have texts; other values are told in the description."""
    values = schema.get("enum")
    if values is None:
        return schema
    texts = [value for value in values if value is not None] if isinstance(values, list) else []
    if texts and all(isinstance(value, str) for value in texts):
        return {**schema, "enum": texts}
    rest = {name: value for name, value in schema.items() if name != "enum"}
    if texts:
        words = f"One of {', '.join(map(str, texts[:50]))}."
        rest["description"] = f"{rest.get('description', '')} {words}".strip()
    return rest
