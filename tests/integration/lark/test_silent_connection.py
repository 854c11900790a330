"""A connection that answers pings but brings no events: replaced, with missed messages fetched."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from internal.channels.lark.history.missed_messages import HistoryLimits
from internal.channels.lark.silence_watch import DEAF, SilenceTimes
from internal.simulators.lark import user_actions
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import GROUP_MESSAGES, TENANT, App
from internal.simulators.lark.simulator import LarkSim
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway
from tests.support.lark_runs import STOPPED_NOTHING, reply_to, statuses
from tests.support.scripted_model import Reply, Rules

SHORT = SilenceTimes(
    first=0.3, longest=0.6, factor=1.0, grace=0.0, between=0.0, retry=0.1, mark=0.1
)
"""The silence that is checked is short."""
ON_OPEN = SilenceTimes(between=0.0, retry=0.1, overlap=0.0)
"""Look-ups after openings only, from the very moment until which nothing is missing."""
EVERYTHING = Rules([Reply("heard")])
HEARS_ALL = App(APP.app_id, APP.secret, hears_all=True)


def look_ups(lark: LarkGateway) -> list[str]:
    """Return the calls that list messages since a time."""
    calls = [each.what for each in lark.sim.log if each.kind == "call"]
    return [each for each in calls if "/im/v1/messages?" in each and "start_time" in each]


def outcome(lark: LarkGateway, message_id: str) -> list[str]:
    [push] = [each for each in lark.sim.pushes if each.message_id == message_id]
    return push.attempts


async def reopen(lark: LarkGateway) -> None:
    """Let the line drop, and return when it is open again."""
    opened = lark.transport._connection.activity.opened
    lark.sim.lark.drop()
    async with asyncio.timeout(20):
        while lark.transport._connection.activity.opened == opened:
            await lark.sim.lark.changed_within(0.02)
    await lark.until_connected()


async def until_noted(lark: LarkGateway, words: str) -> str:
    async with asyncio.timeout(20):
        while not (found := [each for each in lark.channel.link.notes if words in each]):
            await lark.sim.lark.changed_within(0.02)
    return found[0]


async def test_a_deaf_connection_is_replaced_and_what_it_missed_is_answered_once(
    tmp_path: Path,
) -> None:
    async with open_lark_gateway(tmp_path, EVERYTHING, silence=SHORT) as lark:
        await lark.say("hello")
        await lark.until_replies(1)
        deaf = lark.sim.lark.delivery.connections[0]
        lark.sim.lark.deafen()
        missed = await lark.say("can you hear me?")
        await lark.until_replies(2)
        assert outcome(lark, missed) == ["swallowed"]
        assert deaf not in lark.sim.lark.delivery.connections
        assert DEAF in await until_noted(lark, "the connection was replaced")
        assert "1 message that had not arrived was taken" in await until_noted(lark, "taken")
        assert lark.channel.link.losses == ()
        lark.sim.redeliver(missed)  # Lark has it after all
        await lark.sim.until(lambda _: "ok" in outcome(lark, missed))
        await lark.say("and now?")
        await lark.until_replies(3)
        await lark.settled()
        assert len(lark.replies()) == 3


async def test_a_quiet_connection_is_not_replaced(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, EVERYTHING, silence=SHORT) as lark:
        await lark.say("hello")
        await lark.until_replies(1)
        [connection] = lark.sim.lark.delivery.connections
        await lark.sim.until(lambda _: len(look_ups(lark)) >= 2)
        assert lark.sim.lark.delivery.connections == [connection]
        assert lark.channel.link.notes == ()


async def test_missed_messages_of_each_kind_are_taken_in_order_after_a_reconnect(
    tmp_path: Path,
) -> None:
    settings = with_values(QUIET, busy_mode="queue")
    async with (
        LarkSim([HEARS_ALL], speed=100.0) as sim,
        open_lark_gateway(tmp_path, EVERYTHING, settings, sim=sim, silence=ON_OPEN) as lark,
    ):
        sim.set_faults(limits=False)
        guest = sim.lark.state.add_person("Guest", "tk_other")
        lark.group.members.append(guest.open_id)
        await lark.say("hello")
        root = await sim.send_text(lark.person, lark.group, "hello", mention_bot=True)
        await lark.until_replies(1)
        await lark.until_replies(1, lark.group)
        thread = {"reply_to": root, "in_thread": True}
        await sim.send_text(lark.person, lark.group, "in a thread", mention_bot=True, **thread)
        await lark.until_replies(2, lark.group)
        sim.lark.deafen()
        for text in ("one", "two", "three"):
            await lark.say(text)
        recalled = await lark.say("never mind")
        user_actions.recall(sim.lark.state, lark.person.open_id, recalled)
        await sim.send_text(sim.people[1], lark.group, "not for the bot")
        ids = [
            await sim.send_text(lark.person, lark.group, "for the bot", mention_bot=True),
            await sim.send_text(lark.person, lark.group, "more", mention_bot=True, **thread),
            await sim.send_text(guest, lark.group, "from elsewhere", mention_bot=True),
        ]
        await reopen(lark)
        await lark.until_replies(4)
        await lark.until_replies(5, lark.group)
        await lark.settled()
        told = [json.dumps(each["messages"][-1]) for each in lark.core.model.requests]
        order = [next((n for n, text in enumerate(told) if word in text), -1)
                 for word in ("one", "two", "three")]  # fmt: skip
        assert order == sorted(order)
        assert -1 not in order
        replied = {one.parent_id for one in lark.from_bot(lark.group)}
        assert {ids[0], ids[2]} <= replied
        words = lark.replies(lark.group)
        assert words.count("heard") == 4
        assert len(words) == 5  # the guest may not talk
        assert len(lark.replies()) == 4
        assert sim.lark.state.messages[ids[2]].tenant_key != TENANT


async def test_a_missed_text_acts_on_nothing_that_is_newer(tmp_path: Path) -> None:
    script = [Reply("hello"), Reply("watered", hold="go")]
    async with open_lark_gateway(tmp_path, script, silence=ON_OPEN) as lark:
        await lark.say("hello")
        await lark.until_replies(1)
        lark.sim.lark.deafen()
        late = await lark.say("stop")
        lark.sim.faults.answers.append(
            AnswerFault("rate_limit", "GET /open-apis/im/v1/messages", seconds=600)
        )
        await reopen(lark)
        await until_noted(lark, "missed messages are not looked up yet: Lark is busy")
        await lark.say("water the plants")
        await lark.core.model.until_open(1)
        await reopen(lark)
        await lark.until_replies(2)
        assert reply_to(lark, late) == STOPPED_NOTHING["en"]
        lark.core.model.release("go")
        await lark.until_replies(3)
        await lark.settled()
        assert await statuses(lark) == ["completed", "completed"]
        assert not any("not looked up yet" in each for each in lark.channel.link.notes)


async def test_of_very_many_missed_messages_the_newest_are_taken_and_it_is_said(
    tmp_path: Path,
) -> None:
    async with (
        LarkSim([HEARS_ALL], speed=100.0) as sim,
        open_lark_gateway(
            tmp_path, EVERYTHING, sim=sim, silence=ON_OPEN, limits=HistoryLimits(pages=2)
        ) as lark,
    ):
        await sim.send_text(lark.person, lark.group, "hello", mention_bot=True)
        await lark.until_replies(1, lark.group)
        sim.lark.deafen()
        for number in range(1_000):
            await sim.send_text(sim.people[1], lark.group, f"chatter {number}")
        await sim.send_text(lark.person, lark.group, "and you?", mention_bot=True)
        before = len(look_ups(lark))
        await reopen(lark)
        await lark.until_replies(2, lark.group)
        await until_noted(lark, "100 messages that had not arrived were taken")
        [loss] = lark.channel.link.losses
        assert "more messages of a chat were missed than are looked up" in loss
        assert len(look_ups(lark)) == before + 2


async def test_a_missing_scope_is_said_once_and_costs_one_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with open_lark_gateway(tmp_path, EVERYTHING, silence=ON_OPEN) as lark:
        for group in lark.sim.groups:
            await lark.sim.send_text(lark.person, group, "hello", mention_bot=True)
            await lark.until_replies(1, group)
        await reopen(lark)
        assert GROUP_MESSAGES in await until_noted(lark, "cannot be looked up")
        await reopen(lark)
        await lark.say("hello")
        await lark.until_replies(1)
        assert len(look_ups(lark)) == 1
        assert len(lark.channel.link.notes) == 1
    said = [each for each in caplog.messages if each == "missed messages cannot be looked up"]
    assert len(said) == 1


@pytest.mark.slow
async def test_a_history_that_fails_delays_no_other_and_is_read_later(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, EVERYTHING, silence=ON_OPEN) as lark:
        two = lark.sim.people[1]
        for person in (two, lark.person):
            await lark.sim.send_text(person, lark.sim.dm(person), "hello")
            await lark.until_replies(1, lark.sim.dm(person))
        lark.sim.lark.deafen()
        await lark.say("again")
        await lark.sim.send_text(two, lark.sim.dm(two), "again")
        lark.sim.faults.answers.append(
            AnswerFault("code", "GET /open-apis/im/v1/messages", code=5, status=500)
        )
        await reopen(lark)
        await lark.until_replies(2, lark.sim.dm(two))
        await lark.until_replies(2)
        await lark.settled()
        assert len(look_ups(lark)) == 4


@pytest.mark.slow
async def test_nothing_is_looked_up_when_it_is_off(tmp_path: Path) -> None:
    settings = with_values(QUIET, catch_up=False)
    async with open_lark_gateway(tmp_path, EVERYTHING, settings, silence=SHORT) as lark:
        await lark.say("hello")
        await lark.until_replies(1)
        await reopen(lark)
        await lark.say("again")
        await lark.until_replies(2)
        assert look_ups(lark) == []
