"""Start-up time for a person: wall time of whole processes, with byte code, after one warm-up."""

from pathlib import Path

import pytest

from tests.bench.processes import (
    LARKSPUR,
    PYTHON,
    environment,
    floor,
    gateway,
    seconds_of,
    with_model,
)
from tests.bench.table import Row, Table, most

pytestmark = pytest.mark.bench

ROUNDS = 10
STARTS = 5
CLIENT = Path(__file__).with_name("floor_client.py")


def test_commands_that_only_print(tmp_path: Path, table: Table) -> None:
    environ = environment(tmp_path)
    for word in ("--version", "--help"):
        seconds_of([LARKSPUR, word], environ)
        ours, bare = [], []
        for _ in range(ROUNDS):
            ours.append(seconds_of([LARKSPUR, word], environ) * 1000)
            bare.append(seconds_of([PYTHON, "-c", "pass"], environ) * 1000)
        name = f"larkspur {word}"
        table.add(Row(name, "ms", ours, bare, "python -c pass", most(7.0)))


def test_serve_from_start_to_first_answer(tmp_path: Path, model: str, table: Table) -> None:
    providers = {"offline": {}, "anthropic": with_model(model)}
    seconds: dict[str, list[float]] = {"bare": [], "offline": [], "anthropic": []}
    for number in range(STARTS + 1):
        with floor("floor_hello", tmp_path) as server:
            seconds["bare"].append(server.ready_seconds)
        for provider, settings in providers.items():
            with gateway(tmp_path / f"{provider}-{number}", **settings) as server:
                seconds[provider].append(server.ready_seconds)
    bare = seconds["bare"][1:]
    for provider in providers:
        name = f"serve, start to /health, {provider}"
        goal = most(0.4, "ours")
        table.add(Row(name, "s", seconds[provider][1:], bare, "uvicorn + starlette", goal))


def test_one_shot(tmp_path: Path, table: Table) -> None:
    attached, bare, inside, nothing = [], [], [], []
    with gateway(tmp_path / "home") as server:
        environ = environment(server.home)
        shot = [LARKSPUR, "-p", "hi"]
        client = [PYTHON, str(CLIENT), str(server.port), server.token]
        for _ in range(ROUNDS + 1):
            attached.append(seconds_of(shot, environ) * 1000)
            bare.append(seconds_of(client, environ) * 1000)
    environ = environment(tmp_path / "home")
    for _ in range(STARTS + 1):
        inside.append(seconds_of([LARKSPUR, "-p", "hi", "--local"], environ) * 1000)
        nothing.append(seconds_of([PYTHON, "-c", "pass"], environ) * 1000)
    name, goal = "one shot through a running gateway", most(500, "ours")
    table.add(
        Row(name, "ms", attached[1:], bare[1:], "stdlib client", most(1.5)),
        Row("one shot in process", "ms", inside[1:], nothing[1:], "python -c pass", goal),
    )
