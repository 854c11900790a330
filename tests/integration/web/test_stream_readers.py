"""Libraries that read event streams: their delivered data, and resumption after a break."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import sseclient
from httpx_sse import connect_sse

from internal.agent.domain.events.types import LifecycleUpdated
from tests.support.http_client import HttpClient
from tests.support.web_app import open_web_app


class Received(NamedTuple):
    """An event as a library hands it on."""

    id: str
    name: str
    data: Any


Reader = Callable[[httpx.Client, dict[str, str], str], list[Received]]
"""Opens a stream with further headers, and reads up to the event of a name."""


def with_httpx_sse(client: httpx.Client, headers: dict[str, str], last: str) -> list[Received]:
    received: list[Received] = []
    with connect_sse(client, "GET", "/api/sse", headers=headers) as source:
        for event in source.iter_sse():
            received.append(Received(event.id, event.event, json.loads(event.data)))
            if event.event == last:
                break
    return received


def with_sseclient_py(client: httpx.Client, headers: dict[str, str], last: str) -> list[Received]:
    received: list[Received] = []
    with client.stream("GET", "/api/sse", headers=headers) as response:
        for event in sseclient.SSEClient(response.iter_bytes()).events():
            received.append(Received(event.id or "", event.event, json.loads(event.data)))
            if event.event == last:
                break
    return received


def reading(client: HttpClient, session_id: str) -> httpx.Client:
    return httpx.Client(
        base_url=f"http://{client.host}:{client.port}",
        params={"session_id": session_id},
        headers={"authorization": f"Bearer {client.token}"},
        trust_env=False,
    )


@pytest.mark.parametrize("read", [with_httpx_sse, with_sseclient_py])
async def test_a_reader_gets_data_only_and_continues_after_its_last_event(
    tmp_path: Path, read: Reader
) -> None:
    async with open_web_app(tmp_path) as app:
        run = await app.task()
        with reading(app.client, run.session_id) as client:
            name = "workflow.lifecycle.updated"
            first = await asyncio.to_thread(read, client, {}, name)
            await app.store(run, LifecycleUpdated(status="running", phase="work"))
            headers = {"last-event-id": first[-1].id}
            second = await asyncio.to_thread(read, client, headers, "replay.done")
        pages = await app.client.get(f"/api/sessions/{run.session_id}/events")
    received = [*first, *second]
    assert [each.name for each in received] == [
        *("connected", "workflow.input.received", name),
        *("connected", name, "replay.done"),
    ]
    assert [each.data["event"] for each in received] == [each.name for each in received]
    numbered = [each for each in received if each.name.startswith("workflow.")]
    assert [{"id": each.id, "event": each.data} for each in numbered] == pages.json()["events"]
