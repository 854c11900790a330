"""Cost of a streamed delta, from the model's socket to one watcher's.

A long reply minus a short one, so that the cost of a task is not included.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.load import bare_flood, flood, run
from tests.bench.processes import Server, floor, gateway, with_model
from tests.bench.table import Goal, Row, Table, most

pytestmark = pytest.mark.bench

SHORT = 10
ROUNDS = 5


def _ours(server: Server, mode: str, deltas: int) -> float:
    before = server.cpu
    task = f"bench:{mode}:{deltas}"
    run(lambda: flood(server.port, server.token, task, count=1, at_once=1))
    return server.cpu - before


def _bare(server: Server, mode: str, deltas: int) -> float:
    before = server.cpu
    body = b"bench:%s:%d" % (mode.encode(), deltas)
    run(lambda: bare_flood(server.port, "/", body, count=1, at_once=1))
    return server.cpu - before


def _per_delta(cost: Callable[[Server, str, int], float], server: Server, mode: str) -> float:
    long = {"burst": 4000, "each": 600}[mode]
    return (cost(server, mode, long) - cost(server, mode, SHORT)) / (long - SHORT) * 1_000_000


@pytest.mark.parametrize(
    ("mode", "name", "goal"),
    [
        ("burst", "CPU per delta, ten in a packet", most(1.35)),
        ("each", "CPU per delta, each in a packet of its own", most(120, "ours")),
    ],
)
def test_cpu_per_delta(
    tmp_path: Path, model: str, table: Table, mode: str, name: str, goal: Goal
) -> None:
    home = tmp_path / "home"
    with (
        gateway(home, **with_model(model)) as ours,
        floor("floor_relay", tmp_path / "bare", model) as bare,
    ):
        _ours(ours, "words", 10)
        rounds = [
            (_per_delta(_ours, ours, mode), _per_delta(_bare, bare, mode)) for _ in range(ROUNDS)
        ]
    mine, floors = zip(*rounds, strict=True)
    table.add(Row(name, "µs", mine, floors, "bare relay", goal))
