"""Elements are valid card JSON and carry the action of their button."""

import msgspec

from internal.channels.lark.card_elements import (
    MAX_FIELD_LENGTH,
    ButtonAction,
    button,
    button_row,
    checkbox,
    form,
    markdown,
    plain_text,
    select,
    text_input,
)
from internal.simulators.lark.cards.card_json import check_card

ACTION = ButtonAction("question-abc-1", "say", 2)


def test_all_elements_together_are_a_valid_card() -> None:
    submit = button("Send", ACTION, submits=True)
    fields = [
        text_input("words", "hint", "a\nb", "label"),
        checkbox("call_1", "one"),
        select("chosen", "hint", ["one", "two"], multiple=True),
    ]
    elements = [
        plain_text("text", soft=True),
        markdown("**bold**"),
        button_row([button("Yes", ACTION, "primary")]),
        form("say", [*fields, submit]),
    ]
    check_card({"schema": "2.0", "body": {"elements": elements}})


def test_a_button_carries_its_action() -> None:
    behavior = button("Yes", ACTION)["behaviors"][0]
    assert msgspec.convert(behavior["value"], ButtonAction) == ACTION


def test_a_text_input_with_a_value_has_several_lines() -> None:
    field = text_input("steps", "hint", "\n".join("abcde"))
    assert (field["input_type"], field["rows"]) == ("multiline_text", 5)
    assert field["max_length"] == MAX_FIELD_LENGTH
    assert "rows" not in text_input("words", "hint")


def test_options_are_numbered_from_one() -> None:
    options = select("chosen", "hint", ["a", "b"], multiple=False)["options"]
    assert [option["value"] for option in options] == ["1", "2"]
