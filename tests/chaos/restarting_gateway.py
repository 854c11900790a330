"""A gateway that is restarted on the same data folder whenever it dies."""

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
from tests.support.http_client import HttpClient, Reply, SseFrame
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import ScriptedServer

_ADDRESS = re.compile(r" is at http://([\d.]+):(\d+)")
SILENCE_SECONDS = 20.0
"""A reader that hears nothing for longer than the interval of heartbeats connects again."""
NO_CRASH = "none"
"""The crash plan of a process that does not crash; see `crash_launcher`."""


@dataclass
class GatewayProcess:
    """A process of `larkspur serve` with its standard error."""

    process: asyncio.subprocess.Process
    count_file: Path
    stderr_lines: list[str] = field(default_factory=list)
    client: HttpClient | None = None

    @property
    def commits(self) -> int:
        return int(self.count_file.read_text() or 0)

    async def ready(self, home: Path) -> HttpClient | None:
        """Return a client when it accepts requests, None when it ended before."""
        stderr = self.process.stderr
        assert stderr is not None
        while line := (await stderr.readline()).decode():
            self.stderr_lines.append(line)
            if found := _ADDRESS.search(line):
                self.client = HttpClient(found[1], int(found[2]), read_token(home))
                return self.client
        return None

    async def wait(self) -> int:
        """Wait until it has ended and return the exit code."""
        stderr = self.process.stderr
        assert stderr is not None
        while line := (await stderr.readline()).decode():
            self.stderr_lines.append(line)
        return await self.process.wait()

    async def kill(self) -> None:
        """Kill it unless it has ended."""
        if self.process.returncode is None:
            self.process.kill()
            await self.wait()


class RestartingGateway:
    """Starts one gateway process per crash plan; when one ends, the next starts at once.

    `prefix` is the command that each process is started with. `request` and `stream` reconnect
    whenever a new process accepts requests.
    """

    def __init__(
        self,
        folder: Path,
        model: ScriptedServer,
        environ: dict[str, str],
        prefix: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.home = prepare(folder / "home")
        self.workspace = folder / "workspace"
        self.workspace.mkdir(parents=True, exist_ok=True)
        (self.workspace / "notes.txt").write_text("a note\n")
        self.model = model
        self.processes: list[GatewayProcess] = []
        self.codes: list[int] = []
        self._environ = environ
        self._prefix = prefix
        self._client: HttpClient | None = None
        self._serving: GatewayProcess | None = None
        self._closed = False
        self._changed = asyncio.Condition()

    @property
    def environ(self) -> dict[str, str]:
        """The environment of every process."""
        provider = "openai" if isinstance(self.model, ScriptedOpenAI) else "anthropic"
        return {
            "LARKSPUR_SANDBOX__PROVIDER": "native",
            **self._environ,
            "LARKSPUR_HOME": str(self.home),
            "HOME": str(self.folder),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}",
            f"{provider.upper()}_BASE_URL": self.model.base_url,
            f"{provider.upper()}_API_KEY": "x",
            "LARKSPUR_LLM__PROVIDER": provider,
            "LARKSPUR_LLM__MODEL": "model-x",
        }

    async def start(self, *command: str, plan: str = NO_CRASH) -> GatewayProcess:
        """Start a Larkspur process in the workspace."""
        count_file = self.folder / f"commits-{len(self.processes)}"
        count_file.touch()
        process = await asyncio.create_subprocess_exec(
            *(*self._prefix, sys.executable, "-m", "tests.chaos.crash_launcher"),
            *(str(count_file), plan, *command),
            cwd=self.workspace,
            env=self.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        self.processes.append(GatewayProcess(process, count_file))
        return self.processes[-1]

    async def serve(self, plans: Sequence[str]) -> None:
        """Run one process after the other, the last one until `close`."""
        for plan in plans:
            if self._closed:
                return
            self._serving = process = await self.start("serve", "--port", "0", plan=plan)
            await self._announce(await process.ready(self.home))
            self.codes.append(await process.wait())
            if self._serving is not process:
                return
            await self._announce(None)
        self._closed = True
        await self._announce(None)

    async def start_beside(self, plan: str) -> None:
        """Start another gateway until it serves; requests and signals go to it from now on.

        It may have to wait for the end of the lease of the gateway before it.
        """
        while True:
            process = await self.start("serve", "--port", "0", plan=plan)
            if (client := await process.ready(self.home)) is not None:
                self._serving = process
                return await self._announce(client)

    async def close(self) -> None:
        """End the current process. No other one is started."""
        await self.wait_until_up()
        self._closed = True
        self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the newest gateway, unless it has ended."""
        self.serving.process.send_signal(number)

    @property
    def serving(self) -> GatewayProcess:
        """The newest gateway."""
        assert self._serving is not None
        return self._serving

    async def wait_until_up(self) -> HttpClient:
        """Return the client of the current process, or of the next one."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._client is not None or self._closed)
            assert self._client is not None, "no gateway is left"
            return self._client

    async def wait_until_replaced(self, client: HttpClient) -> None:
        """Wait until the process of this client has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._client is not client)

    async def request(self, method: str, path: str, body: object = None) -> Reply:
        """Send a request until a process answers it."""
        while True:
            client = await self.wait_until_up()
            reply = await try_request(client, method, path, body)
            if reply is not None:
                return reply
            await self.wait_until_replaced(client)

    async def get(self, path: str) -> Any:
        reply = await self.request("GET", path)
        assert reply.status == 200, reply
        return reply.json()

    async def stream(self, query: str) -> AsyncGenerator[SseFrame]:
        """Yield the frames of a reader that reconnects with its cursor."""
        last = ""
        while True:
            client = await self.wait_until_up()
            async for frame in stream_frames(client, query, last):
                last = frame.id or last
                yield frame
            await self.wait_until_replaced(client)

    async def _announce(self, client: HttpClient | None) -> None:
        async with self._changed:
            self._client = client
            self._changed.notify_all()


async def try_request(
    client: HttpClient, method: str, path: str, body: object = None
) -> Reply | None:
    """Send a request. Return None when there was no complete answer."""
    reply: Reply | None = None
    try:
        reply = await client.request(method, path, body)
    except* (OSError, EOFError):
        pass  # the process died before or while it answered
    return reply


async def stream_frames(client: HttpClient, query: str, last: str) -> AsyncGenerator[SseFrame]:
    """Yield the frames of one connection until it is closed or no heartbeat comes."""
    headers = {"last-event-id": last} if last else {}
    try:
        async with client.stream(f"{query}&debug=1", headers) as stream:
            while True:
                async with asyncio.timeout(SILENCE_SECONDS):
                    frame = await stream.frame()
                if frame is None:
                    return
                yield frame
    except (OSError, EOFError):  # of which TimeoutError is one
        pass  # the process died or was suspended


@asynccontextmanager
async def restarting_gateway(
    folder: Path,
    model: ScriptedServer,
    environ: dict[str, str],
    plans: Sequence[str],
    prefix: Sequence[str] = (),
) -> AsyncGenerator[RestartingGateway]:
    """Run a process per plan; the last one is stopped when the context is left."""
    gateway = RestartingGateway(folder, model, environ, prefix)
    serving = asyncio.create_task(gateway.serve(plans))
    try:
        yield gateway
        async with asyncio.timeout(30):
            await gateway.close()
            await serving
        # a process with a crash plan may crash only now
        assert gateway.codes[-1] == 0 or plans[len(gateway.codes) - 1] != NO_CRASH
    except BaseException as error:
        lines = [line for process in gateway.processes for line in ("---\n", *process.stderr_lines)]
        error.add_note(f"plans {list(plans)}, codes {gateway.codes}\n{''.join(lines)[-8000:]}")
        raise
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        for process in gateway.processes:
            await process.kill()
