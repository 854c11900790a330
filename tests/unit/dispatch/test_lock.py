"""The lock that allows one gateway per database."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.agent.domain.ids import RunId
from internal.agent.ports.runtime import ProcessIdentity
from internal.agent.store.runs import GatewayRow
from internal.dispatch.lock import GatewayLock, database_lock
from internal.observability.processes import SystemProcesses
from tests.unit.dispatch.conftest import DispatchParts

PROCESSES = SystemProcesses()
HERE = PROCESSES.current("gateway-1")
ELSEWHERE = HERE._replace(name="gateway-2", pid=1, namespace="1")
HOLD = """
import sys
from pathlib import Path
from internal.observability.processes import SystemProcesses
from internal.dispatch.lock import database_lock
with database_lock(Path(sys.argv[1]), SystemProcesses().current("gateway-0")):
    print("held", flush=True)
    sys.stdin.read()
"""


def lock_again(database: Path) -> None:
    with database_lock(database, HERE):
        raise AssertionError("two gateways")


def test_one_gateway_per_database(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with database_lock(database, HERE) as has_lock:
        assert has_lock
        with pytest.raises(Conflict, match=f"process {HERE.pid} on {HERE.host}"):
            lock_again(database)
        with database_lock(tmp_path / "b.db", HERE):
            pass
    with database_lock(database, HERE):
        pass


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be written: no such file"):
        lock_again(tmp_path / "none" / "a.db")


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    command = [sys.executable, "-c", HOLD, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Conflict, match=f"process {holder.pid} on"):
            lock_again(database)
        holder.kill()
    with database_lock(database, HERE):
        pass


async def claim(parts: DispatchParts, *, has_lock: bool = False) -> GatewayRow | None:
    """Be the gateway for a moment; return the row of that moment."""
    gateway = GatewayLock(
        parts.database, parts.stores, parts.clock, leases=parts.leases, processes=PROCESSES
    )
    async with gateway.hold(HERE, "a.db", has_lock=has_lock):
        return await parts.database.read(parts.stores.gateways.get)


async def set_gateway(parts: DispatchParts, owner: ProcessIdentity | str, lease: str) -> None:
    claim = partial(parts.stores.gateways.claim, str(owner), lease)
    assert await parts.database.write(claim)


async def test_row_names_the_gateway_while_it_runs(parts: DispatchParts) -> None:
    row = await claim(parts)
    assert row is not None
    assert row.owner == str(HERE)
    assert await parts.database.read(parts.stores.gateways.get) is None


async def test_living_gateway_is_not_replaced_even_after_its_lease(parts: DispatchParts) -> None:
    await set_gateway(parts, HERE._replace(name="gateway-0"), "2000")
    with pytest.raises(Conflict, match=f"process {HERE.pid} on {HERE.host}"):
        await claim(parts, has_lock=True)


async def test_dead_gateway_is_replaced_within_its_lease(parts: DispatchParts) -> None:
    await set_gateway(parts, HERE._replace(start="1"), "9999")
    assert await claim(parts) is not None


async def test_free_lock_file_says_that_a_gateway_of_this_machine_ended(
    parts: DispatchParts,
) -> None:
    await set_gateway(parts, ELSEWHERE, "9999")
    with pytest.raises(Conflict, match=r"process 1 in another container on .* cannot be checked"):
        await claim(parts)
    assert await claim(parts, has_lock=True) is not None


@pytest.mark.parametrize("owner", [ELSEWHERE._replace(boot="b", host="far"), "unknown"])
async def test_lease_decides_about_a_gateway_that_cannot_be_checked(
    parts: DispatchParts, owner: ProcessIdentity | str
) -> None:
    await set_gateway(parts, owner, "9999")
    with pytest.raises(Conflict, match="its lease lasts until 9999"):
        await claim(parts, has_lock=True)
    await parts.database.write(partial(parts.stores.gateways.renew, str(owner), "2000"))
    assert await claim(parts) is not None


async def test_a_new_gateway_ends_the_display_leases_of_the_one_before(
    parts: DispatchParts,
) -> None:
    displays, run_id = parts.stores.run_displays, RunId("run-1")
    show = partial(displays.claim, run_id, "lark:a", "gateway-0", lease_until="9999", now="2000")
    await parts.database.write(show)
    abandoned = partial(displays.list_abandoned, "lark:a", "2000")
    assert await parts.database.read(abandoned) == []
    await claim(parts)
    assert [display.run_id for display in await parts.database.read(abandoned)] == [run_id]
