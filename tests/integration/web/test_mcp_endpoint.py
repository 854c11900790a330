"""The MCP server of the gateway, used with the client of the SDK in both protocol versions."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from msgspec.structs import replace

from internal.agent.app.runs.creation import MAX_INSTRUCTION_CHARACTERS
from internal.channels.mcp.tools import TOOLS
from internal.channels.web.app import MAX_MCP_BODY_BYTES
from tests.support.anthropic_server import Call, Reply, Rules, When
from tests.support.web_app import TOKEN, open_backend, open_web_app, serve
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

Mode = Literal["auto", "legacy"]
QUESTION = "Which colour for the lemon?"
COPY = {"command": "mkdir -p output && echo sour > output/lemon.txt"}
SCRIPT = Rules(
    [
        Reply(text="heard it", when=When(last_text="hurry")),
        Reply(text="yellow", when=When(last_user="paint")),
        Reply(text="slow", hold="slow", when=When(last_user="slow")),
        Reply(calls=[Call("shell", COPY)], hold="tool", when=When(last_user="wait", results=0)),
        Reply(calls=[Call("shell", COPY)], when=When(last_user="file", results=0)),
        Reply(text="made a file", when=When(last_user="file", results=1)),
        Reply(
            calls=[Call("request_user", {"question": QUESTION, "options": ["green", "blue"]})],
            when=When(last_user=QUESTION, results=0),
        ),
        Reply(text="green", when=When(last_user=QUESTION, results=1, last_result="green")),
    ]
)
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture
async def app(home: Path) -> AsyncGenerator[WorkingWebApp]:
    environ = {"LARKSPUR_AGENT__GATES": "off", "LARKSPUR_SANDBOX__PROVIDER": "native"}
    async with open_working_web_app(home, SCRIPT, environ) as opened:
        yield opened


@asynccontextmanager
async def connect(app: WorkingWebApp, mode: Mode = "auto") -> AsyncGenerator[Client]:
    url = f"http://127.0.0.1:{app.client.port}/mcp"
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its result, which fits the schema that the tool announces."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found
    content: dict[str, Any] = found.structured_content or {}
    return content


async def refuse(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that fails, and return the error text for the model."""
    found = await client.call_tool(tool, arguments)
    assert found.is_error, found
    (part,) = found.content
    assert part.type == "text"
    return part.text


@pytest.mark.parametrize(("mode", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_task_is_created_and_its_answer_read(
    app: WorkingWebApp, mode: Mode, protocol: str
) -> None:
    async with connect(app, mode) as client:
        assert client.protocol_version == protocol
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == [tool.name for tool in TOOLS]
        made = await call(client, "create_task", instruction="paint", idempotency_key="one")
        again = await call(client, "create_task", instruction="paint", idempotency_key="one")
        assert again["task_id"] == made["task_id"]
        done = await call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
        assert (done["status"], done["answer"], done["files"]) == ("completed", "yellow", [])
        at_once = await call(client, "task_result", task_id=made["task_id"], wait_seconds=None)
        assert at_once == done
        (state,) = (await call(client, "task_status", task_ids=[made["task_id"]]))["tasks"]
        assert (state["stop_reason"], state["question"]) == ("final_answer", None)
    task = (await app.client.get(f"/api/tasks/{made['task_id']}")).json()
    assert (task["channel"], task["run"]["answer"]) == ("mcp", "yellow")


async def test_files_have_addresses_that_the_token_opens(app: WorkingWebApp) -> None:
    async with connect(app) as client:
        made = await call(client, "create_task", instruction="file", permission_mode="all")
        done = await call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
    (file,) = done["files"]
    assert (file["name"], file["size"]) == ("lemon.txt", 5)
    origin = f"http://127.0.0.1:{app.client.port}"
    assert file["url"].startswith(f"{origin}/api/artifacts/")
    assert (await app.client.get(file["url"].removeprefix(origin))).body == b"sour\n"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.first_rows(1)
async def test_a_message_steers_a_running_task_and_a_wait_reports_progress(
    app: WorkingWebApp, mode: Mode
) -> None:
    seen: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with connect(app, mode) as client:
        made = await call(client, "create_task", instruction="wait", permission_mode="all")
        wait = {"task_id": made["task_id"], "wait_seconds": 1}
        first = await client.call_tool("task_result", wait, progress_callback=on_progress)
        assert first.structured_content is not None
        assert first.structured_content["status"] == "running"
        assert seen == [(1.0, 1.0)]
        steered = await call(client, "task_message", task_id=made["task_id"], text="hurry")
        assert (steered["taken_as"], steered["run_id"]) == ("steering", made["run_id"])
        app.core.model.release("tool")
        done = await call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
        assert done["answer"] == "heard it"


async def test_a_person_is_asked_and_their_answer_is_the_result(app: WorkingWebApp) -> None:
    async with connect(app) as client:
        made = await call(client, "ask_person", question=QUESTION, options=["green", "blue"])
        waiting = await call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
        assert (waiting["status"], waiting["answer"]) == ("waiting", "")
        question = waiting["question"]
        assert (question["kind"], question["options"]) == ("clarify", ["green", "blue"])
        assert QUESTION in question["title"] + question["body"]
        assert (await app.answer(question, decision="text", choices=[1])).status == 200
        done = await call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
        assert (done["status"], done["answer"]) == ("completed", "green")
    offered = {tool["name"] for tool in app.core.model.requests[0]["tools"]}
    assert "request_user" in offered
    assert offered <= {"plan", "update_plan", "clarify", "request_user"}


async def test_sessions_are_found_by_their_text(app: WorkingWebApp) -> None:
    async with connect(app) as client:
        made = await call(client, "create_task", instruction="paint the lemon tree")
        await call(client, "create_task", instruction="paint it black")
        found = (await call(client, "search_sessions", query="lemon tree"))["sessions"]
        assert [one["session_id"] for one in found] == [made["session_id"]]
        assert "lemon tree" in found[0]["found"]


BAD_INPUT: list[tuple[str, dict[str, Any], str]] = [
    ("task_result", {"task_id": "task-x"}, "There is no task task-x."),
    ("task_status", {"task_ids": ["task-y"]}, "There is no task task-y."),
    ("task_message", {"task_id": "task-z", "text": "hm"}, "There is no task task-z."),
    ("create_task", {"instruction": "a", "session_id": "s"}, "There is no session s."),
    ("create_task", {"instruction": " "}, "The task is empty."),
    ("create_task", {"instruction": "a", "profile": "none"}, "There is no profile none."),
    ("create_task", {"instruction": "a", "workspace": "../up"}, "`$.workspace`"),
    ("create_task", {"instruction": "a", "permission_mode": "root"}, "`$.permission_mode`"),
    ("create_task", {"instruction": "a", "owner": "me"}, "unknown field `owner`"),
    ("create_task", {}, "missing required field `instruction`"),
    ("create_task", {"instruction": "a" * (MAX_INSTRUCTION_CHARACTERS + 1)}, "200000"),
    ("task_result", {"task_id": "a", "wait_seconds": 51}, "`$.wait_seconds`"),
    ("task_status", {"task_ids": ["a"] * 21}, "`$.task_ids`"),
    ("search_sessions", {"query": " "}, "`$.query`"),
]


async def test_bad_input_is_an_error_result_with_a_sentence(app: WorkingWebApp) -> None:
    async with connect(app) as client:
        for tool, arguments, sentence in BAD_INPUT:
            assert sentence in await refuse(client, tool, **arguments)
    assert (await app.client.get("/api/tasks")).json()["tasks"] == []


async def test_an_unknown_tool_is_a_protocol_error(app: WorkingWebApp) -> None:
    async with connect(app) as client:
        with pytest.raises(MCPError, match=r"There is no tool drop_tables\."):
            await client.call_tool("drop_tables", {})


async def test_a_client_that_leaves_ends_its_wait_and_not_the_task(app: WorkingWebApp) -> None:
    async with connect(app) as client:
        made = await call(client, "create_task", instruction="slow")
        waiting = asyncio.create_task(
            call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
        )
        await app.client.get(f"/api/tasks/{made['task_id']}")
        waiting.cancel()
        app.core.model.release("slow")
        done = await call(client, "task_result", task_id=made["task_id"], wait_seconds=50)
        assert done["answer"] == "slow"


REFUSED: list[tuple[dict[str, str | None], int, str]] = [
    ({"authorization": None}, 401, "unauthorized"),
    ({"authorization": f"Bearer {TOKEN}x"}, 401, "unauthorized"),
    ({"host": "evil.example"}, 421, "foreign_host"),
    ({"origin": "http://evil.example"}, 403, "foreign_origin"),
    ({"sec-fetch-site": "cross-site"}, 403, "foreign_origin"),
    ({"content-type": "text/plain"}, 415, "unsupported_media_type"),
    ({"content-length": str(MAX_MCP_BODY_BYTES + 1)}, 413, "too_large"),
]


async def test_a_request_passes_the_checks_of_all_requests(app: WorkingWebApp) -> None:
    assert (await app.client.post("/mcp", PING, ACCEPT)).status == 200
    for headers, status, code in REFUSED:
        reply = await app.client.post("/mcp", PING, {**ACCEPT, **headers})
        assert (reply.status, reply.error["code"]) == (status, code)


async def test_there_is_no_stream_and_no_session_to_end(app: WorkingWebApp) -> None:
    for method in ("GET", "DELETE"):
        reply = await app.client.request(method, "/mcp", headers=ACCEPT)
        assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert "mcp-session-id" not in (await app.client.post("/mcp", PING, ACCEPT)).headers


async def test_what_is_no_message_is_a_bad_request(app: WorkingWebApp) -> None:
    for body in (b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"id": 1}'):
        for version in ("2025-11-25", "2026-07-28"):
            reply = await app.client.post("/mcp", body, {**ACCEPT, "mcp-protocol-version": version})
            assert reply.status == 400, (body[:10], version)


class NotInstalled:
    """An MCP server without its package."""

    async def serve(self, *_exchange: Any, **_caller: Any) -> bool:
        return False


async def test_a_missing_package_is_named(tmp_path: Path) -> None:
    async with open_backend(tmp_path) as backend:
        services = replace(backend.services, mcp=NotInstalled())
        async with serve(services) as (_, client):
            reply = await client.post("/mcp", PING, ACCEPT)
    assert (reply.status, reply.error["code"]) == (501, "not_installed")
    assert "larkspur-gateway[mcp]" in reply.error["message"]


async def test_an_application_without_mcp_has_no_such_path(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        assert (await app.client.post("/mcp", PING, ACCEPT)).status == 404
