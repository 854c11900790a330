"""The daily limit of a person, through the real SDK's connection."""

from pathlib import Path

from internal.settings.chat import ChatAccess
from internal.simulators.lark.model import Person
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Reply, Rules, When
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway

DOLLARS = {"LARKSPUR_LLM__PRICES": '{"claude-x": {"input": 0, "output": 1000000}}'}
"""With these prices a reply costs as many dollars as it has tokens; the limit is 5 dollars."""
NO_PRICES = {"LARKSPUR_ACCESS__MAX_DAILY_TOKENS": "5", "LARKSPUR_LLM__MODEL": "unpriced"}
USED_UP = "Your limit for today is used up. It resets at 00:00 UTC"


def costing(text: str, dollars: int) -> Reply:
    return Reply(text, usage={"output_tokens": dollars})


async def say(lark: LarkGateway, person: Person, text: str) -> str:
    """Send a direct message and return the reply to it."""
    chat = lark.sim.dm(person)
    count = len(lark.replies(chat))
    await lark.sim.send_text(person, chat, text)
    return (await lark.until_replies(count + 1, chat))[-1]


async def test_a_person_is_refused_until_tomorrow_and_others_are_not(tmp_path: Path) -> None:
    script = Rules([costing("done", 3)])
    async with LarkSim([APP], speed=100.0) as sim:
        async with open_lark_gateway(tmp_path, script, sim=sim, environ=DOLLARS) as lark:
            first, second, *_ = sim.people
            assert [await say(lark, first, "go") for _ in range(2)] == ["done", "done"]
            assert USED_UP in await say(lark, first, "go")
            assert "将于 00:00 UTC 重置" in await say(lark, first, "再来一次")
            assert await say(lark, second, "go") == "done"
            events = await lark.core.end_of(await lark.core.submit("go"))
            assert events[-1]["payload"]["final_answer"] == "done"
            assert lark.core.model.count == 4
        async with open_lark_gateway(tmp_path, script, sim=sim, environ=DOLLARS) as lark:
            assert USED_UP in await say(lark, first, "after a restart")
            assert lark.core.model.count == 0


async def test_operators_have_no_daily_limit(tmp_path: Path) -> None:
    settings = with_values(QUIET, access=ChatAccess(operate=("*",)))
    async with open_lark_gateway(
        tmp_path, Rules([costing("done", 4)]), settings, environ=DOLLARS
    ) as lark:
        assert [await say(lark, lark.person, "go") for _ in range(3)] == ["done"] * 3


async def test_a_run_ends_when_the_limit_is_reached(tmp_path: Path) -> None:
    script = [Reply(calls=[plan()], usage={"output_tokens": 4}) for _ in range(9)]
    environ = {**DOLLARS, "LARKSPUR_AGENT__MAX_COST": "100"}
    async with open_lark_gateway(tmp_path, script, environ=environ) as lark:
        assert USED_UP in await say(lark, lark.person, "go")
        assert lark.core.model.count == 2


async def test_tokens_count_for_a_model_without_a_price(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, Rules([costing("done", 5)]), environ=NO_PRICES) as lark:
        assert await say(lark, lark.person, "go") == "done"
        assert USED_UP in await say(lark, lark.person, "go")


async def test_runs_at_the_same_time_exceed_the_limit_by_one_call_each(tmp_path: Path) -> None:
    calling = Reply(calls=[plan()], usage={"output_tokens": 6}, hold="both")
    environ = {**DOLLARS, "LARKSPUR_AGENT__MAX_COST": "100"}
    rules = Rules([Reply("late", when=When(last_result="plan")), calling])
    async with open_lark_gateway(tmp_path, rules, environ=environ) as lark:
        await lark.say("one")
        await lark.sim.send_text(lark.person, lark.group, "two", mention_bot=True)
        await lark.core.model.until_open(2)
        lark.core.model.release("both")
        for chat in (lark.dm, lark.group):
            [reply] = await lark.until_replies(1, chat)
            assert USED_UP in reply
        assert lark.core.model.count == 2
