"""The buttons below the reply of a run, and their callback values."""

import msgspec

from internal.channels.chat.transport import RunButton, RunCommand
from internal.channels.lark.question_form import Element


class RunButtonValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload of a button. It names the run and grants nothing."""

    run: str
    command: RunCommand


def run_button(button: RunButton) -> Element:
    """Return a button as an element of a card."""
    value = RunButtonValue(button.run_id, button.command)
    return {
        "tag": "button",
        "name": button.command,
        "type": "default",
        "size": "small",
        "text": {"tag": "plain_text", "content": button.label},
        "behaviors": [{"type": "callback", "value": msgspec.to_builtins(value)}],
    }
