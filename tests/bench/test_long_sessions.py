"""Cost of a run in a long session and of a step in a long run, compared with short ones."""

import asyncio
import json
import re
import sqlite3
import time
from base64 import b64encode
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from larkspur.serve import START_SECONDS
from tests.bench.load import line, run, watching
from tests.bench.processes import Server, gateway, with_model
from tests.bench.table import Row, Table, most

pytestmark = pytest.mark.bench

ROUNDS, TURNS = 8, 10
"""Rounds of ten turns alternate: turns 2 to 11 of a new session, and turns 200 to 279 of one."""
PICTURE_BYTES = 1_000_000
LENGTHS = (10, 200, 1_000, 5_000)
"""Messages of the sessions that are compared."""
SMALL_WINDOW = 20_000
"""A context window, in tokens, into which only some of them fit."""
STEPS = (100, 1_000)
"""The last of a hundred steps whose cost is measured."""


def _open_session(server: Server) -> str:
    """Start a session with a picture; return its id."""
    picture = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * (PICTURE_BYTES // 256)).decode()
    file = {"name": "pond.png", "media_type": "image/png", "data": picture}
    given = {"task": "bench:words:10", "attachments": [file]}
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("POST", "/api/tasks", json.dumps(given).encode(), headers)
    made: dict[str, str] = json.loads(connection.getresponse().read())
    connection.close()
    return made["session_id"]


def _take_turns(server: Server, session: str, count: int) -> None:
    async def work() -> None:
        async with (
            watching(server.port, server.token) as watch,
            line(server.port, server.token) as mine,
        ):
            for _ in range(count):
                run_id = await mine.submit("bench:words:10", session)
                await watch.ended[run_id.encode()]

    run(work)


def _written(server: Server) -> int:
    """Return the bytes that a process caused to be sent to the disk; see proc_pid_io(5)."""
    text = Path(f"/proc/{server.pid}/io").read_text(encoding="utf-8")
    found = re.search(r"^write_bytes: (\d+)$", text, re.MULTILINE)
    assert found is not None, text
    return int(found[1])


def _measure(server: Server, session: str) -> tuple[float, float]:
    """Return the kilobytes written and the milliseconds of CPU of a turn, from ten of them."""
    bytes_before, cpu_before = _written(server), server.cpu
    _take_turns(server, session, TURNS)
    time.sleep(0.2)  # what follows the last turn, such as a WAL checkpoint, belongs to it
    written, cpu = _written(server) - bytes_before, server.cpu - cpu_before
    return written / TURNS / 1000, cpu / TURNS * 1000


def test_a_run_costs_the_same_late_in_a_session(tmp_path: Path, model: str, table: Table) -> None:
    early, late = [], []
    with gateway(tmp_path / "home", **with_model(model)) as server:
        collecting = time.monotonic() + START_SECONDS + 1.0
        long = _open_session(server)
        _take_turns(server, long, 198)
        time.sleep(max(0.0, collecting - time.monotonic()))  # every round with its garbage
        for _ in range(ROUNDS):
            new = _open_session(server)
            _take_turns(server, new, 1)
            early.append(_measure(server, new))
            late.append(_measure(server, long))
    early_written, early_cpu = zip(*early, strict=True)
    late_written, late_cpu = zip(*late, strict=True)
    table.add(
        Row("written per run, turn 200", "KB", late_written, early_written, "turn 2", most(1.3)),
        Row("CPU per run, turn 200", "ms", late_cpu, early_cpu, "turn 2", most(1.3)),
    )


def _create_session(server: Server) -> str:
    """Run a task in a new session; return its id."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    connection.request("POST", "/api/tasks", b'{"task": "bench:words:10"}', headers)
    made: dict[str, str] = json.loads(connection.getresponse().read())
    connection.close()
    _take_turns(server, made["session_id"], 1)
    return made["session_id"]


_INSERT = """
insert into messages (session_id, number, run_id, created, kind, message)
values (?, ?, ?, '2026-01-01T00:00:00Z', ?, ?)
"""


def _add_messages(home: Path, session: str, length: int) -> None:
    """Add messages to a session that has none, while the gateway is stopped.

    A run reads nothing else of the earlier runs, so it costs the same as if they had taken place.
    """
    rows = []
    for number in range(1, length + 1):
        role, kind = ("user", "task") if number % 2 else ("assistant", "answer")
        text = "bench:words:10" if number % 2 else "word " * 10
        message = {"role": role, "parts": [{"type": "text", "text": text}]}
        run_id = f"run-{session}-{(number + 1) // 2}"
        rows.append((session, number, run_id, kind, json.dumps(message)))
    with closing(sqlite3.connect(home / "larkspur.db")) as database:
        database.execute("delete from messages where session_id = ?", (session,))
        database.executemany(_INSERT, rows)
        database.commit()


def test_a_run_costs_the_same_at_every_length(tmp_path: Path, model: str, table: Table) -> None:
    for window, name in ((200_000, "all fit"), (SMALL_WINDOW, "some fit")):
        home = tmp_path / str(window)
        settings = {**with_model(model), "LARKSPUR_LLM__CONTEXT_WINDOW": str(window)}
        with gateway(home, **settings) as server:
            sessions = [_create_session(server) for _ in LENGTHS]
        for session, length in zip(sessions, LENGTHS, strict=True):
            _add_messages(home, session, length)
        cpu: dict[int, list[float]] = {length: [] for length in LENGTHS}
        with gateway(home, **settings) as server:
            collecting = time.monotonic() + START_SECONDS + 1.0
            for session in sessions:
                _take_turns(server, session, 2)
            time.sleep(max(0.0, collecting - time.monotonic()))
            for _ in range(ROUNDS):
                for session, length in zip(sessions, LENGTHS, strict=True):
                    cpu[length].append(_measure(server, session)[1])
        for length in LENGTHS[1:]:
            goal = most(1.2) if window == SMALL_WINDOW else None
            row = f"CPU per run, {length:,} messages, {name}"
            table.add(Row(row, "ms", cpu[length], cpu[LENGTHS[0]], f"{LENGTHS[0]} messages", goal))


async def _step_costs(server: Server) -> list[float]:
    """Return the milliseconds of CPU per step of the hundred steps before each of `STEPS`."""
    cpu: dict[int, float] = {}
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=2**24)
    writer.write(
        f"GET /api/sse?sessions=*&replay=none HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
        f"authorization: Bearer {server.token}\r\n\r\n".encode()
    )
    async with line(server.port, server.token) as mine:
        options = {"permission_mode": "all", "max_iterations": STEPS[-1] + 10}
        await mine.submit(f"bench:steps:{STEPS[-1]}", **options)
        while STEPS[-1] not in cpu:
            found = await reader.readuntil(b"\n\n")
            if b"event: workflow.node.completed" in found:
                for number in re.findall(rb'"node_id":"iter:(\d+)"', found):
                    cpu[int(number)] = server.cpu
    writer.transport.abort()
    return [(cpu[step] - cpu[step - 99]) / 99 * 1000 for step in STEPS]


def test_a_step_costs_the_same_late_in_a_run(tmp_path: Path, model: str, table: Table) -> None:
    settings = {**with_model(model), "LARKSPUR_AGENT__GATES": "off"}
    with gateway(tmp_path / "home", **settings) as server:
        rounds = [run(lambda: _step_costs(server)) for _ in range(3)]
    early, late = zip(*rounds, strict=True)
    table.add(
        Row(
            f"CPU per step, step {STEPS[-1]:,}",
            "ms",
            late,
            early,
            f"step {STEPS[0]}",
            most(12.0, "ours"),
        )
    )
