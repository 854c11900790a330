# client: aider
# registry: PyPI
# packages: aider-chat==0.86.2
# door: chat
import scenarios

AIDER = scenarios.INSTALLED / "venv/bin/aider"


def ask(messages, *, stream, tools, key):
    argv = ["--no-git", "--yes-always", "--no-check-update", "--no-analytics", "--no-pretty"]
    argv += ["--no-show-model-warnings", "--no-gitignore", "--no-show-release-notes"]
    argv += ["--model", f"openai/{scenarios.MODEL}", "--no-stream" if not stream else "--stream"]
    argv += ["--openai-api-base", scenarios.BASE_URL, "--openai-api-key", key]
    if len(messages) > 1:
        argv.append("--restore-chat-history")
    return scenarios.output_of(AIDER, *argv, "--message", messages[-1]["content"])


scenarios.chat(
    ask,
    without={
        "tools": "it sends none",
        "stream": "it shows formatted text",
        "picture": "not tried",
        "system": "its instructions are its own",
        "history": "its history is a file that it summarises",
    },
)
