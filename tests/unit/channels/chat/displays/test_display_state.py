"""Place of the reply of a run, and attempts to end a display."""

import pytest

from internal.agent.domain.chats import RunDisplay
from internal.agent.domain.ids import RunId
from internal.channels.chat.displays.display_state import (
    GIVE_UP_SECONDS,
    MAX_RETRY_SECONDS,
    MAX_SILENT_SECONDS,
    DisplayState,
    read_state,
)

NOW = 1_000_000.0


def test_nothing_stored_is_the_initial_state() -> None:
    assert read_state(RunDisplay(RunId("r"), 0, "")) == DisplayState()


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, "card"),
        ({"unknown_until": NOW - 1}, "card"),
        ({"unknown_until": NOW + 1}, ""),
        ({"lost": True}, ""),
        ({"message": ""}, ""),
        ({"sent_at": NOW - MAX_SILENT_SECONDS - 1}, ""),
    ],
)
def test_a_reply_replaces_a_recent_message_with_known_content(
    changes: dict[str, object], place: str
) -> None:
    fields = {"sending": True, "message": "card", "sent_at": NOW - 5, **changes}
    state = DisplayState(**fields)  # type: ignore[arg-type]  # fields of the state
    state.end(NOW)
    assert state.ended
    assert state.reply_place == place


def test_a_message_exists_from_before_its_call_until_it_is_lost() -> None:
    assert not DisplayState().has_message
    assert DisplayState(sending=True).has_message
    assert not DisplayState(sending=True, message="card", lost=True).has_message


def test_attempts_become_rarer_and_end_after_a_day() -> None:
    state = DisplayState()
    waits = [state.note_failure(NOW) for _ in range(12)]
    assert waits[:3] == [5.0, 10.0, 20.0]
    assert waits[-1] == MAX_RETRY_SECONDS
    assert state.note_failure(NOW + GIVE_UP_SECONDS + 1) is None
