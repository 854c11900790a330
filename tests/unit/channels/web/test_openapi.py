"""The page's types are generated from the program's."""

import pytest

from internal.agent.domain.events.control import CONTROLS, ControlFrame
from internal.agent.domain.events.schema import typescript
from internal.agent.domain.events.types import EVENTS, Event
from internal.channels.web import openapi
from internal.channels.web.routes.table import ENDPOINTS
from tests import ROOT

SOURCES = ROOT / "web" / "src"
AGAIN = "stale: run `make generate`"


def test_generated_event_types_are_current() -> None:
    assert (SOURCES / "stream" / "events.gen.ts").read_text(encoding="utf-8") == typescript(), AGAIN


def test_generated_api_types_are_current() -> None:
    written = (SOURCES / "api" / "types.gen.ts").read_text(encoding="utf-8")
    assert written == openapi.typescript(ENDPOINTS), AGAIN


@pytest.mark.parametrize("kind", [*EVENTS, *CONTROLS], ids=lambda kind: kind.name)
def test_the_page_knows_every_event_and_control_frame(kind: type[Event | ControlFrame]) -> None:
    text = typescript()
    assert f'"{kind.name}": {kind.__name__};' in text
    assert f"export interface {kind.__name__} {{" in text
    roster = text.partition("export const EVENTS")[2].partition("/**")[0]
    assert f'"{kind.name}"' in roster


def test_every_status_is_described_with_its_body() -> None:
    described = openapi.document(ENDPOINTS, "1.2.3")
    for endpoint in ENDPOINTS:
        responses = described["paths"][endpoint.path][endpoint.method.lower()]["responses"]
        expected = {endpoint.status, *openapi.error_statuses(endpoint)}
        assert set(responses) == {str(status) for status in expected}
        for response in responses.values():
            name = response.get("$ref", "").rpartition("/")[2]
            assert not name or "content" in described["components"]["responses"][name]


def test_query_parameters_are_never_null() -> None:
    described = openapi.document(ENDPOINTS, "1.2.3")
    for path in described["paths"].values():
        for operation in path.values():
            assert "null" not in str(operation["parameters"])
