"""Overhead of the Lark channel: from an event to its ack and to the reply, in bursts; memory."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from internal.simulators.lark.model import Chat, Person
from internal.simulators.lark.simulator import LarkSim
from tests.bench.table import Row, Table, most
from tests.support.anthropic_server import Reply, Rules, ScriptedAnthropic, When
from tests.support.lark_load import APP, answered, served, until_reply
from tests.support.postgres_server import shared_server

pytestmark = pytest.mark.bench

ROUNDS, CHATS, STREAMING = 60, 32, 100
BURSTS = ((100, 50, 1000.0), (300, 100, 3000.0))
"""Number of events and of chats, and the milliseconds in which all events are acknowledged."""
COST_ROUNDS, COST_MESSAGES = 5, 20
RESTARTS = 5


class Burst(NamedTuple):
    """The milliseconds to the acks of a burst, and how many were late or refused."""

    acks: list[float]
    failures: int


class Measured(NamedTuple):
    """Measurements of one gateway; times in milliseconds, memory in MB."""

    idle: float
    one: list[tuple[float, float]]
    many: list[tuple[float, float]]
    bursts: list[Burst]
    beside_streams: Burst


async def acknowledged(
    sim: LarkSim, chats: Sequence[tuple[Person, Chat]], count: int, text: str = "bench:words:10"
) -> Burst:
    """Send messages at once, to the chats in turn; return when all have had an outcome."""
    begun = time.perf_counter()
    sent = {await sim.send_text(*chats[n % len(chats)], text) for n in range(count)}
    waiting = {push for push in sim.pushes if push.message_id in sent}
    acks, failures = list[float](), 0
    while waiting:
        for push in [each for each in waiting if each.attempts]:
            waiting.remove(push)
            acks.append((time.perf_counter() - begun) * 1000)
            failures += push.attempts[0] != "ok"
        if waiting:
            await sim.lark.changes.wait()
    return Burst(acks, failures)


async def measured(home: Path, model: str) -> Measured:
    async with LarkSim([APP]) as sim:
        sim.set_faults(limits=False)
        max_chats = max(chats for _, chats, _ in BURSTS)
        people = [sim.lark.state.add_person(f"Person {number}") for number in range(max_chats)]
        chats = [(person, sim.dm(person)) for person in people]
        async with served(sim, home, model) as server:
            idle = server.rss
            await answered(sim, *chats[0])  # all is imported by now
            one = [await answered(sim, *chats[0]) for _ in range(ROUNDS)]
            async with asyncio.TaskGroup() as tasks:
                many = [tasks.create_task(answered(sim, *each)) for each in chats[:CHATS]]
            bursts = []
            for events, in_chats, _ in BURSTS:
                bursts.append(await acknowledged(sim, chats[:in_chats], events))
                await until_idle(sim)
            await acknowledged(sim, chats, STREAMING, "bench:burst:5000")
            beside_streams = await acknowledged(sim, chats[:CHATS], CHATS)
            return Measured(idle, one, [task.result() for task in many], bursts, beside_streams)


async def until_idle(sim: LarkSim) -> None:
    """Return when Lark has not been called for a second."""
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout(1.0):
                await sim.lark.changes.wait()


async def restarted(home: Path) -> list[tuple[float, float]]:
    """Kill the gateway in runs; return the seconds from the next start to each answer.

    The second number of each is without the start of the process.
    """
    rounds = range(RESTARTS + 1)
    script = [
        Reply(f"answer {n}.", hold=f"go {n}", when=When(last_user=f"round {n}.")) for n in rounds
    ]
    seconds = []
    async with LarkSim([APP]) as sim, ScriptedAnthropic(Rules(script)) as model:
        sim.set_faults(limits=False)
        person, chat, sent, begun = sim.people[0], sim.dm(sim.people[0]), "", 0.0
        for number in rounds:
            async with served(sim, home, model.base_url) as server:
                if number:
                    await until_reply(sim, chat, sent, f"answer {number - 1}.")
                    took = time.perf_counter() - begun
                    seconds.append((took, took - server.ready_seconds))
                sent = await sim.send_text(person, chat, f"round {number}.")
                await model.until_open(1)
                server.process.kill()
                await sim.until(lambda _: not sim.lark.delivery.connections, 60)
            model.release(f"go {number}")
            begun = time.perf_counter()
    return seconds


def test_lark(tmp_path: Path, model: str, table: Table) -> None:
    found = asyncio.run(measured(tmp_path / "home", model))
    (ack, reply), (acks, replies) = (
        tuple(zip(*times, strict=True)) for times in (found.one, found.many)
    )
    beside = found.beside_streams
    table.add(
        Row("idle memory of serve, Lark on", "MB", [found.idle], goal=most(240, "ours")),
        Row("Lark event to ack", "ms", ack, goal=most(1000, "ours")),
        Row("Lark event to ack, p99", "ms", [p99(ack)], steady=False),
        Row("Lark event to reply", "ms", reply),
        Row("Lark event to reply, p99", "ms", [p99(reply)], steady=False),
        Row(f"Lark event to ack, {CHATS} chats at once", "ms", acks, goal=most(50, "ours")),
        Row(f"Lark event to reply, {CHATS} chats at once", "ms", replies, steady=False),
        Row(f"the same, p99 of {CHATS}", "ms", [p99(replies)], steady=False),
        Row(f"Lark event to ack, {CHATS} chats, {STREAMING} runs active", "ms", beside.acks),
        Row("the same, longest", "ms", [max(beside.acks)], goal=most(3000, "ours")),
    )
    for (events, chats, goal), burst in zip(BURSTS, found.bursts, strict=True):
        name = f"Lark event to ack, {events} events in {chats} chats"
        table.add(
            Row(name, "ms", burst.acks),
            Row("the same, longest", "ms", [max(burst.acks)], goal=most(goal, "ours")),
            Row("the same, not acknowledged in 3 s", "events", [burst.failures]),
        )


class Cost(NamedTuple):
    """CPU milliseconds of the gateway per message, and the milliseconds to acks and replies."""

    cpu: list[float]
    times: list[tuple[float, float]]


async def costs(home: Path, model: str, settings: dict[str, str]) -> tuple[Cost, Cost]:
    """Return the cost of messages one at a time, and in 32 chats at once."""
    async with LarkSim([APP]) as sim:
        sim.set_faults(limits=False)
        people = [sim.lark.state.add_person(f"Person {number}") for number in range(CHATS)]
        chats = [(person, sim.dm(person)) for person in people]
        one, many = Cost([], []), Cost([], [])
        async with served(sim, home, model, **settings) as server:
            for each in chats:  # all is imported, and all sessions exist
                await answered(sim, *each)
            for _ in range(COST_ROUNDS):
                begun = server.cpu
                one.times.extend([await answered(sim, *chats[0]) for _ in range(COST_MESSAGES)])
                one.cpu.append((server.cpu - begun) * 1000 / COST_MESSAGES)
                begun = server.cpu
                async with asyncio.TaskGroup() as tasks:
                    burst = [tasks.create_task(answered(sim, *each)) for each in chats]
                many.times.extend(task.result() for task in burst)
                many.cpu.append((server.cpu - begun) * 1000 / CHATS)
        return one, many


@pytest.mark.postgres
def test_cost(tmp_path: Path, model: str, table: Table) -> None:
    server = shared_server()
    database = server.create_database()
    url = {"LARKSPUR_DATABASE__URL": server.url(database)}
    on_sqlite = asyncio.run(costs(tmp_path / "sqlite", model, {}))
    on_postgres = asyncio.run(costs(tmp_path / "postgres", model, url))
    server.drop_database(database)
    counts = ("1 at once", f"{CHATS} chats at once")
    for count, ours in zip(counts, on_sqlite, strict=True):
        of = f"SQLite, {count}"
        cpu = Row(f"CPU per Lark message, {of}", "ms", ours.cpu, goal=most(8, "ours"))
        table.add(cpu, *_times(of, ours))
    for count, ours, sqlite in zip(counts, on_postgres, on_sqlite, strict=True):
        of = f"PostgreSQL, {count}"
        name = f"CPU per Lark message, {of}"
        table.add(Row(name, "ms", ours.cpu, sqlite.cpu, "SQLite", most(1.5)), *_times(of, ours))


def _times(of: str, cost: Cost) -> list[Row]:
    acks, replies = zip(*cost.times, strict=True)
    return [
        Row(f"the same, event to ack, {of}", "ms", acks),
        Row(f"the same, event to reply, {of}", "ms", replies),
    ]


def test_restart(tmp_path: Path, table: Table) -> None:
    whole, without_start = zip(*asyncio.run(restarted(tmp_path / "home")), strict=True)
    name = "kill -9 in a run, restart to the answer in Lark"
    table.add(
        Row(name, "s", whole, goal=most(2.0, "ours")),
        Row("the same, without the start of the process", "s", without_start),
    )


def p99(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=100, method="inclusive")[98]
