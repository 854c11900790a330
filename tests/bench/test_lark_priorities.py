"""Latency of replies in Lark while merely decorative calls hang."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from tests.bench.table import Row, Table, most
from tests.support.lark_load import APP, answered, served, until_reply

pytestmark = pytest.mark.bench

BURST, HANGS = 40, 60.0
MESSAGE = "bench:late:1500"
"""A run that takes long enough for a reaction."""


async def measured(home: Path, model: str) -> list[Sequence[float]]:
    """Return the milliseconds of 40 replies while reactions work, and while they hang."""
    async with LarkSim([APP]) as sim:
        sim.set_faults(limits=False)
        people = [sim.lark.state.add_person(f"Person {number}") for number in range(BURST)]

        async def replied(number: int) -> float:
            begun, chat = time.perf_counter(), sim.dm(people[number])
            sent = await sim.send_text(people[number], chat, MESSAGE)
            await until_reply(sim, chat, sent)
            return (time.perf_counter() - begun) * 1000

        rounds: list[Sequence[float]] = []
        async with served(sim, home, model):
            await answered(sim, people[0], sim.dm(people[0]))  # all is imported by now
            for hanging in ([], [AnswerFault("slow", "/reactions", 9999, HANGS)]):
                sim.faults.answers[:] = hanging
                async with asyncio.TaskGroup() as tasks:
                    burst = [tasks.create_task(replied(number)) for number in range(BURST)]
                rounds.append([task.result() for task in burst])
    return rounds


def test_replies_while_reactions_hang(tmp_path: Path, model: str, table: Table) -> None:
    normal, hanging = asyncio.run(measured(tmp_path / "home", model))
    name, floor = f"{BURST} Lark replies while reactions hang", "while they work"
    table.add(
        Row(name, "ms", hanging, normal, floor, goal=most(1.5)),
        Row("the same, p95", "ms", [p95(hanging)], [p95(normal)], floor, goal=most(1.5)),
        Row("the same, the last", "ms", [max(hanging)], goal=most(8000, "ours")),
    )


def p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=100, method="inclusive")[94]
