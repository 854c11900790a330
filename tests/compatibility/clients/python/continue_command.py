# client: Continue CLI
# registry: npm
# packages: npm:@continuedev/cli@1.5.47
# door: chat
from pathlib import Path

import scenarios

CN = scenarios.INSTALLED / "node_modules/.bin/cn"
CONFIG = """name: larkspur
version: 0.0.1
schema: v1
models:
  - name: larkspur
    provider: openai
    model: {model}
    apiBase: {address}
    apiKey: {key}
    roles: [chat]
"""


def ask(messages, *, stream, tools, key):
    given = CONFIG.format(model=scenarios.MODEL, address=scenarios.BASE_URL, key=key)
    Path("config.yaml").write_text(given)
    argv = ["--config", "config.yaml", "-p"]
    if messages[0]["role"] == "system":
        argv += ["--rule", messages[0]["content"]]
    if len(messages) > 1 and messages[0]["role"] == "user":
        argv.append("--resume")
    environ = {"CONTINUE_TELEMETRY_ENABLED": "0"}
    return scenarios.output_of(CN, *argv, messages[-1]["content"], environ=environ)


scenarios.chat(
    ask,
    without={
        "tools": "it always sends its tools",
        "stream": "it always streams, and shows whole messages",
        "picture": "its commands take none",
    },
)
