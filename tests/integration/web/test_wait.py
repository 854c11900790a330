"""Creating a task and waiting for its run in one request."""

import asyncio
from pathlib import Path

from internal.agent.domain.ids import SessionId
from tests.support.anthropic_server import Call, Reply, Rules, When
from tests.support.http_client import HttpClient
from tests.support.working_web_app import open_working_web_app

SCRIPT = Rules(
    [
        Reply(text="quick", when=When(last_user="quick")),
        Reply(text="slow", hold="slow", when=When(last_user="slow")),
        Reply(calls=[Call("shell", {"command": "touch a"})], when=When(last_user="ask")),
    ]
)


async def create(client: HttpClient, task: str, wait: str) -> tuple[int, dict[str, object]]:
    reply = await client.post(f"/api/tasks?wait={wait}", {"task": task})
    return reply.status, reply.json()


async def test_the_response_waits_for_the_end_or_for_a_question(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT) as app:
        status, made = await create(app.client, "quick", "60")
        assert (status, made["status"]) == (201, "completed")
        run = made["run"]
        assert isinstance(run, dict)
        assert (run["run_id"], run["answer"]) == (made["run_id"], "quick")

        _, made = await create(app.client, "ask", "60")
        assert made["status"] == "waiting"

        _, made = await create(app.client, "slow", "1")
        assert made["status"] == "running"
        _, made = await create(app.client, "slow", "0")
        assert (made["status"], "run" in made) == ("queued", False)
        for wrong in ("301", "-1", "soon"):
            status, body = await create(app.client, "quick", wrong)
            assert (status, "wait" in str(body)) == (400, True), wrong


async def test_a_client_that_leaves_does_not_stop_the_run(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT) as app:
        made = (await app.client.post("/api/sessions", {})).json()
        session = SessionId(made["session_id"])
        body = {"task": "slow", "session_id": session}
        waiting = asyncio.create_task(app.client.post("/api/tasks?wait=60", body))
        await app.core.until(session, lambda event: event["event"] == "workflow.input.received")
        waiting.cancel()
        app.core.model.release("slow")
        events = await app.core.until(
            session, lambda event: event["event"] == "workflow.result.final"
        )
        assert events[-1]["payload"]["final_answer"] == "slow"
