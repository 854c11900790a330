"""`group_policy: thread`: recognition of the bot's threads, its cost, and silence in the others."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from internal.settings.chat import ChatAccess
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import App
from internal.simulators.lark.simulator import LarkSim
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark, open_lark_gateway
from tests.support.lark_runs import calls
from tests.support.scripted_model import Reply

EAR = App(APP.app_id, APP.secret, hears_all=True)
THREADS = with_values(QUIET, group_policy="thread", auto_chat_context=False)
LIST = "GET /open-apis/im/v1/messages"


@asynccontextmanager
async def in_threads(tmp_path: Path, script: Any, **values: Any) -> AsyncGenerator[LarkGateway]:
    """Open a gateway that answers everything in its threads."""
    settings = with_values(THREADS, **values)
    async with (
        LarkSim([EAR], speed=100.0) as sim,
        open_lark_gateway(tmp_path, script, settings, sim=sim) as lark,
    ):
        yield lark


async def talk(lark: LarkGateway, root: str, *words: str, **more: Any) -> None:
    """Let a colleague write into a thread."""
    for text in words:
        await lark.sim.send_text(
            lark.sim.people[1], lark.group, text, reply_to=root, in_thread=True, **more
        )


async def begin(lark: LarkGateway) -> str:
    return await lark.sim.send_text(lark.sim.people[1], lark.group, "lunch today?")


async def test_a_foreign_thread_is_looked_up_once(tmp_path: Path) -> None:
    async with in_threads(tmp_path, [Reply("never")]) as lark:
        root = await begin(lark)
        await talk(lark, root, "yes", "at noon", "where?", "here", "fine")
        await lark.settled()
        assert calls(lark, LIST) == 1
        assert not lark.from_bot(lark.group)
        assert not lark.core.model.requests


async def test_a_long_foreign_thread_costs_one_call(tmp_path: Path) -> None:
    async with in_threads(tmp_path, [Reply("never")]) as lark:
        state = lark.sim.lark.state
        app = state.apps.pop(EAR.app_id)  # the bot does not hear the first messages
        lark.group.bots.clear()
        root = await begin(lark)
        await talk(lark, root, *(f"message {number}" for number in range(120)))
        state.apps[app.app_id] = app
        lark.group.bots.add(app.app_id)
        await talk(lark, root, "the last one")
        await lark.settled()
        assert calls(lark, LIST) == 1
        assert not lark.from_bot(lark.group)


async def test_the_bot_never_speaks_in_a_foreign_thread(tmp_path: Path) -> None:
    nobody = ChatAccess(talk=("ou_boss",))
    async with in_threads(tmp_path, [Reply("never")], access=nobody) as lark:
        failing = AnswerFault("bad_gateway", match=LIST, times=3)
        lark.sim.set_faults(answers=[failing])
        root = await begin(lark)
        await talk(lark, root, "one", "two", "three", "four")
        await talk(lark, root, "old", age_seconds=86_400)
        await lark.settled()
        assert not lark.from_bot(lark.group)
        assert calls(lark, LIST) == 4  # three failures and the answer


async def test_a_mention_makes_a_foreign_thread_one_of_the_bot(tmp_path: Path) -> None:
    async with in_threads(tmp_path, [Reply("hello"), Reply("sure")]) as lark:
        root = await begin(lark)
        await talk(lark, root, "hm")
        await lark.settled()
        await talk(lark, root, "what do you think?", mention_bot=True)
        await lark.until_replies(1, lark.group)
        await talk(lark, root, "and then?")
        assert await lark.until_replies(2, lark.group) == ["hello", "sure"]


async def test_after_a_restart_an_own_thread_is_known_without_a_call(tmp_path: Path) -> None:
    async with in_threads(tmp_path, [Reply("hello"), Reply("sure")]) as lark:
        root = await begin(lark)
        await talk(lark, root, "what do you think?", mention_bot=True)
        await lark.until_replies(1, lark.group)
        await lark.settled()
        lark.channel.stop()
        await lark.sim.until(lambda _: not lark.sim.lark.delivery.connections)
        settings = with_values(THREADS, catch_up=False)
        async with open_lark(lark.core, lark.sim, settings):
            await talk(lark, root, "and then?")
            await lark.until_replies(2, lark.group)
        assert calls(lark, LIST + "?") == 0
