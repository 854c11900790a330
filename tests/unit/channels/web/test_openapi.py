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
