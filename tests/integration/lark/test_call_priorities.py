"""Replies come first: calls that only decorate a chat never delay them."""

from pathlib import Path

import pytest

from internal.channels.chat.displays.displayed_run import REACTION_DELAY_SECONDS
from internal.settings.chat import ChatChannelSettings
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Reply
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import LarkGateway, open_lark_gateway

SHOWS = ChatChannelSettings()
REACTS = with_values(SHOWS, progress="off")
CHATS = 40
HANGS = 60.0
"""Seconds of a call that hangs; every reply arrives before the first of them returns."""


@pytest.mark.slow
async def test_hanging_reactions_do_not_delay_answers(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, lambda _: Reply("42", hold="go"), REACTS) as lark:
        lark.sim.set_faults(limits=False)
        lark.sim.faults.answers.append(AnswerFault("slow", "/reactions", 9999, HANGS))
        asked = await ask_all(lark)
        await lark.sim.until(lambda _: any(reactions(lark.sim, each) for each in asked))
        lark.core.model.release("go")
        await lark.sim.until(lambda _: len(answered(lark)) == CHATS, HANGS / 2)
        assert calls(lark.sim, "/reactions") == []


@pytest.mark.slow
async def test_hanging_progress_does_not_delay_answers(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("look")]), Reply("seen", hold="go"), Reply("at once")]
    async with open_lark_gateway(tmp_path, script, with_values(SHOWS, react_emoji="off")) as lark:
        lark.sim.faults.answers.append(AnswerFault("slow", "/reply", 1, HANGS))
        await lark.say("look")
        await lark.sim.until(lambda _: lark.from_bot())
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["seen"]
        assert len(calls(lark.sim, "/reply")) == 1


async def test_the_first_second_of_a_run_has_no_reaction(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("at once")], REACTS) as lark:
        await lark.say("quick")
        await lark.until_replies(1)
        await lark.settled()
        pushed = next(each for each in lark.sim.log if each.kind == "frame.out")
        made = [each for each in lark.sim.log if each.kind == "call" and "/reactions" in each.what]
        # on a busy machine the run takes longer
        early = REACTION_DELAY_SECONDS * 1000
        assert [each.what for each in made if each.at_ms - pushed.at_ms < early] == []


async def ask_all(lark: LarkGateway) -> list[str]:
    """Ask in 40 direct chats; return the ids of the messages."""
    people = [lark.sim.lark.state.add_person(f"Person {number}") for number in range(CHATS)]
    return [await lark.sim.send_text(one, lark.sim.dm(one), "what?") for one in people]


def answered(lark: LarkGateway) -> list[str]:
    chats = [chat for chat in lark.sim.lark.state.chats.values() if chat.mode == "p2p"]
    return [chat.chat_id for chat in chats if lark.replies(chat) == ["42"]]


def reactions(sim: LarkSim, message_id: str) -> list[str]:
    return [each.emoji for each in sim.lark.state.messages[message_id].reactions]


def calls(sim: LarkSim, part: str) -> list[str]:
    """Return the calls that have returned."""
    return [each.what for each in sim.log if each.kind == "call" and part in each.what]
