import json
from dataclasses import replace

import pytest

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.rest import im_messages
from internal.simulators.lark.state import LarkState
from tests.unit.simulators.lark import make_call, make_state

TEXT = json.dumps({"text": "hi"})


def send(state: LarkState, **more: object) -> dict[str, object]:
    chat = state.dm(next(iter(state.people))).chat_id
    body = {"receive_id": chat, "msg_type": "text", "content": TEXT, **more}
    return im_messages.create(state, replace(make_call(body), query={"receive_id_type": "chat_id"}))


def test_the_same_uuid_returns_the_first_message() -> None:
    state = make_state()
    first = send(state, uuid="u")
    assert send(state, uuid="u")["message_id"] == first["message_id"]
    assert send(state)["message_id"] != first["message_id"]


def test_a_recalled_message_cannot_be_changed_or_answered() -> None:
    state = make_state()
    message_id = str(send(state)["message_id"])
    im_messages.delete(state, make_call(message_id=message_id))
    body: dict[str, object] = {"msg_type": "text", "content": TEXT}
    for handler in (im_messages.update, im_messages.reply, im_messages.delete):
        with pytest.raises(LarkError):
            handler(state, make_call(body, message_id=message_id))


def test_a_text_can_be_edited_twenty_times() -> None:
    state = make_state()
    call = make_call(
        {"msg_type": "text", "content": TEXT}, message_id=str(send(state)["message_id"])
    )
    for _ in range(im_messages.MAX_EDITS):
        im_messages.update(state, call)
    with pytest.raises(LarkError):
        im_messages.update(state, call)
