# client: Gemini CLI
# registry: npm
# packages: npm:@google/gemini-cli@0.61.0
# door: mcp mcp-serve
# Only its list of servers is tried, which connects to each: the rest needs an account.
import mcp_scenarios
import scenarios

GEMINI = scenarios.INSTALLED / "node_modules/.bin/gemini"


def listed():
    argv = ["--scope", "user"]
    if mcp_scenarios.IS_ADDRESS:
        header = f"Authorization: Bearer {scenarios.KEY}"
        argv += ["--transport", "http", "--header", header, "larkspur", mcp_scenarios.ADDRESS]
    else:
        home = f"LARKSPUR_HOME={mcp_scenarios.ENVIRON['LARKSPUR_HOME']}"
        argv += ["-e", home, "larkspur", mcp_scenarios.PROGRAM, "mcp", "serve"]
    scenarios.output_of(GEMINI, "mcp", "add", *argv)
    environ = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    try:
        return scenarios.output_of(GEMINI, "mcp", "list", environ=environ, with_errors=True)
    finally:
        scenarios.output_of(GEMINI, "mcp", "remove", "--scope", "user", "larkspur")


scenarios.attempt("connected", listed)
