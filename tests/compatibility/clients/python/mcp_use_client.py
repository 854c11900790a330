# client: mcp-use (Python)
# registry: PyPI
# packages: mcp-use==1.7.1
# door: mcp mcp-serve
from contextlib import asynccontextmanager

import mcp_scenarios
from mcp_use import MCPClient


class Session:
    def __init__(self, session):
        self.session = session

    async def names(self):
        return [tool.name for tool in await self.session.list_tools()]

    async def call(self, tool, arguments, on_progress):
        found = await self.session.call_tool(tool, arguments)
        return found.content[0].text


@asynccontextmanager
async def connect(key):
    if mcp_scenarios.IS_ADDRESS:
        entry = {"url": mcp_scenarios.ADDRESS, "headers": mcp_scenarios.headers(key)}
    else:
        entry = {
            "command": mcp_scenarios.PROGRAM,
            "args": ["mcp", "serve"],
            "env": mcp_scenarios.ENVIRON,
        }
    client = MCPClient.from_dict({"mcpServers": {"larkspur": entry}})
    try:
        yield Session(await client.create_session("larkspur"))
    finally:
        await client.close_all_sessions()


mcp_scenarios.mcp(connect, without={"progress": "its calls take no handler of progress"})
