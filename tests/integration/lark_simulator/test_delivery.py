"""Event delivery, redelivery and faults, with the SDK's own client."""

import asyncio
import json
import threading
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest
import requests

from internal.simulators.lark import user_actions
from internal.simulators.lark.model import App
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.websocket.frames import WireFrame
from tests.support.lark_sdk import Bot, Sdk


def outcomes(sim: LarkSim) -> list[list[str]]:
    return [push.attempts for push in sim.pushes]


async def settled(sim: LarkSim) -> None:
    await sim.until(lambda _: all(push.done for push in sim.pushes))


async def tried(sim: LarkSim, times: int) -> None:
    await sim.until(lambda _: [len(attempts) for attempts in outcomes(sim)] == [times])


async def test_a_text_arrives_in_larks_format(bot: Bot, sim: LarkSim) -> None:
    person, group = sim.people[0], sim.groups[0]
    async with bot.listening():
        asked = await sim.send_text(person, group, "你好 @Larkspur, hear", mention_bot=True)
        await settled(sim)
    (event,) = bot.heard
    assert event["schema"] == "2.0"
    assert event["header"]["app_id"] == bot.app.app_id
    assert event["event"]["sender"]["sender_id"]["open_id"] == person.open_id
    message = event["event"]["message"]
    assert (message["message_id"], message["chat_type"]) == (asked, "group")
    assert json.loads(message["content"]) == {"text": "你好 @_user_1, hear"}
    assert message["mentions"][0]["id"]["open_id"] == bot.app.open_id
    assert outcomes(sim) == [["ok"]]


async def test_group_messages_arrive_when_mentioned_and_direct_ones_always(
    bot: Bot, sim: LarkSim
) -> None:
    person, group = sim.people[0], sim.groups[0]
    async with bot.listening():
        await sim.send_text(person, group, "among us", mentions=[sim.people[1].open_id, "all"])
        await sim.send_text(person, group, "you", mention_bot=True)
        await sim.send_text(person, sim.dm(person), "direct")
        await settled(sim)
    assert bot.texts() == ["@_user_1 you", "direct"]


async def test_an_app_with_the_scope_receives_all_group_messages(sdk: Sdk) -> None:
    async with LarkSim([App("cli_hears_all", "secret", hears_all=True)]) as sim:
        bot = Bot(sdk, sim, sim.app)
        async with bot.listening():
            await sim.send_text(sim.people[0], sim.groups[0], "among us")
            await settled(sim)
        assert bot.texts() == ["among us"]


async def test_other_actions_of_people_emit_events(bot: Bot, sim: LarkSim) -> None:
    state, person = sim.lark.state, sim.people[0].open_id
    group, dm = sim.groups[0], sim.dm(person)
    async with bot.listening():
        asked = await sim.send_text(person, dm, "hi")
        await bot.sent(dm.chat_id, {"text": "ho"})
        user_actions.react(state, person, asked, "OK")
        user_actions.react(state, person, asked, "OK")
        user_actions.read_chat(state, person, dm.chat_id)
        user_actions.enter_chat(state, person, dm.chat_id)
        user_actions.recall(state, person, asked)
        for present in (False, False, True):
            user_actions.set_bot_presence(
                state, person, group.chat_id, bot.app.app_id, present=present
            )
        user_actions.disband(state, person, group.chat_id)
        await settled(sim)
    assert Counter(one["header"]["event_type"] for one in bot.heard) == Counter(
        [
            "im.message.receive_v1",
            "im.message.reaction.created_v1",
            "im.message.reaction.deleted_v1",
            "im.message.message_read_v1",
            "im.chat.access_event.bot_p2p_chat_entered_v1",
            "im.message.recalled_v1",
            "im.chat.member.bot.deleted_v1",
            "im.chat.member.bot.added_v1",
            "im.chat.disbanded_v1",
        ]
    )
    assert {tuple(one) for one in outcomes(sim)} == {("ok",)}


async def test_a_failed_event_is_redelivered_with_growing_delays(bot: Bot, sim: LarkSim) -> None:
    sim.lark.clock.hold()
    bot.answer = _fail
    async with bot.listening():
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "again")
        for number, seconds in enumerate((15, 300, 3600, 21_600, 0), 1):
            await tried(sim, number)
            assert len(bot.heard) == number
            sim.lark.clock.advance(seconds)
        await settled(sim)
    assert outcomes(sim) == [["failed"] * 5]
    assert len({one["header"]["event_id"] for one in bot.heard}) == 1


def _fail(_: Any) -> None:
    raise RuntimeError("no")


async def test_speed_shortens_the_delays_and_a_redelivery_may_have_a_new_id(
    bot: Bot, sim: LarkSim
) -> None:
    sim.set_faults(speed=1e6, new_event_ids=True)
    heard = bot.heard
    bot.answer = lambda _: _fail(_) if len(heard) < 3 else None
    async with bot.listening():
        asked = await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "again")
        await settled(sim)
    assert outcomes(sim) == [["failed", "failed", "ok"]]
    assert len({one["header"]["event_id"] for one in heard}) == 3
    assert {one["event"]["message"]["message_id"] for one in heard} == {asked}


@pytest.mark.slow
async def test_a_late_acknowledgement_is_ignored(bot: Bot, sim: LarkSim) -> None:
    sim.lark.clock.hold()
    released = threading.Event()
    bot.answer = lambda _: released.wait(20) and None
    async with bot.listening():
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "slow")
        await sim.until(lambda _: outcomes(sim) == [["late"]])
        released.set()
        await sim.until(lambda log: any("late acknowledgement" in entry.what for entry in log))
        sim.lark.clock.advance(15)
        await settled(sim)
    assert outcomes(sim) == [["late", "ok"]]
    assert len(bot.heard) == 2


async def test_events_without_a_connection_are_delivered_later(bot: Bot, sim: LarkSim) -> None:
    sim.lark.clock.hold()
    await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "early")
    await sim.until(lambda _: outcomes(sim) == [["nobody"]])
    async with bot.listening():
        sim.lark.clock.advance(15)
        await settled(sim)
    assert bot.texts() == ["early"]


async def test_a_dropped_socket_loses_nothing(bot: Bot, sim: LarkSim) -> None:
    sim.lark.clock.hold()
    dropped = threading.Event()
    bot.answer = lambda _: dropped.wait(20) and None
    async with bot.listening() as client:
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hi")
        await sim.until(lambda _: bot.heard)
        assert sim.lark.drop() == 1
        await sim.until(lambda _: outcomes(sim) == [["late"]])
        dropped.set()
        await bot.until(lambda: client._conn is None)
    async with bot.listening():
        sim.lark.clock.advance(15)
        await settled(sim)
    assert len(bot.heard) == 2


async def test_an_event_for_a_closing_connection_is_sent_again(bot: Bot, sim: LarkSim) -> None:
    sim.lark.clock.hold()
    async with bot.listening() as client:
        sim.lark.drop()  # still listed: the endpoint learns of it in the next step of the loop
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hi")
        await sim.until(lambda _: outcomes(sim) == [["late"]])
        await bot.until(lambda: client._conn is None)
    async with bot.listening():
        sim.lark.clock.advance(15)
        await settled(sim)
    assert bot.texts() == ["hi"]


@pytest.mark.slow
async def test_each_event_goes_to_one_of_several_connections(sdk: Sdk, sim: LarkSim) -> None:
    bots = [Bot(sdk, sim, sim.app) for _ in range(3)]
    async with AsyncExitStack() as stack:
        for bot in bots:
            await stack.enter_async_context(bot.listening())
        sent = [
            await sim.send_text(sim.people[0], sim.dm(sim.people[0]), f"{number}")
            for number in range(40)
        ]
        await settled(sim)
    heard = [one["event"]["message"]["message_id"] for bot in bots for one in bot.heard]
    assert sorted(heard) == sorted(sent)
    assert all(bot.heard for bot in bots)


async def test_apps_receive_only_their_own_events(sdk: Sdk) -> None:
    apps = [App("cli_left", "one", name="Left"), App("cli_right", "two", name="Right")]
    async with LarkSim(apps) as sim:
        left, right = (Bot(sdk, sim, app) for app in apps)
        person = sim.people[0]
        async with left.listening(), right.listening():
            await sim.send_text(person, sim.dm(person, "cli_left"), "to the left")
            group = sim.groups[0]
            await sim.send_text(person, group, "to the right", mentions=[apps[1].open_id])
            await settled(sim)
        assert (left.texts(), right.texts()) == (["to the left"], ["@_user_1 to the right"])
        answer = await left.send(sim.dm(person, "cli_right").chat_id, {"text": "no"})
        assert answer[0] == 230002


async def test_an_event_is_split_into_shuffled_parts(bot: Bot, sim: LarkSim) -> None:
    sim.set_faults(fragment_bytes=37)
    text = "中文🙂 and more " * 40
    async with bot.listening():
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), text)
        await settled(sim)
    assert bot.texts() == [text]
    assert outcomes(sim) == [["ok"]]


async def test_events_are_duplicated_and_reordered(bot: Bot, sim: LarkSim) -> None:
    dm = sim.dm(sim.people[0])
    sim.set_faults(duplicates=4)
    async with bot.listening():
        asked = await sim.send_text(sim.people[0], dm, "five times")
        await sim.until(lambda _: len(bot.heard) == 5)
        sim.set_faults(duplicates=0, reorder=2)
        for number in range(4):
            await sim.send_text(sim.people[0], dm, f"{number}")
        await sim.until(lambda _: len(bot.heard) == 8)
        sim.set_faults(reorder=0)
        await sim.until(lambda _: len(bot.heard) == 9)
        sim.lark.redeliver(asked)
        await sim.until(lambda _: len(bot.heard) == 10)
    assert bot.texts() == ["five times"] * 5 + ["2", "1", "0", "3", "five times"]


async def test_a_message_can_be_an_hour_old(bot: Bot, sim: LarkSim) -> None:
    async with bot.listening():
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "old", age_seconds=3600)
        await settled(sim)
    age = sim.lark.clock.now_ms() - int(bot.heard[0]["event"]["message"]["create_time"])
    assert age >= 3_600_000


async def test_malformed_frames_and_events_are_delivered(bot: Bot, sim: LarkSim) -> None:
    sim.set_faults(speed=1e6)
    async with bot.listening():
        await sim.push_bytes(b"\xff\xff")
        await sim.push_bytes(WireFrame(0, 0, 1, 7).encode())
        await sim.push_bytes(WireFrame(0, 0, 1, 1, [("type", "event")], b"{}").encode())
        sim.push("im.message.receive_v1", {})
        sim.push("im.never.heard_v9", {"x": 1})
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "still here")
        await settled(sim)
    assert bot.texts() == ["still here"]
    assert outcomes(sim) == [["ok"], ["failed"] * 5, ["ok"]]


async def test_pongs_contain_the_configuration(bot: Bot, sim: LarkSim) -> None:
    sim.lark.config.PingInterval = 77
    async with bot.listening() as client:
        assert client._ping_interval == 77
        sim.lark.config.PingInterval = 66
        await bot.there(client._write_message(_ping(bot.sdk, int(client._service_id))))
        await bot.until(lambda: client._ping_interval == 66)


def _ping(sdk: Sdk, service: int) -> bytes:
    return bytes(sdk.ws._new_ping_frame(service).SerializeToString())


@pytest.mark.slow
async def test_a_connection_without_pings_is_closed(sdk: Sdk, sim: LarkSim, bot: Bot) -> None:
    sim.lark.config.PingInterval = 1
    async with bot.listening() as client:
        await bot.there(_wait_until_closed(sdk, client._conn_url))
        assert [one.device_id for one in sim.lark.delivery.connections] == [client._conn_id]


async def _wait_until_closed(sdk: Sdk, url: str) -> None:
    async with sdk.ws.websockets.connect(url, proxy=None) as silent:
        with pytest.raises(sdk.ws.websockets.ConnectionClosed):
            await silent.recv()


@pytest.mark.slow
async def test_a_half_open_socket_stays_open_and_silent(bot: Bot, sim: LarkSim) -> None:
    sim.lark.clock.hold()
    async with bot.listening() as client:
        await sim.until(lambda log: any(entry.what == "ping" for entry in log))
        assert sim.lark.silence() == 1
        pongs = _count(sim, "pong")
        await bot.there(client._write_message(_ping(bot.sdk, int(client._service_id))))
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "into the void")
        await sim.until(lambda _: outcomes(sim) == [["late"]])
        assert (bot.heard, _count(sim, "pong")) == ([], pongs)
        with pytest.raises(TimeoutError):
            await bot.there(_pong(client._conn))
        sim.lark.drop()
    async with bot.listening():
        sim.lark.clock.advance(15)
        await settled(sim)
    assert bot.texts() == ["into the void"]


async def _pong(connection: Any) -> None:
    async with asyncio.timeout(0.2):
        await (await connection.ping())


def _count(sim: LarkSim, what: str) -> int:
    return sum(entry.what == what for entry in sim.log)


async def test_pings_are_not_answered_while_switched_off(bot: Bot, sim: LarkSim) -> None:
    sim.set_faults(pongs=False)
    async with bot.listening():
        await sim.until(lambda _: _count(sim, "ping"))
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hi")
        await settled(sim)
    assert _count(sim, "pong") == 0


@pytest.mark.parametrize(
    ("handshake", "error"),
    [
        ("limit", "ClientException"),
        ("forbidden", "ClientException"),
        ("busy", "ServerException"),
        ("bare", "InvalidHandshake"),
    ],
)
async def test_handshakes_are_rejected_in_larks_format(
    bot: Bot, sim: LarkSim, handshake: str, error: str
) -> None:
    sim.set_faults(handshake=handshake)
    with pytest.raises(getattr(bot.sdk.ws, error)):
        async with bot.listening():
            pass
    assert sim.lark.delivery.connections == []


async def test_the_fifty_first_connection_is_rejected(bot: Bot, sim: LarkSim) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(50):
            await stack.enter_async_context(bot.listening())
        with pytest.raises(bot.sdk.ws.ClientException, match="exceeded"):
            await stack.enter_async_context(bot.listening())


@pytest.mark.parametrize(
    ("discovery", "error"),
    [("busy", "ServerException"), ("error", "ServerException"), ("refuse", "ClientException")],
)
async def test_discovery_fails_in_larks_format(
    bot: Bot, sim: LarkSim, discovery: str, error: str
) -> None:
    sim.set_faults(discovery=discovery)
    with pytest.raises(getattr(bot.sdk.ws, error)):
        async with bot.listening():
            pass


async def test_discovery_hangs_until_switched_off(bot: Bot, sim: LarkSim) -> None:
    sim.set_faults(discovery="hang")

    async def listen() -> None:
        async with bot.listening():
            pass

    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen())
        with pytest.raises(TimeoutError):
            await sim.until(lambda _: sim.lark.delivery.connections, timeout_seconds=0.3)
        assert not listening.done()
        sim.set_faults(discovery="")


@pytest.mark.parametrize(("app_id", "secret"), [(None, "wrong"), ("cli_unknown", "x")])
async def test_wrong_credentials_are_rejected_by_discovery(
    sdk: Sdk, sim: LarkSim, app_id: str | None, secret: str
) -> None:
    wrong = Bot(sdk, sim, App(app_id or sim.app.app_id, secret))
    with pytest.raises(sdk.ws.ClientException):
        async with wrong.listening():
            pass


async def test_a_forged_ticket_is_rejected(sdk: Sdk, sim: LarkSim, bot: Bot) -> None:
    async with bot.listening() as client:
        forged = client._conn_url.replace("ticket=", "ticket=x")
        with pytest.raises(sdk.ws.InvalidHandshake):
            await bot.there(_connect(sdk, forged))


async def _connect(sdk: Sdk, url: str) -> None:
    async with sdk.ws.websockets.connect(url, proxy=None):
        pass


async def test_nothing_is_answered_during_an_outage(bot: Bot, sim: LarkSim) -> None:
    sim.lark.clock.hold()
    await bot.ask("GET", "/bot/v3/info")
    async with bot.listening() as client:
        sim.lark.go_down(3600)
        await sim.until(lambda _: not sim.lark.delivery.connections)
        await bot.until(lambda: client._conn is None)
        with pytest.raises(requests.ConnectionError):
            await bot.ask("GET", "/bot/v3/info")
    with pytest.raises(requests.ConnectionError):
        async with bot.listening():
            pass
    sim.lark.clock.advance(3600)
    assert (await bot.ask("GET", "/bot/v3/info"))[0] == 0
    async with bot.listening():
        pass


async def test_every_kind_of_answer_fault(bot: Bot, sim: LarkSim) -> None:
    chat = sim.groups[0].chat_id
    await bot.ask("GET", "/bot/v3/info")

    def next_call(kind: str, **more: Any) -> None:
        sim.set_faults(answers=[{"kind": kind, "match": "POST /open-apis/im", **more}])

    next_call("rate_limit", seconds=7)
    code, answer = await bot.send(chat, {"text": "hi"})
    assert (code, answer["http"]) == (99991400, 429)
    next_call("code", code=11232)
    assert (await bot.send(chat, {"text": "hi"}))[0] == 11232
    next_call("bad_gateway", times=2)
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            await bot.send(chat, {"text": "hi"})
    assert sim.messages(chat) == []
    next_call("lost")
    with pytest.raises(requests.ConnectionError):
        await bot.send(chat, {"text": "hi"}, uuid="u")
    assert len(sim.messages(chat)) == 1
    next_call("slow", seconds=0.2)
    assert (await bot.send(chat, {"text": "hi"}, uuid="u"))[0] == 0
    assert len(sim.messages(chat)) == 1
    entries = [entry for entry in sim.log if entry.what.startswith("POST /open-apis/im")]
    assert [entry.status for entry in entries] == [429, 400, 502, 502, 200, 200]
    assert entries[-2].got == "(lost)"
    assert entries[-1].ms >= 200


async def test_secrets_never_reach_the_log(bot: Bot, sim: LarkSim) -> None:
    async with bot.listening() as client:
        ticket = client._conn_url.partition("ticket=")[2]
        await bot.send(sim.groups[0].chat_id, {"text": "hi"})
    token = bot.sdk.lark.core.token.TokenManager.cache.get(f"self_tenant_token:{bot.app.app_id}")
    text = repr(sim.log)
    for canary in (bot.app.secret, ticket, token):
        assert canary
        assert canary not in text
