"""The progress of a run as a card and as a text."""

import json

import pytest

from internal.channels.chat.transport import RunContent, RunPhase
from internal.channels.lark.progress_card import PROGRESS_MARK, progress_card, progress_text
from internal.channels.lark.replies import is_auxiliary
from internal.i18n.chat import ChatPhrases

EN = ChatPhrases("en")


@pytest.mark.parametrize(
    ("phase", "color"), [("working", "blue"), ("waiting", "orange"), ("failed", "red")]
)
def test_a_card_has_the_title_and_color_of_its_phase(phase: RunPhase, color: str) -> None:
    text = progress_card(RunContent(phase, "Title", ("☐ read", "✓ look"), EN))
    card = json.loads(text)
    assert card["header"] == {
        "title": {"tag": "plain_text", "content": "Title"},
        "template": color,
    }
    assert card["body"]["elements"][0]["content"] == "☐ read\n✓ look"
    assert is_auxiliary("interactive", text)


def test_a_card_without_lines_shows_that_the_model_works() -> None:
    card = json.loads(progress_card(RunContent("working", "Title", (), EN)))
    assert card["body"]["elements"][0]["content"] == EN("progress_thinking")


def test_a_text_begins_with_the_mark() -> None:
    text = progress_text(RunContent("working", "Title", ("☐ read",), EN))
    assert text == f"{PROGRESS_MARK} Title\n☐ read"
    assert is_auxiliary("text", json.dumps({"text": text}))
