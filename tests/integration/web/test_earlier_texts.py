"""Texts written before the question or task that they would answer or steer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.anthropic_server import Call, Reply
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

ASK = Call("request_user", {"question": "Which colour?"})


async def head(app: WorkingWebApp, session_id: str) -> str:
    """Return the id of the newest event."""
    found = await app.client.get(f"/api/sessions/{session_id}/events?limit=1")
    return str(found.json()["head"])


def code(reply: Any) -> tuple[int, str]:
    body: Mapping[str, Any] = reply.json()
    return reply.status, body["error"]["code"]


async def test_a_text_answers_only_what_could_be_seen(home: Path) -> None:
    script = [Reply(calls=[ASK], hold="go"), Reply("done")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("paint it")
        await app.core.model.until_open(1)
        before = await head(app, made.session_id)
        app.core.model.release("go")
        question = await app.asked(made)
        given = {"decision": "text", "text": "green"}
        assert code(await app.answer(question, **given, seen=before)) == (409, "written_earlier")
        other_log = f"another-{before.split('-')[1]}9"
        assert code(await app.answer(question, **given, seen=other_log)) == (
            409,
            "written_earlier",
        )
        assert code(await app.answer(question, **given, seen="yesterday")) == (400, "malformed")
        assert (await app.asked(made))["status"] == "open"
        after = await head(app, made.session_id)
        assert (await app.answer(question, **given, seen=after)).status == 200
        assert (await app.end_of(made))[-1]["payload"]["final_answer"] == "done"


async def test_a_text_steers_only_a_task_that_could_be_seen(home: Path) -> None:
    script = [Reply("first"), Reply(hang=True)]
    async with open_working_web_app(home, script) as app:
        first = await app.task("one")
        await app.end_of(first)
        before = await head(app, first.session_id)
        second = await app.task("two", session_id=first.session_id)
        await app.core.model.until_open(1)
        path = f"/api/tasks/{second.task_id}/steer"
        older = await app.client.post(path, {"text": "about one", "seen": before})
        assert older.json()["taken_as"] == "task"
        now = await head(app, first.session_id)
        newer = await app.client.post(path, {"text": "about two", "seen": now})
        assert newer.json()["taken_as"] == "steering"
