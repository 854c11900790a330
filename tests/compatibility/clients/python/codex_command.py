# client: Codex
# registry: npm
# packages: npm:@openai/codex@0.171.0
# door: responses
from pathlib import Path

import scenarios

CODEX = scenarios.INSTALLED / "node_modules/.bin/codex"


def ask(messages, *, stream, tools, key):
    provider = {
        "name": "Larkspur",
        "base_url": scenarios.BASE_URL,
        "env_key": "LARKSPUR_GIVEN_KEY",
        "wire_api": "responses",
    }
    argv = ["--skip-git-repo-check", "-m", scenarios.MODEL, "-c", "model_provider=larkspur"]
    for name, value in provider.items():
        argv += ["-c", f'model_providers.larkspur.{name}="{value}"']
    content = messages[-1]["content"]
    if not isinstance(content, str):
        Path("picture.png").write_bytes(scenarios.png())
        content = content[0]["text"]
        argv += ["-i", "picture.png"]
    command = ["exec", "resume", "--last"] if len(messages) > 1 else ["exec"]
    Path("answer.txt").unlink(missing_ok=True)
    scenarios.output_of(
        *(CODEX, *command, *argv, "-o", "answer.txt", "--", content),
        environ={"LARKSPUR_GIVEN_KEY": key},
    )
    return Path("answer.txt").read_text()


scenarios.chat(
    ask,
    without={
        "tools": "it always sends its tools",
        "stream": "it always streams, and shows whole messages",
        "system": "its instructions are its own",
    },
)
