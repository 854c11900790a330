"""Tools that run as tasks, at a server over stdio."""

import asyncio
from pathlib import Path

import pytest

from internal.agent.domain.react.input_forms import InputReply, InputResponse
from internal.mcp.elicitation import requires_input
from internal.mcp.server_tasks import TASKS_NOT_OFFERED
from tests.support.mcp_connection import ignore, opened, text_of
from tests.support.mcp_servers import hostile, until


async def test_a_tool_that_needs_a_task_is_run_as_one_and_its_state_is_progress(
    tmp_path: Path,
) -> None:
    told: list[tuple[float, float | None, str]] = []
    async with opened(hostile(tmp_path, "tasks", tmp_path / "state")) as server:
        assert [each.problem for each in await server.list_tools()] == ["", ""]
        result = await server.call("research", {}, lambda *each: told.append(each))
        assert await text_of(server, text="at once") == "at once"
    assert result["content"] == [{"type": "text", "text": "all about it"}]
    assert told == [(1, None, "half\x1b[1m")]


async def test_a_task_asks_people(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "tasks", tmp_path / "state")) as server:
        asked = await server.call("research", {"text": "asks"}, ignore, key="one")
        assert requires_input(asked)
        reply = InputReply((InputResponse("", "accept", {"name": "Ada"}),), None)
        result = await server.call("research", {}, ignore, key="one", reply=reply)
    assert "Ada" in result["content"][0]["text"]


async def test_stopping_a_call_cancels_its_task(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with opened(hostile(tmp_path, "tasks", state)) as server:
        call = asyncio.create_task(text_of(server, "research", text="hangs"))
        await until(lambda: state.exists() and "looked" in state.read_text())
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "task cancelled" in state.read_text()
        assert await text_of(server, text="still here") == "still here"


async def test_a_tool_that_needs_a_task_is_not_offered_by_a_server_without_tasks(
    tmp_path: Path,
) -> None:
    async with opened(hostile(tmp_path, "no tasks", tmp_path / "state")) as server:
        assert [each.problem for each in await server.list_tools()] == [TASKS_NOT_OFFERED, ""]
