"""The tools as a server of the `mcp` SDK. Importing this module takes more than a second."""

import logging
from typing import Any

import msgspec
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from internal.agent.domain.errors import LarkspurError
from internal.channels.mcp.tools import TOOLS, McpTool, McpToolCall, call_tool, object_schema

logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs each request, and text of clients

INSTRUCTIONS = (
    "Larkspur runs tasks of an agent in the background. Call create_task, then task_result with"
    " wait_seconds until the status is completed, failed or cancelled. A task that is waiting needs"
    " a person, who answers on the page or in the terminal; tell your user."
)

_log = logging.getLogger("larkspur.mcp")


async def serve_request(
    caller: McpToolCall, version: str, exchange: tuple[Scope, Receive, Send]
) -> None:
    """Serve one HTTP request with a server of its own, so that nothing outlives the request."""
    manager = StreamableHTTPSessionManager(_server(caller, version), stateless=True)
    async with manager.run():
        await manager.handle_request(*exchange)


def _server(caller: McpToolCall, version: str) -> Server[Any]:
    async def list_tools(
        _context: ServerRequestContext[Any], _page: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=_LISTED)

    async def call(
        context: ServerRequestContext[Any], wanted: CallToolRequestParams
    ) -> CallToolResult:
        tool = _BY_NAME.get(wanted.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {wanted.name[:80]}.")
        tool_call = replace(caller, report_progress=context.session.report_progress)
        try:
            result = await call_tool(tool, wanted.arguments or {}, tool_call)
        except LarkspurError as error:
            return _failure(str(error))
        except Exception:  # noqa: BLE001 - the outer loop of the channel: every call gets a result
            _log.exception("tool call failed", extra={"tool": wanted.name})
            return _failure("Internal server error. See the server log for details.")
        return CallToolResult(
            content=[TextContent(text=msgspec.json.encode(result).decode())],
            structured_content=msgspec.to_builtins(result),
        )

    return Server(
        "larkspur",
        version=version,
        title="Larkspur",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call,
    )


def _failure(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)


def _listed(tool: McpTool) -> Tool:
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=object_schema(tool.arguments),
        output_schema=object_schema(tool.result),
        annotations=ToolAnnotations(read_only_hint=tool.reads_only),
    )


_LISTED = [_listed(tool) for tool in TOOLS]
_BY_NAME = {tool.name: tool for tool in TOOLS}
