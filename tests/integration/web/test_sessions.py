"""Sessions over HTTP: lists, visibility, search, paging and the read position."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import NotFound
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.requests import RequestContext
from internal.channels.web.routes import sessions
from internal.channels.web.schemas import EmptyRequest, SessionsQuery, UpdateSessionRequest
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.http_client import HttpClient
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

ANN = Principal("lark:cli_a1:ou_ann", "Ann", frozenset({"talk"}))
BOB = Principal("lark:cli_a1:ou_bob", "Bob", frozenset({"talk"}))


def request_of(app: WorkingWebApp, who: Principal, query: Any = None, **path: str) -> Any:
    """Return a request of a person with a credential that this server does not accept yet."""
    exchange = RequestContext({"method": "GET", "headers": []}, "r", is_public=False, principal=who)
    body = UpdateSessionRequest(pinned=True)
    return ApiRequest(app.services, exchange, path, query or EmptyRequest(), body)


async def given_by(app: WorkingWebApp, principal: Principal, text: str) -> Submitted:
    spec = build_run_spec(app.services.defaults, TaskOptions(), principal)
    made = await app.services.gateway.submit(Submission(text, spec, "lark"), principal)
    await app.end_of(made)
    return made


async def listed(client: HttpClient, **query: Any) -> dict[str, dict[str, Any]]:
    reply = await client.get(f"/api/sessions?{urlencode(query)}")
    assert reply.status == 200, reply
    return {row["session_id"]: row for row in reply.json()["sessions"]}


async def change(client: HttpClient, made: Submitted, **changes: Any) -> dict[str, Any]:
    reply = await client.request("PATCH", f"/api/sessions/{made.session_id}", changes)
    assert reply.status == 200, reply
    view: dict[str, Any] = reply.json()
    return view


async def test_a_session_is_unread_until_any_client_of_the_owner_reads_it(
    home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    async with open_working_web_app(home, [Reply(text="one"), Reply(text="two")]) as app:
        made = await app.task("count the herons\nby the lake", options={"workspace": str(folder)})
        row = (await listed(app.client))[made.session_id]
        assert row["title"] == "count the herons"
        assert row["workspace"] == str(folder)
        await app.end_of(made)
        assert (await listed(app.client))[made.session_id]["unread"]
        other = HttpClient(app.client.host, app.client.port, app.client.token)
        assert not (await change(other, made, read=True))["unread"]
        assert not (await listed(app.client))[made.session_id]["unread"]
        assert (await change(other, made, read=False))["unread"]
        await change(app.client, made, read=True)
        await app.end_of(await app.task("again", session_id=made.session_id))
        row = (await listed(other))[made.session_id]
        assert (row["unread"], row["title"]) == (True, "count the herons")


async def test_nobody_lists_finds_or_changes_the_sessions_of_another_person(home: Path) -> None:
    async with open_working_web_app(home, [Reply(text="grey heron")] * 2) as app:
        ann, bob = await given_by(app, ANN, "a heron of Ann"), await given_by(app, BOB, "b heron")

        async def found(who: Principal, **query: Any) -> set[str]:
            page = await sessions.list_sessions(request_of(app, who, SessionsQuery(**query)))
            return {row.session_id for row in page.sessions}

        for query in ({}, {"q": "heron"}, {"q": "%"}, {"channel": "lark"}):
            is_text = query.get("q") != "%"
            assert await found(ANN, **query) == ({ann.session_id} if is_text else set())
            assert await found(LOCAL_OWNER, **query) == (
                {ann.session_id, bob.session_id} if is_text else set()
            )
        with pytest.raises(NotFound):
            await sessions.list_sessions(
                request_of(app, ANN, SessionsQuery(q="heron", cursor=bob.session_id))
            )
        with pytest.raises(NotFound):
            await sessions.change_session(request_of(app, ANN, session_id=bob.session_id))


async def test_pages_lose_nothing_while_sessions_are_added(home: Path) -> None:
    async with open_working_web_app(home, [Reply(text=f"answer {n}") for n in range(20)]) as app:
        made = [await app.task(f"task {n}", one_shot=n == 0) for n in range(5)]
        for each in made:
            await app.end_of(each)
        await change(app.client, made[1], pinned=True)
        await change(app.client, made[2], archived=True)
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            query = urlencode({"limit": 2, "archived": "false", "one_shots": "false", **cursor})
            page = (await app.client.get(f"/api/sessions?{query}")).json()
            seen += [row["session_id"] for row in page["sessions"]]
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
            await app.task("inserted meanwhile")
        assert seen[0] == made[1].session_id
        assert {made[3].session_id, made[4].session_id} <= set(seen)
        assert len(seen) == len(set(seen))
        assert not {made[0].session_id, made[2].session_id} & set(seen)
        assert list(await listed(app.client, archived="true")) == [made[2].session_id]
        assert list(await listed(app.client, one_shots="true")) == [made[0].session_id]
        assert list(await listed(app.client, pinned="true")) == [made[1].session_id]
        found = await listed(app.client, q="ANSWER")
        assert "answer" in found[made[0].session_id]["found"]
        for bad in ({"archived": "yes"}, {"q": " "}, {"q": "x" * 201}, {"colour": "x"}):
            assert (await app.client.get(f"/api/sessions?{urlencode(bad)}")).status == 400
        path = f"/api/sessions/{made[0].session_id}"
        refused = await app.client.request("PATCH", path, {"pined": True})
        assert refused.status == 400
        assert "pined" in refused.error["message"]


async def test_lists_tell_what_the_newest_task_lacks_at_its_end(home: Path) -> None:
    write = Reply(calls=[Call("write_file", {"path": "a.txt", "content": "x"})])
    script = [write, Reply("Not done."), write, Reply("Half of it.")]
    async with open_working_web_app(home, script) as app:
        missed = await app.task("write it")
        await app.end_of(missed)
        limited = await app.task("write all", options={"max_iterations": 1})
        await app.end_of(limited)
        sessions_ = await listed(app.client)
        page = (await app.client.get("/api/tasks")).json()["tasks"]
        tasks = {task["session_id"]: task for task in page}
        for rows in (sessions_, tasks):
            states = [
                (row["status"], row["stop_reason"], row["calls_not_run"])
                for row in (rows[missed.session_id], rows[limited.session_id])
            ]
            assert states[0] == ("completed", "final_answer", 1)
            assert states[1][:2] == ("completed", "max_iterations")


async def test_commands_of_a_person_are_rows_and_the_model_reads_them(home: Path) -> None:
    async with open_working_web_app(home, [Reply("Two files.")]) as app:
        ran = {"command": "ls", "output": "a.txt\nb.txt", "exit_code": 0}
        made = await app.task("How many?", commands=[ran])
        events = await app.end_of(made)
        received = next(each for each in events if each["event"] == "workflow.input.received")
        assert received["payload"]["task"] == "How many?"
        assert received["payload"]["commands"] == [ran]
        page = (await app.client.get(f"/api/sessions/{made.session_id}/messages")).json()
        asked = page["messages"][0]["parts"]
        assert asked == [{"type": "text", "text": "How many?"}, {"type": "command", **ran}]
        assert (await listed(app.client))[made.session_id]["title"] == "How many?"
        (request,) = app.core.model.requests
        assert (
            "How many?\n\n<shell>\n$ ls\na.txt\nb.txt\n[exit code 0]\n</shell>"
            in seen_in(request).last_user
        )
