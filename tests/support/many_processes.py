"""A team of gateway processes on one database."""

import asyncio
import re
import shutil
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from internal.agent.ports.runtime import ProcessIdentity
from internal.config.home import prepare, read_token
from internal.simulators.lark.simulator import LarkSim
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.gateway_process import LARKSPUR
from tests.support.http_client import HttpClient
from tests.support.lark_gateway import APP
from tests.support.postgres_server import postgres_url, shared_server

STARTED = re.compile(r" is at http://([\d.]+):(\d+)|larkspur \S+ works as (\d+)")


LEASE_SECONDS = 3


@dataclass
class Member:
    """A process of the team with its standard error so far."""

    process: asyncio.subprocess.Process
    home: Path
    said: list[str] = field(default_factory=list)
    _reading: "asyncio.Task[None] | None" = None

    @property
    def client(self) -> HttpClient:
        found = next(match for line in self.said if (match := STARTED.search(line)))
        return HttpClient(found[1], int(found[2]), read_token(self.home))

    async def until_said(self, text: str) -> None:
        async with asyncio.timeout(60):
            while not any(text in line for line in self.said):
                await self.read_line()

    async def read_line(self) -> str:
        assert self.process.stderr is not None
        line = (await self.process.stderr.readline()).decode()
        assert line, "".join(self.said)
        self.said.append(line)
        return line

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        return await self.over()

    async def over(self) -> int:
        """Return the exit code when it has ended."""
        _, rest = await self.process.communicate()
        self.said.append(rest.decode())
        assert self.process.returncode is not None
        return self.process.returncode


@dataclass
class Team:
    """Processes on one database and one host."""

    folder: Path
    environ: dict[str, str]
    url: str
    members: list[Member] = field(default_factory=list)

    async def start(self, *argv: str, host: str = "") -> Member:
        """Start a process; processes of a named host share a home folder of their own."""
        home = prepare(self.folder / (f"home-{host}" if host else "home"))
        token = self.folder / "home" / "token"
        if host and not (home / "token").exists():
            shutil.copy(token, home / "token")
        named = {"LARKSPUR_DISPATCH__HOST": host} if host else {}
        process = await asyncio.create_subprocess_exec(
            LARKSPUR,
            *argv,
            env={**self.environ, **named, "LARKSPUR_HOME": str(home)},
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        member = Member(process, home)
        self.members.append(member)
        async with asyncio.timeout(90):
            while not STARTED.search(await member.read_line()):
                pass
        return member

    async def serve(self, *argv: str) -> Member:
        return await self.start("serve", "--port", "0", *argv)

    async def work(self) -> Member:
        return await self.start("worker")

    async def work_on(self, host: str) -> Member:
        """Start a worker on a host with folders of its own."""
        return await self.start("worker", host=host)

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        name = self.url.rpartition("/")[2]
        return await asyncio.to_thread(shared_server().sql, sql, name)

    async def until(self, sql: str, *expected: tuple[Any, ...]) -> None:
        """Return when a query returns these rows."""
        async with asyncio.timeout(60):
            while await self.rows(sql) != [*expected]:
                pass

    async def owner(self, sql: str) -> Member:
        """Return the process that a column names."""
        ((text,),) = await self.rows(sql)
        identity = ProcessIdentity.parse(text)
        assert identity is not None
        return next(each for each in self.members if each.process.pid == identity.pid)


@asynccontextmanager
async def team(
    folder: Path, environ: Mapping[str, str], model: ScriptedAnthropic, sim: LarkSim | None = None
) -> AsyncGenerator[Team]:
    lark = {} if sim is None else {
        "LARKSPUR_CHANNELS__LARK__ENABLED": "true",
        "LARKSPUR_CHANNELS__LARK__APP_ID": APP.app_id,
        "LARKSPUR_CHANNELS__LARK__APP_SECRET": APP.secret,
        "LARKSPUR_CHANNELS__LARK__DOMAIN": sim.url,
        "LARKSPUR_CHANNELS__LARK__BUSY_MODE": "queue",
    }  # fmt: skip
    async with postgres_url() as url, AsyncExitStack() as stack:
        here = Team(
            folder,
            {
                **environ,
                **lark,
                "LARKSPUR_DATABASE__URL": url,
                "ANTHROPIC_BASE_URL": model.base_url,
                "ANTHROPIC_API_KEY": "key-for-tests",
                "LARKSPUR_LLM__PROVIDER": "anthropic",
                "LARKSPUR_LLM__MODEL": "claude-x",
                "LARKSPUR_DISPATCH__LEASE_SECONDS": str(LEASE_SECONDS),
            },
            url,
        )
        stack.push_async_callback(end_all, here)
        yield here


async def end_all(team: Team) -> None:
    for member in team.members:
        if member.process.returncode is None:
            with suppress(ProcessLookupError):
                member.process.kill()
            await member.process.communicate()
