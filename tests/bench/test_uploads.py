"""Cost of an upload of the largest file: memory that does not grow with it, and time."""

import hashlib
import http.client
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bench.processes import Server, gateway
from tests.bench.table import Row, Table, most
from tests.support.s3_server import s3_server

pytestmark = pytest.mark.bench

MB = 1_000_000
SMALL, LARGE, ROUNDS = 10 * MB, 100 * MB, 3


class _Cost(NamedTuple):
    """The memory in MB that a small and large files took, and the time of each large one."""

    small: float
    large: float
    seconds: list[float]


def _upload(server: Server, content: bytes, *, resumable: bool) -> None:
    sha256 = f"&sha256={hashlib.sha256(content).hexdigest()}" if resumable else ""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {"authorization": f"Bearer {server.token}"}
    connection.request("PUT", f"/api/attachments?name=a.bin{sha256}", content, headers)
    assert connection.getresponse().status == 201
    connection.close()


def _peak(server: Server) -> float:
    """Return the most memory in MB that the process has held."""
    status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _plain_write(path: Path, content: bytes) -> None:
    hashlib.sha256(content).hexdigest()
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@pytest.mark.parametrize("resumable", [False, True])
def test_an_upload(tmp_path: Path, table: Table, *, resumable: bool) -> None:
    what = "a resumable upload" if resumable else "an upload"
    floor = [
        _seconds(lambda: _plain_write(tmp_path / "floor", bytes(LARGE))) for _ in range(ROUNDS)
    ]
    with gateway(tmp_path / "home") as server:
        cost = _measure(server, resumable=resumable)
    table.add(
        Row(
            f"memory of {what} of 100 MB",
            "MB",
            [cost.large],
            [cost.small],
            "10 MB",
            most(16, "ours"),
        ),
        Row(f"{what} of 100 MB", "s", cost.seconds, floor, "sha256 and write", most(5)),
    )


async def test_an_upload_to_a_bucket(tmp_path: Path, table: Table) -> None:
    async with s3_server(tmp_path / "server") as bucket:
        with gateway(tmp_path / "home", **bucket.environ) as server:
            cost = _measure(server, resumable=False)
        assert len(bucket.objects()) == ROUNDS + 2
    what = "an upload of 100 MB to S3"
    table.add(
        Row(f"memory of {what}", "MB", [cost.large], [cost.small], "10 MB", most(48, "ours")),
        Row(what, "s", cost.seconds),
    )


def _measure(server: Server, *, resumable: bool) -> _Cost:
    _upload(server, os.urandom(MB), resumable=resumable)
    idle = _peak(server)
    _upload(server, os.urandom(SMALL), resumable=resumable)
    small = _peak(server) - idle
    taken = []
    for content in [os.urandom(LARGE) for _ in range(ROUNDS)]:
        begun = time.perf_counter()
        _upload(server, content, resumable=resumable)
        taken.append(time.perf_counter() - begun)
    return _Cost(small, _peak(server) - idle, taken)
