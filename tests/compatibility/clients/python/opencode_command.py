# client: OpenCode
# registry: npm
# packages: npm:opencode-ai@1.18.33
# door: chat
import json
from pathlib import Path

import scenarios

OPENCODE = scenarios.INSTALLED / "node_modules/.bin/opencode"


def ask(messages, *, stream, tools, key):
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Larkspur",
        "options": {"baseURL": scenarios.BASE_URL, "apiKey": key},
        "models": {
            scenarios.MODEL: {"name": "Larkspur", "attachment": True},
            "larkspur-plain": {"name": "plain replies"},
        },
    }
    config = {
        "provider": {"larkspur": provider},
        # It asks for a title of each conversation.
        "small_model": "larkspur/larkspur-plain",
        "autoupdate": False,
        "share": "disabled",
    }
    Path("opencode.json").write_text(json.dumps(config))
    argv = ["run", "-m", f"larkspur/{scenarios.MODEL}"]
    if len(messages) > 1:
        argv.append("--continue")
    found = scenarios.output_of(OPENCODE, *argv, messages[-1]["content"])
    if not found.strip():
        raise RuntimeError("it printed no answer")
    return found


scenarios.chat(
    ask,
    without={
        "tools": "it always sends its tools",
        "stream": "it always streams, and shows whole messages",
        "picture": "not tried",
        "system": "its instructions are its own",
    },
)
