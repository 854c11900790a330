"""What a chat sees of a run while it works."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from internal.agent.domain.events.envelope import EventRecord
from internal.config.chat import ChatChannelSettings
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, LarkRig, open_lark, open_rig

SHOWS = ChatChannelSettings()
PLANNED = [
    Reply(calls=[plan("look around", "tell", title="Looking")]),
    Reply(calls=[Call("list_dir", {"path": "."})]),
    Reply("All done.", hold="go"),
]


async def test_the_reaction_is_set_while_it_works_and_then_removed(tmp_path: Path) -> None:
    async with open_rig(
        tmp_path, [Reply("done", hold="go")], with_values(SHOWS, progress="off")
    ) as rig:
        asked = await rig.say("work")
        await rig.sim.until(lambda _: emojis(rig, asked) == ["Typing"])
        await rig.core.model.until_open(1)
        rig.core.model.release("go")
        await rig.sim.until(lambda _: emojis(rig, asked) == [])
        assert await rig.until_replies(1) == ["done"]
        await rig.settled()


async def test_one_card_shows_plan_and_tools_and_ends_done(tmp_path: Path) -> None:
    async with open_rig(tmp_path, PLANNED, SHOWS) as rig:
        asked = await rig.say("look around")
        await rig.sim.until(lambda _: "List a folder" in card_text(rig))
        assert "☐ tell" in card_text(rig) or "▶" in card_text(rig)
        assert title(rig) == "Working"
        rig.core.model.release("go")
        await rig.sim.until(lambda _: title(rig) == "Done")
        assert await rig.until_replies(1) == ["All done."]
        await rig.sim.until(lambda _: emojis(rig, asked) == [])
        await rig.settled()
        assert [one.parent_id for one in rig.from_bot()] == [asked, asked]
        assert [one.msg_type for one in rig.from_bot()] == ["interactive", "interactive"]


async def test_progress_as_text_is_one_edited_message(tmp_path: Path) -> None:
    async with open_rig(tmp_path, PLANNED, with_values(SHOWS, progress="text")) as rig:
        await rig.say("看看周围")
        await rig.sim.until(lambda _: "列出目录" in text_progress(rig))
        rig.core.model.release("go")
        await rig.sim.until(lambda _: "已完成" in text_progress(rig))
        assert await rig.until_replies(1) == ["All done."]


async def test_a_quick_run_shows_nothing_but_its_reply(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("at once")], SHOWS) as rig:
        asked = await rig.say("quick")
        assert await rig.until_replies(1) == ["at once"]
        await rig.sim.until(lambda _: emojis(rig, asked) == [])
        await rig.settled()
        assert len(rig.from_bot()) == 1


@pytest.mark.parametrize("code", [230020, 230031, 99991400])
async def test_failing_progress_does_not_affect_the_reply(tmp_path: Path, code: int) -> None:
    async with open_rig(tmp_path, PLANNED, SHOWS) as rig:
        for match in ("PATCH", "/reactions"):
            rig.sim.faults.answers.append(AnswerFault("code", match, times=99, code=code))
        await rig.say("look around")
        rig.core.model.release("go")
        assert "All done." in await rig.until_replies(1)


async def test_another_process_continues_a_card_after_a_stop(tmp_path: Path) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        open_rig(tmp_path, PLANNED, SHOWS, sim=sim) as rig,
    ):
        asked = await rig.say("look around")
        await sim.until(lambda _: "List a folder" in card_text(rig))
        rig.channel.stop()
        await sim.until(lambda _: not sim.lark.delivery.connections)
        async with open_lark(rig.core, sim, SHOWS) as second:
            rig.core.model.release("go")
            await sim.until(lambda _: title(rig) == "Done")
            await sim.until(lambda _: emojis(rig, asked) == [])
            assert await rig.until_replies(1) == ["All done."]
            assert len(rig.from_bot()) == 2
            assert second.health.dead_letters == 0


async def test_a_card_whose_response_was_lost_is_not_sent_twice(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path, PLANNED, SHOWS) as rig:
        rig.sim.faults.answers.append(AnswerFault("lost", "/reply", times=1))
        await rig.say("look around")
        await rig.sim.until(lambda _: len(progress(rig)) == 1)
        rig.core.model.release("go")
        await rig.sim.until(lambda _: title(rig) == "Done")
        assert await rig.until_replies(1) == ["All done."]
        await rig.settled()
        assert len(rig.from_bot()) == 2


async def test_late_steering_becomes_a_task_with_its_own_display_and_reply(tmp_path: Path) -> None:
    script = [Reply("first", hold="go"), Reply("second", hold="go2")]
    async with open_rig(tmp_path, script, with_values(SHOWS, progress="off")) as rig:
        await rig.say("one")
        await rig.core.model.until_open(1)
        late = await rig.say("two")
        await rig.sim.until(lambda _: "OnIt" in emojis(rig, late))
        rig.core.model.release("go")
        await rig.sim.until(lambda _: "Typing" in emojis(rig, late))
        rig.core.model.release("go2")
        assert await rig.until_replies(2) == ["first", "second"]
        assert rig.from_bot()[1].parent_id == late


async def test_a_run_from_lark_is_in_the_event_stream(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("seen", hold="go")]) as rig:
        gateway = rig.core.house.gateway
        events: list[dict[str, Any]] = []
        watching = asyncio.create_task(watch(rig, events))
        await rig.say("look at me")
        await rig.core.model.until_open(1)
        rig.core.model.release("go")
        await rig.until_replies(1)
        await asyncio.wait_for(watching, 20)
        assert events[0]["event"] == "workflow.input.received"
        assert events[0]["payload"]["channel"] == "lark"
        assert events[0]["payload"]["sender"] == f"lark:{APP.app_id}:{rig.person.open_id}"
        assert gateway is rig.core.house.gateway


async def watch(rig: LarkRig, events: list[dict[str, Any]]) -> None:
    async for batch in rig.core.house.gateway.watch(None, None):
        for shown in batch:
            if isinstance(shown, EventRecord):
                events.append(msgspec.json.decode(shown.json))
                if events[-1]["event"] == "workflow.result.final":
                    return


def progress(rig: LarkRig) -> list[ChatMessage]:
    """Return the messages of the bot that are no replies."""
    return [one for one in rig.from_bot() if "header" in (rig.sim.card(one.message_id) or {})]


def card_text(rig: LarkRig) -> str:
    cards = [rig.sim.card(one.message_id) or {} for one in progress(rig)]
    return "".join(card["body"]["elements"][0]["content"] for card in cards)


def title(rig: LarkRig) -> str:
    cards = [rig.sim.card(one.message_id) or {} for one in progress(rig)]
    return "".join(card["header"]["title"]["content"] for card in cards)


def text_progress(rig: LarkRig) -> str:
    texts = [one.content for one in rig.from_bot() if one.msg_type == "text"]
    return "".join(text for text in texts if "⏳" in text)


def emojis(rig: LarkRig, message_id: str) -> list[str]:
    return [each.emoji for each in rig.sim.lark.state.messages[message_id].reactions]
