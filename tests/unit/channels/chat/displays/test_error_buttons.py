"""The end of a run decides which buttons help."""

import pytest

from internal.channels.chat.displays.error_buttons import COMMANDS, error_buttons
from internal.i18n.catalog import load_catalog
from internal.i18n.chat import ChatPhrases
from internal.i18n.language import LANGUAGES


def test_every_end_that_has_a_sentence_has_a_decision_about_its_buttons() -> None:
    for language in LANGUAGES:
        messages = load_catalog("runs", language)["messages"]
        ends = {key.removeprefix("ended_") for key in messages if key.startswith("ended_")}
        assert ends == set(COMMANDS)


@pytest.mark.parametrize(
    ("stop_reason", "error_code", "labels"),
    [
        ("error", "model_busy", ["重试"]),
        ("error", "context_too_long", ["新会话"]),
        ("error", "of_a_later_version", ["重试"]),
        ("max_iterations", "", ["继续"]),
        ("budget_exceeded", "daily_limit_exceeded", []),
        ("final_answer", "", []),
        ("user_stop", "interrupted by a new message", []),
    ],
)
def test_an_end_has_the_buttons_of_its_code(
    stop_reason: str, error_code: str, labels: list[str]
) -> None:
    buttons = error_buttons("run-1", stop_reason, error_code, ChatPhrases("zh"))
    assert [each.label for each in buttons] == labels
