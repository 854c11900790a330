"""Feedback on the answer of a task."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import NotFound
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import Feedback
from tests.support.anthropic_server import Reply, Rules, When
from tests.support.working_web_app import open_working_web_app

ANN = Principal("lark:cli_a1:ou_ann", "Ann", frozenset({"talk"}))
SCRIPT = Rules([Reply(text="slow", hold="slow", when=When(last_user="slow")), Reply(text="done")])
COMMENT = "zu <b>kurz</b> \0半角"


async def test_feedback_is_stored_replaced_and_removed(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT) as app:
        made = await app.task()
        await app.end_of(made)
        path = f"/api/tasks/{made.task_id}/feedback"

        async def shown() -> Any:
            task = (await app.client.get(f"/api/tasks/{made.task_id}")).json()
            listed = (await app.client.get(f"/api/tasks?session_id={made.session_id}")).json()
            assert listed["tasks"][0]["feedback"] == task["feedback"]
            return task["feedback"]

        assert await shown() is None
        given = await app.client.request("PUT", path, {"rating": "down", "comment": COMMENT})
        assert (given.status, given.json()["feedback"]["rating"]) == (200, "down")
        stored = await shown()
        assert (stored["comment"], stored["by"]) == (COMMENT.replace("\0", "\ufffd"), "local")
        assert (await app.client.request("PUT", path, {"rating": "up"})).status == 200
        assert ((await shown())["rating"], (await shown())["comment"]) == ("up", "")
        [listed] = (await app.client.get("/api/feedback")).json()["feedback"]
        assert (listed["task_id"], listed["rating"], listed["by"]) == (made.task_id, "up", "local")
        assert (await app.client.request("PUT", path, {"rating": None})).status == 200
        assert await shown() is None
        assert (await app.client.get("/api/feedback")).json()["feedback"] == []


async def test_feedback_that_cannot_be_stored_is_refused(home: Path) -> None:
    async with open_working_web_app(home, SCRIPT) as app:
        made = await app.task("slow")
        path = f"/api/tasks/{made.task_id}/feedback"
        early = await app.client.request("PUT", path, {"rating": "up"})
        assert (early.status, "has not ended" in str(early.json())) == (409, True)
        app.core.model.release("slow")
        await app.end_of(made)
        for body, field in (
            ({}, "rating"),
            ({"rating": "great"}, "rating"),
            ({"rating": "up", "stars": 5}, "stars"),
            ({"rating": "up", "comment": "x" * 2_001}, "comment"),
        ):
            refused = await app.client.request("PUT", path, body)
            assert (refused.status, field in str(refused.json())) == (400, True), refused
        missing = "/api/tasks/task-none/feedback"
        none = await app.client.request("PUT", missing, {"rating": "up"})
        assert none.status == 404
        with pytest.raises(NotFound):
            await app.core.services.gateway.rate_task(made.task_id, Feedback("up"), ANN)
        assert (await app.client.get(f"/api/tasks/{made.task_id}")).json()["feedback"] is None
