"""Data left after a session is deleted: nothing used by it alone, and everything else."""

import base64
import hashlib
from pathlib import Path
from typing import Any

from internal.agent.app.runs.creation import Submitted
from tests.support.anthropic_server import Call, Reply, When
from tests.support.http_client import EventStream
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

LONG = "echo " + "x" * 70_000
"""Too long for an event, as its output is for a model: both become attachments."""
SCRIPT = [
    Reply(calls=[Call("plan", {"goal": "g", "steps": ["s"]})], when=When(results=0)),
    Reply(calls=[Call("shell", {"command": LONG})], when=When(results=1)),
    Reply("done", when=When(results=2)),
]


def file_of(text: str) -> dict[str, str]:
    data = base64.b64encode(text.encode()).decode()
    return {"name": "a.txt", "media_type": "text/plain", "data": data}


def uri_of(text: str) -> dict[str, str]:
    uri = f"attachment:{hashlib.sha256(text.encode()).hexdigest()}"
    return {"name": "a.txt", "media_type": "text/plain", "uri": uri}


async def run(app: WorkingWebApp, *attachments: dict[str, str], **options: Any) -> Submitted:
    made = await app.task(attachments=attachments, options={"permission_mode": "all", **options})
    await app.end_of(made)
    return made


async def delete(app: WorkingWebApp, made: Submitted) -> None:
    reply = await app.client.request("DELETE", f"/api/sessions/{made.session_id}")
    assert reply.status == 204, reply


def stored(home: Path) -> set[str]:
    return {file.name for file in (home / "attachments").rglob("*") if file.is_file()}


async def readable(app: WorkingWebApp, text: str) -> bool:
    reply = await app.client.get(f"/api/attachments/{hashlib.sha256(text.encode()).hexdigest()}")
    assert reply.status in {200, 404}
    return reply.status == 200


async def test_attachments_of_a_deleted_session_are_removed(tmp_path: Path) -> None:
    async with open_working_web_app(tmp_path, SCRIPT) as app:
        made = await run(app, file_of("mine"))
        assert len(stored(tmp_path)) >= 3, "the file, long arguments and a long result"
        await delete(app, made)
        assert not await readable(app, "mine")
        assert stored(tmp_path) == set()


async def test_attachments_that_other_sessions_use_are_kept(tmp_path: Path) -> None:
    async with open_working_web_app(tmp_path, [Reply("ok")]) as app:
        first = await run(app, file_of("shared"), file_of("mine"))
        second = await run(app, uri_of("shared"))
        await delete(app, first)
        assert await readable(app, "shared")
        assert not await readable(app, "mine")
        await delete(app, second)
        assert not await readable(app, "shared")


async def test_an_upload_is_kept_for_the_task_it_was_made_for(tmp_path: Path) -> None:
    async with open_working_web_app(tmp_path, [Reply("ok")]) as app:
        first = await run(app, file_of("again"))
        await app.client.post("/api/attachments", file_of("again"))
        await delete(app, first)
        assert await readable(app, "again")
        second = await run(app, uri_of("again"))
        await delete(app, second)
        assert not await readable(app, "again")


async def test_only_the_workspace_that_larkspur_created_is_removed(
    tmp_path: Path,
) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    (project / "mine.txt").write_text("a person's file")
    async with open_working_web_app(home, SCRIPT) as app:
        own, named = await run(app), await run(app, workspace=str(project))
        workspace = home / "workspaces" / own.session_id
        (workspace / "deep" / "er").mkdir(parents=True)
        (workspace / "link").symlink_to(project)
        (workspace / "deep").chmod(0)
        await delete(app, own)
        await delete(app, named)
        assert list((home / "workspaces").iterdir()) == []
        assert (project / "mine.txt").read_text() == "a person's file"


async def test_a_session_with_an_unfinished_run_keeps_its_files(tmp_path: Path) -> None:
    async with open_working_web_app(tmp_path, [Reply("ok", hold="go")]) as app:
        made = await app.task(attachments=[file_of("mine")])
        await app.core.model.until_asked(1)
        reply = await app.client.request("DELETE", f"/api/sessions/{made.session_id}")
        assert reply.status == 409
        assert await readable(app, "mine")
        assert (tmp_path / "workspaces" / made.session_id).is_dir()
        app.core.model.release("go")
        await app.end_of(made)


async def test_events_of_a_deleted_session_reach_no_watcher(tmp_path: Path) -> None:
    async with open_working_web_app(tmp_path, [Reply("ok")]) as app:
        async with app.client.stream("sessions=*&replay=none") as watcher:
            start = (await watcher.until("connected"))[-1].json()["head"]
            kept = await run(app)
            deleted = await run(app)
            await delete(app, deleted)
            later = await run(app)
        frames = await read_after(app, start, later)
        assert {frame["session_id"] for frame in frames} == {kept.session_id, later.session_id}


async def read_after(app: WorkingWebApp, cursor: str, last: Submitted) -> list[dict[str, Any]]:
    """Return the envelopes of all sessions after a cursor up to the end of a run."""
    seen: list[dict[str, Any]] = []
    async with app.client.stream(f"sessions=*&after={cursor}") as stream:
        while True:
            envelope = await next_envelope(stream)
            seen.append(envelope)
            if (envelope["run_id"], envelope["event"]) == (last.run_id, "workflow.result.final"):
                return seen


async def next_envelope(stream: EventStream) -> dict[str, Any]:
    while (frame := await stream.frame()) is not None:
        if frame.event.startswith("workflow.") and "run_id" in frame.json():
            envelope: dict[str, Any] = frame.json()
            return envelope
    raise AssertionError("the stream ended")
