"""Cost of the event log: bytes on the disk, appends, replays, and requests beside a replay."""

import asyncio
import sqlite3
import statistics
import time
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from typing import Self

import pytest

from internal.agent.domain.events import types
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.ids import RunId, SessionId, TaskId, new_run_id, new_session_id
from internal.agent.domain.usage import Usage
from internal.agent.store.database import Write
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.bench.load import flood, run
from tests.bench.processes import Server, gateway, with_model
from tests.bench.table import Row, Table, most
from tests.support.store_records import a_run, a_session

pytestmark = pytest.mark.bench

TASK = "bench:words:10"
RUNS = 500
SESSION = SessionId("session-" + 27 * "r")
SESSION_EVENTS, LOG_EVENTS = 42_842, 950_000
ROUNDS = 5

_NOW = "2026-01-01T00:00:00.000Z"
_TEXT = "word word word word word word word word word word"
_USAGE = Usage(1, 12)
_STAGES = ("prepare", "execute", "summarize", "persist")
EVENTS: tuple[types.Event, ...] = (
    types.InputReceived(task=TASK, channel="web", sender="local"),
    types.LifecycleUpdated(status="queued", phase="accept"),
    types.LifecycleUpdated(status="running", phase="prepare"),
    *(types.NodeStarted(node_id=name, step_index=1, step_description=name) for name in _STAGES),
    *(types.NodeCompleted(node_id=name, duration_ms=8) for name in _STAGES),
    types.ContextSnapshot(messages=1, tools=24, estimated_tokens=5614, sha256=64 * "b"),
    types.LifecycleUpdated(status="running", phase="execute"),
    types.NodeStarted(node_id="iter:1", kind="iteration", iteration=1),
    types.OutputSummary(
        node_id="iter:1:say", iteration=1, content=_TEXT, tool_call_count=0, llm_duration_ms=1,
        llm_request_id="req_bench", llm_model="claude-x", usage=_USAGE, thinking="", thinking_ms=0,
    ),
    types.NodeCompleted(node_id="iter:1", kind="iteration", duration_ms=1, tokens_used=13),
    types.LifecycleUpdated(status="completed", phase="persist", stop_reason="final_answer"),
    types.ResultFinal(
        final_answer=_TEXT, stop_reason="final_answer", total_iterations=1, usage=_USAGE,
        duration_ms=150,
    ),
)  # fmt: skip
"""The events of a short run."""


def _add_runs(stores: Stores, session: SessionId | None, count: int) -> Write[None]:
    for _ in range(count):
        session_id = session or new_session_id()
        if session is None:
            yield from stores.sessions.add(a_session(session_id))
        run_id = new_run_id()
        made = a_run(run_id, session_id, task_id=TaskId(run_id.replace("run", "task")))
        yield from stores.runs.add(made, _NOW)
        ids = RunIds(session_id, made.task_id, RunId(run_id))
        yield from stores.events.append_idle(ids, EVENTS, _NOW)


async def fill(file: Path, events: int, session: SessionId | None = None) -> None:
    """Store the events of short runs, each in a session of its own unless one is given."""
    stores = Stores()
    async with open_database(str(file)) as database:
        if session is not None:
            await database.write(lambda: stores.sessions.add(a_session(session)))
        left = events // len(EVENTS)
        while left:
            count = min(left, 200)
            await database.write(partial(_add_runs, stores, session, count))
            left -= count
        if rest := events % len(EVENTS):
            last = RunId("run-" + 27 * "l")
            ids = RunIds(session or SESSION, TaskId("task-" + 27 * "l"), last)
            await database.write(lambda: stores.runs.add(a_run(last, ids.session_id), _NOW))
            await database.write(lambda: stores.events.append_idle(ids, EVENTS[:rest], _NOW))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("update runs set status = 'completed'")  # nobody executes them
        connection.commit()


async def replay(server: Server, query: str) -> int:
    """Read a stream to the end of its stored events; return how many bytes came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 20)
    writer.write(
        f"GET /api/sse?{query} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
        f"authorization: Bearer {server.token}\r\n\r\n".encode()
    )
    size, tail = 0, b""
    while b"event: replay.done" not in tail:
        data = await reader.read(1 << 20)
        assert data, tail
        size += len(data)
        tail = tail[-64:] + data
    writer.transport.abort()
    return size


class HealthWatch:
    """Asks for /health over and over in a thread; `longest` is the longest answer in seconds."""

    def __init__(self, server: Server) -> None:
        self.seconds: list[float] = []
        self._server = server
        self._stop = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._server.port, timeout=10)
        headers = {"authorization": f"Bearer {self._server.token}"}
        while not self._stop.wait(0.005):
            begun = time.perf_counter()
            connection.request("GET", "/health", headers=headers)
            connection.getresponse().read()
            self.seconds.append(time.perf_counter() - begun)
        connection.close()


def test_bytes_of_a_run(tmp_path: Path, model: str, table: Table) -> None:
    with gateway(tmp_path / "home", **with_model(model)) as server:
        run(lambda: flood(server.port, server.token, TASK, count=RUNS, at_once=8))
    with closing(sqlite3.connect(tmp_path / "home" / "larkspur.db")) as connection:
        sizes = dict(connection.execute("select name, sum(pgsize) from dbstat group by name"))
    events = sum(size for name, size in sizes.items() if "event" in name)
    table.add(
        Row("bytes stored per short run", "KB", [sum(sizes.values()) / RUNS / 1000],
            goal=most(10, "ours")),
        Row("the same, of its events", "KB", [events / RUNS / 1000]),
    )  # fmt: skip


def test_replay_of_a_long_session(tmp_path: Path, table: Table) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    asyncio.run(fill(home / "larkspur.db", SESSION_EVENTS, SESSION))
    walls: list[float] = []
    cpu: list[float] = []
    with gateway(home) as server:
        for _ in range(ROUNDS):
            before, begun = server.cpu, time.perf_counter()
            size = run(lambda: replay(server, f"session_id={SESSION}&debug=1"))
            walls.append((time.perf_counter() - begun) * 1000)
            cpu.append((server.cpu - before) * 1000)
            assert size > SESSION_EVENTS * 500
    name = f"replay of a session with {SESSION_EVENTS:,} events"
    table.add(
        Row(name, "ms", walls, goal=most(150, "ours")),
        Row("the same, CPU of the gateway", "ms", cpu),
    )


def test_health_during_a_long_replay(tmp_path: Path, table: Table) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    asyncio.run(fill(home / "larkspur.db", LOG_EVENTS))
    longest: list[float] = []
    usual: list[float] = []
    with gateway(home) as server:
        for _ in range(3):
            with HealthWatch(server) as watch:
                run(lambda: replay(server, "sessions=*&debug=1"))
            longest.append(max(watch.seconds) * 1000)
            usual.append(statistics.median(watch.seconds) * 1000)
    name = f"GET /health while a reader gets {LOG_EVENTS:,} events"
    table.add(
        Row(f"{name}, longest", "ms", longest, goal=most(50, "ours")),
        Row("the same, median", "ms", usual),
    )
