"""Several messages of one person within a moment are one task (`gather_ms`)."""

import asyncio
from pathlib import Path

import pytest

from internal.settings.chat import BusyMode
from internal.simulators.lark import user_actions
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import open_agent
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import (
    APP,
    CONFIG,
    QUIET,
    LarkGateway,
    lark_transport,
    open_lark,
    open_lark_gateway,
)
from tests.support.lark_runs import TOLD, edit, said_to_model, tasks, until, until_statuses
from tests.support.scripted_model import Call, Reply

LONG, SHORT = with_values(QUIET, gather_ms=30_000), with_values(QUIET, gather_ms=400)


async def accepted(lark: LarkGateway) -> int:
    """Return how many messages wait in the inbox."""
    services = lark.core.services
    found = await services.gateway.delivery.list_accepted("lark", APP.app_id, 10)
    return len(found)


async def until_accepted(lark: LarkGateway, count: int) -> None:
    async def holds() -> bool:
        return await accepted(lark) == count

    await until(lark, holds)


async def instructions(lark: LarkGateway) -> list[str]:
    return [task.instruction for task in await tasks(lark)]


async def test_messages_of_a_moment_are_one_task_with_one_reply(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("both")], SHORT) as lark:
        first = await lark.say("look at this")
        second = await lark.say("and compare it")
        assert await lark.until_replies(1) == ["both"]
        await lark.settled()
        assert await instructions(lark) == ["look at this\nand compare it"]
        assert [one.parent_id for one in lark.from_bot()] == [first]
        reactions = lark.sim.lark.state.messages[second].reactions
        assert [one.operator for one in reactions] == [APP.app_id]


@pytest.mark.first_rows(1)
@pytest.mark.parametrize("last", ["/status", "stop", "帮助", "OK"])
async def test_a_command_or_an_answer_ends_the_moment_and_is_not_gathered(
    tmp_path: Path, last: str
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("done"), Reply("ok")], LONG) as lark:
        await lark.say("one")
        await lark.say("two")
        await until_accepted(lark, 2)
        await lark.say(last)
        await lark.settled()
        assert (await instructions(lark))[0] == "one\ntwo"


async def test_messages_of_others_are_tasks_of_their_own(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("a"), Reply("b")], SHORT) as lark:
        first, second = lark.sim.people[:2]
        for person, text in ((first, "one"), (second, "other"), (first, "two")):
            await lark.sim.send_text(person, lark.group, text, mention_bot=True)
        await lark.until_replies(2, lark.group)
        await lark.settled()
        assert sorted(await instructions(lark)) == ["one\ntwo", "other"]


async def test_a_message_that_is_recalled_while_it_is_gathered_is_left_out(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("one")], LONG) as lark:
        await lark.say("one")
        second = await lark.say("oops")
        await until_accepted(lark, 2)
        user_actions.recall(lark.sim.lark.state, lark.person.open_id, second)
        await lark.until_replies(1)
        await lark.settled()
        assert await instructions(lark) == ["one"]


@pytest.mark.first_rows(1)
@pytest.mark.parametrize("edited", [0, 1])
async def test_an_edit_ends_the_moment_and_is_told(tmp_path: Path, edited: int) -> None:
    script = [Reply("", calls=[Call("glob", {"pattern": "*"})], hold="go"), Reply("done")]
    async with open_lark_gateway(tmp_path, script, LONG) as lark:
        messages = [await lark.say("ship on"), await lark.say("Friday")]
        await until_accepted(lark, 2)
        await edit(lark, messages[edited], "later")
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["done"]
        await lark.settled()
        assert await instructions(lark) == ["ship on\nFriday"]
        assert f"{TOLD}\\nlater" in said_to_model(lark)


async def test_an_edit_replaces_no_other_message_that_steers_with_it(tmp_path: Path) -> None:
    script = [Reply("", calls=[Call("glob", {"pattern": "*"})], hold="go"), Reply("done")]
    async with open_lark_gateway(tmp_path, script, SHORT) as lark:
        await lark.say("work")
        await lark.core.model.until_open(1)
        first, second = await lark.say("also one"), await lark.say("and two")
        await lark.sim.until(lambda _: lark.sim.lark.state.messages[second].reactions)
        await edit(lark, first, "also three")
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["done"]
        await lark.settled()
        said = said_to_model(lark)
        assert "also one\\nand two" in said
        assert f"{TOLD}\\nalso three" in said


async def test_what_was_gathered_survives_the_end_of_the_process(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0, config=CONFIG) as sim:
        async with open_lark_gateway(tmp_path, [Reply("never")], LONG, sim=sim) as lark:
            await lark.say("one")
            await lark.say("two")
            await until_accepted(lark, 2)
        async with open_agent(tmp_path, [Reply("both")]) as gateway:
            transport = lark_transport(gateway, sim, SHORT)
            async with open_lark(gateway, sim, SHORT, transport=transport) as channel:
                again = LarkGateway(sim, gateway, channel, transport)
                assert await again.until_replies(1) == ["both"]
                assert await instructions(again) == ["one\ntwo"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["queue", "interrupt"])
async def test_every_busy_mode_gathers(tmp_path: Path, mode: BusyMode) -> None:
    settings = with_values(SHORT, busy_mode=mode)
    async with open_lark_gateway(tmp_path, [Reply("both")], settings) as lark:
        async with asyncio.TaskGroup() as sending:
            for text in ("one", "two"):
                sending.create_task(lark.say(text))
        await until_statuses(lark, "completed")
        assert sorted((await instructions(lark))[0].split()) == ["one", "two"]
