"""Cost of isolation per command: time, processor and memory, without the rest of a tool call."""

import asyncio
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import structs

from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.network import EVERY_HOST, NO_NETWORK, NetworkAccess
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.selection import Provider, open_sandbox
from internal.sandbox.workspaces import SessionFolders
from tests.bench.table import Row, Table, most

pytestmark = pytest.mark.bench

CALLS, ROUNDS = 20, 5
MEGABYTE = 1_000_000


def _command(workspace: Path, script: str, network: NetworkAccess) -> SandboxCommand:
    return SandboxCommand(
        ("sh", "-c", script),
        str(workspace),
        60.0,
        SessionId("bench"),
        access=FileAccess((str(workspace),), (str(workspace / "input"),)),
        network=network,
    )


def _bare() -> float:
    begun = time.perf_counter()
    for _ in range(CALLS):
        subprocess.run(["sh", "-c", "true"], check=True, start_new_session=True)
    return (time.perf_counter() - begun) / CALLS * 1000


def _cpu() -> float:
    """Return the CPU seconds of this process and its children, including ended ones."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) + sum(
        sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        for pid in _descendants(os.getpid())  # the launcher, with the commands that have ended
    ) / os.sysconf("SC_CLK_TCK")


async def _calls(sandbox: Sandbox, command: SandboxCommand) -> tuple[float, float]:
    """Return the milliseconds and the processor milliseconds of a command."""
    begun, cpu = time.perf_counter(), _cpu()
    for _ in range(CALLS):
        assert (await sandbox.run(command, lambda _: None)).exit_code == 0
    return (time.perf_counter() - begun) / CALLS * 1000, (_cpu() - cpu) / CALLS * 1000


def _descendants(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from _descendants(child)


def _memory() -> float:
    """Return the memory of the processes below this one, shared parts divided, in megabytes."""
    total = 0
    for pid in set(_descendants(os.getpid())):
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024 / MEGABYTE


async def _memory_while(sandbox: Sandbox, command: SandboxCommand) -> float:
    ready = asyncio.Event()
    running = asyncio.create_task(sandbox.run(command, lambda _: ready.set()))
    await ready.wait()
    found = await asyncio.to_thread(_memory)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return found


def _bare_memory() -> float:
    with subprocess.Popen(["sh", "-c", "echo; sleep 60"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = _memory()
        for child in _descendants(process.pid):
            os.kill(child, 9)
        process.kill()
    return found


@pytest.mark.parametrize(
    ("provider", "network"),
    [("bubblewrap", False), ("bubblewrap", True), ("landlock", False), ("native", False)],
)
async def test_a_command(tmp_path: Path, table: Table, provider: Provider, network: bool) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "input").mkdir(parents=True)
    access = NetworkAccess((EVERY_HOST,)) if network else NO_NETWORK
    command = _command(workspace, "true", access)
    held = structs.replace(command, argv=("sh", "-c", "echo; sleep 60"))
    taken, cpu, bare, memory, floor = [], [], [], [], []
    homes = SessionFolders(tmp_path / "homes")
    async with open_sandbox(provider, homes, PrivatePlaces()) as sandbox:
        await _calls(sandbox, command)
        for _ in range(ROUNDS):
            one, used = await _calls(sandbox, command)
            taken.append(one)
            cpu.append(used)
            bare.append(_bare())
            memory.append(await _memory_while(sandbox, held))
            floor.append(_bare_memory())
    name = f"{provider}, with network" if network else provider
    goal = most(30.0 + min(bare), of="ours") if name == "bubblewrap" else None
    table.add(
        Row(f"a command in the sandbox, {name}", "ms", taken, bare, "subprocess sh", goal),
        Row(f"processor time of a command, {name}", "ms", cpu),
        Row(f"memory of a waiting command, {name}", "MB", memory, floor, "subprocess sh"),
    )
