"""A gateway whose database is a PostgreSQL server."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from internal.config.home import prepare
from tests.support.anthropic_server import Call, Reply, Rules, ScriptedAnthropic, When
from tests.support.database_files import file_contents
from tests.support.gateway_process import LARKSPUR, running_gateway
from tests.support.http_client import HttpClient
from tests.support.postgres_server import PASSWORD, postgres_url, shared_server

pytestmark = pytest.mark.postgres

RULES = Rules(
    [
        Reply(text="The sum is 42.", when=When(results=1), hold="go"),
        Reply(calls=[Call("calculate", {"expression": "6*7"})]),
    ]
)


@pytest.fixture
async def url() -> AsyncGenerator[str]:
    async with postgres_url() as created:
        yield created


async def larkspur(environ: dict[str, str], *argv: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        LARKSPUR,
        *argv,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def submit(client: HttpClient, text: str) -> dict[str, str]:
    body = {"task": text, "options": {"permission_mode": "all"}}
    made: dict[str, str] = (await client.post("/api/tasks", body)).json()
    return made


async def test_a_killed_run_is_resumed(home: Path, environ: dict[str, str], url: str) -> None:
    async with ScriptedAnthropic(RULES) as model:
        environ |= {
            "LARKSPUR_DATABASE__URL": url,
            "ANTHROPIC_BASE_URL": model.base_url,
            "ANTHROPIC_API_KEY": "key-for-tests",
            "LARKSPUR_LLM__MODEL": "claude-x",
            "LARKSPUR_AGENT__GATES": "off",
        }
        async with running_gateway(environ, home, provider="anthropic") as first:
            made = await submit(first.client, "what is 6*7?")
            await model.until_asked(2)  # the result of the tool is stored
            first.process.send_signal(signal.SIGKILL)
            await first.process.wait()
        model.release("go")
        async with running_gateway(environ, home, provider="anthropic") as second:
            async with second.client.stream(f"session_id={made['session_id']}") as stream:
                frames = await stream.until("workflow.result.final")
            task = (await second.client.get(f"/api/tasks/{made['task_id']}")).json()
            logged = str((await second.client.get("/health")).json())
    assert task["status"] == "completed"
    assert "The sum is 42." in frames[-1].data
    assert PASSWORD not in logged
    assert file_contents(home, "larkspur.db*") == {}
    rows = shared_server().sql(
        "select count(*), count(distinct seq), max(seq) from events", url.rpartition("/")[2]
    )
    assert rows[0][0] == rows[0][1] == rows[0][2], "no event is missing or twice"


@pytest.mark.slow
async def test_a_task_in_the_terminal_and_the_doctor(
    home: Path, environ: dict[str, str], url: str
) -> None:
    environ |= {"LARKSPUR_DATABASE__URL": url, "LARKSPUR_LLM__PROVIDER": "offline"}
    code, answer, _ = await larkspur(environ, "-p", "what is 6*7?")
    assert (code, "42" in answer) == (0, True)

    code, listed, _ = await larkspur(environ, "sessions", "--json")
    assert (code, len(json.loads(listed))) == (0, 1)

    _, output, _ = await larkspur(environ, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(output)}
    assert checks["database"]["state"] == "ok"
    shown = f"postgresql://127.0.0.1:{shared_server().port}/{url.rpartition('/')[2]}"
    assert checks["database"]["sentence"].startswith(f"{shown} can be opened (schema version ")

    _, output, _ = await larkspur(environ, "config", "show")
    assert shown in output
    assert PASSWORD not in output
    assert file_contents(home, "larkspur.db*") == {}


async def test_a_server_that_cannot_be_used_is_named(environ: dict[str, str], url: str) -> None:
    environ |= {"LARKSPUR_DATABASE__URL": url.replace(PASSWORD, "wrong-password")}
    code, _, reason = await larkspur(environ, "-p", "what is 6*7?")
    assert code != 0
    assert "does not accept the user larkspur or its password. Check database.url." in reason
    assert "Traceback" not in reason
    assert "wrong-password" not in reason


@pytest.mark.slow
async def test_a_second_host_is_refused_until_it_has_what_the_first_one_has(
    home: Path, environ: dict[str, str], url: str
) -> None:
    """Afterwards it continues with the files of a session from the first host."""
    files = Rules(
        [
            Reply(text="the end", when=When(results=1)),
            Reply(calls=[Call("read_file", {"path": "note"})], when=When(last_user="read")),
            Reply(calls=[Call("write_file", {"path": "note", "content": "of the first host"})]),
        ]
    )
    async with ScriptedAnthropic(files) as model:
        environ |= {
            "LARKSPUR_DATABASE__URL": url,
            "LARKSPUR_WORKSPACES__LOCATION": "archive",
            "LARKSPUR_ATTACHMENTS__FOLDER": str(home.parent / "attachments"),
            "LARKSPUR_LLM__PROVIDER": "anthropic",
            "LARKSPUR_LLM__MODEL": "claude-x",
            "LARKSPUR_AGENT__GATES": "off",
            "ANTHROPIC_BASE_URL": model.base_url,
            "ANTHROPIC_API_KEY": "key-for-tests",
        }
        second = prepare(home.parent / "second")
        other = {**environ, "LARKSPUR_HOME": str(second)}
        async with running_gateway(environ, home, provider="") as first:
            session_id = await complete(first.client, "write")
            code, _, reason = await larkspur(other, "serve", "--port", "0")
            assert code == 1
            assert "has another token than those of the other hosts" in reason
            (second / "token").write_bytes((home / "token").read_bytes())
            own = {**other, "LARKSPUR_ATTACHMENTS__FOLDER": str(second / "attachments")}
            code, _, reason = await larkspur(own, "serve", "--port", "0")
            assert code == 1
            assert reason.startswith("The attachments of this host (the folder ")
        async with running_gateway(other, second, provider="") as gateway:
            await complete(gateway.client, "read", session_id=session_id)
    note = second / "workspaces" / session_id / "note"
    assert await asyncio.to_thread(note.read_text) == "of the first host"
    rows = shared_server().sql("select name from hosts order by name", url.rpartition("/")[2])
    assert len(rows) == 2
    assert rows[1][0].startswith(f"{rows[0][0]}-"), "both are called after this machine"


async def complete(client: HttpClient, text: str, **more: str) -> str:
    """Submit a task, wait for its end and return its session."""
    body = {"task": text, "options": {"permission_mode": "all"}, **more}
    made = (await client.post("/api/tasks?wait=60", body)).json()
    assert made["status"] == "completed"
    return str(made["session_id"])
