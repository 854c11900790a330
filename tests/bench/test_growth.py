"""Cost of lists and sums with much stored data, compared with little."""

import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.bench.large_database import Size, create_sqlite, fill_postgres, session, task
from tests.bench.load import run
from tests.bench.processes import Server, cpu_of, gateway
from tests.bench.table import Row, Table, most
from tests.support.postgres_server import shared_server

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

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
    """A connection to a gateway that is kept. `cpu` are the CPU seconds of gateway and database."""

    def __init__(self, server: Server, database: str = "") -> None:
        self._server = server
        self._database = database
        self._headers = {"authorization": f"Bearer {server.token}"}
        self._connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.close = self._connection.close

    @property
    def cpu(self) -> float:
        if not self._database:
            return self._server.cpu
        backends = f"select pid from pg_stat_activity where datname = '{self._database}'"  # noqa: S608 - of the test
        pids = [pid for (pid,) in shared_server().sql(backends)]
        return self._server.cpu + sum(map(cpu_of, pids))

    def get(self, path: str) -> bytes:
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        return body

    def _open(self, path: str) -> None:
        """Open the connection anew, which the server may have closed, and send a first request."""
        self.close()
        self.get(path)

    def cpu_of(self, path: str) -> float:
        """Return the milliseconds of CPU for a request."""
        self._open(path)
        before = self.cpu
        for _ in range(REQUESTS):
            self.get(path)
        return (self.cpu - before) / REQUESTS * 1000

    def cpu_of_all_sessions(self) -> float:
        """Return the milliseconds of CPU to read all sessions by pages."""
        count, path = 0, "/api/sessions?limit=500"
        self._open(path)
        before = self.cpu
        while path:
            page = json.loads(self.get(path))
            count += len(page["sessions"])
            path = page["next"] and f"/api/sessions?limit=500&cursor={page['next']}"
        assert count == LARGE.sessions
        return (self.cpu - before) * 1000


@contextmanager
def client_of(home: Path, database: str = "", **settings: str) -> Generator[Client]:
    with (
        gateway(home, LARKSPUR_LLM__PROVIDER="offline", **settings) as server,
        closing(Client(server, database)) as client,
    ):
        yield client


def measure(kind: str, large: Client, small: Client, table: Table) -> None:
    """Measure every route on a large and a small database."""
    for what, (path, goal) in ROUTES.items():
        taken = [(large.cpu_of(path), small.cpu_of(path)) for _ in range(ROUNDS)]
        ours, floor = zip(*taken, strict=True)
        name = f"{kind}, CPU of {what}, {EVENTS:,} events"
        limit = most(goal, "ours")
        table.add(Row(name, "ms", ours, floor, f"{10 * SMALL.tasks:,}", goal=limit))
    pages = [large.cpu_of_all_sessions() for _ in range(ROUNDS)]
    name = f"{kind}, CPU of {LARGE.sessions:,} sessions by pages of 500"
    table.add(Row(name, "ms", pages, goal=most(200, "ours")))


def test_sqlite(tmp_path: Path, table: Table) -> None:
    create_sqlite(tmp_path / "large" / "larkspur.db", LARGE)
    create_sqlite(tmp_path / "small" / "larkspur.db", SMALL)
    with client_of(tmp_path / "large") as large, client_of(tmp_path / "small") as small:
        measure("SQLite", large, small, table)


@contextmanager
def postgres_client(home: Path, size: Size) -> Generator[Client]:
    server = shared_server()
    name = server.create_database()
    run(lambda: fill_postgres(server.url(name), size))
    with client_of(home, name, LARKSPUR_DATABASE__URL=server.url(name)) as client:
        yield client
    server.drop_database(name)


@pytest.mark.postgres
def test_postgres(tmp_path: Path, table: Table) -> None:
    with (
        postgres_client(tmp_path / "large", LARGE) as large,
        postgres_client(tmp_path / "small", SMALL) as small,
    ):
        measure("PostgreSQL", large, small, table)
