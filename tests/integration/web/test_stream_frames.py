"""The contract of the event stream: frames, their order and their recipients (docs/streams.md)."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import quote

import pytest

from internal.agent.domain.events.types import (
    DiagnosticError,
    LifecycleUpdated,
    OutputDelta,
    OutputSummary,
)
from internal.agent.domain.usage import Usage
from internal.channels.web.services import WebTimeouts
from tests.support.http_client import EventStream, Reply, SseFrame, StreamRefused
from tests.support.web_app import WebApp, ids_of, open_web_app


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Tests of rejected requests share a server, so its event loop lives as long."""
    return "asyncio"


@pytest.fixture(scope="module")
async def shared_app(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[WebApp]:
    """A server for requests that change nothing."""
    async with open_web_app(tmp_path_factory.mktemp("web")) as opened:
        yield opened


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[WebApp]:
    async with open_web_app(tmp_path) as opened:
        yield opened


def working(phase: str = "work") -> LifecycleUpdated:
    return LifecycleUpdated(status="queued", phase=phase)


def delta(k: int, text: str, n: int = 1) -> OutputDelta:
    return OutputDelta(node_id="iter:1:say", k=k, n=n, text=text)


def summary(content: str) -> OutputSummary:
    return OutputSummary(
        node_id="iter:1:say",
        iteration=1,
        content=content,
        tool_call_count=0,
        llm_duration_ms=1,
        llm_request_id="r",
        llm_model="offline-demo",
        usage=Usage(),
    )


def inner() -> DiagnosticError:
    return DiagnosticError(phase="gate", error="corrected")


async def rejection(app: WebApp, query: str, **headers: str) -> Reply:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    with pytest.raises(StreamRefused) as refused:
        async with app.client.stream(query, given):
            pass
    return refused.value.reply


async def until_data(stream: EventStream, event: str) -> list[SseFrame]:
    """Return the frames up to the one with this event in its data."""
    frames: list[SseFrame] = []
    while not frames or frames[-1].json()["event"] != event:
        frame = await stream.frame()
        assert frame is not None
        frames.append(frame)
    return frames


def events_of(frames: list[SseFrame]) -> list[str]:
    return [frame.event for frame in frames]


async def test_the_first_frames_of_a_stream_are_in_order(app: WebApp) -> None:
    run = await app.task()
    app.publish(run, delta(1, "one "), delta(2, "two "))
    async with app.client.stream(f"session_id={run.session_id}") as stream:
        frames = [*await stream.until("replay.done"), await stream.frame()]
        assert 1500 <= stream.frames.retry <= 2500
        assert bytes(stream.frames.body).startswith(b"retry: ")
        assert events_of([frame for frame in frames if frame]) == [
            "connected",
            "workflow.input.received",
            "workflow.lifecycle.updated",
            "replay.done",
            "partial",
        ]
        connected = frames[0].json() if frames[0] else {}
        head = str(app.broadcaster.head)
        assert connected == {
            "event": "connected",
            "session_id": run.session_id,
            "head": head,
            "earliest": f"{app.broadcaster.epoch}-1",
            "active_run_id": run.run_id,
            "server_version": "1.2.3",
        }
        assert frames[-2] is not None
        assert frames[-2].json() == {"event": "replay.done", "head": head}
        assert frames[-1] is not None
        assert frames[-1].id == ""
        assert frames[-1].json()["payload"] == {"node_id": "iter:1:say", "k": 2, "text": "one two "}
        app.publish(run, delta(3, "three"))
        live = await stream.frame()
        assert live is not None
        assert live.json()["payload"]["k"] == 3


@pytest.mark.parametrize("query", ["", "&unnamed=1"], ids=["named", "unnamed"])
async def test_every_frame_has_data_with_the_name_of_its_event(tmp_path: Path, query: str) -> None:
    async with open_web_app(tmp_path, timeouts=WebTimeouts(heartbeat_seconds=0.2)) as app:
        run = await app.task()
        async with (
            app.client.stream(f"session_id={run.session_id}{query}") as stream,
            app.client.stream(f"session_id={run.session_id}") as named,
        ):
            frames = await until_data(stream, "replay.done")
            await named.until("replay.done")
            app.publish(run, delta(1, "one"))
            await app.store(run, working(), inner())
            frames += await until_data(stream, "workflow.lifecycle.updated")
            while stream.frames.last_id != f"{app.broadcaster.epoch}-4":
                frames += await until_data(stream, "hb")
            # both forms are made from the same records
            live = (await named.until("workflow.lifecycle.updated"))[-1]
        async with app.client.stream(f"session_id={run.session_id}{query}&replay=none") as ended:
            await until_data(ended, "replay.done")
            await app.server.stop()
            frames += await ended.rest()
    names = [frame.json()["event"] for frame in frames]
    assert names[0] == "connected"
    assert {"workflow.node.output.delta", "hb", "bye"} <= set(names)
    assert [frame.event for frame in frames] == ([""] * len(names) if query else names)
    assert live.json() in [frame.json() for frame in frames]
    blocks = bytes(stream.frames.body).removesuffix(b"\n\n").split(b"\n\n")
    assert all(b"\ndata: {" in b"\n" + block for block in blocks)


async def test_stream_responses_disable_buffering_and_compression(app: WebApp) -> None:
    run = await app.task()
    gzip = {"accept-encoding": "gzip"}
    async with app.client.stream(f"session_id={run.session_id}", gzip) as stream:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-cache, no-transform"
        assert stream.headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in stream.headers


async def test_durable_frames_have_increasing_ids_and_the_stored_envelope(app: WebApp) -> None:
    run = await app.task("zwei\nZeilen, 两行\u2028\0 \x1b[31m")
    await app.store(run, working(), inner(), summary("done\r\n"))
    pages = await app.client.get(f"/api/sessions/{run.session_id}/events")
    stored = {row["id"]: row["event"] for row in pages.json()["events"]}
    async with app.client.stream(f"session_id={run.session_id}&debug=1") as stream:
        frames = [frame for frame in await stream.until("replay.done") if frame.id]
    assert {frame.id: frame.json() for frame in frames} == stored
    positions = [int(frame.id.partition("-")[2]) for frame in frames]
    assert positions == sorted(set(positions))
    assert [frame.json()["seq"] for frame in frames] == [1, 2, 3, 4, 5]
    for frame in frames:
        assert re.fullmatch(rb"id: \w{6}-\d+\nevent: [\w.]+\ndata: [^\r\n]+\n\n", frame.raw)


@pytest.mark.parametrize(
    ("query", "header", "expected"),
    [
        ("", None, [1, 2, 3]),
        ("&replay=session", None, [1, 2, 3]),
        ("&replay=full", None, [1, 2, 3]),
        ("&replay=none", None, []),
        ("&after={}-2", None, [3]),
        ("&after={}-2&replay=none", None, [3]),
        ("&after={}-1", "{}-2", [3]),
        ("&replay=none", "{}-0", [1, 2, 3]),
        ("&after={}-1", "", [2, 3]),
    ],
)
async def test_cursor_parameters_select_the_start_of_a_stream(
    app: WebApp, query: str, header: str | None, expected: list[int]
) -> None:
    run = await app.task()
    await app.store(run, working())
    epoch = app.broadcaster.epoch
    headers = {} if header is None else {"last-event-id": header.format(epoch)}
    async with app.client.stream(
        f"session_id={run.session_id}{query.format(epoch)}", headers
    ) as stream:
        ids = ids_of(await stream.until("replay.done"))
    assert ids == [f"{epoch}-{position}" for position in expected]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "session_id=",
        "session_id=A&sessions=B",
        "session_id=A&session_id=B",
        "session_id=A&replay=everything",
        "session_id=A&after=",
        "session_id=A&after=17",
        "session_id=A&after=k3x9ap-x",
        "session_id=A&after=k3x9ap--1",
        "session_id=A&after=" + quote("k3x9ap-٣"),
        "session_id=A&after=k3x9ap-" + "9" * 40,
        "session_id=A&debug=perhaps",
        "session_id=A&colour=red",
        "session_id=%FF%FE",
        "session_id=" + "A" * 200,
        "sessions=" + ",".join(["A"] * 101),
    ],
)
async def test_an_invalid_stream_request_is_rejected_before_the_stream_starts(
    shared_app: WebApp, query: str
) -> None:
    run = await shared_app.task()
    reply = await rejection(
        shared_app, query.replace("session_id=A", f"session_id={run.session_id}")
    )
    assert reply.status == 400
    assert reply.error["code"] == "malformed"


async def test_an_invalid_or_duplicate_last_event_id_is_rejected(app: WebApp) -> None:
    run = await app.task()
    query = f"session_id={run.session_id}"
    assert (await rejection(app, query, last_event_id="what?")).status == 400
    doubled = app.client.head("GET", f"/api/sse?{query}", {"last-event-id": "a-1"})
    doubled = doubled.replace(b"\r\n\r\n", b"\r\nlast-event-id: a-2\r\n\r\n")
    assert (await app.client.exchange(doubled)).status == 400
    assert (await app.client.request("HEAD", f"/api/sse?{query}")).status == 400


@pytest.mark.parametrize("query", ["session_id=session-x", "sessions=session-x,session-y"])
async def test_an_unknown_session_is_not_found(shared_app: WebApp, query: str) -> None:
    reply = await rejection(shared_app, query)
    assert reply.status == 404
    assert reply.error["code"] == "not_found"


@pytest.mark.parametrize(
    ("cursor", "reason"), [("zzzzzz-1", "unknown_epoch"), ("{}-999", "ahead_of_log")]
)
async def test_a_cursor_of_another_log_resets_the_stream(
    app: WebApp, cursor: str, reason: str
) -> None:
    run = await app.task()
    epoch = app.broadcaster.epoch
    headers = {"last-event-id": cursor.format(epoch)}
    async with app.client.stream(f"session_id={run.session_id}", headers) as stream:
        frames = await stream.until("replay.done")
    assert events_of(frames)[:2] == ["connected", "stream.reset"]
    assert frames[1].json() == {
        "event": "stream.reset",
        "reason": reason,
        "earliest": f"{epoch}-1",
        "head": f"{epoch}-2",
    }
    assert ids_of(frames) == [f"{epoch}-1", f"{epoch}-2"]


async def test_a_cursor_before_deleted_events_resets_the_stream(
    app: WebApp,
) -> None:
    gone = await app.task()
    assert (await app.client.post(f"/api/tasks/{gone.task_id}/stop")).status == 200
    kept = await app.task()
    deleted = await app.client.request("DELETE", f"/api/sessions/{gone.session_id}")
    assert deleted.status == 204
    epoch = app.broadcaster.epoch
    query = f"session_id={kept.session_id}"
    async with app.client.stream(query, {"last-event-id": f"{epoch}-1"}) as stream:
        frames = await stream.until("replay.done")
    assert frames[1].event == "stream.reset"
    assert frames[1].json()["reason"] == "too_old"
    async with app.client.stream(query) as stream:
        fresh = await stream.until("replay.done")
    assert "stream.reset" not in events_of(fresh)
    assert ids_of(fresh) == ids_of(frames)
    assert len(ids_of(fresh)) == 2


async def test_debug_events_only_move_the_cursor_of_other_streams(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, timeouts=WebTimeouts(heartbeat_seconds=0.2)) as app:
        run = await app.task()
        await app.store(run, inner())
        async with (
            app.client.stream(f"session_id={run.session_id}") as plain,
            app.client.stream(f"session_id={run.session_id}&debug=1") as debug,
        ):
            shown = await plain.until("replay.done")
            assert "workflow.diagnostic.error" not in events_of(shown)
            assert "workflow.diagnostic.error" in events_of(await debug.until("replay.done"))
            epoch = app.broadcaster.epoch
            while plain.frames.last_id != f"{epoch}-3":
                assert await plain.frame() is not None
            assert f"id: {epoch}-3\nevent: hb\ndata: {{".encode() in bytes(plain.frames.body)
            assert f"id: {epoch}-3\nevent: hb\n".encode() not in bytes(debug.frames.body)


async def test_an_idle_stream_sends_heartbeats_with_the_newest_id(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, timeouts=WebTimeouts(heartbeat_seconds=0.05)) as app:
        run, other = await app.task(), await app.task()
        async with app.client.stream(f"session_id={run.session_id}") as stream:
            await stream.until("replay.done")
            first, second = (await stream.until("hb"))[-1], (await stream.until("hb"))[-1]
        assert first.id == ""
        assert set(first.json()) == {"event", "t", "head"}
        assert first.json()["head"] == str(app.broadcaster.head)
        assert first.json()["t"] < second.json()["t"]
        assert first.json()["t"].endswith("Z")
        assert other.session_id != run.session_id


async def test_one_stream_covers_several_sessions(app: WebApp) -> None:
    first, second, third = await app.task(), await app.task(), await app.task()
    both = f"sessions={first.session_id},{second.session_id}"
    async with (
        app.client.stream(both) as two,
        app.client.stream("sessions=*") as everything,
    ):
        connected = (await two.until("connected"))[0].json()
        assert connected["sessions"] == sorted([first.session_id, second.session_id])
        assert "session_id" not in connected
        assert (await everything.until("connected"))[0].json()["sessions"] == ["*"]
        assert len(ids_of(await two.until("replay.done"))) == 4
        assert len(ids_of(await everything.until("replay.done"))) == 6
        await app.store(third, working())
        await app.store(second, working())
        live = await two.frame()
        assert live is not None
        assert live.json()["session_id"] == second.session_id
        lives = [await everything.frame(), await everything.frame()]
        sessions = [live.json()["session_id"] for live in lives if live]
        assert sessions == [third.session_id, second.session_id]


async def test_the_limit_of_open_streams_is_enforced_until_one_is_closed(
    tmp_path: Path,
) -> None:
    async with open_web_app(tmp_path, streams_per_user=2) as app:
        run = await app.task()
        query = f"session_id={run.session_id}"
        async with app.client.stream(query) as first:
            async with app.client.stream(query):
                reply = await rejection(app, query)
                assert reply.status == 429
                assert reply.error["code"] == "too_many_streams"
                assert reply.headers["retry-after"]
            # a reader that goes away is noticed at once, without anything being written
            while True:
                try:
                    async with app.client.stream(query) as again:
                        await again.until("replay.done")
                        break
                except StreamRefused:
                    continue
            await first.until("replay.done")


async def test_a_stream_at_its_maximum_age_ends_with_bye(tmp_path: Path) -> None:
    async with open_web_app(tmp_path, stream_max_seconds=0.2) as app:
        run = await app.task()
        async with app.client.stream(f"session_id={run.session_id}") as stream:
            frames = await stream.rest()
        assert stream.ended
        assert frames[-1].event == "bye"
        assert 1500 <= frames[-1].json()["retry"] <= 2500


async def test_a_burst_of_events_is_sent_in_one_write(app: WebApp) -> None:
    run = await app.task()
    async with app.client.stream(f"session_id={run.session_id}&replay=none") as stream:
        await stream.until("replay.done")
        await app.store(run, *(working(str(number)) for number in range(8)))
        chunk = await stream.chunk()
        assert chunk.count(b"\n\n") == 8


async def test_two_clients_receive_identical_bytes(app: WebApp) -> None:
    run = await app.task()
    query = f"session_id={run.session_id}"
    async with app.client.stream(query) as first, app.client.stream(query) as second:
        for stream in (first, second):
            await stream.until("replay.done")
        for number in range(1, 30):
            app.publish(run, delta(number, f"word {number} "))
            if number % 7 == 0:
                await app.store(run, working(str(number)), inner())
        await app.store(run, summary("words"))
        rows = [await stream.until("workflow.node.output.summary") for stream in (first, second)]
        assert [frame.raw for frame in rows[0]] == [frame.raw for frame in rows[1]]
        retry = re.compile(rb"^retry: \d+\n")
        bodies = [retry.sub(b"", bytes(stream.frames.body)) for stream in (first, second)]
        assert bodies[0] == bodies[1]


async def test_the_newest_events_are_read_first(app: WebApp) -> None:
    run = await app.task()
    await app.store(run, *(working(f"phase {n}") for n in range(6)))
    await app.task()  # another session
    path = f"/api/sessions/{run.session_id}/events"
    everything = (await app.client.get(path)).json()["events"]
    assert len(everything) == 8
    before: str | None = "end"
    pages = list[list[object]]()
    while before is not None:
        page = (await app.client.get(f"{path}?limit=3&before={before}")).json()
        assert page["next"] is None
        pages.insert(0, page["events"])
        before = page["previous"]
    assert [len(page) for page in pages] == [2, 3, 3]
    assert [event for page in pages for event in page] == everything
    between = f"{path}?limit=3&before={everything[6]['id']}&after={everything[3]['id']}"
    page = (await app.client.get(between)).json()
    assert (page["events"], page["previous"]) == (everything[4:6], None)
    assert (await app.client.get(f"{path}?before=newest")).status == 400
    for gone in ("before=zzzzzz-1", "before=end&after=zzzzzz-1"):
        assert (await app.client.get(f"{path}?{gone}")).status == 410
