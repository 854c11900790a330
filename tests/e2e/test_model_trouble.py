"""Trouble of the model as people see it: one gateway with Lark, the web server and a terminal.

The gateway uses real sockets; the terminal is a process. Only the sleep between
two attempts is the test's, so that minutes pass at once.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from internal.i18n.runs import RunMessages
from internal.settings.chat import ChatChannelSettings
from tests.support.anthropic_server import Fault, Reply, Rules, When
from tests.support.lark_gateway import LarkGateway, open_lark_gateway
from tests.support.web_app import TOKEN
from tests.support.working_web_app import serve_gateway

LARKSPUR = Path(sys.executable).with_name("larkspur")
EN, ZH = RunMessages("en"), RunMessages("zh")
INTERNAL = ("org-", "req_", "Error", "http://10.", "{'", "Traceback", "iter:")
SECRETIVE = "litellm.RateLimitError: org-9xYz at http://10.0.0.7/v1?key=k {'error': 'x'} req_01AbC"
BUSY = Fault("status", status=429, error="rate_limit_error", message=SECRETIVE, retry_after=3_000)
CUT = Fault("cut_after_bytes", bytes=700)
QUOTA = {"code": "AccountQuotaExceeded", "message": "It will reset at 22:50:29 +0800 CST."}
USED_UP = Fault("status", status=429, body=json.dumps({"error": QUOTA}))


@dataclass
class HeldSleep:
    """The sleep between attempts: it lasts until the test lets it end."""

    waits: list[float] = field(default_factory=list)
    go_on: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        await self.go_on.acquire()


@dataclass
class Seen:
    """Views of the same trouble: terminal in English, Lark in Chinese, and events for the page."""

    code: int | None
    terminal: str
    lark: str
    events: list[dict[str, Any]]

    def check(self, sentence: str, chinese: str) -> None:
        assert sentence in self.terminal
        assert chinese in self.lark
        payloads = [each["payload"] for each in self.events]
        said = [each.get(name) for each in payloads for name in ("error", "title", "reason")]
        for shown in (self.terminal, self.lark, json.dumps(said)):
            assert [each for each in INTERNAL if each in shown] == []


@dataclass
class Channels:
    lark: LarkGateway
    terminal: asyncio.subprocess.Process
    errors: str = ""

    def in_lark(self) -> str:
        """Return all texts of the bot in the chat, including cards."""
        shown = (self.lark.sim.card(one.message_id) or one.content for one in self.lark.from_bot())
        return "\n".join(json.dumps(each, ensure_ascii=False) for each in shown)

    async def until_told(self, text: str) -> None:
        """Return when the terminal has written a text to standard error."""
        assert self.terminal.stderr is not None
        async with asyncio.timeout(60):
            while text not in self.errors:
                line = await self.terminal.stderr.readline()
                assert line, self.errors
                self.errors += line.decode()

    async def until_shown(self, text: str) -> None:
        await self.lark.sim.until(lambda _: text in self.in_lark(), 60)

    async def end(self, sentence: str, stream: Any, last: str) -> Seen:
        out, rest = await self.terminal.communicate()
        await self.until_shown(sentence)
        frames = await stream.until(last)
        events = [json.loads(each.data) for each in frames if each.event.startswith("workflow.")]
        text = self.errors + rest.decode() + out.decode()
        return Seen(self.terminal.returncode, text, self.in_lark(), events)


@asynccontextmanager
async def channels(
    folder: Path,
    reply: Reply,
    *,
    retries: int,
    sleep: HeldSleep,
    environ: Mapping[str, str] | None = None,
) -> AsyncGenerator[tuple[Channels, Any]]:
    """Ask in Lark and in a terminal; yields both and the stream that the page reads."""
    rules = Rules(
        [
            msgspec.structs.replace(
                reply,
                pieces=4,
                fault=reply.fault and msgspec.structs.replace(reply.fault),  # counted by identity
                when=When(last_user=words),
            )
            for words in ("from Lark", "from a terminal")
        ]
    )
    settings = ChatChannelSettings(react_emoji="off")
    retrying = {"LARKSPUR_LLM__MAX_RETRIES": str(retries), "LARKSPUR_AGENT__GATES": "off"}
    environ = {**retrying, **(environ or {})}
    home = folder / "home"
    home.mkdir(mode=0o700)
    async with (
        open_lark_gateway(home, rules, settings, environ=environ, sleep=sleep) as lark,
        serve_gateway(lark.core, home) as (_, client),
        client.stream("sessions=*") as stream,
    ):
        await lark.say("from Lark 请回答")
        (project := folder / "project").mkdir()
        terminal = folder / "terminal"
        terminal.mkdir(mode=0o700)
        with os.fdopen(os.open(terminal / "token", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(TOKEN)
        server = f"http://{client.host}:{client.port}"
        process = await asyncio.create_subprocess_exec(
            *(LARKSPUR, "-p", "from a terminal", "--server", server),
            env={"LARKSPUR_HOME": str(terminal), "HOME": str(folder), "LANG": "C.UTF-8"},
            cwd=project,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        yield Channels(lark, process), stream


@pytest.mark.parametrize(
    ("reply", "reason", "code", "exit_code"),
    [
        (Reply(text="So far.", stop_reason="max_tokens"), "max_output", "", 5),
        (Reply(text="I will not", stop_reason="refusal"), "error", "model_refused", 1),
        (Reply(fault=USED_UP), "error", "model_quota_used_up", 1),
    ],
    ids=["limit", "refusal", "quota"],
)
async def test_a_limit_and_a_refusal_are_said_alike(
    tmp_path: Path, reply: Reply, reason: str, code: str, exit_code: int
) -> None:
    async with channels(tmp_path, reply, retries=0, sleep=HeldSleep()) as (here, stream):
        seen = await here.end(ZH.ended(reason, code), stream, "workflow.result.final")
    seen.check(EN.ended(reason, code), ZH.ended(reason, code))
    assert seen.code == exit_code
    final = seen.events[-1]["payload"]
    assert (final["stop_reason"], final.get("error_code", "")) == (reason, code)


async def test_everybody_is_told_which_model_answered_instead(tmp_path: Path) -> None:
    busy = Fault("status", status=529, error="overloaded_error", times=1)
    reply = Reply(text="From the second.", fault=busy)
    fallbacks = {"LARKSPUR_LLM__FALLBACKS": '["anthropic:claude-second"]'}
    sleep = HeldSleep(go_on=asyncio.Semaphore(9))
    names = "claude-second", "claude-x"
    async with channels(tmp_path, reply, retries=0, sleep=sleep, environ=fallbacks) as (
        here,
        stream,
    ):
        seen = await here.end(ZH.answered_by(*names), stream, "workflow.result.final")
    assert EN.answered_by(*names) in seen.terminal
    assert "From the second." in seen.lark
    final = seen.events[-1]["payload"]
    assert (final["model"], final["instead_of"]) == names


@pytest.mark.parametrize(
    ("fault", "code", "waits"),
    [(BUSY, "model_rate_limited", set()), (CUT, "model_unreachable", {"unreachable"})],
    ids=["busy", "cut"],
)
async def test_a_run_that_waits_for_a_person_says_why_alike(
    tmp_path: Path, fault: Fault, code: str, waits: set[str]
) -> None:
    reply = Reply(text="It is a long answer.", fault=fault)
    sleep = HeldSleep(go_on=asyncio.Semaphore(9))
    async with channels(tmp_path, reply, retries=0, sleep=sleep) as (here, stream):
        seen = await here.end(ZH.ended("error", code), stream, "workflow.question.asked")
    seen.check(EN.ended("error", code), ZH.ended("error", code))
    assert seen.events[-1]["payload"]["reason_code"] == code
    tried = [each for each in seen.events if each["event"] == "workflow.node.retry"]
    assert {each["payload"]["reason"] for each in tried} == waits, "a cut reply starts over once"


@pytest.mark.slow
async def test_an_overload_of_two_minutes_is_shown_and_waited_out(tmp_path: Path) -> None:
    busy = Fault("status", status=529, retry_after=60, times=2)
    sleep = HeldSleep()
    reply = Reply(text="Here I am.", fault=busy)
    async with channels(tmp_path, reply, retries=3, sleep=sleep) as (here, stream):
        for attempt in (2, 3):
            wait = {"reason": "overloaded", "seconds": 60, "attempt": attempt, "attempts": 4}
            await here.until_told(EN.retry(wait))
            await here.until_shown(ZH.retry(wait))
            sleep.go_on.release()
            sleep.go_on.release()
        seen = await here.end("Here I am.", stream, "workflow.result.final")
    assert sleep.waits == [60.0] * 4, "two minutes for each of the two runs"
    waits = [each for each in seen.events if each["event"] == "workflow.node.retry"]
    shown = {(each["payload"]["reason"], each["payload"]["seconds"]) for each in waits}
    assert shown == {("overloaded", 60)}
    assert "Here I am." in seen.terminal
    assert seen.code == 0
