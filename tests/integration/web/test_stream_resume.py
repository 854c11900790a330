"""Interrupted streams: a client that reconnects gets every durable event."""

import asyncio
import contextlib
import gc
import socket
import tracemalloc
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.events.types import (
    LifecycleUpdated,
    OutputDelta,
    OutputSummary,
    ToolProgress,
)
from internal.agent.domain.usage import Usage
from internal.channels.web.services import WebTimeouts
from tests.support.http_client import EventStream, Frames, SseFrame, read_head
from tests.support.web_app import WebApp, ids_of, open_web_app


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """The event loop of the gateway, whose transports have their own buffering."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[WebApp]:
    async with open_web_app(tmp_path, timeouts=WebTimeouts(stall_seconds=300.0)) as opened:
        yield opened


@dataclass
class Fold:
    """The state of a client: durable envelopes, and the text of open nodes."""

    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    texts: dict[str, tuple[int, str]] = field(default_factory=dict)
    holes: set[str] = field(default_factory=set)
    last_id: str = ""

    def take(self, frames: Iterable[SseFrame]) -> None:
        for frame in frames:
            match frame.event:
                case "workflow.node.output.delta" | "workflow.tool.progress":
                    self._piece(frame.json()["payload"])
                case "partial":
                    payload = frame.json()["payload"]
                    self.texts[payload["node_id"]] = payload["k"], payload["text"]
                    self.holes.discard(payload["node_id"])
                case "workflow.node.output.summary":
                    self.texts.pop(frame.json()["node_id"], None)
                    self._durable(frame)
                case _ if frame.id and frame.data:
                    self._durable(frame)
                case _:
                    pass

    def _durable(self, frame: SseFrame) -> None:
        assert frame.id not in self.events, "a durable event came twice"
        self.events[frame.id] = frame.json()

    def _piece(self, payload: dict[str, Any]) -> None:
        node_id, k = payload["node_id"], payload["k"]
        last, text = self.texts.get(node_id, (0, ""))
        if k - payload["n"] != last:
            self.holes.add(node_id)
        if node_id not in self.holes:
            self.texts[node_id] = k, text + payload["text"]


def working(phase: str) -> LifecycleUpdated:
    return LifecycleUpdated(status="queued", phase=phase)


def summary(node_id: str, content: str) -> OutputSummary:
    return OutputSummary(
        node_id=node_id,
        iteration=1,
        content=content,
        tool_call_count=0,
        llm_duration_ms=1,
        llm_request_id="r",
        llm_model="offline-demo",
        usage=Usage(),
    )


async def act(app: WebApp, run: RunIds) -> None:
    """Publish two replies, the second still open, and the output of a tool."""
    for number, words in enumerate(("héllo", " 世界\n"), 1):
        app.publish(run, OutputDelta(node_id="iter:1:say", k=number, n=1, text=words))
    await app.store(run, summary("iter:1:say", "héllo 世界\n"), working("tools"))
    for number in range(1, 4):
        app.publish(run, OutputDelta(node_id="iter:2:say", k=number, n=1, text=f"piece {number} "))
        app.publish(run, ToolProgress(node_id="call-1", k=2 * number, n=2, text=f"line {number}\n"))


async def read_bytes(app: WebApp, query: str, last_id: str, most: int) -> Frames:
    """Read exactly this number of bytes of a stream, then close the connection."""
    frames = Frames(last_id=last_id)
    headers = {"last-event-id": last_id} if last_id else {}
    async with app.client.stream(query, headers) as stream:
        while len(frames.body) < most:
            data = await stream.chunk()
            frames.feed(data[: most - len(frames.body)])
    return frames


async def fold_up_to(stream: EventStream, fold: Fold, open_nodes: int) -> None:
    """Read the stored events and the partial output of the open nodes."""
    fold.take(await stream.until("replay.done"))
    for _ in range(open_nodes):
        frame = await stream.frame()
        assert frame is not None
        fold.take([frame])
    fold.last_id = stream.frames.last_id


@pytest.mark.slow
async def test_a_stream_cut_at_any_byte_resumes_to_the_same_state(
    app: WebApp,
) -> None:
    run = await app.task()
    query = f"session_id={run.session_id}"
    whole = Fold()
    async with app.client.stream(query) as stream:
        await act(app, run)
        while len(whole.texts.get("iter:2:say", (0, ""))[1]) < len("piece 1 piece 2 piece 3 "):
            frame = await stream.frame()
            assert frame is not None
            whole.take([frame])
        last = await stream.frame()
        assert last is not None
        whole.take([last])
    assert not whole.holes
    async with app.client.stream(query) as stream:
        await fold_up_to(stream, Fold(), 2)
        size = len(stream.frames.body)
    for cut in range(0, size, 3):
        fold = Fold()
        first = Frames()
        read = await read_bytes(app, query, "", cut)
        fold.take(first.feed(bytes(read.body)))
        headers = {"last-event-id": first.last_id} if first.last_id else {}
        async with app.client.stream(query, headers) as stream:
            await fold_up_to(stream, fold, 2)
        assert fold.events == whole.events, cut
        assert fold.texts == whole.texts, cut


async def test_a_restart_within_a_run_loses_no_events(tmp_path: Path) -> None:
    fold = Fold()
    async with open_web_app(tmp_path) as app:
        run = await app.task()
        query = f"session_id={run.session_id}"
        async with app.client.stream(query) as stream:
            fold.take(await stream.until("replay.done"))
            await app.store(run, working("one"))
            app.publish(run, OutputDelta(node_id="iter:1:say", k=1, n=1, text="lost with it"))
            fold.take(await stream.until("workflow.node.output.delta"))
            await app.server.stop()
            frames = await stream.rest()
            assert frames[-1].event == "bye"
            assert stream.ended
            fold.last_id = stream.frames.last_id
        await app.store(run, working("stored while nobody watched"))
    async with open_web_app(tmp_path) as app:
        async with app.client.stream(query, {"last-event-id": fold.last_id}) as stream:
            fold.take(await stream.until("replay.done"))
            await app.store(run, working("two"))
            fold.take(await stream.until("workflow.lifecycle.updated"))
        async with app.client.stream(query) as stream:
            fresh = Fold()
            fresh.take(await stream.until("replay.done"))
    assert fold.events == fresh.events
    assert [event["seq"] for event in fold.events.values()] == [1, 2, 3, 4, 5]


def shrink_buffers(app: WebApp) -> None:
    """Shrink the kernel's buffers, so that the memory of the server is measured."""
    app.server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)


@pytest.mark.slow
async def test_a_slow_client_uses_bounded_memory_and_gets_every_durable_event(
    app: WebApp,
) -> None:
    events, batch = 10_000, 250
    shrink_buffers(app)
    run = await app.task()
    query = f"session_id={run.session_id}&replay=none"
    async with app.client.stream(query, receive_buffer=1024) as stream:
        await stream.until("replay.done")
        fold, owed = Fold(), 0
        held: list[int] = []
        gc.collect()
        gc.freeze()  # the collections below look only at objects created from here on
        tracemalloc.start()
        try:
            for number in range(0, events, batch):
                await app.store(run, *(working(f"{number + one}") for one in range(batch)))
                app.publish(run, OutputDelta(node_id="n", k=number + 1, n=1, text="x"))
                fold.take([frame for frame in [await stream.frame()] if frame])
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
                sizes = [line.transport.get_write_buffer_size() for line in connections(app)]
                owed = max(owed, *sizes)
        finally:
            tracemalloc.stop()
            gc.unfreeze()
        half = len(held) // 2
        assert max(held[half:]) - max(held[:half]) < 300_000
        assert owed < 150_000
        while len(fold.events) < events:
            fold.take([frame for frame in [await stream.frame()] if frame])
    phases = [event["payload"]["phase"] for event in fold.events.values()]
    assert phases == [str(number) for number in range(events)]


async def test_a_client_behind_the_live_buffer_gets_a_dropped_frame_and_all_durable_events(
    app: WebApp,
) -> None:
    shrink_buffers(app)
    run = await app.task()
    async with app.client.stream(
        f"session_id={run.session_id}&replay=none", receive_buffer=2048
    ) as stream:
        await stream.until("replay.done")
        for number in range(1, 13):
            text = f"{number:06}" * 100
            app.publish(run, OutputDelta(node_id="iter:1:say", k=number, n=1, text=text))
            await app.store(run, *(working(f"{number} {one}") for one in range(200)))
        app.publish(run, OutputDelta(node_id="iter:1:say", k=13, n=1, text="end"))
        frames = await stream.until("workflow.stream.dropped")
        fold = Fold()
        fold.take(frames)
        partial = await stream.frame()
    assert frames[-1].json()["nodes"] == ["iter:1:say"]
    assert partial is not None
    assert partial.json()["payload"]["k"] == 13
    phases = [event["payload"]["phase"] for event in fold.events.values()]
    assert phases == [f"{number} {one}" for number in range(1, 13) for one in range(200)]
    assert ids_of(frames) == sorted(ids_of(frames), key=lambda wire: int(wire.split("-")[1]))


def connections(app: WebApp) -> list[Any]:
    return app.server._server.connections()


def epoch_of(app: WebApp) -> str:
    return app.broadcaster.epoch


async def test_a_stalled_client_is_disconnected_and_resumes(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, timeouts=WebTimeouts(stall_seconds=1.0)) as app:
        shrink_buffers(app)
        run = await app.task()
        query = f"session_id={run.session_id}"
        async with (
            app.client.stream(query, receive_buffer=2048) as stuck,
            app.client.stream(query) as other,
        ):
            await stuck.until("replay.done")
            await other.until("replay.done")
            before = set(connections(app))
            for number in range(400):
                await app.store(run, working(f"{number} " + "x" * 500))
                await other.until(
                    "workflow.lifecycle.updated"
                )  # a client that reads is not blocked
            while before <= set(connections(app)):  # the stalled connection is still open
                await app.client.get("/health")
            assert len(before & set(connections(app))) == 1
            last = stuck.frames.last_id
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
                while await stuck.frame():
                    last = stuck.frames.last_id
            assert not stuck.ended
        async with app.client.stream(query, {"last-event-id": last}) as resumed:
            frames = await resumed.until("replay.done")
        behind = range(int(last.split("-")[1]) + 1, 403)
        assert behind
        assert ids_of(frames) == [f"{epoch_of(app)}-{position}" for position in behind]


async def test_a_client_that_was_slow_follows_again_without_gap_or_duplicate(app: WebApp) -> None:
    shrink_buffers(app)
    run = await app.task()
    query = f"session_id={run.session_id}&replay=none"
    async with (
        app.client.stream(query, receive_buffer=2048) as slow,
        app.client.stream(query) as other,
    ):
        await slow.until("replay.done")
        await other.until("replay.done")
        events = 150
        for number in range(events):
            await app.store(run, working(f"{number} " + "x" * 500))
            await other.until("workflow.lifecycle.updated")
        assert any(connection.is_writing for connection in connections(app))
        seen: list[str] = []
        while len(seen) < events:
            seen += ids_of(await slow.until("workflow.lifecycle.updated"))
        for number in range(events, events + 5):
            await app.store(run, working(str(number)))
            seen += ids_of(await slow.until("workflow.lifecycle.updated"))
    first = int(seen[0].split("-")[1])
    assert seen == [f"{epoch_of(app)}-{first + number}" for number in range(events + 5)]


@pytest.mark.slow
async def test_stop_with_stalled_streams_takes_less_than_five_seconds(tmp_path: Path) -> None:
    async with open_web_app(tmp_path) as app:
        shrink_buffers(app)
        run = await app.task()
        query = f"session_id={run.session_id}"
        async with app.client.stream(query, receive_buffer=2048) as stuck:
            await stuck.until("replay.done")
            for start in range(0, 1000, 100):
                events = [working(f"{start + offset} " + "x" * 500) for offset in range(100)]
                await app.store(run, *events)
            while not any(line.is_writing for line in connections(app)):
                await app.client.get("/health")
            async with asyncio.timeout(5):
                await app.server.stop()
            assert not connections(app)


async def test_an_endless_request_head_is_rejected(app: WebApp) -> None:
    reader, writer = await app.client.connect()
    writer.write(b"GET /health HTTP/1.1\r\nx-endless: ")
    writer.write(b"x" * 100_000)
    status, _ = await read_head(reader)
    assert status == 431
    writer.close()
