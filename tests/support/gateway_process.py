"""Processes of `larkspur serve` with the offline model."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from internal.config.home import read_token
from tests import ROOT
from tests.support.http_client import HttpClient

LARKSPUR = Path(sys.executable).with_name("larkspur")
_ADDRESS = re.compile(r" is at http://([\d.]+):(\d+)")


class ProcessEnded(Exception):
    """The process ended before it served."""


class RunningGateway(NamedTuple):
    """A gateway process, a client with its first token, and its log."""

    process: asyncio.subprocess.Process
    client: HttpClient
    log: asyncio.StreamReader

    async def logged(self, text: str) -> str:
        """Return the next line of the log with a text."""
        line = ""
        async with asyncio.timeout(30):
            while text not in (line := (await self.log.readline()).decode()):
                assert line, "the gateway ended"
        return line


@asynccontextmanager
async def running_gateway(
    environ: Mapping[str, str], home: Path, *argv: str | Path, provider: str = "offline"
) -> AsyncGenerator[RunningGateway]:
    """Serve a home folder with the command of a user, or with `argv`; SIGTERM ends the block.

    Without `provider` the settings decide which model is used.
    """
    chosen = {"LARKSPUR_LLM__PROVIDER": provider} if provider else {}
    process = await asyncio.create_subprocess_exec(
        *(argv or (LARKSPUR, "serve", "--port", "0")),
        env={**environ, **chosen},
        cwd=home.parent,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = ""
        async with asyncio.timeout(60):
            while not (found := _ADDRESS.search(said)):
                line = (await process.stderr.readline()).decode()
                if not line:
                    raise ProcessEnded(said)
                said += line
        client = HttpClient(found[1], int(found[2]), read_token(home))
        yield RunningGateway(process, client, process.stderr)
    finally:
        with suppress(ProcessLookupError):  # a test may kill it
            process.send_signal(signal.SIGTERM)
        await process.communicate()


@asynccontextmanager
async def serve(
    home: Path, end: signal.Signals = signal.SIGTERM, plan: str = "none"
) -> AsyncGenerator[HttpClient]:
    """Serve a home folder; the process gets the signal `end` when the block is left.

    It crashes by `plan`; see `tests.chaos.crash_launcher`.
    """
    environ = {
        "LARKSPUR_HOME": str(home),
        "HOME": str(home.parent),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}",
        "LARKSPUR_LLM__PROVIDER": "offline",
        "LARKSPUR_SANDBOX__PROVIDER": "native",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.chaos.crash_launcher", str(home.parent / "count"), plan),
        *("serve", "--port", "0"),
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = ""
        while (found := _ADDRESS.search(said)) is None:
            line = (await process.stderr.readline()).decode()
            if not line:
                raise ProcessEnded(said)
            said += line
        yield HttpClient(found[1], int(found[2]), read_token(home))
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(end)
        await process.stderr.read()
        await process.wait()


async def run_task(
    client: HttpClient,
    text: str,
    session: str | None = None,
    attachments: Sequence[Mapping[str, str]] = (),
) -> str:
    """Run a task to its end and return its session."""
    task = {"task": text, "session_id": session, "attachments": attachments}
    made = (await client.post("/api/tasks", task)).json()
    async with client.stream(f"session_id={made['session_id']}") as stream:
        while (await stream.until("workflow.result.final"))[-1].json()["run_id"] != made["run_id"]:
            pass
    return str(made["session_id"])
