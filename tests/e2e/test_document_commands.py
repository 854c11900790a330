"""The commands of the documents, run word by word in a fresh home."""

import asyncio
import json
import re
import zipfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import ROOT
from tests.support.documents import pdf, picture
from tests.support.gateway_process import LARKSPUR, running_gateway

_FENCE = re.compile(r" *```(\w*)$")
_LANGUAGES = ("", "bash", "sh", "console")
_QUOTED = re.compile(r'"[^"]*"')
_COMMAND = re.compile(
    r"(?:[A-Z_]+=\S+ +)*(?:larkspur(?! \d)|curl|git|make|uvx?|npm|source|export|docker"
    r"|cp|rm|mkdir|install|useradd|python3|systemctl|sudo|createuser)\b|TOKEN=|token="
)
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_HAS_CERTIFICATES = _CERTIFICATES.exists()

NOT_RUN = {
    # commands that serve until they are ended
    r"make run": "serves until it is ended, after `make setup page`",
    r"uvx --from": "serves; test_wheel.py starts the wheel",
    r"larkspur (serve|lark-sim)\b": "serves; each test here runs the commands against one",
    r"(LARKSPUR_\S+ +)+larkspur serve": "serves; the settings have tests of their own",
    r"larkspur *(#.*)?$": "a session in a terminal; test_terminal_session.py",
    r"larkspur --(plan-review always|permission-mode ask)$": "as above; test_terminal_questions.py",
    # other machines and accounts
    r"git clone": "the address of the sources is not known here",
    r"source ": "the environment of this checkout is used without it",
    r"export ": "a key of a provider, or an app of Lark",
    r"docker ": "test_compose.py and test_container_image.py",
    r"cp configs/deploy/": "before `docker compose` and `systemctl`; test_systemd_units.py",
    r"(useradd|systemctl|journalctl|sudo|install -m 600 /dev/null /etc/) ?": "root and systemd",
    r"python3 -m venv /opt": "root",
    r"(/opt/larkspur/bin/pip|uv tool|pipx) install .*\./larkspur_": "test_wheel.py does",
    r"mkdir -p /backup/larkspur$": "with the two below",
    r"LARKSPUR_HOME=/var/lib/larkspur |cp -a /var/lib/larkspur": "the service of systemd",
    r"curl -s http://127.0.0.1:8420/health$": "the service of systemd; test_systemd_units.py",
    r"(createuser|createdb) ": "the administrator of a PostgreSQL server",
    r"larkspur db move --to postgresql": "a server with that name; test_database_commands.py",
    r"larkspur sessions move": "several hosts; test_hosts.py",
    r"larkspur mcp (review|login|logout) docs": "mcp.example.com is no server; test_mcp_login.py",
    r"larkspur tasks (diff|apply)": "a subtask in a git repository; test_worktree_changes.py",
    r"larkspur mcp (add|review) (notes|git|shop|browser|lark)\b": "test_server_recipes.py",
    r"larkspur mcp \w+ (time|clock|brave)\b": "installs from a registry; test_mcp_packages.py",
    r"cd ~/project$": "as above",
    r"larkspur hooks\b": "hooks of the settings; test_hooks.py",
    r".*\[--": "a synopsis, no command",
    r".* --json-schema ": "a model that answers in JSON; test_answer_schema.py",
    r"curl http://127.0.0.1:8430/_sim/": "the test of the simulator below",
    # of the Makefile
    r"make compatibility": "the registries of packages, before a release",
    r"make (setup|wheel|check|test|chaos|bench|soak|generate|clean)\b": "CI runs them",
}
"""Commands that are not run, with the reason or the test that does the same."""


class Group(NamedTuple):
    """Pages whose commands share a home, with a running gateway or without."""

    pages: tuple[str, ...]
    has_gateway: bool = True


GUIDES = tuple(
    f"docs/guides/{name}.md"
    for name in ("first-task", "first-team-chat", "rules-and-plans", "troubleshooting", "upgrade")
)
REFERENCE = tuple(
    f"docs/{name}.md"
    for name in (
        *("database", "files", "http", "instructions", "models", "permissions", "profiles"),
        *("sandbox", "skills", "streams", "terminal"),
    )
)
GROUPS = {
    "readme": Group(("README.md",)),
    "readme-zh": Group(("README.zh.md",)),
    "guides": Group(GUIDES),
    "reference": Group(REFERENCE),
    "storage": Group(("docs/storage.md",), has_gateway=False),
    "mcp": Group(("docs/mcp.md",), has_gateway=False),
}
PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
"""The prompt of a session in a terminal; the next line is typed into it."""
ASKED = "larkspur -p 'ask me \"Ready?\"' >/dev/null 2>&1 || [ $? = 6 ];"
QUESTION = "larkspur questions | awk '{print $1; exit}'"
FILE = "larkspur files | awk '{print $1; exit}'"
FULL_ID = "larkspur {0}s --json | grep -om1 '{0}-[^\"]*'"
# commands that find the target named by a command, the last word of their output
NAMES = {
    "larkspur answer ID": f"{ASKED} {QUESTION}",
    "larkspur answer Kd81mZ-1": QUESTION,
    "/questions/QUESTION/": f"{ASKED} {FULL_ID.format('question')}",
    "larkspur sessions export ID": FULL_ID.format("session"),
    "session_id=SESSION": FULL_ID.format("session"),
    "larkspur files get ID": FILE,
    "/artifacts/ID/": "larkspur files --json | grep -om1 'artifact-[^\"]*'",
}
FOLDERS = ("attachments", "workspaces", "session-files", "task-folders")
"""Folders of a home that are made when they are first needed."""
NAME = re.compile(r"\b(?:ID|SESSION|QUESTION|Kd81mZ-1)\b")
WAITING = {
    'larkspur -p "make a report about prices" --plan-review always': 6,
    "larkspur trust AGENTS.md": 2,  # it asks, and nobody can be asked here
}
"""The exit codes of commands that end with a question."""
SETUP = """
set -euo pipefail
shopt -s expand_aliases
curl() { command curl --fail --max-time 2 "$@" || [ $? = 28 ]; }  # a stream does not end
"""


def commands(page: str) -> Iterator[list[str]]:
    """Yield the commands of each block, with continued lines joined.

    In a block `console` they follow `$ `, and the other lines are output.
    """
    for language, block in _blocks((ROOT / page).read_text(encoding="utf-8")):
        lines = [line.strip() for line in block.replace("\\\n", " ").splitlines() if line.strip()]
        prompted = [line[2:] for line in lines if line.startswith("$ ")]
        if language == "console" or (prompted and prompted[0] == lines[0][2:]):
            yield prompted
        elif language in _LANGUAGES and lines and _COMMAND.match(lines[0]):
            yield [line for line in lines if not line.startswith(("#", PROMPT))]


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the content of each block between fences."""
    language, lines = None, list[str]()
    for line in text.splitlines(keepends=True):
        fence = _FENCE.match(line.rstrip())
        if fence is None:
            lines.append(line)
        elif language is None:
            language, lines = fence[1], []
        else:
            yield language, "".join(lines)
            language = None


def reason(command: str) -> str | None:
    """Return the pattern of a command that is not run."""
    return next((each for each in NOT_RUN if re.match(each, command)), None)


def shape(command: str) -> str:
    """Return a command without texts and comments, which differ between languages."""
    command = _QUOTED.sub('""', re.split(r"\s+#", command)[0])
    return " ".join(command.replace("同意", "yes").split())


def pages() -> list[str]:
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/guides/*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found if path.name != "CHANGELOG.md")


def in_chinese(page: str) -> str:
    return page.replace(".md", ".zh.md")


@pytest.mark.parametrize("page", [each for each in pages() if (ROOT / in_chinese(each)).exists()])
def test_both_languages_show_the_same_commands(page: str) -> None:
    english, chinese = (
        [[shape(command) for command in block] for block in commands(name)]
        for name in (page, in_chinese(page))
    )
    assert english == chinese


def test_each_command_is_run_or_named_with_a_reason() -> None:
    run = {page for group in GROUPS.values() for page in group.pages}
    found = [
        (page, command)
        for page in pages()
        if not page.endswith(".zh.md")
        for block in commands(page)
        for command in block
    ]
    assert [each for each in found if reason(each[1]) is None and each[0] not in run] == []
    used = {reason(command) for _, command in found}
    assert [each for each in NOT_RUN if each not in used] == []


def test_the_tests_that_do_the_same_exist() -> None:
    named = {name for text in NOT_RUN.values() for name in re.findall(r"test_\w+\.py", text)}
    assert len(named) > 10
    assert named <= {path.name for path in (ROOT / "tests").rglob("test_*.py")}


def test_the_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {
        command.split()[1]
        for page in pages()
        for block in commands(page)
        for command in block
        if command.startswith("make ")
    }
    assert {each for each in named if f"\n{each}:" not in makefile} == set()


@pytest.mark.needs("curl")
@pytest.mark.parametrize(
    "name", ["readme", *(pytest.param(each, marks=pytest.mark.slow) for each in [*GROUPS][1:])]
)
async def test_every_command_works(name: str, environ: dict[str, str], tmp_path: Path) -> None:
    group = GROUPS[name]
    del environ["LARKSPUR_HOME"], environ["LARKSPUR_SANDBOX__PROVIDER"]
    environ["PATH"] = f"{LARKSPUR.parent}:{tmp_path}/.local/bin:{environ['PATH']}:{ROOT}/.uv/bin"
    environ["WIKI_TOKEN"] = "canary-wiki-1234"  # noqa: S105 - of the definition in docs/mcp.md
    if _HAS_CERTIFICATES:
        # by default uv and Node do not read the certificates of the machine
        environ |= dict.fromkeys(("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"), str(_CERTIFICATES))
    shell = Shell(environ, tmp_path)
    await shell.prepare()
    failed = []
    async with shell.gateway(has_gateway=group.has_gateway):
        for page in group.pages:
            shell.variables = ""
            for command in (each for block in commands(page) for each in block):
                if reason(command) is None:
                    code, output = await shell.type(command)
                    if code != WAITING.get(command, 0):
                        failed.append((command, code, output))
    assert not failed, "\n\n".join(f"$ {command}\n[{code}] {out}" for command, code, out in failed)


@pytest.mark.slow
async def test_the_simulator_is_used_as_its_page_says(
    environ: dict[str, str], tmp_path: Path
) -> None:
    del environ["LARKSPUR_HOME"]
    environ["PATH"] = f"{LARKSPUR.parent}:{environ['PATH']}"
    (start,), (serve,), (changes, send) = commands("docs/lark-sim.md")
    shell = Shell(environ, tmp_path)
    await shell.prepare()
    async with simulator(environ, start) as printed:
        address, secret = printed["domain"], printed["app secret"]
        key = printed["chat page"].partition("#key=")[2]
        app = serve.replace("http://127.0.0.1:8430", address).replace(
            "SECRET=…", f"SECRET={secret}"
        )
        argv = ("bash", "-c", f"{app} --port 0")
        async with running_gateway(environ, tmp_path / ".larkspur", *argv):

            async def type_(command: str) -> Any:
                script = command.replace("http://127.0.0.1:8430", address).replace("KEY", key)
                # a request for changes waits for one
                script = script.replace("curl ", "command curl --silent --fail ")
                code, output = await shell.run(script)
                assert code == 0, output
                return json.loads(output)

            state = await type_(changes)
            direct = next(chat for chat in state["chats"] if chat["mode"] == "p2p")
            sent = send.replace("ou_…", direct["members"][0]).replace("oc_…", direct["chat_id"])
            await type_(sent)
            async with asyncio.timeout(60):
                while not any("offline demo model" in str(each) for each in state["messages"]):
                    newer = changes.replace("/changes", f"/changes?since={state['version']}")
                    state = await type_(newer)


@asynccontextmanager
async def simulator(environ: Mapping[str, str], command: str) -> AsyncGenerator[dict[str, str]]:
    """Run the simulator at a free port; yield its printed values by their labels."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", f"exec {command} --port 0"), env=environ, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        printed: dict[str, str] = {}
        async with asyncio.timeout(60):
            while "app secret" not in printed:
                line = (await process.stdout.readline()).decode()
                assert line, "the simulator ended"
                name, _, value = line.strip().partition("  ")
                printed[name] = value.strip()
        yield printed
    finally:
        process.terminate()
        await process.communicate()


class Shell:
    """Runs commands like a person who reads a page.

    Args:
        environ: the whole environment.
        home: HOME, with a working folder.
    """

    def __init__(self, environ: Mapping[str, str], home: Path) -> None:
        self._environ, self._home, self._work = environ, home, home / "work"
        self._port = 8420
        self.variables = ""

    async def prepare(self) -> None:
        """Create the files that the pages name."""
        for name in ("work", "notes", "Downloads", "backup"):
            (self._home / name).mkdir()
        (self._work / "report.pdf").write_bytes(pdf("Larks sing at dawn."))
        (self._work / "a.png").write_bytes(picture("PNG"))
        (self._work / "AGENTS.md").write_text("Answer in English.\n")
        (self._work / "CONTRIBUTING.md").write_text("Write tests.\n")
        (self._work / "poem.txt").write_text("Hope is the thing with feathers.\n")
        (self._work / "author.json").write_text('{"type": "object"}')
        program = f"{ROOT}/tests/support/mcp_database_server.py"
        server = {"command": "/usr/bin/python3", "args": ["-I", program]}
        (self._work / ".mcp.json").write_text(json.dumps({"mcpServers": {"own": server}}))
        (self._home / "larkspur-packages.txt").write_text("numpy==2.4.0\n")
        with zipfile.ZipFile(self._home / "Downloads" / "spreadsheets.zip", "w") as archive:
            text = "---\nname: spreadsheets\ndescription: Checks spreadsheets.\n---\nRead them.\n"
            archive.writestr("spreadsheets/SKILL.md", text)
        collection = self._home / "src" / "skills" / "letters"
        collection.mkdir(parents=True)
        (collection / "SKILL.md").write_text(text.replace("spreadsheets", "letters"))
        await self.run("git init --quiet . && larkspur -p hello")
        await self.run(f"cd ~/.larkspur && mkdir -p {' '.join(FOLDERS)}")

    @asynccontextmanager
    async def gateway(self, *, has_gateway: bool) -> AsyncGenerator[None]:
        """Serve the home within the block, if wanted."""
        if not has_gateway:
            yield
            return
        home = self._home / ".larkspur"
        async with running_gateway(self._environ, home, LARKSPUR, "serve", "--port", "0") as served:
            self._port = served.client.port
            yield

    async def type(self, command: str) -> tuple[int | None, str]:
        """Run a command of a page, with values filled in that a person would type or choose."""
        if re.match("token=", command, re.IGNORECASE):
            self.variables = f"{command}\n"
            return 0, ""
        script = command.replace(":8420", f":{self._port}")
        script = re.sub("(?<![~.])/backup", f"{self._home}/backup", script)
        if script.startswith("mkdir "):
            script = f"rm -rf {script.split()[-1]} && {script}"  # that of an earlier block
        if re.match("larkspur files get|curl -sOJ", script):
            script = f"rm -f report.md PATH && {script}"  # saved by an earlier command
        asking = "larkspur (?:mcp (?:add|review|import)|skills review) \\S+"
        script = re.sub(f"^{asking}", r"\g<0> --yes", script)
        if source := next((NAMES[known] for known in NAMES if known in command), None):
            _, listed = await self.run(source)
            script = NAME.sub((listed.split() or [""])[-1], script, count=1)
        return await self.run(self.variables + script)

    async def run(self, script: str) -> tuple[int | None, str]:
        """Run a script; return its exit code and all output."""
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", SETUP + script),
            env=self._environ,
            cwd=self._work,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode, output.decode()
