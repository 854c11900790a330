# client: openai-agents MCP (Python)
# registry: PyPI
# packages: openai-agents==0.24.0
# door: mcp mcp-serve
from contextlib import asynccontextmanager

import mcp_scenarios
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp


class Session:
    def __init__(self, server):
        self.server = server

    async def names(self):
        return [tool.name for tool in await self.server.list_tools()]

    async def call(self, tool, arguments, on_progress):
        found = await self.server.call_tool(tool, arguments)
        return found.content[0].text


@asynccontextmanager
async def connect(key):
    if mcp_scenarios.IS_ADDRESS:
        given = {"url": mcp_scenarios.ADDRESS, "headers": mcp_scenarios.headers(key)}
        server = MCPServerStreamableHttp(params=given, client_session_timeout_seconds=60)
    else:
        given = {
            "command": mcp_scenarios.PROGRAM,
            "args": ["mcp", "serve"],
            "env": mcp_scenarios.ENVIRON,
        }
        server = MCPServerStdio(params=given, client_session_timeout_seconds=60)
    async with server:
        yield Session(server)


mcp_scenarios.mcp(connect, without={"progress": "its calls take no handler of progress"})
