"""The recipes of docs/guides/mcp-servers.md: its commands as typed, and a call of a tool."""

import asyncio
import re
import shutil
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from internal.simulators.lark.simulator import LarkSim
from tests import ROOT
from tests.compatibility.registry_relay import is_needed, relay
from tests.support.cli_environment import Result, open_command_line
from tests.support.gateway_process import LARKSPUR
from tests.support.postgres_server import PASSWORD, USER, shared_server
from tests.support.scripted_model import Call, Reply

pytestmark = [
    pytest.mark.compatibility,
    pytest.mark.needs("namespaces"),
    pytest.mark.timeout(900),
]

GUIDE = ROOT / "docs" / "guides" / "mcp-servers.md"
_COMMAND = re.compile(r"^\$ (larkspur .*)$", re.MULTILINE)


def commands(heading: str, guide: Path = GUIDE) -> list[str]:
    """Return the commands of Larkspur under a heading of the guide."""
    text = guide.read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (found,) = [part for part in section if part.startswith(f"{heading}\n")]
    return _COMMAND.findall(found)


class Recipe:
    """A home folder in which the commands of a recipe are typed."""

    def __init__(self, home: Path, environ: dict[str, str]) -> None:
        self.home, self.environ = home, environ
        self.folder = home.parent

    async def add(self, heading: str, changes: Mapping[str, str] | None = None) -> None:
        """Type the commands of a heading; a person says yes to each of their questions."""
        for typed in commands(heading):
            line = typed
            for old, new in (changes or {}).items():
                assert old in typed or "review" in typed, typed
                line = line.replace(old, new)
            line = re.sub(r"^larkspur mcp (add|review)", rf"{LARKSPUR} mcp \1 --yes", line)
            process = await asyncio.create_subprocess_exec(
                *("bash", "-c", line),
                env=self.environ,
                cwd=self.folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await process.communicate()
            assert process.returncode == 0, f"{line}\n{output.decode()}"

    async def call(self, *calls: tuple[str, dict[str, Any]], folder: str = "work") -> Result:
        """Run a task in a folder whose model calls these tools one after the other."""
        script = [Reply(calls=[Call(f"mcp__{name}", given)]) for name, given in calls]
        script.append(Reply(text="done"))
        async with open_command_line("process", self.home, self.environ, script) as cli:
            cli.folder = self.folder / folder
            names = [part for name, _ in calls for part in ("--allow", f"mcp__{name}")]
            return await cli.shot("go", "--output-format", "stream-json", *names)


@pytest.fixture(scope="module")
def indexes() -> Generator[dict[str, str]]:
    """The package indexes of this machine, or a relay where the sandbox does not reach them."""
    if not is_needed():
        yield {}
        return
    with relay() as address:
        url = f"http://127.0.0.1:{address.rpartition(':')[2]}"
        yield {"npm": f"{url}/npm/", "UV_DEFAULT_INDEX": f"{url}/pypi/simple"}


@pytest.fixture
def recipe(home: Path, environ: dict[str, str], indexes: dict[str, str]) -> Recipe:
    uv = shutil.which("uv", path=environ["PATH"])
    paths = [environ["PATH"], str(Path(uv).parent if uv else ROOT / ".uv" / "bin")]
    own = {
        **environ,
        "PATH": ":".join(paths),
        "LARKSPUR_SANDBOX__PROVIDER": "bubblewrap",
        **{name: value for name, value in indexes.items() if name.isupper()},
    }
    if "npm" in indexes:
        (home.parent / ".npmrc").write_text(f"registry={indexes['npm']}\n", encoding="utf-8")
    return Recipe(home, own)


def test_both_languages_have_the_same_commands() -> None:
    chinese = GUIDE.with_suffix(".zh.md").read_text(encoding="utf-8")
    assert _COMMAND.findall(GUIDE.read_text(encoding="utf-8")) == _COMMAND.findall(chinese)


async def test_files(recipe: Recipe) -> None:
    notes = recipe.folder / "notes"
    notes.mkdir()
    await recipe.add("Files")
    file = notes / "plan.md"
    await recipe.call(("notes__write_file", {"path": str(file), "content": "herons"}))
    assert file.read_text(encoding="utf-8") == "herons"


async def test_git(recipe: Recipe) -> None:
    project = recipe.folder / "project"
    git = ("git", "-C", str(project))
    settings = (("user.name", "Ada"), ("user.email", "ada@example.com"))
    lines = [("git", "init", "-q", str(project)), *((*git, "config", *each) for each in settings)]
    for line in lines:
        await (await asyncio.create_subprocess_exec(*line)).wait()
    (project / "plan.md").write_text("herons", encoding="utf-8")
    await recipe.add("Git")
    await recipe.call(
        ("git__git_add", {"repo_path": str(project), "files": ["plan.md"]}),
        ("git__git_commit", {"repo_path": str(project), "message": "Count the herons"}),
    )
    log = await asyncio.create_subprocess_exec(
        *git, "log", "--format=%an %s", stdout=asyncio.subprocess.PIPE
    )
    assert (await log.communicate())[0] == b"Ada Count the herons\n"


@pytest.mark.postgres
async def test_postgresql(recipe: Recipe) -> None:
    server = shared_server()
    name = server.create_database()
    try:
        server.sql("create table birds as select 'grey heron' as name", name)
        server.sql(f"grant select on birds to {USER}", name)
        recipe.environ["DB_PASSWORD"] = PASSWORD
        changes = {"5432": str(server.port), "ada": USER, "/shop": f"/{name}"}
        await recipe.add("PostgreSQL", changes)
        done = await recipe.call(("shop__query", {"sql": "select name from birds"}))
        assert b"grey heron" in done.out
        stored = (recipe.home / "mcp.json").read_text(encoding="utf-8")
        assert "${DB_PASSWORD}" in stored
        assert PASSWORD not in stored
    finally:
        server.drop_database(name)


@asynccontextmanager
async def page_of_this_machine() -> AsyncGenerator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b"<title>Herons</title><h1>Grey herons</h1>"
        head = f"Content-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close"
        writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.browser
async def test_a_browser(recipe: Recipe) -> None:
    project = recipe.folder / "project"
    project.mkdir()
    async with page_of_this_machine() as port:
        await recipe.add("A browser", {"5173": str(port)})
        url = {"url": f"http://localhost:{port}/"}
        done = await recipe.call(
            ("browser__browser_navigate", url),
            ("browser__browser_take_screenshot", {"filename": "herons.png"}),
            ("browser__browser_take_screenshot", {}),
            folder="project",
        )
    assert b"Herons" in done.out
    (unnamed,) = (project / "browser").glob("*.png")
    for saved in (unnamed, project / "herons.png"):
        assert saved.read_bytes().startswith(b"\x89PNG")


async def test_lark(recipe: Recipe) -> None:
    async with LarkSim() as sim:
        recipe.environ["LARK_SECRET"] = sim.app.secret
        host = sim.url.partition("://")[2]
        changes = {
            "--network open.feishu.cn": f"--network {host}",
            "cli_a1b2c3": f"{sim.app.app_id} -d {sim.url}",
        }
        await recipe.add("Lark", changes)
        done = await recipe.call(("lark__im_v1_chat_list", {"params": {}}))
        assert any("/im/v1/chats" in str(entry) for entry in sim.log), done.out
