"""Event ids as cursors. The streams themselves: tests/integration/agent/test_subscription.py."""

import pytest

from internal.agent.app.events.subscription import Cursor, parse_cursor
from internal.agent.domain.errors import InvalidRequest


@pytest.mark.parametrize(
    "text", ["", "abc", "abc-", "-3", "abc-x", "abc-٣", "a b-3", "abc-" + "9" * 30, "x" * 20 + "-1"]
)
def test_text_that_is_not_an_event_id_is_rejected(text: str) -> None:
    with pytest.raises(InvalidRequest, match="not an event id"):
        parse_cursor(text)


def test_a_cursor_survives_a_round_trip_through_its_event_id() -> None:
    assert parse_cursor(str(Cursor("k3x9ap", 17))) == Cursor("k3x9ap", 17)
