import pytest

from internal.simulators.lark import user_actions
from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.rest import im_contacts
from tests.unit.simulators.lark import APP, make_call, make_services


def test_a_reaction_is_added_once_and_removed_by_its_owner_only() -> None:
    state = make_services().state
    person = next(iter(state.people))
    chat = state.dm(person).chat_id
    message = user_actions.send(state, person, chat, user_actions.text_draft(state, "hi"))
    body: dict[str, object] = {"reaction_type": {"emoji_type": "OK"}}
    first = im_contacts.add_reaction(state, make_call(body, message_id=message.message_id))
    assert im_contacts.add_reaction(state, make_call(body, message_id=message.message_id)) == first
    theirs = im_contacts.set_reaction(state, message, "HEART", operator=person, kind="user")
    with pytest.raises(LarkError):
        im_contacts.delete_reaction(
            state, make_call(message_id=message.message_id, reaction_id=theirs.reaction_id)
        )
    im_contacts.delete_reaction(
        state, make_call(message_id=message.message_id, reaction_id=first["reaction_id"])
    )
    assert message.reactions == [theirs]


def test_chats_and_people_are_described() -> None:
    state = make_services().state
    person = next(iter(state.people.values()))
    group = next(chat for chat in state.chats.values() if chat.mode == "group")
    assert im_contacts.get_chat(state, make_call(chat_id=group.chat_id))["name"] == group.name
    members = im_contacts.list_members(state, make_call(chat_id=group.chat_id))
    assert members["member_total"] == len(group.members)
    found = im_contacts.get_user(state, make_call(user_id=person.open_id))
    assert found["user"]["name"] == person.name
    assert im_contacts.bot_info(state, make_call()).fields["bot"]["open_id"] == APP.open_id
    with pytest.raises(LarkError):
        im_contacts.get_chat(state, make_call(chat_id="oc_unknown"))
