"""Calls of tools that a server runs as tasks only: started, watched, and fetched.

Tasks are of protocol 2025-11-25. Servers of 2026-07-28 have them in an extension, which is not
spoken here.
"""

import asyncio
from typing import Any

import anyio
from mcp import MCPError
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CancelTaskRequest,
    CancelTaskRequestParams,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    ServerCapabilities,
    TaskMetadata,
    Tool,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from internal.mcp.answers import TASK

TASKS_NOT_OFFERED = "runs as a task only, and its server does not offer tasks for calls"
TASKS_NOT_SPOKEN = "runs as a task only, which this version of the protocol does not have"

_KEPT_MILLISECONDS = 3_600_000
"""Requested time for which a server keeps a result that is not fetched."""
_DEFAULT_PAUSE_SECONDS, _MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 0.05, 5.0
_CANCEL_SECONDS = 2.0
_WORKING = "working"


class _TaskState(BaseModel):
    """Fields of the state of a task that are used; servers omit some of the others."""

    status: str = ""
    message: str | None = Field(None, alias="statusMessage")
    pause_milliseconds: float | None = Field(None, alias="pollInterval")


def needs_task(tool: Tool) -> bool:
    """Return True for a tool that cannot be called otherwise."""
    return tool.execution is not None and tool.execution.task_support == "required"


def task_problem(capabilities: ServerCapabilities | None, protocol: str) -> str:
    """Return why no tool can be run as a task, the end of a sentence; "" if tools can."""
    if protocol in MODERN_PROTOCOL_VERSIONS:
        return TASKS_NOT_SPOKEN
    tasks = capabilities.tasks if capabilities else None
    requests = tasks.requests if tasks else None
    tools = requests.tools if requests else None
    return "" if tools and tools.call is not None else TASKS_NOT_OFFERED


async def call_as_task(
    session: ClientSession, tool: str, arguments: dict[str, Any], *, report: ProgressFnT
) -> CallToolResult:
    """Return the result of a call that runs as a task. Cancelling it cancels the task.

    `report` receives the server's messages about the state of the task.

    Raises:
        MCPError, ValueError: from the SDK.
    """
    task = TaskMetadata(ttl=_KEPT_MILLISECONDS)
    params = CallToolRequestParams(name=tool, arguments=arguments, task=task)
    started = await session.send_request(
        CallToolRequest(params=params), CallToolResult, progress_callback=report
    )
    state = (started.meta or {}).get(TASK)
    if not isinstance(state, dict):
        return started  # the server has answered at once
    number = str(state.get("taskId", ""))
    try:
        await _wait(session, number, _TaskState.model_validate(state), report=report)
        payload = GetTaskPayloadRequestParams(task_id=number)
        # it stays open while the server asks people for something
        return await session.send_request(GetTaskPayloadRequest(params=payload), CallToolResult)
    except asyncio.CancelledError:
        with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
            await _cancel(session, number)
        raise


async def _wait(
    session: ClientSession, number: str, state: _TaskState, *, report: ProgressFnT
) -> None:
    """Wait until a task has ended or asks people for something."""
    params = GetTaskRequestParams(task_id=number)
    told, steps = "", 0
    while state.status == _WORKING:
        await asyncio.sleep(_pause_seconds(state))
        state = await session.send_request(GetTaskRequest(params=params), _TaskState)
        if state.message and state.message != told:
            told, steps = state.message, steps + 1
            await report(steps, None, told)


async def _cancel(session: ClientSession, number: str) -> None:
    params = CancelTaskRequestParams(task_id=number)
    try:
        await session.send_request(CancelTaskRequest(params=params), _TaskState)
    except (MCPError, ValueError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return  # it has ended, or the connection has


def _pause_seconds(state: _TaskState) -> float:
    """Return how long to wait until the state is asked for again."""
    seconds = (state.pause_milliseconds or 0.0) / 1_000
    return min(max(seconds or _DEFAULT_PAUSE_SECONDS, _MIN_PAUSE_SECONDS), _MAX_PAUSE_SECONDS)
