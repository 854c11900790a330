"""A data folder and the gateway processes that follow one another on it."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from internal.config.home import prepare, read_token
from tests import ROOT
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.http_client import HttpClient, Reply, SseFrame

ADDRESS = re.compile(r" is at http://([\d.]+):(\d+)")
LIVES = "none"


@dataclass
class Gateway:
    """One process of `larkspur serve` and its last words."""

    process: asyncio.subprocess.Process
    count_file: Path
    said: list[str] = field(default_factory=list)
    client: HttpClient | None = None

    @property
    def commits(self) -> int:
        return int(self.count_file.read_text() or 0)

    async def ready(self, home: Path) -> HttpClient | None:
        """Return a client as soon as it serves; None when it died before."""
        stderr = self.process.stderr
        assert stderr is not None
        while line := (await stderr.readline()).decode():
            self.said.append(line)
            if found := ADDRESS.search(line):
                self.client = HttpClient(found[1], int(found[2]), read_token(home))
                return self.client
        return None

    async def over(self) -> int:
        """Return the exit code when it has ended."""
        stderr = self.process.stderr
        assert stderr is not None
        while line := (await stderr.readline()).decode():
            self.said.append(line)
        return await self.process.wait()

    async def end(self) -> None:
        """Be rid of it, if it is still there."""
        if self.process.returncode is None:
            self.process.kill()
            await self.over()


class House:
    """Starts a gateway by each plan in order; when one dies the next follows at once.

    `ask` and `watch` are a person's: they come back whenever the gateway does.
    """

    def __init__(self, folder: Path, model: ScriptedAnthropic, environ: dict[str, str]) -> None:
        self.folder = folder
        self.home = prepare(folder / "home")
        self.workspace = folder / "workspace"
        self.workspace.mkdir(parents=True, exist_ok=True)
        (self.workspace / "notes.txt").write_text("a note\n")
        self.model = model
        self.gateways: list[Gateway] = []
        self.codes: list[int] = []
        self._environ = environ
        self._client: HttpClient | None = None
        self._closed = False
        self._changed = asyncio.Condition()

    @property
    def environ(self) -> dict[str, str]:
        """The environment of every process of this house."""
        return {
            **self._environ,
            "LARKSPUR_HOME": str(self.home),
            "HOME": str(self.folder),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}",
            "ANTHROPIC_BASE_URL": self.model.base_url,
            "ANTHROPIC_API_KEY": "x",
            "LARKSPUR_LLM__PROVIDER": "anthropic",
            "LARKSPUR_LLM__MODEL": "claude-x",
        }

    async def start(self, *command: str, plan: str = LIVES) -> Gateway:
        """Start one Larkspur process, in the workspace."""
        count_file = self.folder / f"commits-{len(self.gateways)}"
        count_file.touch()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.chaos.launch", str(count_file), plan, *command),
            cwd=self.workspace,
            env=self.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        self.gateways.append(Gateway(process, count_file))
        return self.gateways[-1]

    async def serve(self, plans: Sequence[str]) -> None:
        """Run one gateway after the other; the last one until somebody ends it."""
        for plan in plans:
            if self._closed:
                return
            gateway = await self.start("serve", "--port", "0", plan=plan)
            await self._announce(await gateway.ready(self.home))
            self.codes.append(await gateway.over())
            await self._announce(None)
        self._closed = True
        await self._announce(None)

    async def close(self) -> None:
        """End the gateway that serves; no other one follows."""
        await self.up()
        self._closed = True
        self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the newest process."""
        self.gateways[-1].process.send_signal(number)

    async def up(self) -> HttpClient:
        """Return the client of the gateway that serves now or next."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._client is not None or self._closed)
            assert self._client is not None, "no gateway is left"
            return self._client

    async def gone(self, client: HttpClient) -> None:
        """Return when another gateway than this one's has taken over, or none is there."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._client is not client)

    async def ask(self, method: str, path: str, body: object = None) -> Reply:
        """Send a request until somebody answers it."""
        while True:
            client = await self.up()
            reply = await once(client, method, path, body)
            if reply is not None:
                return reply
            await self.gone(client)

    async def get(self, path: str) -> Any:
        reply = await self.ask("GET", path)
        assert reply.status == 200, reply
        return reply.json()

    async def watch(self, query: str) -> AsyncGenerator[SseFrame]:
        """Yield frames as one reader gets them who always comes back by its cursor."""
        last = ""
        while True:
            client = await self.up()
            async for frame in frames(client, query, last):
                last = frame.id or last
                yield frame
            await self.gone(client)

    async def _announce(self, client: HttpClient | None) -> None:
        async with self._changed:
            self._client = client
            self._changed.notify_all()


async def once(client: HttpClient, method: str, path: str, body: object = None) -> Reply | None:
    """Send a request; None when there was no whole answer."""
    reply: Reply | None = None
    try:
        reply = await client.request(method, path, body)
    except* (OSError, EOFError):
        pass  # the process died before, or in mid-answer: that is what is tested
    return reply


async def frames(client: HttpClient, query: str, last: str) -> AsyncGenerator[SseFrame]:
    """Yield the frames of one connection until it is cut."""
    headers = {"last-event-id": last} if last else {}
    try:
        async with client.stream(f"{query}&debug=1", headers) as stream:
            while (frame := await stream.frame()) is not None:
                yield frame
    except (OSError, EOFError):
        pass  # cut


@asynccontextmanager
async def open_house(
    folder: Path, model: ScriptedAnthropic, environ: dict[str, str], plans: Sequence[str]
) -> AsyncGenerator[House]:
    """Serve by the plans, the last of which lives; leaving ends it in order."""
    house = House(folder, model, environ)
    serving = asyncio.create_task(house.serve(plans))
    try:
        yield house
        async with asyncio.timeout(30):
            await house.close()
            await serving
        # one that was to die may do it only now
        assert house.codes[-1] == 0 or plans[len(house.codes) - 1] != LIVES
    except BaseException as error:
        said = [line for gateway in house.gateways for line in ("---\n", *gateway.said)]
        error.add_note(f"plans {list(plans)}, codes {house.codes}\n{''.join(said)[-8000:]}")
        raise
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        for gateway in house.gateways:
            await gateway.end()
