"""What the Lark channel adds: from an event to its ack, from an event to the reply, and memory."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import App, Chat, Person
from internal.simulators.lark.simulator import LarkSim
from tests.bench.processes import gateway, with_model
from tests.bench.table import Row, Table, most

pytestmark = pytest.mark.bench

ROUNDS, CHATS, BURST = 60, 32, 40
APP = App("cli_bench", "secret-for-benches")


async def answered(
    sim: LarkSim, person: Person, chat: Chat, text: str = "bench:words:10"
) -> tuple[float, float]:
    """Send one message; return the milliseconds to its ack and to its reply."""
    begun = time.perf_counter()
    sent = await sim.send_text(person, chat, text, mention_bot=True)

    def acked(_: object) -> bool:
        return any(push.message_id == sent and push.done for push in sim.pushes)

    def replied(_: object) -> bool:
        return any(
            each.parent_id == sent and "word word" in each.content for each in sim.messages(chat)
        )

    await sim.until(acked)
    ack = time.perf_counter() - begun
    await sim.until(replied)
    return ack * 1000, (time.perf_counter() - begun) * 1000


def lark_settings(sim: LarkSim) -> dict[str, str]:
    return {
        "LARKSPUR_CHANNELS__LARK__ENABLED": "true",
        "LARKSPUR_CHANNELS__LARK__APP_ID": APP.app_id,
        "LARKSPUR_CHANNELS__LARK__APP_SECRET": APP.secret,
        "LARKSPUR_CHANNELS__LARK__DOMAIN": sim.url,
    }


async def measured(home: Path, model: str) -> tuple[float, list[Sequence[float]]]:
    """Return the memory of a gateway with Lark on, and acks and replies, one and 32 at once."""
    async with LarkSim([APP]) as sim:
        sim.set_faults(limits=False)
        people = [sim.lark.state.add_person(f"Person {number}") for number in range(CHATS)]
        with ExitStack() as stack:
            started = asyncio.to_thread(
                stack.enter_context, gateway(home, **with_model(model), **lark_settings(sim))
            )
            server = await started
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            idle = server.rss
            chats = [(person, sim.dm(person)) for person in people]
            await answered(sim, *chats[0])  # the SDKs are imported by now
            one = [await answered(sim, *chats[0]) for _ in range(ROUNDS)]
            async with asyncio.TaskGroup() as tasks:
                many = [tasks.create_task(answered(sim, *each)) for each in chats]
            both = [one, [task.result() for task in many]]
            await asyncio.to_thread(stack.close)
    return idle, [column for times in both for column in zip(*times, strict=True)]


def test_lark(tmp_path: Path, model: str, table: Table) -> None:
    idle, (ack, reply, acks, replies) = asyncio.run(measured(tmp_path / "home", model))
    table.add(
        Row("idle memory of serve, Lark on", "MB", [idle], goal=most(240, "ours")),
        Row("Lark event to ack", "ms", ack, goal=most(1000, "ours")),
        Row("Lark event to ack, p99", "ms", [p99(ack)], steady=False),
        Row("Lark event to reply", "ms", reply),
        Row("Lark event to reply, p99", "ms", [p99(reply)], steady=False),
        Row(f"Lark event to ack, {CHATS} chats at once", "ms", acks, goal=most(1000, "ours")),
        Row(f"Lark event to reply, {CHATS} chats at once", "ms", replies, steady=False),
        Row(f"the same, p99 of {CHATS}", "ms", [p99(replies)], steady=False),
    )


async def measured_with_hanging_reactions(home: Path, model: str) -> list[Sequence[float]]:
    """Return the replies of 40 runs of over a second, while reactions work and while they hang."""
    async with LarkSim([APP]) as sim:
        sim.set_faults(limits=False)
        people = [sim.lark.state.add_person(f"Person {number}") for number in range(BURST)]
        chats = [(person, sim.dm(person), "bench:late:1500") for person in people]
        rounds: list[Sequence[float]] = []
        with ExitStack() as stack:
            env = {**with_model(model), **lark_settings(sim)}
            await asyncio.to_thread(stack.enter_context, gateway(home, **env))
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            await answered(sim, people[0], chats[0][1])
            for hanging in ([], [AnswerFault("slow", "/reactions", 9999, 60.0)]):
                sim.faults.answers[:] = hanging
                async with asyncio.TaskGroup() as tasks:
                    burst = [tasks.create_task(answered(sim, *each)) for each in chats]
                rounds.append([task.result()[1] for task in burst])
            await asyncio.to_thread(stack.close)
    return rounds


def test_replies_while_reactions_hang(tmp_path: Path, model: str, table: Table) -> None:
    normal, hanging = asyncio.run(measured_with_hanging_reactions(tmp_path / "home", model))
    name = f"{BURST} Lark replies, reactions hang"
    floor = "with reactions"
    table.add(
        Row(name, "ms", hanging, normal, floor, goal=most(1.5)),
        Row(f"{name}, p95", "ms", [p95(hanging)], [p95(normal)], floor, goal=most(1.5)),
        Row(f"{name}, the last", "ms", [max(hanging)], goal=most(8000, "ours")),
    )


def p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=100, method="inclusive")[94]


def p99(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=100, method="inclusive")[98]
