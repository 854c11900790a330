"""Settings of one group override the settings of the channel."""

import pytest
from pydantic import ValidationError

from internal.settings.chat import ChatChannelSettings, ChatGroup
from internal.settings.lark import LarkSettings


def test_unknown_group_has_no_overrides() -> None:
    assert ChatChannelSettings().group("a") == ChatGroup()


def test_keys_of_the_app_precede_those_of_every_chat_channel() -> None:
    names = list(LarkSettings.model_fields)
    app = ["enabled", "app_id", "app_secret", "domain", "proxy", "no_proxy", "ca_file"]
    assert names[:8] == [*app, "busy_mode"]
    assert set(ChatChannelSettings.model_fields) < set(names)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("operators", None),
        ("owner", None),
        ("off", ()),
        ("ou_a", ("ou_a",)),
        (["ou_a", "ou_b"], ("ou_a", "ou_b")),
    ],
)
def test_recipients_of_questions_are_a_word_or_people(
    given: object, named: tuple[str, ...] | None
) -> None:
    settings = ChatChannelSettings.model_validate({"question_recipients": given})
    assert settings.named_recipients == named


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ([f"ou_{number}" for number in range(6)], "at most 5 people"),
        (["off", "ou_a"], "off alone"),
    ],
)
def test_other_recipients_are_rejected(given: object, part: str) -> None:
    with pytest.raises(ValidationError, match=part):
        ChatChannelSettings.model_validate({"question_recipients": given})
