"""The reactions of the Lark channel are checked when the settings are read."""

import pytest
from pydantic import ValidationError

from internal.settings.chat import ChatChannelSettings
from internal.settings.lark import LarkSettings


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("Typing", "Typing"),
        ("off", "off"),
        ("Typing, OnIt", ("Typing", "OnIt")),
        (["OneSecond", "THINKING"], ("OneSecond", "THINKING")),
        (["OnIt"], "OnIt"),
    ],
)
def test_a_name_or_a_list_of_names_is_accepted(given: object, stored: object) -> None:
    assert LarkSettings.model_validate({"react_emoji": given}).react_emoji == stored


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("typing", "unknown: typing; did you mean Typing?"),
        (["Typing", "👍"], "unknown: 👍."),
        (["off", "Typing"], "unknown: off"),
        ([], "must not be an empty list; off stands for none"),
        ([1], "must be a name or a list of names"),
        (False, "must be a name or a list of names"),
        ("Typing,", "must not be blank"),
    ],
)
def test_unknown_names_are_rejected(given: object, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        LarkSettings.model_validate({"react_emoji": given})
    assert why in str(caught.value)
    assert len(caught.value.errors()) == 1


def test_a_message_always_gets_the_same_reaction_and_messages_get_different_ones() -> None:
    settings = ChatChannelSettings(react_emoji=("Typing", "OnIt", "OneSecond"))
    messages = [f"om_{number}" for number in range(60)]
    chosen = [settings.working_emoji(message) for message in messages]
    assert chosen == [settings.working_emoji(message) for message in messages]
    assert set(chosen) == {"Typing", "OnIt", "OneSecond"}


def test_off_means_no_reaction() -> None:
    assert not ChatChannelSettings(react_emoji="off").working_emoji("om_1")
    assert ChatChannelSettings().working_emoji("om_1") == "Typing"
