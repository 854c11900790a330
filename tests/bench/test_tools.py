"""Overhead of the program on a tool's own time."""

import statistics
import subprocess
import time
from pathlib import Path

import pytest

from tests.bench.load import flood, run
from tests.bench.processes import Server, gateway, with_model
from tests.bench.table import Row, Table, most
from tests.support.sandboxes import sandbox_params

pytestmark = pytest.mark.bench

FEW, MANY, ROUNDS = 4, 36, 3


def _seconds(server: Server, calls: int) -> float:
    task, port, token = f"bench:calls:{calls}", server.port, server.token
    mode = "all"
    return run(lambda: flood(port, token, task, count=1, at_once=1, permission_mode=mode)).whole[0]


def _bare() -> float:
    begun = time.perf_counter()
    for _ in range(MANY - FEW):
        subprocess.run(["sh", "-c", "true"], check=True, start_new_session=True)
    return time.perf_counter() - begun


@pytest.mark.parametrize("provider", sandbox_params("native", "bubblewrap"))
def test_a_tool_call(tmp_path: Path, model: str, table: Table, provider: str) -> None:
    """`shell true`, one after the other in one reply; many minus few, so only calls are counted."""
    settings = {
        **with_model(model),
        "LARKSPUR_AGENT__GATES": "off",
        "LARKSPUR_AGENT__TOOL_CONCURRENCY": "1",
        "LARKSPUR_SANDBOX__PROVIDER": provider,
    }
    ours, cpu, bare = [], [], []
    with gateway(tmp_path / "home", **settings) as server:
        _seconds(server, FEW)
        for _ in range(ROUNDS):
            few, before = _seconds(server, FEW), server.cpu
            many = _seconds(server, MANY)
            cpu.append((server.cpu - before) / MANY * 1000)
            ours.append((many - few) / (MANY - FEW) * 1000)
            bare.append(_bare() / (MANY - FEW) * 1000)
    isolated = provider == "bubblewrap"
    name = "an isolated tool call" if isolated else "a tool call"
    goal = most(30.0 + statistics.median(bare), of="ours") if isolated else None
    table.add(
        Row(f"{name}, shell true", "ms", ours, bare, "subprocess sh -c true", goal),
        Row(f"CPU of the gateway per {name[2:].strip()}", "ms", cpu),
    )
