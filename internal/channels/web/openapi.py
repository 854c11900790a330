"""The OpenAPI document, made from the route table and the shapes."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from internal.agent.domain.events.schema import interfaces
from internal.channels.web.endpoints import Endpoint
from internal.channels.web.errors import ErrorBody, phrase

_REFERENCE = "#/components/schemas/{name}"
_NOTHING = "Nothing"


def document(endpoints: Sequence[Endpoint], version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these addresses."""
    shapes: list[type[msgspec.Struct]] = [ErrorBody]
    for endpoint in endpoints:
        shapes += [endpoint.body, endpoint.query]
        shapes += [endpoint.reply] if endpoint.reply else []
    distinct = tuple(dict.fromkeys(shapes))
    references, components = msgspec.json.schema_components(distinct, ref_template=_REFERENCE)
    known = dict(zip(distinct, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        described = _operation(endpoint, known, components)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Larkspur", "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def typescript(endpoints: Sequence[Endpoint]) -> str:
    """Return what these addresses answer as TypeScript, for the page."""
    replies = [endpoint.reply for endpoint in endpoints if endpoint.reply]
    distinct = tuple(dict.fromkeys([ErrorBody, *replies]))
    _, components = msgspec.json.schema_components(distinct, ref_template=_REFERENCE)
    head = "// Written from the program's own types by `make generate`; not edited by hand.\n\n"
    return head + interfaces(components) + "\n"


def _operation(
    endpoint: Endpoint,
    known: dict[type[msgspec.Struct], dict[str, Any]],
    components: dict[str, Any],
) -> dict[str, Any]:
    reply: dict[str, Any] = {"description": phrase(endpoint.status)}
    if endpoint.status != 204:  # noqa: PLR2004 - No Content
        schema = known[endpoint.reply] if endpoint.reply else {}
        reply["content"] = {endpoint.media_type: {"schema": schema}}
    error = {"application/json": {"schema": known[ErrorBody]}}
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": (endpoint.handler.__doc__ or "").partition("\n")[0],
        "parameters": _parameters(endpoint, components),
        "responses": {
            str(endpoint.status): reply,
            "default": {"description": "An error", "content": error},
        },
        "security": [{}] if endpoint.public else [{"token": []}],
    }
    if endpoint.body.__name__ != _NOTHING:
        content = {"application/json": {"schema": known[endpoint.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(endpoint: Endpoint, components: dict[str, Any]) -> list[dict[str, Any]]:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    query = components[endpoint.query.__name__]["properties"]
    asked = [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in query.items()
    ]
    return [*named, *asked]
