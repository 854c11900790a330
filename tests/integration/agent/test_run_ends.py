"""Every end of a run keeps its work: messages, usage, cost and last text."""

from functools import partial
from pathlib import Path

import msgspec
import pytest

from internal.agent.app.runs.active import ActiveRun, claim_run
from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.errors import RunStopped
from internal.agent.domain.messages import Message, ToolResult
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Run
from internal.agent.domain.usage import UsageSum
from tests.support.agent_app import Core, make_recovery, open_agent, plan, sound
from tests.support.anthropic_server import Call, Reply, Rules, When

LONG = "3000-01-01T00:00:00.000Z"
CLAIMED = "2026-01-31T08:00:00.000Z"
PRICES = {"LARKSPUR_LLM__PRICES": '{"claude-x": {"input": 10, "output": 10}}'}
TOUCH = Call("shell", {"command": "touch done && echo touched"})


def asks_after_work() -> Rules:
    """A model that runs a command, then asks, and after the answer never replies."""
    return Rules(
        [
            Reply(hang=True, when=When(last_result="green")),
            Reply(
                text="It is touched.",
                calls=[Call("request_user", {"question": "which?"})],
                when=When(last_result="touched"),
            ),
            Reply(calls=[TOUCH], when=When(all_results=1)),
            Reply(calls=[plan()]),
        ]
    )


async def history(here: Core, made: Submitted) -> list[Message]:
    rows = await here.services.gateway.queries.messages(made.session_id, LOCAL_OWNER)
    return [row.message for row in reversed(rows)]


async def spent(here: Core, made: Submitted) -> list[UsageSum]:
    work = partial(here.services.stores.usage.sum_by, "model", made.session_id, None, limit=10)
    return await here.services.database.read(work)


def results(messages: list[Message]) -> list[ToolResult]:
    return [part for each in messages for part in each.parts if isinstance(part, ToolResult)]


async def check_kept(here: Core, made: Submitted, *, models: int) -> None:
    """Check that the conversation and the costs contain the work of the run."""
    messages = await history(here, made)
    assert messages[0].text == "paint"
    assert any("touched" in result.text for result in results(messages))
    run = await here.run(made)
    assert run.answer == "It is touched."
    assert run.cost is not None
    assert run.cost > 0
    (used,) = await spent(here, made)
    assert (used.usage, used.cost) == (run.usage, run.cost)
    assert used.usage.output_tokens > 0
    assert len(here.model.requests) == models
    sound(await here.durable(made))


async def test_stopping_a_waiting_run_keeps_its_work(home: Path) -> None:
    async with open_agent(home, asks_after_work(), PRICES) as here:
        made = await here.submit("paint")
        await here.asked(made)
        assert await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web") == "cancelled"
        assert (await here.run(made)).status == "cancelled"
        await check_kept(here, made, models=3)


async def requeued(here: Core, made: Submitted) -> None:
    """Bring a run that was answered and continued back into its queue, as a crash does."""
    asked = await here.asked(made)
    here.services.dispatcher.stop()
    await here.answer(asked["question_id"], "text", "green")
    assert (await here.run(made)).status == "queued"


async def requeued_and_claimed(here: Core, made: Submitted) -> Run:
    """Bring a run back into its queue and claim it, as the next process does."""
    await requeued(here, made)
    app = here.services
    run = await app.database.write(
        partial(claim_run, app.stores, made.run_id, "here", lease_until=LONG, now=CLAIMED)
    )
    assert run is not None
    return run


async def test_stopping_a_requeued_run_keeps_its_work(home: Path) -> None:
    async with open_agent(home, asks_after_work(), PRICES) as here:
        made = await here.submit("paint")
        await requeued(here, made)
        assert await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web") == "cancelled"
        await check_kept(here, made, models=3)


async def test_a_stop_before_the_turn_is_restored_keeps_its_work(home: Path) -> None:
    async with open_agent(home, asks_after_work(), PRICES) as here:
        made = await here.submit("paint")
        await requeued_and_claimed(here, made)
        app = here.services
        await app.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        stopped = await here.run(made)
        active = ActiveRun(stopped)
        active.cancel(RunStopped("local", "web"))
        await app.coordinator.execute_task(active)
        assert (await here.run(made)).status == "cancelled"
        await check_kept(here, made, models=3)


async def test_giving_up_a_run_keeps_its_work(home: Path) -> None:
    async with open_agent(home, asks_after_work(), PRICES) as here:
        made = await here.submit("paint")
        app, run = here.services, await requeued_and_claimed(here, made)
        await app.coordinator.execute_task(ActiveRun(msgspec.structs.replace(run, crashes=99)))
        ((question, _),) = await app.gateway.queries.questions(LOCAL_OWNER)
        await here.answer(question.question.id, "reject")
        ended = await here.run(made)
        assert (ended.status, ended.stop_reason) == ("failed", "interrupted")
        await check_kept(here, made, models=3)


async def test_the_run_of_a_closed_terminal_keeps_its_work(home: Path) -> None:
    async with open_agent(home, asks_after_work(), PRICES) as here:
        made = await here.submit("paint")
        await requeued(here, made)
        app = here.services
        await app.database.write(
            partial(app.stores.runs.adopt, made.run_id, "terminal", "2026-01-01T00:00:00.000Z")
        )
        await app.database.write(
            partial(claim_run, app.stores, made.run_id, "terminal", lease_until="2026", now=CLAIMED)
        )
        assert len(await make_recovery(app).recover_expired_leases()) == 1
        ended = await here.run(made)
        assert (ended.status, ended.stop_reason) == ("failed", "interrupted")
        await check_kept(here, made, models=3)


async def test_a_task_that_never_began_leaves_no_message(home: Path) -> None:
    async with open_agent(home, [Reply(hang=True)]) as here:
        here.services.dispatcher.stop()
        made = await here.submit("paint")
        assert await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web") == "cancelled"
        assert await history(here, made) == []


BATCH = Rules(
    [
        Reply(
            calls=[Call("shell", {"command": f"echo up {n}; sleep 600"}) for n in range(4)],
            when=When(all_results=1),
        ),
        Reply(calls=[plan()]),
    ]
)


@pytest.mark.parametrize("ending", ["stop", pytest.param("timeout", marks=pytest.mark.slow)])
async def test_only_a_call_that_began_has_an_unknown_outcome(home: Path, ending: str) -> None:
    """Two of four calls begin; the others wait for a free slot."""
    async with open_agent(home, BATCH, {"LARKSPUR_AGENT__TOOL_CONCURRENCY": "2"}) as here:
        timeout_seconds = 6.0 if ending == "timeout" else None
        made = await here.submit("paint", timeout_seconds=timeout_seconds)
        if ending == "stop":
            await here.until(made.session_id, lambda each: "up" in str(each["payload"].get("text")))
            await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        sound(await here.end_of(made))
        events = await here.durable(made)
        began = {e["node_id"] for e in events if e["event"] == "workflow.tool.started"}
        assert len(began) == 2
        closed = [e for e in events if e["event"] == "workflow.tool.completed"]
        assert {e["node_id"] for e in closed} == began
        cause = "stopped by a limit of the task" if ending == "timeout" else "stopped by"
        for event in closed:
            *output, end = event["payload"]["error"].splitlines()
            assert end.startswith(f"[interrupted, outcome unknown: {cause}")
            assert output in ([], ["up 0"], ["up 1"])
            assert event["payload"]["duration_ms"] > 0
        assert any("up" in event["payload"]["error"] for event in closed)
        remembered = {each.call_id: each.text for each in results(await history(here, made))}
        del remembered[next(iter(remembered))]  # the result of the plan
        assert {each for each, text in remembered.items() if "unknown" in text} == began
        assert sorted(remembered.values())[:2] == ["not run", "not run"]


async def test_the_next_request_says_that_the_outcome_of_a_stopped_call_is_unknown(
    home: Path,
) -> None:
    rules = Rules([Reply(text="I see.", when=When(last_user="and now?")), *BATCH.replies])
    async with open_agent(home, rules) as here:
        made = await here.submit("paint")
        await here.until(made.session_id, lambda each: "up" in str(each["payload"].get("text")))
        await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        await here.end_of(made)
        await here.end_of(await here.submit("and now?", made.session_id))
        assert str(here.model.requests[-1]["messages"]).count("interrupted, outcome unknown") == 4
