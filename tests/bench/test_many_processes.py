"""Gateways and workers on one PostgreSQL database: throughput, and traffic between processes."""

import asyncio
import os
import signal
import statistics
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.tasks import StopRequest
from internal.agent.ports.runtime import ProcessIdentity
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.bench.load import flood, run, watching
from tests.bench.processes import Server, gateway, with_model, worker
from tests.bench.table import Row, Table, most
from tests.support.http_client import HttpClient
from tests.support.postgres_server import shared_server

pytestmark = pytest.mark.bench

TASK = "bench:words:10"
COUNT = 240
AT_ONCE = 32
ROUNDS = 3
STOPS = 20
MODEL_SECONDS = 1.0


@contextmanager
def team(folder: Path, model: str, workers: int) -> Generator[tuple[Server, str]]:
    """Run a gateway with a number of workers, or one that works itself, on a new database."""
    server = shared_server()
    name = server.create_database()
    settings = {
        **with_model(model),
        "LARKSPUR_DATABASE__URL": server.url(name),
    }
    home = folder / "home"  # of all, as on one machine
    with ExitStack() as stack:
        argv = ["--no-work"] if workers else []
        front = stack.enter_context(gateway(home, *argv, **settings))
        for _ in range(workers):
            stack.enter_context(worker(home, **settings))
        yield front, name
    server.drop_database(name)


@pytest.mark.postgres
@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_throughput(tmp_path: Path, model: str, table: Table, workers: int) -> None:
    speed: list[float] = []
    first: list[float] = []
    with team(tmp_path, model, workers) as (front, _):
        run(lambda: flood(front.port, front.token, TASK, count=64, at_once=8))
        for _ in range(ROUNDS):
            taken = run(lambda: flood(front.port, front.token, TASK, count=COUNT, at_once=AT_ONCE))
            speed.append(COUNT / taken.wall)
            alone = run(lambda: flood(front.port, front.token, TASK, count=20, at_once=1))
            first.append(statistics.median(alone.first or alone.whole) * 1000)
    who = f"gateway and {workers} workers" if workers else "one process"
    table.add(
        Row(f"PostgreSQL, {who}: tasks/s, 32 at once", "/s", speed),
        Row(f"PostgreSQL, {who}: first token, 1 at once", "ms", first),
    )


async def _start(client: HttpClient, task: str) -> dict[str, Any]:
    """Submit a task and return it when it is executed."""
    made: dict[str, Any] = (await client.post("/api/tasks", {"task": task})).json()
    while (await client.get(f"/api/tasks/{made['task_id']}")).json()["status"] != "running":
        pass
    return made


async def _stop_times(front: Server) -> list[float]:
    """Return the times from the request to stop a run to the event that it was stopped, in ms."""
    client = HttpClient("127.0.0.1", front.port, front.token)
    times: list[float] = []
    async with watching(front.port, front.token) as watch:
        for _ in range(STOPS):
            made = await _start(client, "bench:late:60000")
            begun = time.perf_counter()
            await client.post(f"/api/tasks/{made['task_id']}/stop", {})
            with pytest.raises(AssertionError):  # so a run ends that gives no answer
                await watch.ended[made["run_id"].encode()]
            times.append((time.perf_counter() - begun) * 1000)
    return times


async def _foreign_stop_times(front: Server) -> list[float]:
    """The same when another process on the file of a gateway asks for the stop, in ms."""
    client = HttpClient("127.0.0.1", front.port, front.token)
    stop, times, stores = StopRequest("bench", "cli", ""), list[float](), Stores()
    async with (
        open_database(front.home / "larkspur.db") as database,
        watching(front.port, front.token) as watch,
    ):
        for _ in range(STOPS):
            made = await _start(client, "bench:late:60000")
            begun = time.perf_counter()
            await database.write(partial(stores.runs.request_stop, made["run_id"], stop))
            with pytest.raises(AssertionError):  # so a run ends that gives no answer
                await watch.ended[made["run_id"].encode()]
            times.append((time.perf_counter() - begun) * 1000)
    return times


def test_stop_on_one_file(tmp_path: Path, model: str, table: Table) -> None:
    with gateway(tmp_path / "home", **with_model(model)) as front:
        run(lambda: flood(front.port, front.token, TASK, count=16, at_once=8))
        stops = run(lambda: _foreign_stop_times(front))
    table.add(Row("SQLite, stop of a run in another process", "ms", stops, goal=most(200, "ours")))


async def _recovery_time(front: Server, database: str) -> float:
    """Kill the worker of a run, and return the seconds that its end comes later by that."""
    client = HttpClient("127.0.0.1", front.port, front.token)
    async with watching(front.port, front.token) as watch:
        made = await _start(client, f"bench:late:{MODEL_SECONDS * 1000:.0f}")
        sql = f"select owner from runs where id = '{made['run_id']}'"  # noqa: S608 - our own id
        ((owner,),) = await asyncio.to_thread(shared_server().sql, sql, database)
        identity = ProcessIdentity.parse(owner)
        assert identity is not None
        os.kill(identity.pid, signal.SIGKILL)
        begun = time.perf_counter()
        await watch.ended[made["run_id"].encode()]
        return time.perf_counter() - begun - MODEL_SECONDS


@pytest.mark.postgres
def test_stop_and_recovery(tmp_path: Path, model: str, table: Table) -> None:
    with team(tmp_path, model, 2) as (front, database):
        run(lambda: flood(front.port, front.token, TASK, count=16, at_once=8))
        stops = run(lambda: _stop_times(front))
        recovery = run(lambda: _recovery_time(front, database))
    goal = most(200, "ours")
    table.add(
        Row("PostgreSQL, stop of a run in another process", "ms", stops, goal=goal),
        Row("PostgreSQL, a killed worker delays its run", "s", [recovery], goal=most(2, "ours")),
    )
