# client: mcporter
# registry: npm
# packages: npm:mcporter@0.12.3
# door: mcp mcp-serve
import json
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_scenarios
import scenarios

MCPORTER = scenarios.INSTALLED / "node_modules/.bin/mcporter"


class Session:
    def __init__(self, key):
        if mcp_scenarios.IS_ADDRESS:
            entry = {"url": mcp_scenarios.ADDRESS, "headers": mcp_scenarios.headers(key)}
        else:
            entry = {
                "command": mcp_scenarios.PROGRAM,
                "args": ["mcp", "serve"],
                "env": mcp_scenarios.ENVIRON,
            }
        Path("mcporter.json").write_text(json.dumps({"mcpServers": {"larkspur": entry}}))

    def run(self, *argv):
        found = subprocess.run(
            [MCPORTER, "--config", "mcporter.json", *argv],
            capture_output=True,
            text=True,
            check=False,
        )
        # A result that is an error is printed as well.
        if found.returncode and not found.stdout.lstrip().startswith("{"):
            raise RuntimeError((found.stderr + found.stdout).strip()[-600:])
        return json.loads(found.stdout)

    async def names(self):
        found = self.run("list", "larkspur", "--json")
        if "tools" not in found:
            raise RuntimeError(json.dumps(found))
        return [tool["name"] for tool in found["tools"]]

    async def call(self, tool, arguments, on_progress):
        given = json.dumps(arguments)
        found = self.run("call", f"larkspur.{tool}", "--args", given, "--output", "json")
        return json.dumps(found)


@asynccontextmanager
async def connect(key):
    yield Session(key)


mcp_scenarios.mcp(connect, without={"progress": "it shows none"})
