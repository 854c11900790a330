"""The MCP server of the gateway. The SDK is imported with the first request."""

import asyncio
from types import ModuleType
from typing import Any

from starlette.types import Receive, Scope, Send

from internal.agent.app.gateway import Gateway
from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.principals import Principal
from internal.channels.mcp.tools import McpToolCall


class McpServer:
    """Serves the tools to authenticated callers, over streamable HTTP without sessions."""

    def __init__(self, gateway: Gateway, defaults: TaskDefaults, version: str) -> None:
        self._gateway = gateway
        self._defaults = defaults
        self._version = version

    async def serve(
        self, scope: Scope, receive: Receive, send: Send, *, principal: Principal, origin: str
    ) -> bool:
        """Serve a POST request whose body has been checked.

        `origin` is the address of the gateway for this client. Returns False, without a response,
        if the SDK is not installed.
        """
        sdk: Any = await asyncio.to_thread(_load_sdk)
        if sdk is None:
            return False
        call = McpToolCall(self._gateway, self._defaults, principal, origin)
        await sdk.serve_request(call, self._version, (scope, receive, send))
        return True


def _load_sdk() -> ModuleType | None:
    """Import the SDK, which takes more than a second the first time; None if it is missing."""
    try:
        from internal.channels.mcp import sdk_server  # noqa: PLC0415  # slow import; its only place
    except ModuleNotFoundError:
        return None
    return sdk_server
