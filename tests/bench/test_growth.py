"""What lists and sums cost when much is stored, compared with little."""

import json
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.bench.large_database import Size, create_sqlite, fill_postgres, session, task
from tests.bench.load import run
from tests.bench.processes import Server, gateway
from tests.bench.table import Row, Table, most
from tests.support.postgres_server import shared_server

pytestmark = pytest.mark.bench

LARGE, SMALL = Size(), Size(sessions=200, tasks=1_000)
EVENTS = 10 * LARGE.tasks
ROUNDS, REQUESTS = 5, 10
SESSION = session(0)

ROUTES: dict[str, tuple[str, float]] = {
    "usage by day": ("/api/usage?by=day", 10),
    "usage by session": ("/api/usage?by=session", 10),
    "usage by model": ("/api/usage?by=model", 10),
    "usage of a session": (f"/api/usage?by=day&session_id={SESSION}", 10),
    "tasks": ("/api/tasks", 5),
    "tasks, failed": ("/api/tasks?status=failed", 5),
    "tasks, completed": ("/api/tasks?status=completed", 5),
    "tasks, running": ("/api/tasks?status=running", 5),
    "tasks that run": ("/api/tasks?group=running", 5),
    "tasks that need me": ("/api/tasks?group=needs_me", 5),
    "tasks that are done": ("/api/tasks?group=done", 5),
    "tasks of a session, failed": (f"/api/tasks?session_id={SESSION}&status=failed", 5),
    "a task": (f"/api/tasks/{task(5)}", 5),
    "sessions": ("/api/sessions", 10),
    "sessions, archived": ("/api/sessions?archived=true", 10),
    "sessions, pinned": ("/api/sessions?pinned=true", 10),
    "sessions, of the terminal": ("/api/sessions?channel=cli", 10),
    "messages of a session": (f"/api/sessions/{SESSION}/messages", 10),
    "events of a session": (f"/api/sessions/{SESSION}/events", 10),
    "questions": ("/api/questions", 10),
    "questions, open": ("/api/questions?status=open", 10),
    "questions, expired": ("/api/questions?status=expired", 10),
    "questions of a session": (f"/api/questions?session_id={SESSION}", 10),
    "artifacts": ("/api/artifacts", 10),
    "artifacts of a type that none has": ("/api/artifacts?type=video", 10),
    "artifacts, favourites": ("/api/artifacts?favourite=true", 10),
    "artifacts of a task": (f"/api/artifacts?task_id={task(5)}", 10),
    "dead letters": ("/api/dead-letters", 10),
    "audit entries": ("/api/audit", 10),
    "health": ("/health", 10),
}
"""Routes, and at most how many milliseconds one request may take."""


class Client:
    """A connection to a gateway that is kept, and the time and CPU of its requests."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._headers = {"authorization": f"Bearer {server.token}"}
        self._connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.close = self._connection.close

    def get(self, path: str) -> bytes:
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        return body

    def cpu_of(self, path: str) -> float:
        """Return the milliseconds of CPU of the gateway for a request."""
        before = self._server.cpu
        for _ in range(REQUESTS):
            self.get(path)
        return (self._server.cpu - before) / REQUESTS * 1000

    def time_of(self, path: str) -> float:
        """Return the milliseconds that a request takes."""
        begun = time.perf_counter()
        for _ in range(REQUESTS):
            self.get(path)
        return (time.perf_counter() - begun) / REQUESTS * 1000

    def all_sessions(self) -> int:
        """Read all sessions by pages; return their number."""
        count, path = 0, "/api/sessions?limit=500"
        while path:
            page = json.loads(self.get(path))
            count += len(page["sessions"])
            path = page["next"] and f"/api/sessions?limit=500&cursor={page['next']}"
        return count


@contextmanager
def client_of(home: Path, **settings: str) -> Generator[tuple[Client, Server]]:
    with (
        gateway(home, LARKSPUR_LLM__PROVIDER="offline", **settings) as server,
        closing(Client(server)) as client,
    ):
        yield client, server


def test_sqlite(tmp_path: Path, table: Table) -> None:
    """The CPU of the gateway, which contains the database."""
    create_sqlite(tmp_path / "large" / "larkspur.db", LARGE)
    create_sqlite(tmp_path / "small" / "larkspur.db", SMALL)
    with (
        client_of(tmp_path / "large") as (large, server),
        client_of(tmp_path / "small") as (small, _),
    ):
        for what, (path, goal) in ROUTES.items():
            taken = [(large.cpu_of(path), small.cpu_of(path)) for _ in range(ROUNDS)]
            ours, floor = zip(*taken, strict=True)
            limit = most(goal, "ours")
            name = f"CPU of {what}, {EVENTS:,} events"
            table.add(Row(name, "ms", ours, floor, f"{10 * SMALL.tasks:,}", goal=limit))
        pages: list[float] = []
        for _ in range(ROUNDS):
            before = server.cpu
            assert large.all_sessions() == LARGE.sessions
            pages.append((server.cpu - before) * 1000)
        name = f"CPU of {LARGE.sessions:,} sessions by pages of 500"
        table.add(Row(name, "ms", pages, goal=most(200, "ours")))


@pytest.mark.postgres
def test_postgres(tmp_path: Path, table: Table) -> None:
    """The time of requests, most of which is that of the server."""
    server = shared_server()
    name = server.create_database()
    run(lambda: fill_postgres(server.url(name), LARGE))
    with client_of(tmp_path / "home", LARKSPUR_DATABASE__URL=server.url(name)) as (client, _):
        for what, (path, goal) in ROUTES.items():
            taken = [client.time_of(path) for _ in range(ROUNDS)]
            measure = f"time of {what}, PostgreSQL, {EVENTS:,} events"
            table.add(Row(measure, "ms", taken, goal=most(goal, "ours")))
        pages: list[float] = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            assert client.all_sessions() == LARGE.sessions
            pages.append((time.perf_counter() - begun) * 1000)
        measure = f"time of {LARGE.sessions:,} sessions by pages of 500, PostgreSQL"
        table.add(Row(measure, "ms", pages, goal=most(200, "ours")))
    server.drop_database(name)
