"""A data folder with a model, its gateways, and commands of the terminal as processes."""

import asyncio
import http.client
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from internal.channels.cli.transports.sse import StreamFrame, StreamParser
from internal.config import home as home_folder
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Reply, Script

LARKSPUR = Path(sys.executable).with_name("larkspur")


CHAOS = pytest.mark.chaos


# One client serves both, so most tests run one way by default and the other way in CI or in
# `make chaos`.
BOTH_TRANSPORTS = pytest.mark.parametrize(
    "way", ["gateway", pytest.param("process", marks=pytest.mark.slow)]
)


GATEWAY = pytest.mark.parametrize("way", ["gateway", pytest.param("process", marks=CHAOS)])


PROCESS = pytest.mark.parametrize("way", ["process", pytest.param("gateway", marks=CHAOS)])


class Result:
    """The exit code and output of a finished command."""

    def __init__(self, code: int | None, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out, err.decode()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class CliEnvironment:
    """A data folder with a scripted model, and the gateways that were started on it."""

    def __init__(self, home: Path, environ: dict[str, str], model: ScriptedOpenAI) -> None:
        self.home, self.environ, self.model = home, environ, model
        self.folder = home.parent / "work"
        self.folder.mkdir()
        self.gateways: list[Process] = []

    async def serve(self) -> Process:
        """Start a gateway and return when it is ready."""
        gateway = await self.start("serve", "--port", "0", stdout=DEVNULL)
        self.gateways.append(gateway)
        await until_line(gateway, gateway.stderr, b" is at http")
        return gateway

    async def start(
        self, *argv: str, stdin: int = DEVNULL, stdout: int = PIPE, stderr: int = PIPE
    ) -> Process:
        return await asyncio.create_subprocess_exec(
            LARKSPUR,
            *argv,
            env=self.environ,
            cwd=self.folder,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    async def shot(self, *argv: str, stdin: bytes | None = None) -> Result:
        """Run a one-shot task to its end."""
        process = await self.start("-p", *argv, stdin=DEVNULL if stdin is None else PIPE)
        out, err = await process.communicate(stdin)
        return Result(process.returncode, out, err)

    async def stream(self, session_id: str) -> list[StreamFrame]:
        """Return the stored frames of a session, as the gateway replays them."""
        if not self.gateways:
            await self.serve()
        return await asyncio.to_thread(self._stream, session_id)

    async def task(self, task_id: str) -> dict[str, Any]:
        """Return a stored task."""
        if not self.gateways:
            await self.serve()
        return await asyncio.to_thread(self._get, f"/api/tasks/{task_id}")

    async def only_task(self) -> dict[str, Any]:
        if not self.gateways:
            await self.serve()
        (task,) = (await asyncio.to_thread(self._get, "/api/tasks"))["tasks"]
        return await self.task(task["task_id"])

    def _stream(self, session_id: str) -> list[StreamFrame]:
        parser = StreamParser()
        frames: list[StreamFrame] = []
        with closing(self._connection()) as connection:
            connection.request("GET", f"/api/sse?session_id={session_id}", headers=self._headers())
            response = connection.getresponse()
            while not any(frame.event == "replay.done" for frame in frames):
                frames += parser.feed(response.read1(65_536))
        return [frame for frame in frames if frame.id is not None]

    def _get(self, path: str) -> dict[str, Any]:
        with closing(self._connection()) as connection:
            connection.request("GET", path, headers=self._headers())
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer

    def _connection(self) -> http.client.HTTPConnection:
        address = home_folder.find_gateway(self.home)
        assert address is not None
        return http.client.HTTPConnection(address.host, address.port, timeout=30)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {home_folder.read_token(self.home)}"}


@asynccontextmanager
async def open_command_line(
    way: str, home: Path, environ: dict[str, str], script: Script
) -> AsyncGenerator[CliEnvironment]:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ScriptedOpenAI(script))
        ours = {
            **environ,
            "LARKSPUR_LLM__PROVIDER": "openai",
            "LARKSPUR_LLM__MODEL": "claude-x",
            "LARKSPUR_AGENT__GATES": "off",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "x",
        }
        cli = CliEnvironment(home, ours, model)
        try:
            if way == "gateway":
                await cli.serve()
            yield cli
        finally:
            for gateway in cli.gateways:
                if gateway.returncode is None:
                    gateway.send_signal(signal.SIGCONT)
                    gateway.kill()
                await gateway.communicate()


def text_replies(*texts: str) -> Sequence[Reply]:
    return [Reply(text=text) for text in texts]


async def until_line(process: Process, reader: asyncio.StreamReader | None, word: bytes) -> None:
    """Read lines until one has the word."""
    assert reader is not None
    while word not in (line := await reader.readline()):
        if not line:
            told = b"" if process.stderr is None else await process.stderr.read()
            raise AssertionError(f"it ended before it said {word!r}: {told.decode()}")
