"""Response time of a gateway while commands of its agent exhaust their limits."""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bench.load import Taken, flood, run
from tests.bench.model import HOSTILE
from tests.bench.processes import Server, gateway, get, with_model
from tests.bench.table import Row, Table, most

pytestmark = pytest.mark.bench

IDLE_SECONDS, COMMANDS = 3.0, 4


def _health(server: Server, is_over: Callable[[], bool]) -> list[float]:
    """Return how long GET /health takes until something is over, in milliseconds."""
    taken = []
    while not is_over():
        begun = time.perf_counter()
        assert get(server.port, "/health") == 200
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def _p99(taken: list[float]) -> list[float]:
    return [statistics.quantiles(taken, n=100)[-1]]


def test_health_while_a_resource_is_used_up(tmp_path: Path, model: str, table: Table) -> None:
    settings = {
        **with_model(model),
        "LARKSPUR_AGENT__GATES": "off",
        "LARKSPUR_SANDBOX__PROVIDER": "bubblewrap",
    }

    def work(number: int) -> Taken:
        task = f"bench:hostile:{number}"
        return run(lambda: flood(server.port, server.token, task, count=COMMANDS, at_once=1))

    with gateway(tmp_path / "home", **settings) as server, ThreadPoolExecutor(1) as agent:
        end = time.perf_counter() + IDLE_SECONDS
        idle = _p99(_health(server, lambda: time.perf_counter() > end))
        for number, name in enumerate(HOSTILE):
            running = agent.submit(work, number)
            busy = _p99(_health(server, running.done))
            running.result()
            goal = most(100.0, of="ours")
            table.add(Row(f"GET /health, p99, while {name}", "ms", busy, idle, "idle", goal))
