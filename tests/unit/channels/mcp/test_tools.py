"""The tools under the rights of another person than the owner."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from internal.agent.domain.errors import Forbidden, NotFound
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.mcp.schemas import (
    CreateTaskArguments,
    FoundSessions,
    SearchSessionsArguments,
    TaskMessageArguments,
    TaskResultArguments,
    TaskStatusArguments,
    ToolArguments,
)
from internal.channels.mcp.tools import (
    TOOLS,
    McpToolCall,
    create_task,
    object_schema,
    search_sessions,
    task_message,
    task_result,
    task_status,
)
from tests.support.web_app import Backend, open_backend

GUEST = Principal("lark:cli_a1:ou_guest", "Gus", frozenset({"talk"}))
STRANGER = Principal("lark:cli_a1:ou_stranger", "Sam")


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncGenerator[Backend]:
    async with open_backend(tmp_path) as opened:
        yield opened


def caller(backend: Backend, principal: Principal) -> McpToolCall:
    services = backend.services
    return McpToolCall(services.gateway, services.defaults, principal, "http://127.0.0.1:8420")


async def test_the_task_of_somebody_else_is_like_a_missing_one(backend: Backend) -> None:
    own, guest = caller(backend, LOCAL_OWNER), caller(backend, GUEST)
    made = await create_task(own, CreateTaskArguments("paint"))
    with pytest.raises(NotFound, match=r"There is no task task-"):
        await task_status(guest, TaskStatusArguments((made.task_id,)))
    with pytest.raises(NotFound, match=r"There is no task task-"):
        await task_result(guest, TaskResultArguments(made.task_id, 50))
    with pytest.raises(NotFound, match=r"There is no task task-"):
        await task_message(guest, TaskMessageArguments(made.task_id, "hurry"))
    with pytest.raises(NotFound, match=r"There is no session session-"):
        await create_task(guest, CreateTaskArguments("paint", session_id=made.session_id))
    assert await search_sessions(guest, SearchSessionsArguments("paint")) == FoundSessions([])
    assert len((await search_sessions(own, SearchSessionsArguments("paint"))).sessions) == 1


@pytest.mark.parametrize(
    ("principal", "arguments", "sentence"),
    [
        (STRANGER, CreateTaskArguments("paint"), "You may not submit tasks here."),
        (GUEST, CreateTaskArguments("paint", workspace="/etc"), "Only the owner may choose"),
    ],
)
async def test_the_rights_of_the_caller_limit_a_task(
    backend: Backend, principal: Principal, arguments: CreateTaskArguments, sentence: str
) -> None:
    with pytest.raises(Forbidden, match=sentence):
        await create_task(caller(backend, principal), arguments)


def test_every_tool_has_a_description_and_schemas_of_objects() -> None:
    for tool in TOOLS:
        assert issubclass(tool.arguments, ToolArguments)
        assert tool.description.endswith(".")
        given, returned = object_schema(tool.arguments), object_schema(tool.result)
        assert (given["type"], given["additionalProperties"]) == ("object", False), tool.name
        assert returned["type"] == "object", tool.name
