# client: mcp (Python)
# registry: PyPI
# packages: mcp==2.3.0
# door: mcp mcp-serve
from contextlib import asynccontextmanager

import httpx2
import mcp_scenarios
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


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
    if not mcp_scenarios.IS_ADDRESS:
        command = StdioServerParameters(
            command=mcp_scenarios.PROGRAM, args=["mcp", "serve"], env=mcp_scenarios.ENVIRON
        )
        async with Client(command) as client:
            yield Session(client)
        return
    async with httpx2.AsyncClient(headers=mcp_scenarios.headers(key), timeout=60) as http:
        transport = streamable_http_client(mcp_scenarios.ADDRESS, http_client=http)
        async with Client(transport) as client:
            yield Session(client)


mcp_scenarios.mcp(connect)
