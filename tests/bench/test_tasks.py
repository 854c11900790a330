"""Cost of a task: stored, run against a scripted model, watched to its end."""

import statistics
from functools import partial
from pathlib import Path

import pytest

from tests.bench.load import Taken, bare_flood, flood, run
from tests.bench.processes import Server, floor, gateway, with_model
from tests.bench.table import Row, Table, least, most
from tests.support.postgres_server import shared_server

pytestmark = pytest.mark.bench

TASK = "bench:words:10"
BODY = b'{"task": "bench:words:10"}'
ROUNDS = 3
COUNTS = {1: 60, 8: 160, 32: 320}
CPU_GOALS = {1: most(6, "ours"), 8: most(4, "ours"), 32: most(3, "ours")}

FIRST_TOKEN = {1: 8.0, 8: 15.0, 32: 45.0}
"""Milliseconds from a task to its first token, the model's own time included."""


def _ours(server: Server, count: int, at_once: int, *, kept: bool = False) -> Taken:
    give = partial(flood, server.port, server.token, TASK, kept=kept)
    return run(lambda: give(count=count, at_once=at_once))


def _bare(server: Server, count: int, at_once: int) -> Taken:
    return run(lambda: bare_flood(server.port, "/message", BODY, count=count, at_once=at_once))


def test_cpu_and_speed_of_tasks(tmp_path: Path, model: str, table: Table) -> None:
    bare_gateway = floor("floor_gateway", tmp_path / "bare", model, str(tmp_path / "bare.db"))
    with gateway(tmp_path / "home", **with_model(model)) as ours, bare_gateway as bare:
        _ours(ours, 64, 8)
        _bare(bare, 64, 8)
        for at_once, count in COUNTS.items():
            cpu: list[float] = []
            bare_cpu: list[float] = []
            speed: list[float] = []
            bare_speed: list[float] = []
            for _ in range(ROUNDS):
                before, bare_before = ours.cpu, bare.cpu
                taken = _ours(ours, count, at_once)
                bare_taken = _bare(bare, count, at_once)
                cpu.append((ours.cpu - before) / count * 1000)
                bare_cpu.append((bare.cpu - bare_before) / count * 1000)
                speed.append(count / taken.wall)
                bare_speed.append(count / bare_taken.wall)
            name = f"CPU per task, durable, {at_once} at once"
            table.add(Row(name, "ms", cpu, bare_cpu, "bare gateway", CPU_GOALS[at_once]))
            name = f"tasks/s, {at_once} at once"
            goal = least(250, "ours") if at_once == 32 else None
            table.add(Row(name, "/s", speed, bare_speed, "bare gateway", goal))


@pytest.mark.postgres
def test_tasks_on_postgres(tmp_path: Path, model: str, table: Table) -> None:
    """The same on PostgreSQL, in alternation with SQLite."""
    server = shared_server()
    database = server.create_database()
    url = {"LARKSPUR_DATABASE__URL": server.url(database)}
    with (
        gateway(tmp_path / "postgres", **with_model(model), **url) as ours,
        gateway(tmp_path / "sqlite", **with_model(model)) as sqlite,
    ):
        for each in (ours, sqlite):
            _ours(each, 64, 8)
        for at_once, count in COUNTS.items():
            costs = [
                [_cpu_per_task(each, count, at_once) for each in (ours, sqlite)]
                for _ in range(ROUNDS)
            ]
            cpu, sqlite_cpu = zip(*costs, strict=True)
            measure = f"PostgreSQL: CPU per task, {at_once} at once"
            table.add(Row(measure, "ms", cpu, sqlite_cpu, "SQLite", most(1.5)))
    server.drop_database(database)


def _cpu_per_task(server: Server, count: int, at_once: int) -> float:
    before = server.cpu
    _ours(server, count, at_once)
    return (server.cpu - before) / count * 1000


def test_tasks_in_kept_sessions(tmp_path: Path, model: str, table: Table) -> None:
    """The same in as many sessions as tasks are under way, which grow meanwhile."""
    with gateway(tmp_path / "home", **with_model(model)) as ours:
        _ours(ours, 64, 8)
        for at_once, count in COUNTS.items():
            cpu: list[float] = []
            speed: list[float] = []
            for _ in range(ROUNDS):
                before = ours.cpu
                taken = _ours(ours, count, at_once, kept=True)
                cpu.append((ours.cpu - before) / count * 1000)
                speed.append(count / taken.wall)
            name = f"CPU per task in kept sessions, {at_once} at once"
            table.add(
                Row(name, "ms", cpu, goal=CPU_GOALS[at_once]),
                Row(f"tasks/s in kept sessions, {at_once} at once", "/s", speed),
            )


def test_first_token_of_many(tmp_path: Path, model: str, table: Table) -> None:
    """The whole time from a task to its first token, with one and with many under way."""
    with gateway(tmp_path / "home", **with_model(model)) as ours:
        _ours(ours, 64, 8)
        for at_once, goal in FIRST_TOKEN.items():
            firsts = [
                statistics.median(_ours(ours, COUNTS[at_once], at_once).first) * 1000
                for _ in range(ROUNDS)
            ]
            name = f"time to first token, {at_once} at once"
            table.add(Row(name, "ms", firsts, goal=most(goal, "ours")))


def test_time_to_first_token(tmp_path: Path, model: str, table: Table) -> None:
    """Measure the gateway's addition to the model's time to its first delta, one task at a time."""
    port = int(model.rpartition(":")[2])
    bare_gateway = floor("floor_gateway", tmp_path / "bare", model, str(tmp_path / "bare.db"))
    with gateway(tmp_path / "home", **with_model(model)) as ours, bare_gateway as bare:
        _ours(ours, 20, 1)
        _bare(bare, 20, 1)
        medians: list[float] = []
        bare_medians: list[float] = []
        tails: list[float] = []
        for _ in range(ROUNDS):
            own = run(lambda: bare_flood(port, "/v1/messages", BODY, count=50, at_once=1)).first
            models_own = statistics.median(own)
            added = [first - models_own for first in _ours(ours, 100, 1).first]
            bare_added = [first - models_own for first in _bare(bare, 100, 1).first]
            medians.append(statistics.median(added) * 1000)
            tails.append(statistics.quantiles(added, n=100)[98] * 1000)
            bare_medians.append(statistics.median(bare_added) * 1000)
    name = "added time to first token, 1 at once"
    table.add(
        Row(name, "ms", medians, bare_medians, "bare gateway", most(15, "ours")),
        Row(f"{name}, p99", "ms", tails, medians, "own median", most(4.0), steady=False),
    )
