"""Many chats at once while processes are killed: nothing is lost, doubled or out of order."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from internal.simulators.lark.simulator import LarkSim
from tests.chaos.conversation import DATABASE, check_database, select, with_lark
from tests.chaos.crowd import Crowd, echo
from tests.chaos.restarting_gateway import GatewayProcess, RestartingGateway
from tests.chaos.seeds import seeded
from tests.support.lark_gateway import APP
from tests.support.openai_server import ScriptedOpenAI
from tests.support.postgres_server import postgres_url
from tests.support.process_kills import KILLS, Record

Command = tuple[str, ...]
Environ = dict[str, str]

GATEWAY: Command = ("serve", "--port", "0")
CHANNELS: Command = (*GATEWAY, "--no-work")
WORKER: Command = ("worker",)
TEAM = (CHANNELS, CHANNELS, WORKER, WORKER)
SETTINGS = {
    "LARKSPUR_CHANNELS__LARK__BUSY_MODE": "queue",
    "LARKSPUR_ACCESS__MAX_WAITING": "1000",
    "LARKSPUR_CHANNELS__LARK__PROGRESS": "off",
}


class ProcessGroup:
    """Processes that work on one database; each is started again when it ends."""

    def __init__(self, starter: RestartingGateway, commands: Sequence[Command]) -> None:
        self._starter = starter
        self._commands = commands
        self._running: dict[int, GatewayProcess] = {}
        self._is_closed = False
        self.kills = 0

    async def run(self) -> None:
        """Run all processes until `close`."""
        async with asyncio.TaskGroup() as tasks:
            for number, command in enumerate(self._commands):
                tasks.create_task(self._keep(number, command))

    async def _keep(self, number: int, command: Command) -> None:
        while not self._is_closed:
            self._running[number] = process = await self._starter.start(*command)
            code = await process.wait()
            # a process that is just starting does not handle SIGTERM yet
            ends = {0, -signal.SIGKILL} | ({-signal.SIGTERM} if self._is_closed else set())
            assert code in ends, process.stderr_lines

    async def kill_often(self, sim: LarkSim, rng: Random, kills: int) -> None:
        """Kill one of the processes again and again, at any instant after Lark is connected."""
        for _ in range(kills):
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            await asyncio.sleep(rng.uniform(0, 2))
            self._signal(rng.randrange(len(self._commands)), signal.SIGKILL)
            self.kills += 1

    def close(self) -> None:
        """End all processes."""
        self._is_closed = True
        for number in self._running:
            self._signal(number, signal.SIGTERM)

    def _signal(self, number: int, sent: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has just ended, and was not started again yet
            os.kill(self._running[number].process.pid, sent)  # Process.kill would reap it


async def answer_crowd(
    folder: Path,
    environ: Environ,
    commands: Sequence[Command],
    *,
    size: tuple[int, int],
    kills: int,
) -> int:
    """Let processes answer people; `size`: how many chats, and messages in each of them.

    Return how often a process was killed.
    """
    rng, (chats, messages) = seeded(f"crowd {size}"), size
    async with LarkSim([APP], speed=100.0) as sim, ScriptedOpenAI(echo, record=False) as model:
        sim.set_faults(limits=False)
        starter = RestartingGateway(folder, model, with_lark(sim, environ) | SETTINGS)
        group = ProcessGroup(starter, commands)
        crowd = Crowd(sim, rng, messages)
        crowd.gather(chats)
        running = asyncio.create_task(group.run())
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(crowd.talk(max_pause_seconds=2 * kills / messages))
                tasks.create_task(group.kill_often(sim, rng, kills))
                tasks.create_task(crowd.deliver_again())
        finally:
            group.close()
            await running
        rows = select(starter.home, environ, "select message_id from inbox order by number")
        crowd.check([message_id for (message_id,) in rows])
    check_database(starter.home, environ)
    return group.kills


@pytest.mark.slow
async def test_a_few_chats(tmp_path: Path, on_database: Environ, record_property: Record) -> None:
    size = (8, 4)
    record_property(KILLS, await answer_crowd(tmp_path, on_database, [GATEWAY], size=size, kills=4))


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_fifty_chats(tmp_path: Path, on_database: Environ, record_property: Record) -> None:
    size = (50, 20)
    kills = await answer_crowd(tmp_path, on_database, [GATEWAY], size=size, kills=12)
    record_property(KILLS, kills)


@pytest.mark.chaos
@pytest.mark.postgres
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [0, 12])
async def test_fifty_chats_with_two_gateways_and_two_workers(
    tmp_path: Path, environ: Environ, kills: int, record_property: Record
) -> None:
    async with postgres_url() as url:
        environ = {**environ, DATABASE: url}
        killed = await answer_crowd(tmp_path, environ, TEAM, size=(50, 20), kills=kills)
    record_property(KILLS, killed)
