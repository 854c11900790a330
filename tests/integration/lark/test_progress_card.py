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
from tests.support.anthropic_server import Call, Fault, Reply
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, LarkGateway, open_lark, open_lark_gateway

SHOWS = ChatChannelSettings()
PLANNED = [
    Reply(calls=[plan("look around", "tell", title="Looking")]),
    Reply(calls=[Call("list_dir", {"path": "."})]),
    Reply("All done.", hold="go"),
]


async def test_the_reaction_is_set_while_it_works_and_then_removed(tmp_path: Path) -> None:
    async with open_lark_gateway(
        tmp_path, [Reply("done", hold="go")], with_values(SHOWS, progress="off")
    ) as lark:
        asked = await lark.say("work")
        await lark.sim.until(lambda _: emojis(lark, asked) == ["Typing"])
        await lark.core.model.until_open(1)
        lark.core.model.release("go")
        await lark.sim.until(lambda _: emojis(lark, asked) == [])
        assert await lark.until_replies(1) == ["done"]
        await lark.settled()


async def test_one_card_shows_plan_and_tools_and_ends_done(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        asked = await lark.say("look around")
        await lark.sim.until(lambda _: "List a folder" in card_text(lark))
        assert "☐ tell" in card_text(lark) or "▶" in card_text(lark)
        assert title(lark) == "Working"
        lark.core.model.release("go")
        await lark.sim.until(lambda _: title(lark) == "Done")
        assert await lark.until_replies(1) == ["All done."]
        await lark.sim.until(lambda _: emojis(lark, asked) == [])
        await lark.settled()
        assert [one.parent_id for one in lark.from_bot()] == [asked, asked]
        assert [one.msg_type for one in lark.from_bot()] == ["interactive", "interactive"]


async def test_the_card_says_that_the_model_is_overloaded(tmp_path: Path) -> None:
    busy = Fault("status", status=529, retry_after=2, times=1)
    script = [Reply(calls=[plan("look")]), Reply("All done.", fault=busy)]
    environ = {"LARKSPUR_LLM__MAX_RETRIES": "2"}
    async with open_lark_gateway(tmp_path, script, SHOWS, environ=environ) as lark:
        await lark.say("look around")
        await lark.sim.until(
            lambda _: "The model is overloaded, retrying in 2 s (attempt 2)" in card_text(lark)
        )
        await lark.sim.until(lambda _: title(lark) == "Done")
        assert "overloaded" not in card_text(lark)
        assert await lark.until_replies(1) == ["All done."]


async def test_progress_as_text_is_one_edited_message(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, with_values(SHOWS, progress="text")) as lark:
        await lark.say("看看周围")
        await lark.sim.until(lambda _: "列出目录" in text_progress(lark))
        lark.core.model.release("go")
        await lark.sim.until(lambda _: "已完成" in text_progress(lark))
        assert await lark.until_replies(1) == ["All done."]


async def test_a_quick_run_shows_nothing_but_its_reply(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("at once")], SHOWS) as lark:
        asked = await lark.say("quick")
        assert await lark.until_replies(1) == ["at once"]
        await lark.sim.until(lambda _: emojis(lark, asked) == [])
        await lark.settled()
        assert len(lark.from_bot()) == 1


@pytest.mark.parametrize("code", [230020, 230031, 99991400])
async def test_failing_progress_does_not_affect_the_reply(tmp_path: Path, code: int) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        for match in ("PATCH", "/reactions"):
            lark.sim.faults.answers.append(AnswerFault("code", match, times=99, code=code))
        await lark.say("look around")
        lark.core.model.release("go")
        assert "All done." in await lark.until_replies(1)


async def test_another_process_continues_a_card_after_a_stop(tmp_path: Path) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        open_lark_gateway(tmp_path, PLANNED, SHOWS, sim=sim) as lark,
    ):
        asked = await lark.say("look around")
        await sim.until(lambda _: "List a folder" in card_text(lark))
        lark.channel.stop()
        await sim.until(lambda _: not sim.lark.delivery.connections)
        async with open_lark(lark.core, sim, SHOWS) as second:
            lark.core.model.release("go")
            await sim.until(lambda _: title(lark) == "Done")
            await sim.until(lambda _: emojis(lark, asked) == [])
            assert await lark.until_replies(1) == ["All done."]
            assert len(lark.from_bot()) == 2
            assert (await second.backlog()).given_up == 0


async def test_a_card_whose_response_was_lost_is_not_sent_twice(
    tmp_path: Path,
) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        lark.sim.faults.answers.append(AnswerFault("lost", "/reply", times=1))
        await lark.say("look around")
        await lark.sim.until(lambda _: len(progress(lark)) == 1)
        lark.core.model.release("go")
        await lark.sim.until(lambda _: title(lark) == "Done")
        assert await lark.until_replies(1) == ["All done."]
        await lark.settled()
        assert len(lark.from_bot()) == 2


async def test_late_steering_becomes_a_task_with_its_own_display_and_reply(tmp_path: Path) -> None:
    script = [Reply("first", hold="go"), Reply("second", hold="go2")]
    async with open_lark_gateway(tmp_path, script, with_values(SHOWS, progress="off")) as lark:
        await lark.say("one")
        await lark.core.model.until_open(1)
        late = await lark.say("two")
        await lark.sim.until(lambda _: "OnIt" in emojis(lark, late))
        lark.core.model.release("go")
        await lark.sim.until(lambda _: "Typing" in emojis(lark, late))
        lark.core.model.release("go2")
        assert await lark.until_replies(2) == ["first", "second"]
        assert lark.from_bot()[1].parent_id == late


async def test_a_run_from_lark_is_in_the_event_stream(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("seen", hold="go")]) as lark:
        gateway = lark.core.services.gateway
        events: list[dict[str, Any]] = []
        watching = asyncio.create_task(watch(lark, events))
        await lark.say("look at me")
        await lark.core.model.until_open(1)
        lark.core.model.release("go")
        await lark.until_replies(1)
        await asyncio.wait_for(watching, 20)
        assert events[0]["event"] == "workflow.input.received"
        assert events[0]["payload"]["channel"] == "lark"
        assert events[0]["payload"]["sender"] == f"lark:{APP.app_id}:{lark.person.open_id}"
        assert gateway is lark.core.services.gateway


async def watch(lark: LarkGateway, events: list[dict[str, Any]]) -> None:
    async for batch in lark.core.services.gateway.watch(None, None):
        for shown in batch:
            if isinstance(shown, EventRecord):
                events.append(msgspec.json.decode(shown.json))
                if events[-1]["event"] == "workflow.result.final":
                    return


def progress(lark: LarkGateway) -> list[ChatMessage]:
    """Return the messages of the bot that are no replies."""
    return [one for one in lark.from_bot() if "header" in (lark.sim.card(one.message_id) or {})]


def card_text(lark: LarkGateway) -> str:
    cards = [lark.sim.card(one.message_id) or {} for one in progress(lark)]
    return "".join(card["body"]["elements"][0]["text"]["content"] for card in cards)


def title(lark: LarkGateway) -> str:
    cards = [lark.sim.card(one.message_id) or {} for one in progress(lark)]
    return "".join(card["header"]["title"]["content"] for card in cards)


def text_progress(lark: LarkGateway) -> str:
    texts = [one.content for one in lark.from_bot() if one.msg_type == "text"]
    return "".join(text for text in texts if "⏳" in text)


def emojis(lark: LarkGateway, message_id: str) -> list[str]:
    return [each.emoji for each in lark.sim.lark.state.messages[message_id].reactions]
