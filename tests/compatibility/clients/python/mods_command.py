# client: mods
# registry: Go
# packages: go:github.com/charmbracelet/mods@v1.8.1
# door: chat
# untried: its module could not be installed from the Go registry here
from pathlib import Path

import scenarios

MODS = scenarios.INSTALLED / "bin/mods"
CONFIG = """default-api: larkspur
default-model: {model}
apis:
  larkspur:
    base-url: {address}
    api-key: {key}
    models:
      {model}:
        max-input-chars: 100000
"""


def ask(messages, *, stream, tools, key):
    folder = Path.home() / ".config/mods"
    folder.mkdir(parents=True, exist_ok=True)
    given = CONFIG.format(model=scenarios.MODEL, address=scenarios.BASE_URL, key=key)
    (folder / "mods.yml").write_text(given)
    argv = ["--raw", "--quiet"]
    if len(messages) > 1:
        argv.append("--continue-last")
    return scenarios.output_of(MODS, *argv, messages[-1]["content"])


scenarios.chat(
    ask,
    without={
        "tools": "it sends only those of MCP servers",
        "picture": "it takes none",
        "system": "its instructions are roles of its configuration",
    },
)
