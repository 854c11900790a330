# client: mcp 1 (Python)
# registry: PyPI
# packages: mcp==1.26.0
# door: mcp mcp-serve
from contextlib import asynccontextmanager

import mcp_scenarios
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


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
    if mcp_scenarios.IS_ADDRESS:
        transport = streamablehttp_client(mcp_scenarios.ADDRESS, headers=mcp_scenarios.headers(key))
    else:
        command = StdioServerParameters(
            command=mcp_scenarios.PROGRAM, args=["mcp", "serve"], env=mcp_scenarios.ENVIRON
        )
        transport = stdio_client(command)
    async with transport as (read, write, *_), ClientSession(read, write) as client:
        await client.initialize()
        yield Session(client)


mcp_scenarios.mcp(connect)
