# client: shell-gpt
# registry: PyPI
# packages: shell-gpt==1.5.1 click==8.3.1
# remark: its package does not name click, which it imports
# door: chat
import os
import subprocess

import scenarios


def ask(messages, *, stream, tools, key):
    environ = {
        **os.environ,
        "OPENAI_API_KEY": key,
        "API_BASE_URL": scenarios.BASE_URL,
        "DEFAULT_MODEL": scenarios.MODEL,
        "OPENAI_USE_FUNCTIONS": "true" if tools else "false",
        "PRETTIFY_MARKDOWN": "false",
        "SHELL_INTERACTION": "false",
    }
    argv = [scenarios.INSTALLED / "venv/bin/sgpt", "--no-cache"]
    if len(messages) > 1 or "case: write" in messages[0]["content"]:
        argv += ["--chat", "history"]
    found = subprocess.run(
        [*argv, messages[-1]["content"]],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if found.returncode:
        raise RuntimeError(found.stderr.strip()[-600:])
    return found.stdout.removesuffix("\n")


scenarios.chat(
    ask,
    without={"picture": "it takes no pictures", "system": "its prompts are roles of its own"},
)
