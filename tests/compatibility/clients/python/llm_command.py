# client: llm
# registry: PyPI
# packages: llm==0.36
# door: chat
import subprocess
from pathlib import Path

import scenarios

FOLDER = Path.home() / ".config/io.datasette.llm"


def ask(messages, *, stream, tools, key):
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "extra-openai-models.yaml").write_text(
        f"- model_id: larkspur\n  model_name: {scenarios.MODEL}\n  api_key_name: larkspur\n"
        f"  api_base: {scenarios.BASE_URL}\n  vision: true\n  supports_tools: true\n"
    )
    argv = [scenarios.INSTALLED / "venv/bin/llm", "-m", "larkspur", "--key", key]
    if not stream:
        argv.append("--no-stream")
    if tools:
        argv += ["--functions", "def add(a: int, b: int) -> int:\n    return a + b"]
    content = messages[-1]["content"]
    if not isinstance(content, str):
        Path("picture.png").write_bytes(scenarios.png())
        argv += ["-a", "picture.png"]
        content = content[0]["text"]
    if messages[0]["role"] == "system":
        argv += ["--system", messages[0]["content"]]
    if len(messages) > 1 and messages[0]["role"] == "user":
        argv.append("--continue")
    found = subprocess.run([*argv, content], capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(found.stderr.strip())
    return found.stdout.removesuffix("\n")


scenarios.chat(ask)
