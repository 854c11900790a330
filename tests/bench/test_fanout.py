"""Cost of showing one event to one of many watchers."""

import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.processes import PYTHON, environment
from tests.bench.table import Row, Table, most

pytestmark = pytest.mark.bench

ROUNDS = 5
WAKES = {100: 60, 1000: 20}


@contextmanager
def _process(folder: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    command = [PYTHON, "-m", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment(folder), stdin=pipe, stdout=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.args
    return line.strip()


def _ask(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return _read(process)


@contextmanager
def _watched(folder: Path, which: str, watchers: int) -> Generator[Callable[[int], float]]:
    """Open a server with its watchers; yield a function that measures CPU per delivery, in µs."""
    folder.mkdir(parents=True)
    with _process(folder, "tests.bench.fanout", which, str(folder)) as server:
        port, token, path = _read(server).split()
        with _process(folder, "tests.bench.drain", port, token, path, str(watchers)) as readers:
            assert _read(readers) == "ready"
            wakes, pace = WAKES[watchers], 0.025 + 0.00006 * watchers

            def measure(events: int) -> float:
                assert _ask(server, f"go {wakes} {events} {pace}") == "published"
                assert int(_read(readers)) > wakes * events * watchers * 100
                seconds = float(_ask(server, "report"))
                return seconds / (wakes * events + 1) / watchers * 1_000_000

            yield measure


@pytest.mark.parametrize("watchers", [100, 1000])
def test_fan_out(tmp_path: Path, table: Table, watchers: int) -> None:
    ours: dict[int, list[float]] = {1: [], 8: []}
    bare: dict[int, list[float]] = {1: [], 8: []}
    with (
        _watched(tmp_path / "ours", "ours", watchers) as measure_ours,
        _watched(tmp_path / "bare", "bare", watchers) as measure_bare,
    ):
        for _ in range(ROUNDS):
            for events, found in ours.items():
                found.append(measure_ours(events))
                bare[events].append(measure_bare(events))
    for events, goal in ((1, most(1.3)), (8, most(1.5))):
        name = f"SSE, CPU per delivery, {watchers:,} watchers, {events} a write"
        table.add(Row(name, "µs", ours[events], bare[events], "bare uvloop", goal))
