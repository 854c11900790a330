"""A stop that was acknowledged is final, at whatever instant it is stored."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from msgspec.structs import replace

from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.files.changed_files import ChangeRecorder
from internal.agent.app.runs.active import ActiveRun, claim_run
from internal.agent.app.runs.completion import RunCompleter
from internal.agent.app.runs.context import RunContext, RunServices
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_commands import RecallRequest
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.capabilities.archives import ArchivesCapability
from internal.agent.capabilities.capability import Capability, Moment, RunEnded
from internal.agent.capabilities.changed_files import ChangedFilesCapability
from internal.agent.capabilities.endings import ENDINGS, AttemptEnd, Ending
from internal.agent.capabilities.output_files import OutputFilesCapability
from internal.agent.capabilities.registry import Capabilities
from internal.agent.capabilities.worktrees import WorktreesCapability
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import RunHandedOver, RunStopped
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Task
from internal.agent.store.database import Database, Write
from tests.support.agent_app import Core, make_recovery, open_agent, plan, sound
from tests.support.anthropic_server import Call, Reply, Rules, When
from tests.support.database_wrapper import DatabaseWrapper

T = TypeVar("T")
LONG = "3000-01-01T00:00:00.000Z"
CLAIMED = "2026-01-31T08:00:00.000Z"
ASK = Reply(text="One thing.", calls=[Call("request_user", {"question": "which?"})])
LOOK = Reply(calls=[Call("list_dir", {})], when=When(all_results=1))
STOPPED = ("cancelled", "user_stop")


def artifact_recorder(here: Core, services: RunServices) -> ArtifactRecorder:
    return ArtifactRecorder(
        services.database,
        services.stores,
        here.services.files,
        clock=services.clock,
        folders=here.services.workspaces.file_folders,
        worktrees=here.services.workspaces.worktrees,
    )


def change_recorder(here: Core, services: RunServices) -> ChangeRecorder:
    return ChangeRecorder(
        services.database,
        services.stores,
        here.services.changes,
        folders=here.services.workspaces.file_folders,
    )


class Committed(Capability):
    """Keeps the endings that are stored, and the moments that are told."""

    def __init__(self) -> None:
        self.endings: list[Ending] = []
        self.moments: list[Moment] = []

    def committed(self, _run: RunContext, ending: Ending, /) -> None:
        self.endings.append(ending)

    async def observe(self, _run: RunContext, moment: Moment, /) -> None:
        self.moments.append(moment)


def capabilities(here: Core, services: RunServices, committed: Committed) -> Capabilities:
    """Return the capabilities that store something with the end of a run."""
    artifacts = artifact_recorder(here, services)
    return Capabilities(
        (
            OutputFilesCapability(artifacts, here.services.workspaces.file_folders),
            WorktreesCapability(artifacts),
            ChangedFilesCapability(change_recorder(here, services)),
            ArchivesCapability(here.services.keeper),
            committed,
        )
    )


class LateCompleter(RunCompleter):
    """Calls `before` when the work of a run is done, right before the transaction that says so."""

    def __init__(self, here: Core, before: Callable[[], Awaitable[object]]) -> None:
        services = here.services.coordinator.services
        recipients = here.services.question_recipients
        self.committed = Committed()
        chosen = capabilities(here, services, self.committed)
        super().__init__(services, chosen, recipients=recipients)
        self._before = before

    async def complete(self, context: RunContext, turn: Turn | None, end: AttemptEnd) -> AttemptEnd:
        if not isinstance(end, RunStopped):
            await self._before()
        return await super().complete(context, turn, end)


async def claim(here: Core, made: Submitted, owner: str, lease_until: str = LONG) -> ActiveRun:
    """Claim a queued run for an owner."""
    app = here.services
    run = await app.database.write(
        partial(claim_run, app.stores, made.run_id, owner, lease_until=lease_until, now=CLAIMED)
    )
    assert run is not None
    return ActiveRun(run)


async def execute(
    here: Core, active: ActiveRun, completer: RunCompleter, services: RunServices | None = None
) -> None:
    """Execute a claimed run with another completer and other services."""
    built = here.services.coordinator
    coordinator = AgentCoordinator(
        services or built.services,
        preparer=built._preparer,
        engine=built._engine,
        resumer=built._resumer,
        completer=completer,
        recovery=make_recovery(here.services),
        capabilities=completer._capabilities,
        host=built._host,
    )
    await coordinator.execute_task(active)


async def stop(here: Core, made: Submitted) -> None:
    assert await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web") == "running"


async def check_stopped(here: Core, made: Submitted, history: list[str]) -> None:
    """Check that a run was cancelled, asks nothing and left these messages."""
    run = await here.run(made)
    assert (run.status, run.stop_reason) == STOPPED
    events = await here.durable(made)
    sound(events)
    assert events[-1]["event"] == "workflow.result.cancelled"
    queries = here.services.gateway.queries
    assert await queries.questions(LOCAL_OWNER, status="open") == []
    rows = await queries.messages(made.session_id, LOCAL_OWNER)
    assert [row.message.text for row in reversed(rows)] == history


async def tasks(here: Core, made: Submitted) -> list[Task]:
    return await here.services.gateway.queries.tasks(LOCAL_OWNER, session_id=made.session_id)


async def test_a_stop_before_a_pause_is_stored_cancels_the_run(home: Path) -> None:
    async with open_agent(home, [ASK]) as here:
        here.services.dispatcher.stop()
        made = await here.submit("paint")
        await execute(
            here, await claim(here, made, "here"), LateCompleter(here, lambda: stop(here, made))
        )
        await check_stopped(here, made, ["paint", "One thing.", ""])
        events = await here.durable(made)
        assert not any(each["event"] == "workflow.question.asked" for each in events)


async def test_a_stop_before_the_end_is_stored_cancels_the_run_and_drops_its_steering(
    home: Path,
) -> None:
    async with open_agent(home, [Reply(text="Painted.")]) as here:
        here.services.dispatcher.stop()
        made = await here.submit("paint")

        late = LateCompleter(here, partial(steer_and_stop, here, made))
        await execute(here, await claim(here, made, "here"), late)
        await check_stopped(here, made, ["paint", "Painted."])
        assert late.committed.endings == [ENDINGS[RunStopped]]
        (told,) = (each for each in late.committed.moments if isinstance(each, RunEnded))
        assert told.outcome.stop_reason == "user_stop", "hooks are told what is stored"
        assert (await here.run(made)).answer == "Painted."
        assert [each.id for each in await tasks(here, made)] == [made.task_id]


async def test_a_stop_before_a_hand_over_is_stored_cancels_the_run(home: Path) -> None:
    async with open_agent(home, [Reply(hang=True)]) as here:
        here.services.dispatcher.stop()
        made = await here.submit("paint")
        active = await claim(here, made, "here")
        executing = asyncio.create_task(
            execute(here, active, LateCompleter(here, lambda: stop(here, made)))
        )
        await here.model.until_open(1)
        active.cancel(RunHandedOver("the process stops"))
        await executing
        await check_stopped(here, made, ["paint"])


@pytest.mark.parametrize("terminal", [False, True])
async def test_the_stopped_run_of_a_dead_process_is_cancelled(
    home: Path, *, terminal: bool
) -> None:
    async with open_agent(home, [Reply(hang=True)]) as here:
        app = here.services
        app.dispatcher.stop()
        made = await here.submit("paint")
        if terminal:
            await app.database.write(partial(app.stores.runs.adopt, made.run_id, "dead", LONG))
        await claim(here, made, "dead")
        await stop(here, made)
        await app.database.write(partial(app.stores.runs.renew_leases, "dead", "2026"))
        await make_recovery(app).recover_expired_leases()
        await check_stopped(here, made, ["paint"])


async def from_chat(here: Core, text: str, name: str) -> Submission:
    """Return the submission of an accepted chat message."""
    spec = build_run_spec(here.services.defaults, TaskOptions(), LOCAL_OWNER)
    message = InboundMessage("lark", "app", name, "oc_1", "local", "{}", "2026-01-31T08:00:00.000Z")
    await asyncio.wrap_future(here.services.gateway.delivery.accept(message))
    return Submission(text, spec, "lark", scope="app:oc_1", message=message)


@pytest.mark.parametrize("reply", [ASK, Reply(text="Painted.")], ids=["pause", "end"])
async def test_an_interruption_before_a_pause_or_an_end_keeps_the_new_task(
    home: Path, reply: Reply
) -> None:
    async with open_agent(home, [reply]) as here:
        gateway = here.services.gateway
        here.services.dispatcher.stop()
        made = await gateway.submit(await from_chat(here, "paint", "m1"), LOCAL_OWNER)

        async def interrupt() -> None:
            await gateway.steer(await from_chat(here, "in green", "m2"), LOCAL_OWNER)
            await gateway.interrupt(await from_chat(here, "no, wash", "m3"), LOCAL_OWNER)

        await execute(here, await claim(here, made, "here"), LateCompleter(here, interrupt))
        assert ((await here.run(made)).status, (await here.run(made)).stop_reason) == STOPPED
        sound(await here.durable(made))
        found = {each.instruction: each.status for each in await tasks(here, made)}
        assert found == {"paint": "cancelled", "in green\n\nno, wash": "queued"}


@pytest.mark.parametrize("reply", [ASK, Reply(text="Painted.")], ids=["pause", "end"])
async def test_a_recall_before_a_pause_or_an_end_leaves_no_reply_and_no_history(
    home: Path, reply: Reply
) -> None:
    async with open_agent(home, [reply]) as here:
        app = here.services
        app.dispatcher.stop()
        made = await app.gateway.submit(await from_chat(here, "paint", "m1"), LOCAL_OWNER)

        async def recall() -> None:
            request = RecallRequest("lark", "app", "m1", "local")
            assert await app.gateway.recall(request) == "stopped"

        await execute(here, await claim(here, made, "here"), LateCompleter(here, recall))
        await check_stopped(here, made, [])
        due = partial(app.stores.outbox.list_due, "lark", "app", now="9999", limit=10)
        assert await app.database.read(due) == []


class WatchedDatabase(DatabaseWrapper):
    """Wraps a database: right before its write of this number, `before` is awaited."""

    def __init__(
        self, database: Database, number: int, before: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(database)
        self._before = before
        self.left = number

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        self.left -= 1
        if self.left == 0:
            await self._before()
        return await super().write(work)


async def steer_and_stop(here: Core, made: Submitted) -> None:
    steered = await here.services.gateway.steer_task(
        made.task_id, "in green", LOCAL_OWNER, channel="web"
    )
    assert steered.taken_as == "steering"
    await stop(here, made)


@pytest.mark.parametrize("reply", [ASK, Reply(text="Painted.")], ids=["pause", "end"])
async def test_a_stop_before_any_transaction_of_a_run_is_final(home: Path, reply: Reply) -> None:
    work = [Reply(calls=[plan()], when=When(all_results=0)), LOOK]
    work += [msgspec.structs.replace(reply, when=When(all_results=2))]
    steered = Reply(text="Green.", when=When(last_user="green"))
    async with open_agent(home, Rules([steered, *work])) as here:
        here.services.dispatcher.stop()
        services = here.services.coordinator.services
        for number in range(1, 100):
            made = await here.submit("paint")
            before = partial(steer_and_stop, here, made)
            database = WatchedDatabase(services.database, number, before)
            watched = replace(services, database=database)
            completer = RunCompleter(
                watched,
                capabilities(here, watched, Committed()),
                recipients=here.services.question_recipients,
            )
            await execute(here, await claim(here, made, "here"), completer, watched)
            if database.left > 0:  # the run has fewer transactions
                break
            run = await here.run(made)
            assert (run.status, run.stop_reason) == STOPPED, number
            assert [each.id for each in await tasks(here, made)] == [made.task_id], number
            sound(await here.durable(made))
        assert number > 3
