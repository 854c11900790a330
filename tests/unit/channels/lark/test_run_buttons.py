"""The buttons below a reply, and their payload."""

import msgspec
import pytest

from internal.channels.chat.transport import RunButton
from internal.channels.lark.run_buttons import RunButtonValue, run_button
from internal.simulators.lark.cards.card_json import check_card


def test_a_button_names_its_run_and_command() -> None:
    element = run_button(RunButton("again", "run-1", "Try again"))
    check_card({"schema": "2.0", "body": {"elements": [element]}})
    [callback] = element["behaviors"]
    assert msgspec.convert(callback["value"], RunButtonValue) == RunButtonValue("run-1", "again")


@pytest.mark.parametrize(
    "value", [{"run": "run-1"}, {"run": "r", "command": "delete"}, {"run": 1, "command": "new"}, []]
)
def test_another_payload_is_none_of_ours(value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, RunButtonValue)
