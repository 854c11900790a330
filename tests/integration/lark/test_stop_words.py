"""A word such as `stop` alone stops the run at work; else it is a message like any other."""

import json
from functools import partial
from pathlib import Path

import pytest

from internal.settings.chat import ChatAccess
from internal.simulators.lark.simulator import LarkSim
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, open_lark_gateway
from tests.support.lark_runs import reply_to, tasks, until_statuses
from tests.support.scripted_model import Call, Reply


@pytest.mark.parametrize("word", ["停", "stop", "停止。"])
async def test_a_stop_word_alone_stops_the_run_at_work(tmp_path: Path, word: str) -> None:
    async with open_lark_gateway(tmp_path, [Reply("never", hold="go")]) as lark:
        asked = await lark.say("work for an hour")
        await lark.core.model.until_open(1)
        stopped = await lark.say(word)
        await lark.until_replies(1)
        assert (reply_to(lark, asked) or "").startswith("Stopped.")
        await lark.sim.until(partial(has_reaction, lark.sim, stopped))
        await until_statuses(lark, "cancelled")
        assert len(lark.core.model.requests) == 1


async def test_a_stop_word_is_a_task_while_nothing_runs(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("Stop what?")]) as lark:
        await lark.say("stop")
        assert await lark.until_replies(1) == ["Stop what?"]
        await until_statuses(lark, "completed")


async def test_a_sentence_with_a_stop_word_steers(tmp_path: Path) -> None:
    script = [Reply(calls=[Call("list_files", {})], hold="go"), Reply("done")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("work")
        await lark.core.model.until_open(1)
        steering = await lark.say("stop at the first error")
        await lark.sim.until(partial(has_reaction, lark.sim, steering))
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["done"]
        assert len(await tasks(lark)) == 1
        assert "stop at the first error" in json.dumps(lark.core.model.requests[-1])


def has_reaction(sim: LarkSim, message_id: str, _: object = None) -> bool:
    return bool(sim.lark.state.messages[message_id].reactions)


async def test_others_may_not_stop_a_run_with_a_word(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        one, two, boss = sim.people[:3]
        settings = with_values(QUIET, access=ChatAccess(operate=(boss.open_id,)))
        script = [Reply("never", hold="go")]
        async with open_lark_gateway(tmp_path, script, settings, sim=sim) as lark:
            await sim.send_text(one, lark.group, "work", mention_bot=True)
            await lark.core.model.until_open(1)
            await sim.send_text(two, lark.group, "stop", mention_bot=True)
            refusal = "Only the person who started this task or an operator can stop it."
            assert await lark.until_replies(1, lark.group) == [refusal]
            await sim.send_text(boss, lark.group, "停", mention_bot=True)
            await until_statuses(lark, "cancelled")


async def test_a_stop_word_is_the_answer_if_a_question_offers_it(tmp_path: Path) -> None:
    question = {"question": "Which one?", "options": ["restart", "stop"]}
    script = [Reply(calls=[Call("request_user", question)]), Reply("I stop the service.")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("restart or stop the service")
        await lark.sim.until(lambda _: len(lark.from_bot()) == 1)
        await lark.say("stop")
        assert await lark.until_replies(1) == ["I stop the service."]
        await until_statuses(lark, "completed")
