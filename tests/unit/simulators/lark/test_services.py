import asyncio

import msgspec
import pytest

from internal.simulators.lark import user_actions
from tests.unit.simulators.lark import make_services


def test_switches_that_are_not_named_keep_their_position() -> None:
    services = make_services(duplicates=2)
    services.switch({"pongs": False})
    assert (services.faults.duplicates, services.faults.pongs) == (2, False)
    with pytest.raises(msgspec.ValidationError):
        services.switch({"no_such_switch": 1})


def test_an_outage_ends_after_its_time() -> None:
    services = make_services()
    services.clock.hold()
    services.go_down(10)
    assert services.down
    services.clock.advance(10)
    assert not services.down


async def test_closing_releases_everything_that_waits() -> None:
    services = make_services()
    waiting = asyncio.create_task(services.slow_down(600))
    await asyncio.sleep(0)
    services.close()
    async with asyncio.timeout(5):
        await waiting


def test_the_events_of_a_message_are_counted_when_redelivered() -> None:
    services = make_services()
    person = next(iter(services.state.people))
    chat = services.state.dm(person).chat_id
    draft = user_actions.text_draft(services.state, "hi")
    message = user_actions.send(services.state, person, chat, draft)
    assert services.redeliver(message.message_id) == 1
    assert services.redeliver("om_unknown") == 0
    assert services.drop() == services.silence() == services.deafen() == 0
