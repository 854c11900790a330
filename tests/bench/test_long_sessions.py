"""What a run costs late in a session, compared with the beginning of the session."""

import json
import re
import time
from base64 import b64encode
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
