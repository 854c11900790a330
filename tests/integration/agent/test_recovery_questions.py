"""Runs that cannot continue by themselves wait for a person, and resume from their checkpoint."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.active import claim_run
from internal.agent.app.runs.creation import Submitted, new_task_ids
from internal.agent.app.runs.finalization import FailedStart, requeue_run
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import MAX_CRASHES
from internal.agent.domain.unwritten_messages import RESUME_PROMPT, unwritten_kind
from tests.support.agent_app import Core, open_agent, plan, sound
from tests.support.anthropic_server import Call, Fault, Reply, Rules, When
from tests.support.database_files import execute

LONG = "3000-01-01T00:00:00.000Z"
REASON = f"The process died {MAX_CRASHES} times while it executed this run."

PRICES = {"LARKSPUR_LLM__PRICES": '{"claude-x": {"input": 10, "output": 10}}'}

SCRIPT = Rules(
    [
        Reply(text="done another way", when=When(last_text="leave it")),
        Reply(text="done in the end", hold="go", when=When(all_results=1)),
        Reply(calls=[plan("first")]),
    ]
)
"""The process dies during the second call of the model."""


async def crash(here: Core, made: Submitted, times: int = MAX_CRASHES) -> None:
    """Claim a queued run and crash during its execution, as a dying process does, several times."""
    services = here.services
    for _ in range(times):
        claim = partial(claim_run, services.stores, made.run_id, "the dead", lease_until=LONG)
        run = await services.database.write(partial(claim, now=LONG))
        assert run is not None
        failed = FailedStart(not_before="2020", crashed=True)
        requeue = partial(requeue_run, services.stores, run, ids=new_task_ids(), now=LONG)
        await services.database.write(partial(requeue, failed=failed))


async def crashed(home: Path, **options: Any) -> Submitted:
    """Return a run that waits in its second iteration and is not executed again automatically."""
    async with open_agent(home, SCRIPT) as here:
        made = await here.submit("work", **options)
        await here.model.until_asked(2)
        here.services.dispatcher.stop()
        while (await here.run(made)).status != "queued":
            pass  # every read lets the dispatcher go on
        await crash(here, made)
    return made


@pytest.mark.parametrize(
    ("decision", "text", "answer"),
    [("approve", "", "done in the end"), ("text", "leave it", "done another way")],
)
async def test_a_run_that_kills_its_process_continues_as_a_person_says(
    home: Path, decision: str, text: str, answer: str
) -> None:
    made = await crashed(home)
    async with open_agent(home, SCRIPT) as here:
        here.model.release("go")
        asked = await here.asked(made)
        assert (asked["kind"], asked["title"]) == ("recovery", REASON)
        assert here.model.count == 0
        await here.answer(asked["question_id"], decision, text)
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == answer
        assert here.model.count == 1, "it continues from its checkpoint"
        steered = [e["payload"]["task"] for e in events if e["payload"].get("steer")]
        assert steered == ([text] if text else [])


async def test_a_run_that_is_given_up_keeps_its_work(home: Path) -> None:
    made = await crashed(home)
    async with open_agent(home, SCRIPT) as here:
        asked = await here.asked(made)
        await here.services.gateway.steer_task(made.task_id, "and this", LOCAL_OWNER, channel="web")
        await here.answer(asked["question_id"], "reject")
        events = await here.end_of(made)
        sound([each for each in events if each["run_id"] == made.run_id])
        ended = events[-1]["payload"]
        assert ended["stop_reason"] == "interrupted"
        assert ended["error"] == f"{REASON} Given up by the owner."
        assert ended["usage"]["output_tokens"] > 0
        assert await here.services.gateway.dead_letters.count() == 0, "a person decided"


@pytest.mark.parametrize("option", ["people", "approvals"])
async def test_without_people_a_run_that_kills_its_process_fails(home: Path, option: str) -> None:
    made = await crashed(home, **{option: False})
    async with open_agent(home, SCRIPT) as here:
        events = await here.end_of(made)
        sound(events)
        ended = events[-1]["payload"]
        assert (ended["error"], ended["error_code"]) == (REASON, "crashed")
        letters = here.services.gateway.dead_letters
        [letter] = await letters.list_all(LOCAL_OWNER)
        assert (letter.id, letter.about, letter.reason) == (made.run_id, "work", REASON)

        await letters.retry(letter.id, LOCAL_OWNER, "web")
        assert await letters.list_all(LOCAL_OWNER) == []
        [newest, _] = await here.services.gateway.queries.tasks(LOCAL_OWNER)
        run = await here.services.gateway.queries.latest_run(newest.id, LOCAL_OWNER)
        again = Submitted(newest.id, run.id, made.session_id, "queued")
        here.model.release("go")
        assert (await here.end_of(again))[-1]["payload"]["final_answer"] == "done in the end"
        assert here.model.count == 1, "it continues from its checkpoint"


async def test_only_a_crashed_run_that_nobody_decided_about_is_a_dead_letter(home: Path) -> None:
    made = await crashed(home)
    async with open_agent(home, SCRIPT) as here:
        letters = here.services.gateway.dead_letters
        await here.asked(made)
        assert await letters.list_all(LOCAL_OWNER) == [], "a person is asked"
        execute(home / "larkspur.db", "update questions set expires = '2020'")
        assert await here.services.recovery.expire_questions() == 1
        assert "Nobody decided in time" in (await here.run(made)).error
        [letter] = await letters.list_all(LOCAL_OWNER)
        assert letter.id == made.run_id


async def test_an_overloaded_model_pauses_the_run(home: Path) -> None:
    rules = Rules(
        [
            Reply(
                text="done",
                when=When(all_results=1),
                fault=Fault("status", message="Overloaded", times=1),
            ),
            Reply(calls=[plan("first")]),
        ]
    )
    async with open_agent(home, rules) as here:
        made = await here.submit("work")
        asked = await here.asked(made)
        assert asked["kind"] == "recovery"
        assert "529" in asked["title"]
        await here.answer(asked["question_id"])
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "done"
        assert here.model.count == 3


async def test_sixty_edits_of_a_plan_do_not_end_a_run(home: Path) -> None:
    rules = Rules([Reply(text="done", when=When(all_results=1)), Reply(calls=[plan("one")])])
    async with open_agent(home, rules) as here:
        made = await here.submit("work", plan_review="always")
        for number in range(1, 61):
            asked = await here.asked(made, number)
            edit = {"steps": [f"step {number}"]}
            await here.answer(asked["question_id"], "edit", edit=edit)
        await here.answer((await here.asked(made, 61))["question_id"])
        events = await here.end_of(made)
        assert events[-1]["payload"]["final_answer"] == "done"


async def test_a_failed_run_is_resumed_from_its_checkpoint(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="done", when=When(last_text="Continue where this task stopped")),
            Reply(
                fault=Fault("status", status=400, message="Bad request"), when=When(all_results=2)
            ),
            Reply(calls=[Call("list_dir", {})], when=When(all_results=1)),
            Reply(calls=[plan("look", "write")]),
        ]
    )
    async with open_agent(home, rules, PRICES) as here:
        made = await here.submit("work")
        failed = (await here.end_of(made))[-1]["payload"]
        assert (failed["stop_reason"], failed["error_code"]) == ("error", "model_rejected")
        other = await here.submit("hello Continue where this task stopped", made.session_id)
        await here.end_of(other)

        gateway = here.services.gateway
        resumed = await gateway.resume(made.task_id, LOCAL_OWNER, "web")
        events = await here.end_of(resumed)
        sound([each for each in events if each["run_id"] == resumed.run_id])
        ended = events[-1]["payload"]
        assert (ended["final_answer"], ended["total_iterations"]) == ("done", 3)
        # the request has the work of the failed run and all later messages
        request = str(here.model.requests[-1]["messages"])
        order = ["work", "list_dir", "hello", "Continue where this task stopped; do not"]
        places = [request.index(word) for word in order]
        assert places == sorted(places)
        history = await gateway.queries.messages(made.session_id, LOCAL_OWNER, limit=100)
        texts = [row.message.text for row in reversed(history)]
        assert texts.count("work") == 1
        # each run is charged for its own calls
        usage = await gateway.queries.usage(LOCAL_OWNER, "session")
        runs = [await here.run(each) for each in (made, other, resumed)]
        assert usage[0].usage.total == sum(run.usage.total for run in runs)
        assert runs[2].usage.output_tokens < runs[0].usage.output_tokens


async def test_a_run_that_failed_at_once_is_resumed_in_a_conversation(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="two", when=When(last_text="Continue where this task stopped")),
            Reply(text="one", when=When(last_text="first")),
            Reply(fault=Fault("status", status=400, message="Bad request")),
        ]
    )
    async with open_agent(home, rules, PRICES) as here:
        made = await here.submit("first")
        await here.end_of(made)
        failed = await here.submit("second", made.session_id)
        await here.end_of(failed)
        gateway = here.services.gateway
        events = await here.end_of(await gateway.resume(failed.task_id, LOCAL_OWNER, "web"))
        assert events[-1]["payload"]["final_answer"] == "two"
        history = await gateway.queries.messages(made.session_id, LOCAL_OWNER, limit=100)
        said = [(unwritten_kind(each.message), each.message.text) for each in reversed(history)]
    # each message once, and the resumption marked as not written by the person
    resumed = f"{RESUME_PROMPT}\n\nsecond"
    assert said == [("", "first"), ("", "one"), ("", "second"), ("resumed", resumed), ("", "two")]


async def test_the_cost_limit_holds_for_a_run_and_its_resumption(home: Path) -> None:
    rules = Rules(
        [
            Reply(calls=[Call("list_dir", {})], when=When(last_text="Continue where")),
            Reply(
                fault=Fault("status", status=400, message="Bad request"), when=When(all_results=1)
            ),
            Reply(calls=[plan("look")], usage={"output_tokens": 900}),
        ]
    )
    async with open_agent(home, rules, PRICES) as here:
        made = await here.submit("work", max_cost=0.9)
        await here.end_of(made)
        resumed = await here.services.gateway.resume(made.task_id, LOCAL_OWNER, "web")
        events = await here.end_of(resumed)
        assert events[-1]["payload"]["stop_reason"] == "budget_exceeded"
