import asyncio
import json

import pytest

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.state import UUID_SECONDS, ChangeSignal, encode_event
from tests.unit.simulators.lark import APP, make_state


def test_every_person_has_a_direct_chat_with_each_bot() -> None:
    state = make_state()
    person = state.add_person("New")
    assert state.dm(person.open_id).members == [person.open_id]
    assert state.receiver(APP, "open_id", person.open_id) is state.dm(person.open_id)
    with pytest.raises(KeyError):
        state.dm("ou_unknown")
    with pytest.raises(LarkError):
        state.receiver(APP, "user_id", "unknown")


def test_a_group_needs_known_people_and_apps() -> None:
    state = make_state()
    assert state.add_group("Topics", state.people, state.apps, topic=True).mode == "topic"
    with pytest.raises(KeyError):
        state.add_group("x", ["ou_unknown"], [])


def test_a_uuid_is_remembered_for_an_hour() -> None:
    state = make_state()
    state.clock.hold()
    message = state.keep(ChatMessage("om_1", "oc_1", APP.app_id, "app", "text", "{}", 1))
    state.remember_uuid(APP, "u", message)
    assert state.sent_before(APP, "u") is message
    assert state.sent_before(APP, "") is None
    state.clock.advance(UUID_SECONDS)
    assert state.sent_before(APP, "u") is None


def test_a_bot_reads_only_messages_of_its_chats() -> None:
    state = make_state()
    chat = state.add_group("No bot", state.people, [])
    state.keep(ChatMessage("om_1", chat.chat_id, "ou_1", "user", "text", "{}", 1))
    for message_id in ("om_1", "om_unknown"):
        with pytest.raises(LarkError):
            state.message(APP, message_id)


def test_names_are_found_for_people_and_bots() -> None:
    state = make_state()
    assert state.name_of(APP.open_id) == state.name_of(APP.app_id) == APP.name
    assert state.name_of("unknown") is None


def test_an_event_names_its_app_and_type() -> None:
    event = json.loads(encode_event(APP, "type", {"a": 1}, at_ms=5, event_id="ev_1"))
    assert event["header"]["event_type"] == "type"
    assert event["header"]["app_id"] == APP.app_id
    assert event["event"] == {"a": 1}


async def test_a_change_wakes_every_waiting_task() -> None:
    signal = ChangeSignal()
    waiting = [asyncio.create_task(signal.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    signal.notify()
    async with asyncio.timeout(5):
        await asyncio.wait(waiting)
