# client: Qwen Code
# registry: npm
# packages: npm:@qwen-code/qwen-code@0.24.4
# door: chat
import scenarios

QWEN = scenarios.INSTALLED / "node_modules/.bin/qwen"


def ask(messages, *, stream, tools, key):
    argv = ["--auth-type", "openai", "--openai-api-key", key]
    argv += ["--openai-base-url", scenarios.BASE_URL, "--model", scenarios.MODEL]
    if messages[0]["role"] == "system":
        argv += ["--system-prompt", messages[0]["content"]]
    if len(messages) > 1 and messages[0]["role"] == "user":
        argv.append("--continue")
    return scenarios.output_of(QWEN, *argv, messages[-1]["content"])


scenarios.chat(
    ask,
    without={
        "tools": "it always sends its tools",
        "stream": "it always streams, and shows whole messages",
        "picture": "its commands take none",
    },
)
