"""The commands of the README and of the guides, run word by word in a fresh home."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.documents import pdf, picture
from tests.support.gateway_process import LARKSPUR, running_gateway

_BLOCK = re.compile(r"^ *```(?:bash)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_GUIDE_BLOCK = re.compile(r"^ *```bash\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r'"[^"]*"')
_COMMAND = re.compile(r"^(?:larkspur|curl|TOKEN=|git diff|make|uvx|source|export|git clone)\b")
# what a machine without sources, a key, a terminal or a browser cannot run
SKIPPED = re.compile(
    r"git clone|make run|uvx |source |export \w+_API_KEY|larkspur *(?:#|$)|larkspur serve"
)
GUIDES = tuple(
    f"docs/guides/{name}.md"
    for name in ("first-task", "first-team-chat", "rules-and-plans", "troubleshooting", "upgrade")
)
# how to find the ID of a command, which is the last word of the output
IDS = {
    "larkspur answer ID": "larkspur -p 'ask me \"Ready?\"' >/dev/null 2>&1 || [ $? = 6 ];"
    " larkspur questions | awk '{print $1; exit}'",
    "larkspur files get ID": "larkspur files | awk '{print $1; exit}'",
}
SETUP = """
set -euo pipefail
shopt -s expand_aliases
curl() { command curl --fail --max-time 2 "$@" || [ $? = 28 ]; }  # a stream does not end
"""


def commands(page: str) -> Iterator[list[str]]:
    """Yield the commands of each block, with continued lines joined.

    In guides only blocks marked `bash` count: the others need root, a key or a tenant.
    """
    pattern = _GUIDE_BLOCK if "guides" in page else _BLOCK
    for block in pattern.findall((ROOT / page).read_text(encoding="utf-8")):
        lines = [line.strip() for line in block.replace("\\\n", " ").splitlines()]
        if lines and _COMMAND.match(lines[0]):
            yield lines


def shape(command: str) -> str:
    """Return a command without texts and comments, which differ between languages."""
    command = _QUOTED.sub('""', command.partition("  #")[0])
    return " ".join(command.replace("同意", "yes").split())


@pytest.mark.parametrize("page", ["README.md", *GUIDES])
def test_both_languages_show_the_same_commands(page: str) -> None:
    english, chinese = (
        [[shape(command) for command in block] for block in commands(name)]
        for name in (page, page.replace(".md", ".zh.md"))
    )
    assert english == chinese


@pytest.mark.parametrize(
    "pages",
    [
        ("README.md",),
        pytest.param(("README.zh.md",), marks=pytest.mark.slow),  # the same commands
        pytest.param(GUIDES, marks=pytest.mark.slow),
    ],
)
async def test_every_command_works(
    pages: tuple[str, ...], environ: dict[str, str], tmp_path: Path
) -> None:
    del environ["LARKSPUR_HOME"], environ["LARKSPUR_SANDBOX__PROVIDER"]
    environ["PATH"] = f"{LARKSPUR.parent}:{environ['PATH']}"
    work, home = tmp_path / "work", tmp_path / ".larkspur"
    work.mkdir()
    (work / "report.pdf").write_bytes(pdf("Larks sing at dawn."))
    (work / "a.png").write_bytes(picture("PNG"))

    async def run(script: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", SETUP + script),
            env=environ,
            cwd=work,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode, output.decode()

    await run("git init --quiet .")
    failed = []
    async with running_gateway(environ, home, LARKSPUR, "serve", "--port", "0") as running:
        for block in (block for page in pages for block in commands(page)):
            variables = ""
            for command in block:
                if SKIPPED.match(command):
                    continue
                if command.startswith("TOKEN="):
                    variables = command + "\n"
                    continue
                script = command.replace(":8420", f":{running.client.port}")
                if source := next((IDS[known] for known in IDS if command.startswith(known)), None):
                    _, listed = await run(source)
                    script = script.replace(" ID", f" {listed.split()[-1]}")
                code, output = await run(variables + script)
                if code:
                    failed.append((command, code, output))
    assert failed == []
