"""The list of the processes of a database."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.runs.active import ActiveRuns
from internal.agent.domain.errors import Conflict
from internal.agent.ports.runtime import ProcessIdentity
from internal.agent.store.runs import LeadershipRow, ProcessEntry
from internal.dispatch.registry import ProcessRegistry
from internal.observability.processes import SystemProcesses
from tests.support.dispatch_parts import DispatchParts
from tests.support.store_records import T0

PROCESSES = SystemProcesses()
HERE = PROCESSES.current("gateway-1")
ELSEWHERE = HERE._replace(name="gateway-2", pid=1, namespace="1")


def registry_of(parts: DispatchParts, seconds: float = 30.0) -> ProcessRegistry:
    return ProcessRegistry(
        parts.database,
        parts.stores,
        parts.clock,
        leases=parts.lease_keeper(str(HERE), seconds),
        processes=PROCESSES,
        version="1.0",
    )


async def claim(parts: DispatchParts, *, has_lock: bool = False) -> list[str]:
    """Be the only gateway for a moment; return the owners of that moment."""
    registry = registry_of(parts)
    async with registry.enter_alone(HERE, Path("a.db"), has_lock=has_lock):
        return [each.owner for each in await registry.list_all()]


def entry_of(owner: ProcessIdentity | str, lease: str) -> ProcessEntry:
    return ProcessEntry(str(owner), "gateway", "host", 1, "1.0", T0, lease)


async def set_gateway(parts: DispatchParts, owner: ProcessIdentity | str, lease: str) -> None:
    await parts.database.write(partial(parts.stores.processes.add, entry_of(owner, lease)))


async def test_row_names_the_gateway_while_it_runs(parts: DispatchParts) -> None:
    assert await claim(parts) == [str(HERE)]
    assert await registry_of(parts).list_all() == []


async def test_living_gateway_is_not_replaced_even_after_its_lease(parts: DispatchParts) -> None:
    await set_gateway(parts, HERE._replace(name="gateway-0"), "2000")
    with pytest.raises(Conflict, match=f"process {HERE.pid} on {HERE.host}"):
        await claim(parts, has_lock=True)


async def test_dead_gateway_is_replaced_within_its_lease(parts: DispatchParts) -> None:
    await set_gateway(parts, HERE._replace(start="1"), "9999")
    assert await claim(parts) == [str(HERE)]


async def test_free_lock_file_says_that_a_gateway_of_this_machine_ended(
    parts: DispatchParts,
) -> None:
    await set_gateway(parts, ELSEWHERE, "9999")
    with pytest.raises(Conflict, match=r"process 1 in another container on .* cannot be checked"):
        await claim(parts)
    assert await claim(parts, has_lock=True) == [str(HERE)]


@pytest.mark.parametrize("owner", [ELSEWHERE._replace(boot="b", host="far"), "unknown"])
async def test_lease_decides_about_a_gateway_that_cannot_be_checked(
    parts: DispatchParts, owner: ProcessIdentity | str
) -> None:
    await set_gateway(parts, owner, "9999")
    with pytest.raises(Conflict, match="its lease lasts until 9999"):
        await claim(parts, has_lock=True)
    await parts.database.write(partial(parts.stores.processes.renew, str(owner), "2000"))
    assert await claim(parts) == [str(HERE)]


async def test_only_gateway_frees_what_the_one_before_led(parts: DispatchParts) -> None:
    leaderships = parts.stores.leaderships
    lead = partial(leaderships.claim, "lark:a", "gateway-0", "9999", None)
    await parts.database.write(lead)
    await claim(parts)
    leader = await parts.database.read(partial(leaderships.get, "lark:a"))
    assert leader == LeadershipRow("", 2, "")


async def until_listed(registry: ProcessRegistry, *owners: ProcessIdentity | str) -> None:
    """Return when these processes are in the list, and no others."""
    async with asyncio.timeout(30):
        while {each.owner for each in await registry.list_all()} != {*map(str, owners)}:
            pass


async def test_processes_that_have_ended_leave_the_list(parts: DispatchParts) -> None:
    await set_gateway(parts, HERE._replace(name="dead", start="1"), "9999")
    far = HERE._replace(name="far", boot="b", host="far")
    await set_gateway(parts, far, "9999")
    await set_gateway(parts, far._replace(name="silent"), "2000")
    registry = registry_of(parts)
    async with registry.enter(HERE, "worker", parts.supervisor):
        await until_listed(registry, HERE, far)
        assert (await registry.list_all())[-1].role == "worker"
    await until_listed(registry, far)


@pytest.mark.slow
async def test_process_that_others_removed_enters_the_list_again(parts: DispatchParts) -> None:
    registry = registry_of(parts, 0.3)
    keeper = parts.lease_keeper(str(HERE), 0.3)
    keeping = keeper.run(ActiveRuns(), parts.supervisor)
    async with registry.enter(HERE, "gateway", parts.supervisor), background_task(keeping):
        await parts.database.write(partial(parts.stores.processes.remove, str(HERE)))
        await until_listed(registry, HERE)
