import asyncio
import json

import pytest

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.websocket.delivery import MAX_CONNECTIONS, REDELIVERY_SECONDS
from tests.unit.simulators.lark import APP, make_services
from tests.unit.simulators.lark.websocket import SentFrames, make_connection


async def test_an_event_without_a_connection_is_given_up_in_the_end() -> None:
    services = make_services(speed=1e9)
    async with asyncio.TaskGroup() as tasks:
        services.delivery.attach(tasks)
        services.delivery.emit(APP, "type", {})
    (push,) = services.delivery.pushes
    assert push.done
    assert push.attempts == ["nobody"] * (1 + len(REDELIVERY_SECONDS))


async def test_reordering_holds_events_and_sends_the_last_first() -> None:
    services = make_services(reorder=1, speed=1e9)
    sent = SentFrames()
    connection = make_connection(services, sent)
    services.delivery.add_connection(connection)
    async with asyncio.TaskGroup() as tasks:
        services.delivery.attach(tasks)
        services.delivery.emit(APP, "first", {})
        assert sent == []
        services.delivery.emit(APP, "second", {})
        await sent.wait_for(2)
        services.delivery.remove_connection(connection)
    assert [b'"second"' in frame for frame in sent[:2]] == [True, False]


def test_an_app_has_a_limited_number_of_connections() -> None:
    services = make_services()
    for _ in range(MAX_CONNECTIONS):
        services.delivery.add_connection(make_connection(services, SentFrames()))
    with pytest.raises(LarkError):
        services.delivery.add_connection(make_connection(services, SentFrames()))


def test_an_event_is_encoded_with_its_id() -> None:
    services = make_services()
    services.delivery.emit(APP, "type", {"message": {"message_id": "om_1"}})
    push = services.delivery.pushes[0]
    assert push.message_id == "om_1"
    assert json.loads(push.encode())["header"]["event_id"] == push.event_id
