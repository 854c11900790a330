# client: Claude Code
# registry: npm
# packages: npm:@anthropic-ai/claude-code@2.1.332
# door: mcp mcp-serve
# Only its list of servers is tried, which connects to each: the rest needs an account.
import json

import mcp_scenarios
import scenarios

CLAUDE = scenarios.INSTALLED / "node_modules/.bin/claude"


def listed():
    header = f"Authorization: Bearer {scenarios.KEY}"
    if mcp_scenarios.IS_ADDRESS:
        entry = {
            "type": "http",
            "url": mcp_scenarios.ADDRESS,
            "headers": dict([header.split(": ", 1)]),
        }
    else:
        entry = {
            "command": mcp_scenarios.PROGRAM,
            "args": ["mcp", "serve"],
            "env": mcp_scenarios.ENVIRON,
        }
    scenarios.output_of(CLAUDE, "mcp", "add-json", "larkspur", json.dumps(entry), "--scope", "user")
    try:
        return scenarios.output_of(CLAUDE, "mcp", "list")
    finally:
        scenarios.output_of(CLAUDE, "mcp", "remove", "larkspur", "--scope", "user")


scenarios.attempt("connected", listed)
