"""Readers of event streams that reconnect by themselves, from the registries of packages."""

import asyncio
import json
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.events.types import LifecycleUpdated
from tests.compatibility.declarations import Declaration
from tests.compatibility.installation import installed
from tests.compatibility.place import own_environ
from tests.machine.programs import SYSTEM_PATH
from tests.support.http_client import HttpClient
from tests.support.web_app import open_web_app

PROGRAMS = Path(__file__).parent / "stream_readers"
READERS = {
    "eventsource.mjs": ("npm", "node", "eventsource@5.1.5"),
    "fetch_event_source.mjs": ("npm", "node", "@microsoft/fetch-event-source@2.0.1"),
    "sseclient_messages.py": ("PyPI", "python", "sseclient==0.0.27"),
}

pytestmark = [pytest.mark.compatibility, pytest.mark.slow]


@asynccontextmanager
async def following(
    command: Sequence[str | Path], client: HttpClient, session_id: str
) -> AsyncGenerator[asyncio.StreamReader]:
    """The messages of a session as a program prints them, until the block is left."""
    url = f"http://{client.host}:{client.port}/api/sse?session_id={session_id}&unnamed=1"
    process = await asyncio.create_subprocess_exec(
        *command, url, stdout=PIPE, env={"LARKSPUR_KEY": client.token, "PATH": SYSTEM_PATH}
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        await process.wait()


async def until(output: asyncio.StreamReader, event: str) -> list[dict[str, Any]]:
    """The messages up to the first one of an event."""
    messages: list[dict[str, Any]] = []
    while not messages or messages[-1]["data"]["event"] != event:
        line = await output.readline()
        assert line, f"the program has ended after {messages[-1:]}"
        messages.append(json.loads(line))
    return messages


@pytest.mark.parametrize("program", READERS)
async def test_a_reader_gets_each_event_once_although_its_stream_ends(
    tmp_path: Path, program: str
) -> None:
    registry, language, package = READERS[program]
    declared = Declaration(program, registry, (package,), "stream", language, PROGRAMS / program)
    _, command = await installed(declared, tmp_path, own_environ())
    async with open_web_app(tmp_path, stream_max_seconds=2) as app:
        run_ids = await app.task()
        async with following(command, app.client, run_ids.session_id) as output:
            messages = await until(output, "replay.done")
            for phase in ("first", "second"):
                messages += await until(output, "bye")
                await app.store(run_ids, LifecycleUpdated(status="running", phase=phase))
                messages += await until(output, "replay.done")
        pages = await app.client.get(f"/api/sessions/{run_ids.session_id}/events")
    stored = [row["event"] for row in pages.json()["events"]]
    assert [each["data"] for each in messages if "event_id" in each["data"]] == stored
    assert len(stored) == 4
