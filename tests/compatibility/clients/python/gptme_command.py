# client: gptme
# registry: PyPI
# packages: gptme==0.35.1
# door: chat
import scenarios

GPTME = scenarios.INSTALLED / "venv/bin/gptme"


def ask(messages, *, stream, tools, key):
    argv = ["--non-interactive", "--model", f"local/{scenarios.MODEL}", "--no-confirm"]
    if tools:
        argv += ["--tool-format", "tool"]
    else:
        argv += ["--tools", "none"]
    if messages[0]["role"] == "system":
        argv += ["--system", messages[0]["content"]]
    environ = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": scenarios.BASE_URL}
    return scenarios.output_of(GPTME, *argv, messages[-1]["content"], environ=environ)


scenarios.chat(
    ask,
    without={
        "history": "not tried: each call is a conversation of its own",
        "stream": "it always streams, and shows formatted text",
        "picture": "not tried",
    },
)
