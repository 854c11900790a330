"""Progress of a running task as shown in a chat."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.chat.displays.run_state import MAX_THOUGHT_CHARS
from internal.settings.chat import ChatChannelSettings
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Fault, Reply
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import (
    APP,
    LarkGateway,
    open_lark,
    open_lark_gateway,
    question_line,
    question_outcome,
    shown_text,
)
from tests.support.lark_runs import PLANNED, until_closed
from tests.support.mcp_servers import hostile_entry, until
from tests.support.sandboxes import sandbox_param

SHOWS = ChatChannelSettings()


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


@pytest.mark.slow
async def test_a_message_gets_one_of_several_reactions(tmp_path: Path) -> None:
    settings = with_values(SHOWS, progress="off", react_emoji=("OneSecond", "THINKING"))
    async with open_lark_gateway(tmp_path, [Reply("done", hold="go")], settings) as lark:
        asked = await lark.say("work")
        await lark.sim.until(lambda _: emojis(lark, asked) == [settings.working_emoji(asked)])
        assert settings.working_emoji(asked) in {"OneSecond", "THINKING"}
        lark.core.model.release("go")
        await lark.sim.until(lambda _: emojis(lark, asked) == [])


async def test_one_card_shows_plan_and_tools_and_becomes_the_answer(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        asked = await lark.say("look around")
        await lark.sim.until(lambda _: "List a folder" in card_text(lark))
        assert "☐ tell" in card_text(lark) or "▶" in card_text(lark)
        assert title(lark) == "Working"
        [card] = lark.from_bot()
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["All done."]
        await lark.sim.until(lambda _: emojis(lark, asked) == [])
        await until_closed(lark)
        assert [one.message_id for one in lark.from_bot()] == [card.message_id]
        assert card.parent_id == asked


@pytest.mark.parametrize(
    ("provider", "network", "footer"),
    [
        sandbox_param("bubblewrap", "off", "isolated · no network"),
        sandbox_param("bubblewrap", "registries", "isolated · package indexes"),
        sandbox_param("native", "off", "not isolated"),
    ],
)
@pytest.mark.first_rows(1)
async def test_the_card_says_whether_commands_are_isolated(
    tmp_path: Path, provider: str, network: str, footer: str
) -> None:
    environ = {"LARKSPUR_SANDBOX__PROVIDER": provider, "LARKSPUR_SANDBOX__NETWORK": network}
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS, environ=environ) as lark:
        await lark.say("look around")
        await lark.sim.until(lambda _: footer in card_text(lark, element=-1))
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["All done."]


async def test_thoughts_are_folded_in_the_card_and_never_in_the_answer(tmp_path: Path) -> None:
    script = [
        Reply(thinking="First **I** look.", calls=[plan("look around")]),
        Reply(thinking="<at id=all></at> Then " + "and then " * 500, calls=[plan("tell")]),
        Reply(thinking="Now I know.", text="All done.", hold="go"),
    ]
    async with open_lark_gateway(tmp_path, script, SHOWS) as lark:
        await lark.say("look around")
        await lark.sim.until(lambda _: thoughts(lark).endswith("and then"))
        assert len(thoughts(lark)) <= MAX_THOUGHT_CHARS + 1
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["All done."]
        await until_closed(lark)
        [answer] = lark.from_bot()
        assert "Now I know." not in json.dumps(lark.sim.card(answer.message_id))


@pytest.mark.slow
async def test_the_card_says_that_the_model_is_overloaded(tmp_path: Path) -> None:
    busy = Fault("status", status=529, retry_after=2, times=1)
    script = [Reply(calls=[plan("look")]), Reply("All done.", fault=busy)]
    environ = {"LARKSPUR_LLM__MAX_RETRIES": "2"}
    async with open_lark_gateway(tmp_path, script, SHOWS, environ=environ) as lark:
        await lark.say("look around")
        await lark.sim.until(
            lambda _: "The model is overloaded, retrying in 2 s (attempt 2 of 3)" in card_text(lark)
        )
        assert await lark.until_replies(1) == ["All done."]


async def test_progress_as_text_is_one_edited_message(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, with_values(SHOWS, progress="text")) as lark:
        await lark.say("看看周围")
        await lark.sim.until(lambda _: "列出目录" in text_progress(lark))
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["All done."]
        await until_closed(lark)
        assert len(lark.from_bot()) == 1


async def test_a_quick_run_shows_nothing_but_its_reply(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("at once")], SHOWS) as lark:
        asked = await lark.say("quick")
        assert await lark.until_replies(1) == ["at once"]
        await lark.sim.until(lambda _: emojis(lark, asked) == [])
        await lark.settled()
        assert len(lark.from_bot()) == 1


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(230020, marks=pytest.mark.slow),
        230031,
        pytest.param(99991400, marks=pytest.mark.slow),
    ],
)
async def test_failing_progress_does_not_affect_the_reply(tmp_path: Path, code: int) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        for match in ("PATCH", "/reactions"):
            lark.sim.faults.answers.append(AnswerFault("code", match, times=99, code=code))
        await lark.say("look around")
        lark.core.model.release("go")
        assert "All done." in await lark.until_replies(1)


async def until_released(lark: LarkGateway) -> None:
    """Return when the process leads the account no more, and its last update has an outcome."""
    services = lark.core.services
    name = f"lark:{APP.app_id}"
    async with asyncio.timeout(30):
        while True:
            row = await services.database.read(partial(services.stores.leaderships.get, name))
            if row is not None and not row.owner:
                return


async def test_another_process_continues_a_card_after_a_stop(tmp_path: Path) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        open_lark_gateway(tmp_path, PLANNED, SHOWS, sim=sim) as lark,
    ):
        asked = await lark.say("look around")
        await sim.until(lambda _: "List a folder" in card_text(lark))
        lark.channel.stop()
        await until_released(lark)
        async with open_lark(lark.core, sim, SHOWS) as second:
            lark.core.model.release("go")
            assert await lark.until_replies(1) == ["All done."]
            await sim.until(lambda _: emojis(lark, asked) == [])
            await until_closed(lark)
            assert len(lark.from_bot()) == 1
            assert (await second.backlog()).given_up == 0


async def test_a_card_whose_response_was_lost_is_not_sent_twice(
    tmp_path: Path,
) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        lark.sim.faults.answers.append(AnswerFault("lost", "/reply", times=2))
        await lark.say("look around")
        await lark.sim.until(lambda _: len(progress(lark)) == 1)
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["All done."]
        await until_closed(lark)
        assert len(lark.from_bot()) == 1


async def test_a_card_that_was_recalled_is_followed_by_a_new_reply(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        await lark.say("look around")
        await lark.sim.until(lambda _: "List a folder" in card_text(lark))
        [card] = lark.from_bot()
        card.deleted = True
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["All done."]
        await until_closed(lark)
        assert len(lark.from_bot()) == 1


@pytest.mark.slow
async def test_an_answer_whose_update_was_lost_replaces_the_card_again(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        await until_quiet(lark)
        lark.sim.faults.answers.append(AnswerFault("lost", "PATCH", times=2))
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["All done."]
        await until_closed(lark)
        assert len(lark.from_bot()) == 1


@pytest.mark.slow
async def test_an_update_that_hangs_never_overwrites_the_answer(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        lark.sim.faults.answers.append(AnswerFault("late", "PATCH", times=1, seconds=60))
        await lark.say("look around")
        await lark.sim.until(lambda _: lark.sim.faults.answers[0].times == 0)
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["All done."]
        await until_closed(lark)
        assert len(lark.from_bot()) == 1  # the card is removed


async def test_a_stopped_run_says_so_in_its_card(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, PLANNED, SHOWS) as lark:
        asked = await lark.say("look around")
        await lark.sim.until(lambda _: "List a folder" in card_text(lark))
        await lark.say("/stop")
        await lark.sim.until(lambda _: not progress(lark))
        await until_closed(lark)
        [answer] = lark.from_bot()
        assert answer.parent_id == asked
        assert "topped" in lark.replies()[0]


async def test_what_a_tool_of_a_server_reports_is_in_the_card_and_a_stop_reaches_the_server(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    entry = {**hostile_entry("plain", state), "risk": "read"}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"tested": entry}}))
    script = [Reply(calls=[Call("mcp__tested__hang", {})]), Reply("Done.")]
    async with open_lark_gateway(tmp_path, script, SHOWS) as lark:
        reviews = lark.core.services.gateway.mcp
        report = await reviews.review("tested", LOCAL_OWNER, start=True)
        await reviews.decide("tested", report.server.sha256, LOCAL_OWNER, "web", accept=True)
        await lark.say("hang")
        await lark.sim.until(lambda _: "“hang (tested)” · half (1 of 2)" in card_text(lark))
        await lark.say("/stop")
        await lark.sim.until(lambda _: "topped" in "".join(lark.replies()))
        await until(lambda: "cancelled" in state.read_text())


ASKS = [
    Reply(calls=[plan("paint")]),
    Reply(calls=[Call("list_dir", {"path": "."})]),
    Reply(calls=[Call("request_user", {"question": "Which colour?"})], hold="ask"),
    Reply("All done.", hold="paint"),
]


async def ask_for_a_colour(lark: LarkGateway) -> ChatMessage:
    """Return the card of a run when its question is below it."""
    await lark.say("paint it")
    await lark.sim.until(lambda _: "✓ List a folder" in card_text(lark))
    lark.core.model.release("ask")
    await lark.sim.until(lambda _: len(lark.from_bot()) == 2)
    await lark.sim.until(lambda _: "Waiting" in title(lark))
    return lark.from_bot()[0]


async def test_a_run_with_a_question_leaves_its_line_and_the_answer(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, ASKS, SHOWS) as lark:
        await ask_for_a_colour(lark)
        lark.core.model.release("paint")
        await lark.say("green")
        assert await lark.until_replies(1) == ["All done."]
        await until_closed(lark)
        question, answer = lark.from_bot()
        assert shown_text(lark.sim, answer) == "All done."
        assert question_line(lark.sim.card(question.message_id) or {}).startswith("✓ **Answered**")


async def test_the_card_goes_on_below_an_answered_question(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, ASKS, SHOWS) as lark:
        first = await ask_for_a_colour(lark)
        await lark.say("green")
        await lark.sim.until(lambda _: first.deleted)
        question, card = lark.from_bot()
        assert question_outcome(lark.sim.card(question.message_id) or {}) == "Answered"
        assert "✓ List a folder" in card_text(lark)
        lark.core.model.release("paint")
        assert await lark.until_replies(1) == ["All done."]
        await until_closed(lark)
        assert [each.message_id for each in lark.from_bot()] == [
            question.message_id,
            card.message_id,
        ]


@pytest.mark.slow
async def test_a_card_that_cannot_be_removed_says_where_the_run_goes_on(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, ASKS, SHOWS) as lark:
        first = await ask_for_a_colour(lark)
        lark.sim.faults.answers.append(AnswerFault("code", "DELETE", times=9, code=230026))
        await lark.say("green")
        await lark.sim.until(
            lambda _: "goes on below" in json.dumps(lark.sim.card(first.message_id))
        )
        lark.core.model.release("paint")
        assert await lark.until_replies(1) == ["All done."]
        await until_closed(lark)
        assert len(lark.from_bot()) == 3


@pytest.mark.slow
async def test_a_card_is_moved_once_although_the_process_ends(tmp_path: Path) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        open_lark_gateway(tmp_path, ASKS, SHOWS, sim=sim) as lark,
    ):
        await ask_for_a_colour(lark)
        sim.faults.answers.append(AnswerFault("bad_gateway", "DELETE", times=999))
        await lark.say("green")
        await sim.until(
            lambda log: any("DELETE" in one.what and "reactions" not in one.what for one in log)
        )
        assert len(lark.from_bot()) == 3
        lark.channel.stop()
        await sim.until(lambda _: not sim.lark.delivery.connections)
        sim.faults.answers.clear()
        async with open_lark(lark.core, sim, SHOWS):
            lark.core.model.release("paint")
            assert await lark.until_replies(1) == ["All done."]
            await until_closed(lark)
        assert len(lark.from_bot()) == 2


async def test_a_long_answer_begins_in_the_card(tmp_path: Path) -> None:
    script = [*PLANNED[:2], Reply("long " * 7_000, hold="go")]
    async with open_lark_gateway(tmp_path, script, SHOWS) as lark:
        await lark.say("look around")
        await lark.sim.until(lambda _: "List a folder" in card_text(lark))
        [card] = lark.from_bot()
        lark.core.model.release("go")
        replies = await lark.until_replies(2)
        await until_closed(lark)
        assert [lark.from_bot()[0].message_id, len(lark.from_bot())] == [card.message_id, 2]
        assert all(reply.startswith("long") for reply in replies)


@pytest.mark.parametrize("call", ["DELETE", pytest.param("PATCH", marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_the_end_of_a_display_is_repeated_after_a_restart(tmp_path: Path, call: str) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        open_lark_gateway(tmp_path, PLANNED, SHOWS, sim=sim) as lark,
    ):
        asked = await lark.say("look around")
        await sim.until(lambda _: "List a folder" in card_text(lark) and emojis(lark, asked))
        sim.faults.answers.append(AnswerFault("bad_gateway", call, times=999))
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["All done."]
        await sim.until(lambda log: any(call in each.what and each.status == 502 for each in log))
        lark.channel.stop()
        await sim.until(lambda _: not sim.lark.delivery.connections)
        sim.faults.answers.clear()
        async with open_lark(lark.core, sim, SHOWS):
            await sim.until(lambda _: title(lark) in {"", "Done"} and not emojis(lark, asked))
            await until_closed(lark)
            assert lark.replies() == ["All done."]


@pytest.mark.slow
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


async def until_quiet(lark: LarkGateway) -> None:
    """Ask, and return when the card shows all there is before the answer."""
    await lark.say("look around")
    await lark.sim.until(lambda _: "✓ List a folder" in card_text(lark))


def progress(lark: LarkGateway) -> list[ChatMessage]:
    """Return the messages of the bot that are no replies."""
    return [one for one in lark.from_bot() if "header" in (lark.sim.card(one.message_id) or {})]


def card_text(lark: LarkGateway, element: int = 0) -> str:
    cards = [lark.sim.card(one.message_id) or {} for one in progress(lark)]
    return "".join(card["body"]["elements"][element]["text"]["content"] for card in cards)


def thoughts(lark: LarkGateway) -> str:
    """Return the folded thoughts in the cards that show progress."""
    cards = [lark.sim.card(one.message_id) or {} for one in progress(lark)]
    panels = [
        each
        for card in cards
        for each in card["body"]["elements"]
        if each["tag"] == "collapsible_panel" and not each["expanded"]
    ]
    assert {each["header"]["title"]["content"] for each in panels} <= {"Thought for 1 s"}
    return "".join(each["elements"][0]["text"]["content"] for each in panels)


def title(lark: LarkGateway) -> str:
    cards = [lark.sim.card(one.message_id) or {} for one in progress(lark)]
    return "".join(card["header"]["title"]["content"] for card in cards)


def text_progress(lark: LarkGateway) -> str:
    texts = [one.content for one in lark.from_bot() if one.msg_type == "text"]
    return "".join(text for text in texts if "⏳" in text)


def emojis(lark: LarkGateway, message_id: str) -> list[str]:
    return [each.emoji for each in lark.sim.lark.state.messages[message_id].reactions]
