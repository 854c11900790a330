# client: MCP Inspector
# registry: npm
# packages: npm:@modelcontextprotocol/inspector@2.12.0
# door: mcp mcp-serve
import json
import subprocess
from contextlib import asynccontextmanager

import mcp_scenarios
import scenarios

INSPECTOR = scenarios.INSTALLED / "node_modules/.bin/mcp-inspector"


class Session:
    def __init__(self, key):
        self.key = key

    def run(self, *argv):
        if mcp_scenarios.IS_ADDRESS:
            header = f"Authorization: Bearer {self.key}"
            where = [mcp_scenarios.ADDRESS, "--transport", "http", "--header", header]
        else:
            where = ["-e", f"LARKSPUR_HOME={mcp_scenarios.ENVIRON['LARKSPUR_HOME']}"]
            where += [mcp_scenarios.PROGRAM, "mcp", "serve"]
        found = subprocess.run(
            [INSPECTOR, "--cli", *where, *argv], capture_output=True, text=True, check=False
        )
        if found.returncode:
            raise RuntimeError(found.stderr.strip()[-600:])
        return json.loads(found.stdout)

    async def names(self):
        return [tool["name"] for tool in self.run("--method", "tools/list")["tools"]]

    async def call(self, tool, arguments, on_progress):
        given = [f"{name}={_written(value)}" for name, value in arguments.items()]
        argv = [part for each in given for part in ("--tool-arg", each)]
        found = self.run("--method", "tools/call", "--tool-name", tool, *argv)
        return found["content"][0]["text"]


def _written(value):
    return value if isinstance(value, str) else json.dumps(value)


@asynccontextmanager
async def connect(key):
    yield Session(key)


mcp_scenarios.mcp(
    connect, without={"progress": "it shows none", "mistake": "it shows that there was one only"}
)
