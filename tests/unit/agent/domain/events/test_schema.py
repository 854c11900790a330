"""The generated description of the events is current and complete."""

import json
import re
from typing import Any

import msgspec
import pytest

from internal.agent.domain.events.control import CONTROLS
from internal.agent.domain.events.schema import json_schema, markdown
from internal.agent.domain.events.types import EVENTS, Event
from tests import ROOT

DOCS = ROOT / "docs"
AGAIN = "stale: run `larkspur events schema [--markdown]` into docs/ again"


def test_the_generated_files_are_current() -> None:
    assert (DOCS / "events.md").read_text(encoding="utf-8") == markdown(), AGAIN
    stored = json.loads((DOCS / "events.schema.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(json_schema())), AGAIN


def test_every_event_and_control_frame_is_described() -> None:
    schema, page = json_schema(), markdown()
    envelope = schema["$defs"]["WorkflowEventEnvelope"]
    assert envelope["properties"]["event"]["enum"] == [event.name for event in EVENTS]
    described = {
        rule["if"]["properties"]["event"]["const"]: rule["then"]["properties"]["payload"]["$ref"]
        for rule in envelope["allOf"]
    }
    assert described == {event.name: f"#/$defs/{event.__name__}" for event in EVENTS}
    names = [(kind.name, kind.__name__) for kind in EVENTS]
    names += [(kind.name, kind.__name__) for kind in CONTROLS]
    for name, title in names:
        assert f"\n### {name}\n" in page
        assert title in schema["$defs"]


def test_the_page_of_streams_has_all_names_by_their_kind() -> None:
    page = (DOCS / "streams.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| (`[\w.]+`(?:, `[\w.]+`)*) \|$", page, re.MULTILINE)
    kinds: dict[str, list[str]] = {
        "durable": [each.name for each in EVENTS if each.durable and not each.inner],
        "durable, only with `debug=1`": [e.name for e in EVENTS if e.durable and e.inner],
        "ephemeral": [each.name for each in EVENTS if not each.durable],
        "about the stream": [each.name for each in CONTROLS],
    }
    assert {kind: re.findall(r"[\w.]+", names) for kind, names in rows} == kinds
    assert not any(each.inner and not each.durable for each in EVENTS)


def test_every_reference_is_defined() -> None:
    schema = json_schema()
    targets = set(_references(schema))
    assert targets <= {f"#/$defs/{name}" for name in schema["$defs"]}
    assert "#/$defs/Event" not in targets


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_the_schema_of_an_event_has_its_fields(event: type[Event]) -> None:
    described = json_schema()["$defs"][event.__name__]["properties"]
    assert list(described) == [field.encode_name for field in msgspec.structs.fields(event)]


def _references(value: Any) -> list[str]:
    match value:
        case {"$ref": target}:
            return [target]
        case dict():
            return [found for one in value.values() for found in _references(one)]
        case list():
            return [found for one in value for found in _references(one)]
        case _:
            return []
