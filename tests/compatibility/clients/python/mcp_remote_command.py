# client: mcp-remote
# registry: npm
# packages: npm:mcp-remote@0.15.1 mcp==1.26.0
# door: mcp
# It passes messages between standard input and an address, for clients that know commands only.
from contextlib import asynccontextmanager

import mcp_scenarios
import scenarios
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


class Session:
    def __init__(self, client):
        self.client = client

    async def names(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool, arguments, on_progress):
        found = await self.client.call_tool(tool, arguments, progress_callback=on_progress)
        return found.content[0].text


@asynccontextmanager
async def connect(key):
    if key != scenarios.KEY:
        raise scenarios.Absent("it opens a browser for a login")
    command = StdioServerParameters(
        command=str(scenarios.INSTALLED / "node_modules/.bin/mcp-remote"),
        args=[mcp_scenarios.ADDRESS, "--header", f"Authorization:Bearer {key}"],
    )
    async with stdio_client(command) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        yield Session(client)


mcp_scenarios.mcp(connect)
