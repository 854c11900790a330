"""A gateway as a process that serves a simulated Lark."""

import asyncio
import re
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from internal.config.home import prepare, read_token
from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.simulator import LarkSim
from tests import ROOT
from tests.support.http_client import HttpClient
from tests.support.lark_gateway import APP, shown_text
from tests.support.openai_server import ScriptedOpenAI

ADDRESS = re.compile(r" is at http://([\d.]+):(\d+)")


RUN = "import sys; from larkspur.main import main; sys.exit(main())"


WRONG = {"LARKSPUR_CHANNELS__LARK__APP_SECRET": "not-the-secret"}


@dataclass
class Served:
    """One gateway process."""

    process: asyncio.subprocess.Process
    client: HttpClient
    said: list[str] = field(default_factory=list)

    async def lark_health(self) -> dict[str, Any]:
        reply = await self.client.request("GET", "/health")
        assert reply.status == 200
        return dict(reply.json()["lark"])

    async def until_health(self, word: str, sim: LarkSim) -> dict[str, Any]:
        patient_until = time.monotonic() + 60
        while not (health := await self.lark_health())["detail"].startswith(word):
            assert time.monotonic() < patient_until, health
            await sim.lark.changed_within(0.1)
        return health

    def kill(self) -> None:
        """End it as no program can prevent; it may be dead by its plan."""
        with suppress(ProcessLookupError):
            self.process.kill()

    async def over(self) -> int:
        stderr = self.process.stderr
        assert stderr is not None
        self.said += (await stderr.read()).decode().splitlines()
        return await self.process.wait()


@asynccontextmanager
async def served(
    folder: Path, sim: LarkSim, model: ScriptedOpenAI, plan: str = "none", **more: str
) -> AsyncGenerator[Served]:
    """Start a gateway with Lark on; it dies by `plan` (see tests/chaos/crash_launcher.py)."""
    home = prepare(folder / "home")
    environ = {
        "LARKSPUR_HOME": str(home),
        "HOME": str(folder),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}",
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "key-for-tests",
        "LARKSPUR_LLM__PROVIDER": "openai",
        "LARKSPUR_LLM__MODEL": "claude-x",
        "LARKSPUR_CHANNELS__LARK__ENABLED": "true",
        "LARKSPUR_CHANNELS__LARK__APP_ID": APP.app_id,
        "LARKSPUR_CHANNELS__LARK__APP_SECRET": APP.secret,
        "LARKSPUR_CHANNELS__LARK__DOMAIN": sim.url,
        "LARKSPUR_SANDBOX__PROVIDER": "native",
        **more,
    }
    (folder / "count").touch()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.chaos.crash_launcher", str(folder / "count"), plan),
        *("serve", "--port", "0"),
        cwd=folder,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = []
        while line := (await process.stderr.readline()).decode():
            said.append(line)
            if found := ADDRESS.search(line):
                client = HttpClient(found[1], int(found[2]), read_token(home))
                yield Served(process, client, said)
                return
        raise AssertionError(f"it did not start: {said}")
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await process.stderr.read()
            assert await process.wait() in {0, -signal.SIGKILL}


def replies(sim: LarkSim) -> list[str]:
    """Return the bot's replies in the direct chat of the first person."""
    found = [one for one in sim.messages(sim.dm(sim.people[0])) if one.sender_type == "app"]
    return [text for one in found if (text := shown_text(sim, one)) is not None]


async def idle(gateway: Served, sim: LarkSim) -> None:
    """Return when nothing runs and nothing waits to be sent."""
    async with asyncio.timeout(30):
        while True:
            tasks = (await gateway.client.request("GET", "/api/tasks")).json()["tasks"]
            if tasks and all(task["status"] == "completed" for task in tasks):
                return
            await sim.lark.changed_within(0.1)


@asynccontextmanager
async def open_sim() -> AsyncGenerator[LarkSim]:
    async with LarkSim([APP], speed=500.0) as sim:
        sim.set_faults(limits=False)
        yield sim


def from_bot(sim: LarkSim) -> list[ChatMessage]:
    chat = sim.dm(sim.people[0])
    messages = sim.messages(chat)
    return [one for one in messages if one.sender_type == "app" and not one.deleted]


async def say(sim: LarkSim, text: str) -> str:
    await sim.until(lambda _: sim.lark.delivery.connections, 60)
    return await sim.send_text(sim.people[0], sim.dm(sim.people[0]), text)
