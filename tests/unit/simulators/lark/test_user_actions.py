import json

import pytest

from internal.simulators.lark import user_actions
from internal.simulators.lark.user_actions import ActionError
from tests.unit.simulators.lark import APP, make_services


def test_mentions_replace_names_or_go_to_the_start() -> None:
    state = make_services().state
    draft = user_actions.text_draft(state, f"hello @{APP.name}", [APP.open_id])
    assert draft.content == {"text": "hello @_user_1"}
    draft = user_actions.text_draft(state, "hello", [APP.open_id, "all"])
    assert draft.content == {"text": "@_user_1 @_all hello"}
    with pytest.raises(ActionError):
        user_actions.text_draft(state, "x", ["ou_unknown"])


def test_a_group_message_reaches_the_bot_only_when_mentioned() -> None:
    services = make_services()
    state = services.state
    person = next(iter(state.people))
    group = next(chat for chat in state.chats.values() if chat.mode == "group")
    for mentions in ([], [APP.open_id]):
        draft = user_actions.text_draft(state, "hi", mentions)
        user_actions.send(state, person, group.chat_id, draft)
    (push,) = services.delivery.pushes
    assert json.loads(push.encode())["event"]["message"]["chat_type"] == "group"


def test_an_edit_says_which_message_was_edited_and_not_what_it_says() -> None:
    services = make_services()
    state = services.state
    first, second = list(state.people)[:2]
    group = next(chat for chat in state.chats.values() if chat.mode == "group")
    draft = user_actions.text_draft(state, "old")
    message = user_actions.send(state, first, group.chat_id, draft)
    new = user_actions.text_draft(state, "new", [APP.open_id])
    user_actions.edit(state, first, message.message_id, new)
    (push,) = services.delivery.pushes
    event = json.loads(push.encode())
    assert event["header"]["event_type"] == "im.message.updated_v1"
    said = event["event"]["message"]
    assert (said["message_id"], said["chat_id"]) == (message.message_id, group.chat_id)
    assert (said["content"], said["mentions"]) == ('{"text":"old"}', [])
    assert message.content == '{"text":"<p>@_user_1 new</p>"}'
    assert message.public()["updated"]
    place = user_actions.MessageDraft("location", {"name": "Pier 7"})
    for action in (
        lambda: user_actions.edit(state, second, message.message_id, new),
        lambda: user_actions.edit(state, first, "om_unknown", new),
        lambda: user_actions.edit(state, first, message.message_id, place),
        lambda: user_actions.merge_draft(state, [message.message_id, "om_unknown"]),
        lambda: user_actions.merge_draft(state, []),
    ):
        with pytest.raises(ActionError):
            action()


def test_reacting_twice_removes_the_reaction() -> None:
    state = make_services().state
    person = next(iter(state.people))
    chat = state.dm(person).chat_id
    message = user_actions.send(state, person, chat, user_actions.text_draft(state, "hi"))
    user_actions.react(state, person, message.message_id, "OK")
    assert [one.emoji for one in message.reactions] == ["OK"]
    user_actions.react(state, person, message.message_id, "OK")
    assert message.reactions == []


def test_people_act_only_in_their_chats_and_on_their_messages() -> None:
    state = make_services().state
    first, second = list(state.people)[:2]
    chat = state.dm(first).chat_id
    message = user_actions.send(state, first, chat, user_actions.text_draft(state, "hi"))
    for action in (
        lambda: user_actions.send(state, second, chat, user_actions.text_draft(state, "x")),
        lambda: user_actions.recall(state, second, message.message_id),
        lambda: user_actions.visible_message(state, second, message.message_id),
        lambda: user_actions.read_chat(state, second, chat),
        lambda: user_actions.set_bot_presence(state, first, chat, APP.app_id, present=False),
    ):
        with pytest.raises(ActionError):
            action()
