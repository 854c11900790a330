"""All data in one response was true at one moment, also while runs end."""

import asyncio
from pathlib import Path

from internal.agent.app.runs.creation import Submitted
from tests.support.anthropic_server import Reply
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

TASKS = 60
POLLS_AT_ONCE = 4


async def poll_until_ended(app: WorkingWebApp, made: Submitted) -> None:
    """Read a task over HTTP until it has ended; its status and its run always agree."""
    while True:
        shown = (await app.client.get(f"/api/tasks/{made.task_id}")).json()
        run = shown["run"]
        assert (run["status"], run["stop_reason"]) == (shown["status"], shown["stop_reason"])
        assert (run["answer"] != "") is (run["status"] == "completed")
        if run["status"] == "completed":
            return


async def test_an_ended_task_is_never_shown_with_an_unfinished_run(tmp_path: Path) -> None:
    script = [Reply("the answer") for _ in range(TASKS)]
    async with (
        open_working_web_app(tmp_path, script) as app,
        asyncio.TaskGroup() as polling,
    ):
        for _ in range(TASKS):
            made = await app.task()
            polls = [polling.create_task(poll_until_ended(app, made)) for _ in range(POLLS_AT_ONCE)]
            await asyncio.wait(polls)
