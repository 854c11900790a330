"""The public form of the event stream, made from the rosters: JSON Schema and a page for people.

`larkspur events schema` writes `docs/events.schema.json`, with `--markdown` `docs/events.md`.
`web/src/stream/events.gen.ts` is generated from the same types. A test fails when one of them is
stale.
"""

import json
from collections.abc import Mapping
from typing import Any

from internal.agent.domain.events.control import CONTROLS, ControlFrame
from internal.agent.domain.events.displays import DISPLAYS
from internal.agent.domain.events.envelope import VERSION, WorkflowEventEnvelope
from internal.agent.domain.events.types import EVENTS, Event
from internal.normal_forms.json_schema import schema_components

_DEFS = "#/$defs/"
_ENVELOPE = WorkflowEventEnvelope.__name__
_HEAD = f"""\
# Events

All that happens in a run is one ordered stream of events. The same envelopes are sent by
`GET /api/sse`, returned by `GET /api/sessions/{{id}}/events`, printed by
`larkspur -p --output-format stream-json`, and kept in the database. This page is written from the
program's own types by `larkspur events schema --markdown`; the JSON Schema is in
[events.schema.json](events.schema.json) and printed by `larkspur events schema`.

- **Durable** events are numbered, stored, then sent. `seq` counts them in their run: 1, 2, 3 …
  without a hole.
- **Ephemeral** events (marked ~) are sent, never stored. They have neither `seq` nor `event_id`.
- **Terminal** events end a run: every run that ends has exactly one, the last of its rows.
- **Inner** events are left out of a stream unless it is opened with `debug=1`.

Events are ordered by the wire id `<epoch>-<position>`, not by `seq`: a session holds many runs and
each starts at 1. A row of a page or of `stream-json` is
`{{"id": "<wire id>", "event": {{envelope}}}}`; an ephemeral one has no `id`.

Text of a running reply or tool comes in pieces: `k` counts the pieces of a node, `n` says how many
are joined in this event. A hole (`k - n` is not the last `k`) means that something was left out:
ignore the node until the next `partial`, which sets its text and its `k`.

A field with ? may be missing. The version of the envelope is {VERSION}.
"""

_DISPLAYS = """\
### Where each event is shown

✓: the event is shown there, or used for what is shown. Words: people learn of it in another way.
The table is made from what each event declares.
"""

_UNION = """\
/** An event with its place in the world; `payload` follows from `event`. */
export type Envelope = {
  [Name in EventName]: Head & { event: Name; payload: Payloads[Name] };
}[EventName];
"""
_PLAIN = {"integer": "number", "object": "Record<string, unknown>"}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of everything a stream can carry.

    It describes the data of one frame: an envelope whose `payload` follows from its `event`, or a
    control frame. `$defs` names each type; `$defs/Row` is a line of `stream-json`.
    """
    definitions = _definitions()
    envelope = definitions[_ENVELOPE]
    envelope["properties"]["event"] = {"enum": [event.name for event in EVENTS]}
    envelope["properties"]["payload"] = {"type": "object"}
    envelope["allOf"] = [
        {
            "if": {"properties": {"event": {"const": event.name}}},
            "then": {"properties": {"payload": {"$ref": _DEFS + event.__name__}}},
        }
        for event in EVENTS
    ]
    definitions["Row"] = {
        "title": "Row",
        "description": "A line of stream-json between the first and the last; pages hold the same.",
        "type": "object",
        "properties": {"id": {"type": "string"}, "event": {"$ref": _DEFS + _ENVELOPE}},
        "required": ["event"],
    }
    controls = [{"$ref": _DEFS + control.__name__} for control in CONTROLS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Larkspur events, version {VERSION}",
        "anyOf": [{"$ref": _DEFS + _ENVELOPE}, *controls],
        "$defs": dict(sorted(definitions.items())),
    }


def markdown() -> str:
    """Return the page that lists the envelope, every event and every control frame."""
    definitions = _definitions()
    named = {name for kind in (*EVENTS, *CONTROLS) for name in (kind.__name__,)} | {_ENVELOPE}
    parts = [_HEAD, "## Envelope\n", _table(definitions[_ENVELOPE]), "## Events\n"]
    parts += [_display_table()]
    parts += [_section(event, definitions) for event in EVENTS]
    parts += ["## Stream control\n", "Sent on SSE as they are, without an envelope or an id.\n"]
    parts += [_section(control, definitions) for control in CONTROLS]
    parts += ["## Values\n"]
    parts += [
        f"### {name}\n\n{' '.join(one.get('description', '').split())}\n\n{_table(one)}"
        for name, one in sorted(definitions.items())
        if name not in named
    ]
    return "\n".join(parts).rstrip() + "\n"


def display_rows() -> list[str]:
    """Return the table of all events with where each is shown, as lines of Markdown."""
    titles = " | ".join(DISPLAYS.values())
    rows = [f"| event | {titles} |", f"|---|{'---|' * len(DISPLAYS)}"]
    for event in EVENTS:
        cells = ["✓" if one in event.shown else event.told.get(one, "") for one in DISPLAYS]
        rows.append(f"| [{event.name}](#{_anchor(event.name)}) | {' | '.join(cells)} |")
    return rows


def _display_table() -> str:
    return "\n".join((_DISPLAYS, *display_rows(), ""))


def _anchor(heading: str) -> str:
    """Return the anchor of a heading as MkDocs and GitHub make it."""
    return heading.replace(".", "")


def typescript() -> str:
    """Return the page's types: a union of envelopes by `event`, and the rosters as constants."""
    definitions = _definitions()
    envelope = definitions[_ENVELOPE]
    envelope["title"] = "Head"
    envelope["description"] = "What every envelope has besides its `event` and its `payload`."
    for name in ("event", "payload"):
        del envelope["properties"][name]
    payloads = "\n".join(f'  "{kind.name}": {kind.__name__};' for kind in EVENTS)
    controls = "\n".join(f'  "{kind.name}": {kind.__name__};' for kind in CONTROLS)
    return "\n\n".join(
        (
            "// Written from the program's own types by `make generate`; not edited by hand.",
            f"export const VERSION = {VERSION};",
            f"export const EVENTS = {json.dumps([kind.name for kind in EVENTS])} as const;",
            f"export const CONTROLS = {json.dumps([kind.name for kind in CONTROLS])} as const;",
            interfaces(definitions),
            f"export interface Payloads {{\n{payloads}\n}}",
            f"export interface ControlFrames {{\n{controls}\n}}",
            "export type EventName = keyof Payloads;",
            _UNION,
        )
    )


def interfaces(definitions: Mapping[str, Any]) -> str:
    """Return TypeScript declarations of JSON Schema definitions, by name."""
    return "\n\n".join(_declaration(one) for _, one in sorted(definitions.items()))


def _declaration(schema: Mapping[str, Any]) -> str:
    text = " ".join(schema.get("description", "").replace("*/", "").split())
    if "enum" in schema:
        return f"/** {text} */\nexport type {schema['title']} = {_typescript(schema)};"
    required = schema.get("required", ())
    # members with a default may be missing: a row may be older than the field
    fields = "\n".join(
        f"  {name}{'' if name in required else '?'}: {_typescript(one)};"
        for name, one in schema.get("properties", {}).items()
    )
    return f"/** {text} */\nexport interface {schema['title']} {{\n{fields}\n}}"


def _typescript(schema: Mapping[str, Any]) -> str:
    """Return the TypeScript type of a value."""
    match schema:
        case {"$ref": target}:
            return str(target).rpartition("/")[2]
        case {"enum": choices}:
            return " | ".join(json.dumps(choice) for choice in choices)
        case {"anyOf": choices}:
            return " | ".join(_typescript(choice) for choice in choices)
        case {"type": "array", "items": items}:
            return f"Array<{_typescript(items)}>"
        case {"type": "object", "additionalProperties": {"type": _} as values}:
            return f"Record<string, {_typescript(values)}>"
        case _:
            kind = str(schema.get("type", "unknown"))
            return _PLAIN.get(kind, kind)


def _definitions() -> dict[str, Any]:
    """Return the schema of each type by its name. `Event`, the root of all, says nothing."""
    kinds = [WorkflowEventEnvelope, *EVENTS, *CONTROLS]
    _, definitions = schema_components(kinds, ref_template=_DEFS + "{name}")
    return {name: one for name, one in definitions.items() if name != Event.__name__}


def _section(kind: type[Event | ControlFrame], definitions: Mapping[str, Any]) -> str:
    text = " ".join((kind.__doc__ or "").split())
    return f"### {kind.name}\n\n{_marks(kind)}{text}\n\n{_table(definitions[kind.__name__])}"


def _marks(kind: type[Event | ControlFrame]) -> str:
    if not issubclass(kind, Event):
        return ""
    marks = ["durable" if kind.durable else "ephemeral ~"]
    marks += ["terminal"] * kind.terminal + ["inner"] * kind.inner
    return f"*{', '.join(marks)}* · "


def _table(schema: Mapping[str, Any]) -> str:
    """Return the fields of a type as a table; a type without any has none."""
    required = schema.get("required", ())
    rows = [
        f"| `{name}`{'' if name in required else ' ?'} | {_words(one)} |"
        for name, one in schema["properties"].items()
    ]
    return "\n".join(("| field | |", "|---|---|", *rows, ""))


def _words(schema: Mapping[str, Any]) -> str:
    """Describe the type of a value in words."""
    match schema:
        case {"$ref": target}:
            name = target.removeprefix(_DEFS)
            return "object" if name == Event.__name__ else f"[{name}](#{name.lower()})"
        case {"enum": choices}:
            return " · ".join(f"`{choice}`" for choice in choices)
        case {"anyOf": choices}:
            return " or ".join(_words(choice) for choice in choices)
        case {"type": "array", "items": items}:
            return f"list of {_words(items)}"
        case {"type": kind}:
            return str(kind)
        case _:
            return "any"
