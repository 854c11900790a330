# client: langchain-mcp-adapters
# registry: PyPI
# packages: langchain-mcp-adapters==0.3.2
# door: mcp mcp-serve
from contextlib import asynccontextmanager

import mcp_scenarios
from langchain_mcp_adapters.client import MultiServerMCPClient


class Session:
    def __init__(self, client):
        self.client = client

    async def names(self):
        return [tool.name for tool in await self.client.get_tools()]

    async def call(self, tool, arguments, on_progress):
        chosen = [each for each in await self.client.get_tools() if each.name == tool]
        found = await chosen[0].ainvoke(arguments)
        return found if isinstance(found, str) else found[0]["text"]


@asynccontextmanager
async def connect(key):
    if mcp_scenarios.IS_ADDRESS:
        entry = {
            "transport": "streamable_http",
            "url": mcp_scenarios.ADDRESS,
            "headers": mcp_scenarios.headers(key),
        }
    else:
        entry = {
            "transport": "stdio",
            "command": mcp_scenarios.PROGRAM,
            "args": ["mcp", "serve"],
            "env": mcp_scenarios.ENVIRON,
        }
    yield Session(MultiServerMCPClient({"larkspur": entry}))


mcp_scenarios.mcp(
    connect,
    without={"progress": "its tools take no handler of progress", "mistake": "it raises errors"},
)
