# client: fastmcp (Python)
# registry: PyPI
# packages: fastmcp==4.2.3
# door: mcp mcp-serve
from contextlib import asynccontextmanager

import mcp_scenarios
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


class Session:
    def __init__(self, client):
        self.client = client

    async def names(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, tool, arguments, on_progress):
        further = {"progress_handler": on_progress} if on_progress else {}
        found = await self.client.call_tool(tool, arguments, raise_on_error=False, **further)
        return found.content[0].text


@asynccontextmanager
async def connect(key):
    if mcp_scenarios.IS_ADDRESS:
        transport = StreamableHttpTransport(
            mcp_scenarios.ADDRESS, headers=mcp_scenarios.headers(key)
        )
    else:
        transport = StdioTransport(
            mcp_scenarios.PROGRAM, ["mcp", "serve"], env=mcp_scenarios.ENVIRON
        )
    async with Client(transport) as client:
        yield Session(client)


mcp_scenarios.mcp(connect)
