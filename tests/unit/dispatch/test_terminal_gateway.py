"""The gateway of a terminal process."""

from functools import partial

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.runs.creation import Submission
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import RunSpec
from internal.dispatch.terminal import TerminalDispatcher
from internal.dispatch.terminal_gateway import TerminalGateway, TerminalRunner
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.instruction_trust import InstructionTrust
from tests.support.dispatch_parts import DispatchParts
from tests.support.owner_reviews import owner_reviews
from tests.support.session_files import session_files
from tests.support.store_records import a_run, add_run

TASK = Submission("count", RunSpec(), "cli")


async def gateway_of(parts: DispatchParts, errors: list[BaseException]) -> TerminalGateway:
    dispatcher = TerminalDispatcher(
        parts.database,
        parts.stores,
        parts.clock,
        leases=parts.leases,
        recovery=parts.recovery,
        supervisor=parts.supervisor,
    )
    runner = TerminalRunner(
        dispatcher, parts.coordinator, parts.leases, waits=False, on_error=errors.append
    )
    broadcaster = EventBroadcaster(parts.database, parts.stores, parts.clock, "test")
    await broadcaster.start()
    return TerminalGateway(
        parts.database,
        parts.stores,
        broadcaster,
        runner=runner,
        clock=parts.clock,
        files=session_files(parts.folder, parts.database, parts.stores),
        commands=BackgroundCommandPool(parts.clock, InstructionTrust(parts.folder)),
        reviews=owner_reviews(parts.folder),
    )


async def test_submitted_task_is_owned_and_executed_by_this_process(parts: DispatchParts) -> None:
    errors: list[BaseException] = []
    parts.coordinator.gate.set()
    async with await gateway_of(parts, errors) as gateway:
        made = await gateway.submit(TASK, LOCAL_OWNER)
        await parts.coordinator.wait_for(lambda: ("ended", made.run_id) in parts.coordinator.log)
        run = await gateway.queries.latest_run(made.task_id, LOCAL_OWNER)
    assert (run.owner, run.terminal) == ("worker", True)
    assert errors == []


async def test_run_with_an_owner_is_not_adopted(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run(owner="other", terminal=True), "9999")
    async with await gateway_of(parts, []) as gateway:
        assert not await gateway.adopt(a_run().id)


async def test_run_without_an_owner_is_adopted_once(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run())
    parts.coordinator.gate.set()
    async with await gateway_of(parts, []) as gateway:
        assert await gateway.adopt(a_run().id)
        await parts.coordinator.wait_for(lambda: ("ended", a_run().id) in parts.coordinator.log)
    assert parts.coordinator.log.count(("started", a_run().id)) == 1


async def test_leaving_stops_the_executing_run(parts: DispatchParts) -> None:
    async with await gateway_of(parts, []) as gateway:
        made = await gateway.submit(TASK, LOCAL_OWNER)
        await parts.coordinator.wait_for(lambda: ("started", made.run_id) in parts.coordinator.log)
    assert parts.coordinator.log[-1] == ("RunStopped", made.run_id)


async def test_a_run_that_a_run_of_this_process_created_is_executed(parts: DispatchParts) -> None:
    parts.coordinator.gate.set()
    async with await gateway_of(parts, []):
        created = a_run(owner="worker", terminal=True)
        await add_run(parts.database, parts.stores, created, "9999")
        await parts.coordinator.wait_for(lambda: ("ended", created.id) in parts.coordinator.log)


async def test_queued_runs_of_other_processes_are_left_to_them(parts: DispatchParts) -> None:
    await add_run(parts.database, parts.stores, a_run())
    parts.coordinator.gate.set()
    async with await gateway_of(parts, []) as gateway:
        made = await gateway.submit(TASK, LOCAL_OWNER)
        await parts.coordinator.wait_for(lambda: ("ended", made.run_id) in parts.coordinator.log)
    assert ("started", a_run().id) not in parts.coordinator.log


async def test_the_leases_of_all_runs_are_kept_by_one_task(parts: DispatchParts) -> None:
    async with await gateway_of(parts, []) as gateway:
        made = [await gateway.submit(TASK, LOCAL_OWNER) for _ in range(2)]
        for one in made:
            started = ("started", one.run_id)
            await parts.coordinator.wait_for(partial(parts.coordinator.log.__contains__, started))
        names = [state.name for state in parts.supervisor.states]
    assert names.count("leases") == 1
