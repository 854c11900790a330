"""Messages of other bots: ignored by default; with the setting answered, but not for ever."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from internal.channels.chat.message_handler import MAX_BOT_TURNS
from internal.i18n.chat import ChatPhrases
from internal.settings.chat import ChatChannelSettings
from internal.simulators.lark.model import BOT_MENTION_EVENTS, App
from internal.simulators.lark.simulator import LarkSim
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, CONFIG, QUIET, LarkGateway, open_lark_gateway
from tests.support.lark_runs import tasks
from tests.support.scripted_model import Reply

OTHER = App("cli_other_bot", "secret", name="Helper")
ANSWERS = with_values(QUIET, answer_bots=True)
PAUSED = ChatPhrases("en")("bots_paused", count=MAX_BOT_TURNS)


def answer(_: dict[str, Any]) -> Reply:
    return Reply("pong")


@asynccontextmanager
async def two_bots(folder: Path, settings: ChatChannelSettings) -> AsyncGenerator[LarkGateway]:
    app = replace(APP, scopes=APP.scopes | {BOT_MENTION_EVENTS})
    async with LarkSim([app, OTHER], speed=100.0, config=CONFIG) as sim:
        sim.set_faults(limits=False)
        async with open_lark_gateway(folder, answer, settings, sim=sim) as lark:
            yield lark


async def ping(lark: LarkGateway, text: str = "ping", *, mention: bool = True) -> None:
    mentions = [lark.sim.app.open_id] if mention else []
    await lark.sim.send_as_bot(OTHER.app_id, lark.group, text, mentions)


def replies(lark: LarkGateway) -> list[str]:
    mine = {one.message_id for one in lark.from_bot(lark.group) if one.sender == APP.app_id}
    texts = zip(lark.from_bot(lark.group), lark.replies(lark.group), strict=True)
    return [text for one, text in texts if one.message_id in mine]


async def test_other_bots_are_ignored_by_default(tmp_path: Path) -> None:
    async with two_bots(tmp_path, QUIET) as lark:
        await ping(lark)
        await lark.settled()
        assert replies(lark) == []


async def test_a_bot_is_answered_ten_times_in_a_row_and_then_waits_for_a_person(
    tmp_path: Path,
) -> None:
    async with two_bots(tmp_path, ANSWERS) as lark:
        for number in range(1, MAX_BOT_TURNS + 4):
            await ping(lark)
            await lark.settled()
            assert len(replies(lark)) == min(number, MAX_BOT_TURNS + 1)
        assert replies(lark) == ["pong"] * MAX_BOT_TURNS + [PAUSED]
        await lark.sim.send_text(lark.person, lark.group, "go on", mention_bot=True)
        await lark.settled()
        await ping(lark)
        await lark.settled()
        assert replies(lark)[MAX_BOT_TURNS + 1 :] == ["pong", "pong"]


async def test_words_of_bots_are_no_commands_and_need_a_mention(tmp_path: Path) -> None:
    async with two_bots(tmp_path, ANSWERS) as lark:
        await ping(lark, "/new")
        await ping(lark, "not for you", mention=False)
        await lark.settled()
        assert [task.instruction for task in await tasks(lark)] == ["/new"]
