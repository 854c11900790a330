"""What a chat sees of a run while it works."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from internal.agent.domain.events.envelope import EventRecord
from internal.channels.chat.policy import ChatRules
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply
from tests.support.lark_gateway import APP, Rig, lark, rig

SHOWS = ChatRules()
PLANNED = [
    Reply(calls=[plan("look around", "tell", title="Looking")]),
    Reply(calls=[Call("list_dir", {"path": "."})]),
    Reply("All done.", hold="go"),
]


async def test_the_reaction_is_set_while_it_works_and_then_removed(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("done", hold="go")], replace(SHOWS, progress="off")) as house:
        asked = await house.say("work")
        await house.sim.until(lambda _: emojis(house, asked) == ["Typing"])
        await house.core.model.until_open(1)
        house.core.model.release("go")
        await house.sim.until(lambda _: emojis(house, asked) == [])
        assert await house.until_replies(1) == ["done"]
        await house.settled()


async def test_one_card_shows_plan_and_tools_and_ends_done(tmp_path: Path) -> None:
    async with rig(tmp_path, PLANNED, SHOWS) as house:
        asked = await house.say("look around")
        await house.sim.until(lambda _: "Lists a directory" in card_text(house))
        assert "☐ tell" in card_text(house) or "▶" in card_text(house)
        assert title(house) == "Working"
        house.core.model.release("go")
        await house.sim.until(lambda _: title(house) == "Done")
        assert await house.until_replies(1) == ["All done."]
        await house.sim.until(lambda _: emojis(house, asked) == [])
        await house.settled()
        assert [one.parent_id for one in house.from_bot()] == [asked, asked]
        assert [one.msg_type for one in house.from_bot()] == ["interactive", "interactive"]


async def test_progress_as_text_is_one_edited_message(tmp_path: Path) -> None:
    async with rig(tmp_path, PLANNED, replace(SHOWS, progress="text")) as house:
        await house.say("看看周围")
        await house.sim.until(lambda _: "列出目录" in text_progress(house))
        house.core.model.release("go")
        await house.sim.until(lambda _: "已完成" in text_progress(house))
        assert await house.until_replies(1) == ["All done."]


async def test_a_quick_run_shows_nothing_but_its_reply(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("at once")], SHOWS) as house:
        asked = await house.say("quick")
        assert await house.until_replies(1) == ["at once"]
        await house.sim.until(lambda _: emojis(house, asked) == [])
        await house.settled()
        assert len(house.from_bot()) == 1


@pytest.mark.parametrize("code", [230020, 230031, 99991400])
async def test_progress_that_fails_costs_nothing(tmp_path: Path, code: int) -> None:
    async with rig(tmp_path, PLANNED, SHOWS) as house:
        for match in ("PATCH", "/reactions"):
            house.sim.faults.answers.append(AnswerFault("code", match, times=99, code=code))
        await house.say("look around")
        house.core.model.release("go")
        assert "All done." in await house.until_replies(1)


async def test_a_card_goes_on_under_another_door_after_a_stop(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim, rig(tmp_path, PLANNED, SHOWS, sim=sim) as house:
        asked = await house.say("look around")
        await sim.until(lambda _: "Lists a directory" in card_text(house))
        house.door.stop()
        await sim.until(lambda _: not sim.lark.delivery.connections)
        async with lark(house.core, sim, SHOWS) as second:
            house.core.model.release("go")
            await sim.until(lambda _: title(house) == "Done")
            await sim.until(lambda _: emojis(house, asked) == [])
            assert await house.until_replies(1) == ["All done."]
            assert len(house.from_bot()) == 2
            assert second.health.dead_letters == 0


async def test_a_card_whose_answer_was_lost_is_found_again_and_not_sent_twice(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path, PLANNED, SHOWS) as house:
        house.sim.faults.answers.append(AnswerFault("lost", "/reply", times=1))
        await house.say("look around")
        await house.sim.until(lambda _: len(progress(house)) == 1)
        house.core.model.release("go")
        await house.sim.until(lambda _: title(house) == "Done")
        assert await house.until_replies(1) == ["All done."]
        await house.settled()
        assert len(house.from_bot()) == 2


async def test_late_steering_becomes_a_shown_task_with_its_own_reply(tmp_path: Path) -> None:
    script = [Reply("first", hold="go"), Reply("second", hold="go2")]
    async with rig(tmp_path, script, replace(SHOWS, progress="off")) as house:
        await house.say("one")
        await house.core.model.until_open(1)
        late = await house.say("two")
        await house.sim.until(lambda _: "OnIt" in emojis(house, late))
        house.core.model.release("go")
        await house.sim.until(lambda _: "Typing" in emojis(house, late))
        house.core.model.release("go2")
        assert await house.until_replies(2) == ["first", "second"]
        assert house.from_bot()[1].parent_id == late


async def test_a_run_of_lark_is_seen_by_everyone_who_watches(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("seen", hold="go")]) as house:
        gateway = house.core.house.gateway
        events: list[dict[str, Any]] = []
        watching = asyncio.create_task(watch(house, events))
        await house.say("look at me")
        await house.core.model.until_open(1)
        house.core.model.release("go")
        await house.until_replies(1)
        await asyncio.wait_for(watching, 20)
        assert events[0]["event"] == "workflow.input.received"
        assert events[0]["payload"]["channel"] == "lark"
        assert events[0]["payload"]["sender"] == f"lark:{APP.app_id}:{house.person.open_id}"
        assert gateway is house.core.house.gateway


async def watch(house: Rig, events: list[dict[str, Any]]) -> None:
    async for batch in house.core.house.gateway.watch(None, None):
        for shown in batch:
            if isinstance(shown, EventRecord):
                events.append(msgspec.json.decode(shown.json))
                if events[-1]["event"] == "workflow.result.final":
                    return


def progress(house: Rig) -> list[ChatMessage]:
    """Return the messages of the bot that are no replies."""
    return [one for one in house.from_bot() if "header" in (house.sim.card(one.message_id) or {})]


def card_text(house: Rig) -> str:
    cards = [house.sim.card(one.message_id) or {} for one in progress(house)]
    return "".join(card["body"]["elements"][0]["content"] for card in cards)


def title(house: Rig) -> str:
    cards = [house.sim.card(one.message_id) or {} for one in progress(house)]
    return "".join(card["header"]["title"]["content"] for card in cards)


def text_progress(house: Rig) -> str:
    texts = [one.content for one in house.from_bot() if one.msg_type == "text"]
    return "".join(text for text in texts if "⏳" in text)


def emojis(house: Rig, message_id: str) -> list[str]:
    return [each.emoji for each in house.sim.lark.state.messages[message_id].reactions]
