"""A conversation in Lark while the database, the disk, Lark, the model or the clock fails.

The invariants are shared with `test_conversation_kills`: one reply, each side effect once, events
without gaps or duplicates. `make test` runs one fault, `make test SLOW=yes` the faults of a second
or two, and `make chaos` all.
"""

import asyncio
import resource
import signal
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from internal.simulators.lark.faults import AnswerFault
from tests.chaos.conversation import (
    ANSWER,
    DATABASE,
    MODEL,
    QUESTION,
    Conversation,
    Disturb,
    run_conversation,
)
from tests.chaos.restarting_gateway import NO_CRASH
from tests.chaos.seeds import seeded
from tests.support.postgres_server import postgres_url, shared_server
from tests.support.scripted_model import Fault, Reply

LEASE_SECONDS = 1
OUTAGE_SECONDS = 10.0
"""Time for which the database is locked or the disk refuses writes."""
LONG_OUTAGE_SECONDS = 20.0
"""Longer than a write waits for the lock of another process."""
SUSPENDED_SECONDS = 3.0 * LEASE_SECONDS
DROPS = 3
HOUR = 3_600

Environ = dict[str, str]


async def wait_for_work(conversation: Conversation) -> None:
    """Wait until the first command was approved: the run is in the middle of its work."""
    await conversation.until(lambda: conversation.shows("Allowed once"))


def lock_database(seconds: float) -> Disturb:
    """Return a disturbance that locks the database exclusively for some time."""

    async def disturb(conversation: Conversation) -> None:
        await wait_for_work(conversation)
        database = conversation.gateway.home / "larkspur.db"
        with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as other:
            other.execute("begin exclusive")
            await asyncio.sleep(seconds)  # the length of the outage
            other.execute("rollback")

    return disturb


def stop_server(number: signal.Signals) -> Disturb:
    """Return a disturbance that stops the database server with a signal and restarts it later."""

    async def disturb(conversation: Conversation) -> None:
        await wait_for_work(conversation)
        server = shared_server()
        await asyncio.to_thread(server.stop, number)
        await asyncio.sleep(OUTAGE_SECONDS)  # the length of the outage
        await asyncio.to_thread(server.start)

    return disturb


async def refuse_writes(conversation: Conversation) -> None:
    """Let every write of the gateway to a file fail in the kernel for some time."""
    await wait_for_work(conversation)
    pid = conversation.gateway.serving.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    await asyncio.sleep(OUTAGE_SECONDS)  # the length of the outage
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


async def suspend(conversation: Conversation) -> None:
    """Suspend the gateway for longer than its lease."""
    await wait_for_work(conversation)
    conversation.gateway.signal(signal.SIGSTOP)
    await asyncio.sleep(SUSPENDED_SECONDS)  # the lease ends
    conversation.gateway.signal(signal.SIGCONT)


def answer(*faults: AnswerFault) -> Disturb:
    """Return a disturbance that makes the next calls of Lark's API fail."""

    async def disturb(conversation: Conversation) -> None:
        await conversation.until(lambda: bool(conversation.connections))
        conversation.sim.faults.answers += faults

    return disturb


async def drop_sockets(conversation: Conversation) -> None:
    """Abort the long connection again and again."""
    rng = seeded("sockets")
    for _ in range(DROPS):
        await conversation.until(lambda: bool(conversation.connections))
        await asyncio.sleep(rng.uniform(0, 0.3))  # any instant of the connection
        conversation.sim.lark.drop()


async def be_down(conversation: Conversation) -> None:
    """Let Lark abort every call and connection for some time."""
    await wait_for_work(conversation)
    conversation.sim.lark.go_down(OUTAGE_SECONDS)


def set_clock(file: Path, seconds: int) -> None:
    """Set the clock ahead at once: no process reads a part of the number."""
    new = file.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(file)


def jump(seconds: int) -> Disturb:
    """Return a disturbance that sets the wall clock ahead or back during the run, then right again.

    A message that arrives while the clock is an hour ahead would look an hour old: it would be
    answered with the sentence about late messages.
    """

    async def disturb(conversation: Conversation) -> None:
        clock = conversation.gateway.folder / "clock"
        for text, offset in (("Allowed once", seconds), (QUESTION, 0), (f"“{ANSWER}”", seconds)):
            await conversation.until(partial(conversation.shows, text))
            set_clock(clock, offset)

    return disturb


FAULTS: dict[str, Disturb] = {
    "the process is suspended past its lease": suspend,
    "Lark drops sockets": drop_sockets,
    "Lark answers 429": answer(AnswerFault("rate_limit", times=6, seconds=0.2)),
    "Lark answers 502": answer(AnswerFault("bad_gateway", times=6)),
    "Lark answers nothing": answer(AnswerFault("lost", times=4), AnswerFault("cut", times=2)),
    "Lark answers late": answer(AnswerFault("late", times=6, seconds=0.5)),
}
LONG_FAULTS: dict[str, Disturb] = {
    "Lark is down for 10 s": be_down,
    "Lark answers after 20 s": answer(AnswerFault("slow", times=6, seconds=20.0)),
}


FAULTS_OF_A_FILE: dict[str, Disturb] = {
    "the file is locked for 10 s": lock_database(OUTAGE_SECONDS),
    "the file is locked for 20 s": lock_database(LONG_OUTAGE_SECONDS),
    "the disk refuses writes for 10 s": refuse_writes,
}
FAULTS_OF_A_SERVER: dict[str, Disturb] = {
    "the server is stopped for 10 s": stop_server(signal.SIGINT),
    "the server crashes and is gone for 10 s": stop_server(signal.SIGQUIT),
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=() if fault == "Lark drops sockets" else pytest.mark.slow)
        for fault in FAULTS
    ],
)
@pytest.mark.slow
async def test_a_conversation_survives(tmp_path: Path, environ: Environ, fault: str) -> None:
    environ = {**environ, "LARKSPUR_DISPATCH__LEASE_SECONDS": str(LEASE_SECONDS)}
    await run_conversation(tmp_path, environ, [NO_CRASH], FAULTS[fault])


@pytest.mark.chaos
@pytest.mark.parametrize("fault", LONG_FAULTS)
async def test_a_conversation_survives_for_long(
    tmp_path: Path, on_database: Environ, fault: str
) -> None:
    await run_conversation(tmp_path, on_database, [NO_CRASH], LONG_FAULTS[fault])


@pytest.mark.chaos
@pytest.mark.parametrize("fault", FAULTS_OF_A_FILE)
async def test_a_conversation_survives_the_loss_of_the_file(
    tmp_path: Path, environ: Environ, fault: str
) -> None:
    await run_conversation(tmp_path, environ, [NO_CRASH], FAULTS_OF_A_FILE[fault])


@pytest.mark.chaos
@pytest.mark.postgres
@pytest.mark.parametrize("fault", FAULTS_OF_A_SERVER)
async def test_a_conversation_survives_the_loss_of_the_server(
    tmp_path: Path, environ: Environ, fault: str
) -> None:
    async with postgres_url() as url:
        environ = {**environ, DATABASE: url}
        await run_conversation(tmp_path, environ, [NO_CRASH], FAULTS_OF_A_SERVER[fault])


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [HOUR, -HOUR], ids=["ahead", "back"])
async def test_a_clock_that_jumps_an_hour(tmp_path: Path, environ: Environ, seconds: int) -> None:
    clock = tmp_path / "clock"
    set_clock(clock, 0)
    await run_conversation(tmp_path, environ, [f"clock:{clock}"], jump(seconds))


class CuttingModel:
    """A model that cuts every stream once, at any byte, before it answers."""

    def __init__(self, name: str) -> None:
        self._rng = seeded(name)
        self._is_cut = False

    def __call__(self, request: dict[str, Any]) -> Reply:
        self._is_cut = not self._is_cut
        reply = MODEL(request)
        if not self._is_cut:
            return reply
        fault = Fault("cut_after_bytes", bytes=self._rng.randint(0, 600), clean=False)
        return msgspec.structs.replace(reply, fault=fault)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.chaos) for n in range(1, 9))]
)
async def test_a_model_that_cuts_every_stream(
    tmp_path: Path, environ: Environ, number: int
) -> None:
    await run_conversation(tmp_path, environ, [NO_CRASH], script=CuttingModel(f"cuts {number}"))


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("fault", FAULTS)
async def test_kills_during_a_fault(
    tmp_path: Path, on_database: Environ, fault: str, number: int
) -> None:
    rng = seeded(f"{fault} {number}")
    plans = [f"alarm:{rng.uniform(0.8, 2.5):.6f}" for _ in range(2)]
    environ = {**on_database, "LARKSPUR_DISPATCH__LEASE_SECONDS": str(LEASE_SECONDS)}
    await run_conversation(tmp_path, environ, [*plans, NO_CRASH], FAULTS[fault])
