"""Secrets in a real gateway: none leaves it, whatever its peers quote while they fail."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from internal.agent.domain.secrets import MASK
from internal.config.home import find_gateway, prepare, read_token
from internal.simulators.lark.model import App
from internal.simulators.lark.simulator import LarkSim
from tests import ROOT
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.http_client import HttpClient
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Fault, Reply, Rules, ScriptedServer, When

LARKSPUR = Path(sys.executable).with_name("larkspur")
KEY = 'sk-canary/7f"3a\\9c+Qx%Zt=4411'
FALLBACK_KEY = "sk-fallback-canary-5e0b77aa"
SEARCH_KEY = "tvly-canary-0c4f92d1"
OTHER_SEARCH_KEY = "brave-canary-77b1e5a3"
APP = App("cli_canary", "lark+app/secret=canary%31")
FORMATS = ("text", "json", "stream-json")
COMMANDS = (
    ("config", "show"),
    ("doctor",),
    ("audit",),
    ("cost",),
    ("tasks",),
    ("sessions",),
    *(("-p", "error_in_stream", "--here", "--output-format", each) for each in FORMATS),
)


def spellings(secret: str) -> set[str]:
    """Return the spellings of a secret in texts; base64 without the parts its neighbours change."""
    encoded = (base64.b64encode(b"." * n + secret.encode()).decode()[4:-4] for n in range(3))
    return {secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1], *encoded}


def quoting(secret: str) -> str:
    """Return an error message that quotes a secret in every spelling."""
    basic = base64.b64encode(f"api:{secret}".encode()).decode()
    return (
        f"not accepted: Bearer {secret} from /v1?key={quote(secret, safe='')} or {quote(secret)},"
        f" body {json.dumps({'key': secret})}, Basic {basic}."
    )


def script() -> list[Reply]:
    """Return one reply for each way to fail, chosen by the last words of the person."""
    said = quoting(KEY)
    statuses = (400, 401, 402, 403, 404, 413, 422, 429, 500, 503)
    faults = {f"status_{n}": Fault("status", status=n, message=said) for n in statuses}
    faults |= {
        "plain_body": Fault("status", status=400, body=said, content_type="text/plain"),
        "long_body": Fault("status", status=400, message="x" * 1_985 + " " + KEY),
        "redirect": Fault("status", status=302, location=f"http://127.0.0.1:9/{quote(KEY)}"),
        "error_in_stream": Fault("error_in_stream", message=said, after_pieces=1),
        "overloaded_in_stream": Fault("overloaded_in_stream", message=said),
        "malformed": Fault("garbage", body=f'data: {{"error": {said}\n\n'),
        "no_stream": Fault("garbage", body=said),
        "noise": Fault("garbage_in_stream", body=said, after_pieces=1),
    }
    replies = [
        Reply("Some text.", pieces=4, fault=fault, when=When(last_user=name, results=0))
        for name, fault in faults.items()
    ]
    calls = {
        "tool_error": Call("read_file", {"path": f"missing/{KEY}.txt"}),
        "tool_output": Call("shell", {"command": f"printf %s '{KEY}'; exit 3"}),
        "search_keys": Call("shell", {"command": f"echo {SEARCH_KEY} {OTHER_SEARCH_KEY}"}),
        "tool_denied": Call("web_fetch", {"url": f"http://127.0.0.1:9/?key={quote(KEY)}"}),
        "child": Call("shell", {"command": "echo $$; exec sleep 1000"}),
    }
    for name, call in calls.items():
        replies.append(Reply("", calls=[call], when=When(last_user=name, results=0)))
        replies.append(Reply(f"Done: {KEY}", pieces=30, when=When(last_user=name)))
    replies.append(
        Reply(
            f"{KEY} {said}",
            thinking=said,
            pieces=200,
            packets="each",
            when=When(last_user="repeat"),
        )
    )
    return replies


def cases() -> list[str]:
    return list(
        dict.fromkeys(one.when.last_user for one in script() if one.when and one.when.last_user)
    )


class Gateway:
    """A gateway process, its home folder and its whole output."""

    def __init__(self, home: Path, environ: dict[str, str], process: Process) -> None:
        self.home, self.environ, self.process = home, environ, process
        self.seen: list[bytes] = []
        address = find_gateway(home)
        assert address is not None
        self.client = HttpClient(address.host, address.port, read_token(home))

    async def run_task(self, text: str) -> None:
        """Run a task to its end, follow its stream and read its pages."""
        task = {"task": text, "options": {"approvals": False}}
        made = (await self.client.post("/api/tasks", task)).json()
        session = made["session_id"]
        async with self.client.stream(f"session_id={session}") as stream:
            await stream.until("workflow.result.final")
            self.seen.append(bytes(stream.frames.body))
        for path in (f"/api/sessions/{session}/events", f"/api/tasks/{made['task_id']}"):
            self.seen.append((await self.client.get(path)).body)

    async def environment_of_a_tool(self) -> bytes:
        """Return the environment of a tool's process."""
        task = {"task": "child", "options": {"permission_mode": "all"}}
        made = (await self.client.post("/api/tasks", task)).json()
        async with self.client.stream(f"session_id={made['session_id']}") as stream:
            *_, output = await stream.until("workflow.tool.progress")
            number = output.json()["payload"]["text"].strip()
            environment = await asyncio.to_thread(Path(f"/proc/{number}/environ").read_bytes)
            await self.client.post(f"/api/tasks/{made['task_id']}/stop", {})
            await stream.until("workflow.result.cancelled")
            self.seen.append(bytes(stream.frames.body))
        return environment

    async def command(self, *argv: str) -> None:
        process = await asyncio.create_subprocess_exec(
            LARKSPUR,
            *argv,
            env=self.environ,
            cwd=self.home.parent,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        self.seen += await process.communicate()
        assert self.seen[-2] or self.seen[-1], argv

    def read_files(self) -> None:
        """Read the files of the home folder, except the files meant for secrets."""
        for path in self.home.rglob("*"):
            if path.is_file() and path.name not in {"token", "config.yaml"}:
                self.seen.append(path.read_bytes())


@asynccontextmanager
async def gateway_with_canaries(
    folder: Path, provider: str, model: ScriptedServer, lark: LarkSim
) -> AsyncGenerator[Gateway]:
    home = prepare(folder / "home")
    settings: dict[str, Any] = {
        "llm": {
            "provider": provider,
            "model": "claude-x",
            "api_key": KEY,
            "base_url": model.base_url,
            "keys": {"deepseek": FALLBACK_KEY},
            "max_retries": 0,
            "request_timeout_seconds": 1,
        },
        "agent": {"gates": "off"},
        "tools": {
            "allow": ["shell(printf *)", "shell(sleep *)", "shell(echo *)", "read_file"],
            "web_search": {"keys": {"brave": OTHER_SEARCH_KEY}},
        },
        "sandbox": {"provider": "native"},
        "channels": {
            "lark": {
                "enabled": True,
                "app_id": APP.app_id,
                "app_secret": APP.secret,
                "domain": lark.url,
            }
        },
    }
    (home / "config.yaml").write_text(json.dumps(settings))
    (home / "config.yaml").chmod(0o600)
    path = os.environ["PATH"]  # noqa: TID251 - needed to find programs
    environ = {"LARKSPUR_HOME": str(home), "HOME": str(folder), "PATH": path}
    environ["TAVILY_API_KEY"] = SEARCH_KEY
    process = await asyncio.create_subprocess_exec(
        LARKSPUR,
        "serve",
        "--port",
        "0",
        env=environ,
        cwd=folder,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    assert process.stderr is not None
    said = b""
    while b" is at http" not in said:
        line = await process.stderr.readline()
        assert line, said.decode()
        said += line
    gateway = Gateway(home, environ, process)
    gateway.seen.append(said)
    try:
        yield gateway
    finally:
        process.send_signal(signal.SIGTERM)
        gateway.seen += await process.communicate()


def assert_absent(secrets: Iterable[str], seen: Iterable[bytes]) -> None:
    for secret in secrets:
        for spelling in spellings(secret):
            for each in seen:
                at = each.find(spelling.encode())
                assert at < 0, each[max(0, at - 300) : at + 100].decode(errors="replace")


@pytest.mark.parametrize("provider", ["openai", pytest.param("anthropic", marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_no_secret_is_stored_shown_sent_or_logged(tmp_path: Path, provider: str) -> None:
    servers: dict[str, type[ScriptedServer]] = {
        "openai": ScriptedOpenAI,
        "anthropic": ScriptedAnthropic,
    }
    async with (
        LarkSim([APP], speed=100.0) as lark,
        servers[provider](Rules(script()), api_key=KEY) as model,
    ):
        token_call = {"kind": "quote", "match": "tenant_access_token", "times": 1, "code": 10_014}
        lark.set_faults(answers=[token_call])
        async with gateway_with_canaries(tmp_path, provider, model, lark) as gateway:
            token = read_token(gateway.home)
            for case in cases():
                if case != "child":
                    await gateway.run_task(case)
            await gateway.run_task(f"repeat: my token is {token} and my key {KEY}")
            gateway.seen.append(await gateway.environment_of_a_tool())
            await quote_in_lark(lark, gateway)
            for command in COMMANDS:
                await gateway.command(*command)
            for path in ("/health", "/api/sessions", "/api/tasks", "/api/usage", "/api/audit"):
                gateway.seen.append((await gateway.client.get(path)).body)
            gateway.read_files()
        gateway.read_files()
        for command in COMMANDS[-1:]:  # in a process of their own
            await gateway.command(*command)
        gateway.read_files()
        shown = lark.messages(lark.dm(lark.people[0]))
        gateway.seen += [str(one).encode() for one in shown]
        tokens = list(lark.lark.tokens._tokens)
    assert tokens
    canaries = [KEY, FALLBACK_KEY, SEARCH_KEY, OTHER_SEARCH_KEY, APP.secret, token, *tokens]
    assert_absent(canaries, gateway.seen)
    masked = sum(each.count(MASK.encode()) for each in gateway.seen)
    assert masked > len(cases()), "the failures did not quote the secrets"


async def quote_in_lark(lark: LarkSim, gateway: Gateway) -> None:
    """Let a reply of the gateway fail with errors that quote its credentials."""
    person = lark.people[0]
    chat = lark.dm(person)
    lark.set_faults(answers=[{"kind": "quote", "match": "/reply", "times": 99, "code": 230_001}])
    await lark.send_text(person, chat, "status_401")
    while b"given up" not in (await gateway.client.get("/health")).body:
        await lark.lark.changed_within(0.1)
    lark.set_faults(answers=[])
    await lark.send_text(person, chat, "error_in_stream")
    await lark.until(lambda _: any(one.sender_type == "app" for one in lark.messages(chat)))


CRASH = """
import sys, threading
from internal.settings.types import Section, Secret
from internal.observability.logs import configure_logging
from larkspur.main import main
class Settings(Section):
    key: Secret
key = Settings(key=sys.argv.pop()).key.get_secret_value()
main()
configure_logging()
thread = threading.Thread(target=lambda: 1 / 0 if key == "" else [][key], name=key)
thread.start()
thread.join()
raise RuntimeError(key) from ValueError(f"https://x/?key={key}")
"""


def test_an_unhandled_exception_is_printed_without_secrets() -> None:
    crashed = subprocess.run(
        [sys.executable, "-c", CRASH, "--version", KEY],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert crashed.returncode == 1
    assert f"RuntimeError: {MASK}" in crashed.stderr
    assert KEY not in crashed.stderr
