"""A request that is sent again with its idempotency key is executed once."""

import re
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import sound
from tests.support.anthropic_server import Call, Reply, Rules, When
from tests.support.working_web_app import open_working_web_app

ASK = Reply(calls=[Call("request_user", {"question": "Which colour?"})])
HANG = Rules([Reply(text="thank you", when=When(last_result="green")), Reply(hang=True)])


async def test_repeated_steering_reaches_the_model_once(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="In green.", when=When(last_text="in green")),
            Reply(calls=[Call("list_dir", {})], hold="go"),
        ]
    )
    async with open_working_web_app(home, rules) as app:
        made = await app.task("paint")
        await app.core.model.until_open(1)
        path = f"/api/tasks/{made.task_id}/steer"
        body = {"text": "in green", "idempotency_key": "k"}
        first = await app.client.post(path, body)
        assert first.json()["taken_as"] == "steering"
        app.core.model.release("go")
        events = await app.end_of(made)
        sound(events)
        other = {"text": "in blue", "idempotency_key": "k"}
        for again in (body, other):
            reply = await app.client.post(path, again)
            assert (reply.status, reply.json()) == (200, first.json())
        received = [each for each in events if each["event"] == "workflow.input.received"]
        assert [each["payload"]["task"] for each in received] == ["paint", "in green"]
        queries = app.core.services.gateway.queries
        assert len(await queries.tasks(LOCAL_OWNER, session_id=made.session_id)) == 1


async def test_repeated_steering_of_an_idle_session_creates_one_task(home: Path) -> None:
    async with open_working_web_app(home, Rules([Reply(text="ok")])) as app:
        made = await app.task("paint", idempotency_key="k")
        await app.end_of(made)
        path, body = f"/api/tasks/{made.task_id}/steer", {"text": "more", "idempotency_key": "k"}
        first, again = [await app.client.post(path, body) for _ in range(2)]
        assert first.json()["taken_as"] == "task"
        assert again.json() == first.json()
        queries = app.core.services.gateway.queries
        assert len(await queries.tasks(LOCAL_OWNER, session_id=made.session_id)) == 2


async def test_a_repeated_stop_returns_the_first_result(home: Path) -> None:
    async with open_working_web_app(home, HANG) as app:
        made = await app.task("paint")
        await app.core.model.until_open(1)
        path = f"/api/tasks/{made.task_id}/stop"
        first = await app.client.post(path, {"idempotency_key": "k"})
        assert first.json() == {"task_id": made.task_id, "status": "running"}
        await app.end_of(made)
        again = await app.client.post(path, {"idempotency_key": "k"})
        assert (again.status, again.json()) == (200, first.json())
        assert (await app.client.post(path)).status == 409
        assert (await app.client.post(path, {"idempotency_key": ""})).status == 400

        other = await app.task("paint the wall")
        await app.core.model.until_open(1)
        path = f"/api/tasks/{other.task_id}/stop"
        repeated = await app.client.post(path, {"idempotency_key": "k"})
        assert (repeated.status, repeated.json()["status"]) == (200, "running")
        assert (await app.core.run(other)).status == "running"


async def test_a_repeated_answer_returns_the_answered_question(home: Path) -> None:
    script = [ASK, Reply(text="Green it is."), ASK, Reply(text="Green again.")]
    async with open_working_web_app(home, script) as app:
        question = await app.asked(made := await app.task("paint"))
        given = {"decision": "text", "text": "green"}
        first = await app.answer(question, **given, idempotency_key="k")
        assert first.status == 200
        await app.end_of(made)
        again = await app.answer(question, **given, idempotency_key="k")
        assert (again.status, again.json()) == (200, first.json())
        assert (await app.answer(question, **given)).status == 409

        other = await app.asked(await app.task("paint again"))
        repeated = await app.answer(other, **given, idempotency_key="k")
        assert repeated.json()["question_id"] == other["question_id"]
        assert (await app.client.get("/api/questions?status=open")).json()["questions"] == []


async def test_the_keys_of_a_deleted_session_are_deleted(home: Path) -> None:
    async with open_working_web_app(home, HANG) as app:
        made = await app.task("paint")
        await app.client.post(f"/api/tasks/{made.task_id}/stop", {"idempotency_key": "k"})
        await app.end_of(made)
        deleted = await app.client.request("DELETE", f"/api/sessions/{made.session_id}")
        assert deleted.status == 204
        made = await app.task("paint")
        await app.core.model.until_open(1)
        await app.client.post(f"/api/tasks/{made.task_id}/stop", {"idempotency_key": "k"})
        events = await app.end_of(made)
        assert events[-1]["event"] == "workflow.result.cancelled"


async def test_a_key_is_of_one_endpoint_and_one_target(home: Path) -> None:
    async with open_working_web_app(home, Rules([Reply(text="ok")])) as app:
        made = [await app.task(f"paint {number}") for number in range(2)]
        for each in made:
            await app.end_of(each)
        tasks = {made[0].task_id, made[1].task_id}
        key = {"idempotency_key": "k"}
        tasks.add((await app.task("new", **key)).task_id)
        for each in made:
            steered = await app.client.post(
                f"/api/tasks/{each.task_id}/steer", {"text": "more", **key}
            )
            tasks.add(steered.json()["task_id"])
        said = {"messages": [{"role": "user", "content": "hello"}]}
        for number in (1, 2):
            reply = await app.client.post("/v1/chat/completions", said, {"idempotency-key": "k"})
            tasks.add(reply.json()["id"])
            assert len(tasks) == 6, f"the same completion {number} times"
        assert (await app.client.post("/api/tasks", {"task": "new", **key})).json()[
            "task_id"
        ] in tasks


@pytest.mark.parametrize("key", ["", "k" * 201, "k" * 60_000])
async def test_a_key_of_a_completion_is_short(home: Path, key: str) -> None:
    async with open_working_web_app(home, Rules([Reply(text="ok")])) as app:
        said = {"messages": [{"role": "user", "content": "hello"}]}
        reply = await app.client.post("/v1/chat/completions", said, {"idempotency-key": key})
        assert (reply.status, reply.error["code"]) == (400, "malformed")
        assert "Idempotency-Key" in reply.error["message"]


async def test_more_rules_than_may_be_are_refused_before_they_are_parsed(home: Path) -> None:
    async with open_working_web_app(home, Rules([Reply(text="ok")])) as app:
        for rules in (
            ["shell(git log *)"] * 200_000,
            ["shell(git log *)"] * 101,
            [f"shell(git {'a ' * 400})"] * 30,
        ):
            for name in ("allow", "deny"):
                options = {"task": "paint", "options": {name: rules}}
                reply = await app.client.post("/api/tasks", options)
                assert (reply.status, reply.error["code"]) == (400, "malformed")
                assert re.search("length <= 100|10,000", reply.error["message"])
        both = {name: ["shell(git log *)"] * 100 for name in ("allow", "deny")}
        reply = await app.client.post("/api/tasks", {"task": "paint", "options": both})
        assert reply.status == 201, reply.error
