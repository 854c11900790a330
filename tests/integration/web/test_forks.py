"""Branching a session: a new one with the same conversation up to a run."""

from pathlib import Path
from typing import Any

from tests.support.anthropic_server import Reply, Rules, When
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

SCRIPT = Rules(
    [
        Reply(text="slow", hold="slow", when=When(last_user="slow")),
        Reply(text="noted"),
    ]
)


async def ask(app: WorkingWebApp, task: str, session: str | None = None) -> dict[str, Any]:
    """Run a task to its end and return the response."""
    made = await app.client.post("/api/tasks?wait=60", {"task": task, "session_id": session})
    assert made.status == 201, made
    answer: dict[str, Any] = made.json()
    return answer


async def words(app: WorkingWebApp, session: str) -> list[str]:
    """Return the texts of the people in a session, including those from before the fork."""
    page = (await app.client.get(f"/api/sessions/{session}/messages")).json()
    people = [one for one in page["messages"] if one["role"] == "user"]
    return [part["text"] for one in people for part in one["parts"]]


async def test_a_fork_continues_from_the_chosen_run(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT) as app:
        first = await ask(app, "my word is alder")
        session = first["session_id"]
        second = await ask(app, "my word is birch", session)

        async def fork(**body: object) -> dict[str, Any]:
            made = await app.client.post(f"/api/sessions/{session}/fork", body)
            assert made.status == 201, made
            view: dict[str, Any] = made.json()
            assert view["forked_from"] == session
            return view

        before = await fork(run_id=second["run_id"], title="another word")
        through = await fork(run_id=first["run_id"], after=True)
        whole = await fork()
        assert (before["title"], whole["title"]) == ("another word", "my word is alder")
        assert [len(await words(app, one["session_id"])) for one in (before, through, whole)] == [
            1,
            1,
            2,
        ]
        await ask(app, "my word is cedar", before["session_id"])
        request = str(app.core.model.requests[-1])
        assert ("alder" in request, "birch" in request) == (True, False)
        again = await app.client.post(f"/api/sessions/{before['session_id']}/fork", {})
        assert len(await words(app, again.json()["session_id"])) == 2

        # the original is as it was, and its deletion leaves the branches
        assert len(await words(app, session)) == 2
        assert (await app.client.request("DELETE", f"/api/sessions/{session}")).status == 204
        assert len(await words(app, whole["session_id"])) == 2
        await ask(app, "which word?", whole["session_id"])
        assert "birch" in str(app.core.model.requests[-1])


async def test_what_cannot_be_forked_is_refused(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT) as app:
        made = await app.task("slow")
        path = f"/api/sessions/{made.session_id}/fork"
        for body, status in (
            ({"run_id": made.run_id, "after": True}, 409),
            ({"run_id": made.run_id}, 201),
            ({"run_id": "run-none"}, 404),
            ({"run": "x"}, 400),
        ):
            assert (await app.client.post(path, body)).status == status, body
        assert (await app.client.post("/api/sessions/session-none/fork", {})).status == 404
        app.core.model.release("slow")
        await app.end_of(made)
