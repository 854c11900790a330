"""One person who asks for much at once does not keep others waiting."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.settings.chat import ChatChannelSettings
from internal.simulators.lark.model import Chat
from internal.simulators.lark.simulator import LarkSim
from tests.support.anthropic_server import Reply, Rules, When
from tests.support.lark_gateway import APP, LarkGateway, open_lark_gateway

LIMITS = {
    "LARKSPUR_ACCESS__MAX_RUNNING": "2",
    "LARKSPUR_ACCESS__MAX_WAITING": "3",
    "LARKSPUR_DISPATCH__CONCURRENCY": "4",
}
SLOW = Rules([Reply("late", when=When(last_user="slow"), hold="slow"), Reply("at once")])
PLACES = ChatChannelSettings(react_emoji="off", session_scope="thread")


@asynccontextmanager
async def busy_gateway(
    tmp_path: Path, **environ: str
) -> AsyncGenerator[tuple[LarkGateway, list[Chat]]]:
    """Open a gateway with two slow tasks of one person; yield it with the person's groups."""
    async with LarkSim([APP], speed=100.0) as sim:
        first = sim.people[0].open_id
        groups = [sim.lark.state.add_group(f"Group {n}", [first], [APP.app_id]) for n in range(7)]
        async with open_lark_gateway(
            tmp_path, SLOW, PLACES, sim=sim, environ=LIMITS | environ
        ) as lark:
            for number, group in enumerate(groups[:2], 1):
                await ask(lark, group)
                await lark.core.model.until_open(number)
            yield lark, groups[2:]


async def ask_in_turn(lark: LarkGateway, chats: list[Chat]) -> None:
    """Ask for a slow task in each chat, the next one when the one before waits in the queue."""
    for place, chat in enumerate(chats, 1):
        await ask(lark, chat)
        await lark.sim.until(partial(is_shown, lark, chat, f"Queued, number {place}"))


async def ask(lark: LarkGateway, chat: Chat, text: str = "slow") -> None:
    await lark.sim.send_text(lark.person, chat, text, mention_bot=True)


def card_titles(lark: LarkGateway, chat: Chat) -> list[Any]:
    cards = [lark.sim.card(one.message_id) for one in lark.from_bot(chat)]
    return [card["header"]["title"]["content"] for card in cards if card]


def is_shown(lark: LarkGateway, chat: Chat, title: str, _: object) -> bool:
    return card_titles(lark, chat) == [title]


async def test_a_person_with_many_tasks_does_not_keep_others_waiting(tmp_path: Path) -> None:
    async with busy_gateway(tmp_path) as (lark, chats):
        for chat in chats[:3]:
            await ask(lark, chat)
        second = lark.sim.people[1]
        dm = lark.sim.dm(second)
        for count in (1, 2, 3):
            await lark.sim.send_text(second, dm, "quick")
            assert (await lark.until_replies(count, dm))[-1] == "at once"
        assert lark.core.services.dispatcher.active_count == 2
        events = await lark.core.end_of(await lark.core.submit("quick"))
        assert events[-1]["payload"]["final_answer"] == "at once"

        lark.core.model.release("slow")
        for chat in chats[:3]:
            assert await lark.until_replies(1, chat) == ["late"]


@pytest.mark.slow
async def test_what_is_too_much_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async with busy_gateway(tmp_path) as (lark, chats):
        await ask_in_turn(lark, chats[:3])
        [refusal] = await asked_too_much(lark, chats[3], "slow, please")
        assert refusal.startswith("Your task was not accepted: 3 of your tasks are waiting")
        [refusal] = await asked_too_much(lark, chats[4], "请慢慢来")
        assert refusal.startswith("任务未被接受")
        lark.core.model.release("slow")
        assert await lark.until_replies(1, chats[2]) == ["late"]
        await ask(lark, chats[3], "quick")
        assert (await lark.until_replies(2, chats[3]))[-1] == "at once"


async def asked_too_much(lark: LarkGateway, chat: Chat, text: str) -> list[str]:
    await ask(lark, chat, text)
    return await lark.until_replies(1, chat)


@pytest.mark.slow
async def test_a_task_that_waits_says_which_place_it_has(tmp_path: Path) -> None:
    async with busy_gateway(tmp_path) as (lark, chats):
        await ask_in_turn(lark, chats[:2])
        lark.core.model.release("slow")
        for chat in chats[:2]:
            assert await lark.until_replies(1, chat) == ["late"]
            assert len(lark.from_bot(chat)) == 1, "the reply replaces the card"


async def test_a_person_has_at_most_half_of_the_places(tmp_path: Path) -> None:
    async with busy_gateway(tmp_path, LARKSPUR_ACCESS__MAX_RUNNING="9") as (lark, chats):
        await ask(lark, chats[0])
        dm = lark.sim.dm(lark.sim.people[1])
        await lark.sim.send_text(lark.sim.people[1], dm, "quick")
        assert await lark.until_replies(1, dm) == ["at once"]
        assert lark.core.services.dispatcher.active_count == 2
        lark.core.model.release("slow")
        assert await lark.until_replies(1, chats[0]) == ["late"]
