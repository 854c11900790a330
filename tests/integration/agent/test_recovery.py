"""Runs whose process dies, whose store fails or whose question expires."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from internal.agent.app.background_task import background_task
from internal.agent.app.runs.active import ActiveRun, claim_run
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import (
    Conflict,
    StoreUnavailable,
)
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.store.database import Database, Write
from internal.config.loader import load
from internal.dispatch.terminal_gateway import TerminalGateway, TerminalRunner
from internal.observability.clock import SystemClock
from larkspur.services import TerminalServices, open_terminal
from tests.support.agent_app import make_recovery, open_agent, plain_gateway, plan, sound
from tests.support.agent_tasks import beside
from tests.support.anthropic_server import Call, Reply, Rules, When
from tests.support.database_wrapper import DatabaseWrapper
from tests.support.owner_reviews import owner_reviews

T = TypeVar("T")
LONG = "3000-01-01T00:00:00.000Z"
CLAIMED = "2026-01-31T08:00:00.000Z"


async def test_a_process_that_lost_its_lease_writes_nothing(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="never shown", hold="go", when=When(last_user="work")),
            Reply(text="other"),
        ]
    )
    async with open_agent(home, rules) as here:
        made = await here.submit("work")
        await here.model.until_open(1)
        services = here.services.coordinator.services
        run = await here.run(made)
        assert await services.database.write(
            partial(services.stores.runs.requeue, run.id, run.fence)
        )
        taken = await services.database.write(
            partial(
                claim_run, services.stores, run.id, "another process", lease_until=LONG, now=CLAIMED
            )
        )
        assert taken is not None
        assert taken.fence == run.fence + 1
        before = len(await here.durable(made))
        here.model.release("go")
        await here.end_of(await here.submit("another session"))
        assert len(await here.durable(made)) == before
        assert (await here.run(made)).owner == "another process"


async def test_the_run_of_a_closed_terminal_ends_as_interrupted(home: Path) -> None:
    async with open_agent(home, [Reply(hang=True)]) as here:
        here.services.dispatcher.stop()  # its own sweep must not be quicker
        environ = beside(here, home)
        async with open_terminal(load(environ=environ)) as terminal:
            dead = str(terminal.process._replace(start="1"))
            submissions = [
                Submission(
                    text,
                    build_run_spec(terminal.defaults, TaskOptions(), LOCAL_OWNER),
                    "cli",
                    owner=dead,
                    lease_until=LONG,
                )
                for text in ("begun", "never begun")
            ]
            begun, waiting = [
                await plain_gateway(terminal).submit(each, LOCAL_OWNER) for each in submissions
            ]
            services = here.services.coordinator.services
            await services.database.write(
                partial(
                    claim_run, services.stores, begun.run_id, dead, lease_until=LONG, now=CLAIMED
                )
            )
        async with open_terminal(load(environ=environ)) as next_one:
            assert [each.rpartition(" ")[2] for each in next_one.notices] == [
                begun.task_id, waiting.task_id,
            ]  # fmt: skip
            assert "larkspur resume" in next_one.notices[0]
        for made in (begun, waiting):
            events = await here.end_of(made)
            sound(events)
            assert events[-1]["payload"]["stop_reason"] == "interrupted"
            assert (await here.run(made)).status == "failed"
        assert await make_recovery(here.services).recover_expired_leases() == []


class HourLater(SystemClock):
    """The clock of a machine whose time was set an hour ahead."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


async def test_a_clock_that_jumps_takes_no_run_from_an_open_terminal(home: Path) -> None:
    rules = Rules([Reply(text="still mine", hold="go")])
    async with (
        open_agent(home, rules) as here,
        open_terminal(load(environ=beside(here, home))) as terminal,
    ):
        made = await paint(terminal)
        working = terminal.dispatcher.execute(made.run_id, terminal.coordinator)
        async with background_task(working) as executing:
            await here.model.until_open(1)
            assert await make_recovery(here.services, HourLater()).recover_expired_leases() == []
            here.model.release("go")
            await asyncio.wait([executing])
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "still mine"


def painter() -> Rules:
    """A model that asks for a colour and paints after the answer green."""
    return Rules(
        [
            Reply(text="painted", when=When(last_result="green")),
            Reply(calls=[Call("request_user", {"question": "which?"})]),
        ]
    )


async def paint(terminal: TerminalServices) -> Submitted:
    """Submit a task to a terminal."""
    spec = build_run_spec(terminal.defaults, TaskOptions(), LOCAL_OWNER)
    owner, lease = terminal.leases.owner, terminal.leases.expiry()
    submission = Submission("paint", spec, "cli", owner=owner, lease_until=lease)
    return await plain_gateway(terminal).submit(submission, LOCAL_OWNER)


async def test_the_gateway_continues_an_answered_run_of_a_closed_terminal(home: Path) -> None:
    async with open_agent(home, painter()) as here:
        async with open_terminal(load(environ=beside(here, home))) as terminal:
            made = await paint(terminal)
            await terminal.dispatcher.execute(
                made.run_id, terminal.coordinator, wait_for_answers=False
            )
            run = await here.run(made)
            assert (run.status, run.terminal) == ("waiting", False)
        asked = await here.asked(made)
        await here.answer(asked["question_id"], "text", "green")
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "painted"


async def test_an_open_terminal_continues_its_own_run_after_any_answer(home: Path) -> None:
    async with (
        open_agent(home, painter()) as here,
        open_terminal(load(environ=beside(here, home))) as terminal,
    ):
        made = await paint(terminal)
        async with background_task(
            terminal.dispatcher.execute(made.run_id, terminal.coordinator)
        ) as working:
            asked = await here.asked(made)
            await here.answer(asked["question_id"], "text", "green")
            await asyncio.wait([working])
        events = await here.end_of(made)
        assert events[-1]["payload"]["final_answer"] == "painted"
        assert (await here.run(made)).owner == terminal.leases.owner


async def test_runs_of_a_dead_dispatcher_are_continued(home: Path) -> None:
    rules = Rules([Reply(text="done after all")])
    async with open_agent(home, rules) as here:
        services = here.services.coordinator.services
        here.services.dispatcher.stop()
        made = await here.submit("work")
        await services.database.write(
            partial(
                claim_run, services.stores, made.run_id, "the dead", lease_until=LONG, now=CLAIMED
            )
        )
    async with open_agent(home, rules) as here:
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "done after all"


async def test_a_run_that_its_owner_dropped_is_requeued(home: Path) -> None:
    async with open_agent(home, [Reply(text="second try")]) as here:
        services, leases = here.services.coordinator.services, here.services.leases
        here.services.dispatcher.stop()
        made = await here.submit("work")
        await services.database.write(
            partial(
                claim_run, services.stores, made.run_id, leases.owner, lease_until=LONG, now=CLAIMED
            )
        )
        assert (
            await make_recovery(here.services).requeue_orphaned(
                leases.owner, frozenset({made.run_id})
            )
            == 0
        )
        assert await make_recovery(here.services).requeue_orphaned(leases.owner, frozenset()) == 1
        assert (await here.run(made)).status == "queued"


async def test_an_expired_question_is_rejected(home: Path) -> None:
    script = [
        Reply(calls=[Call("request_user", {"question": "which?"})]),
        Reply(text="nobody said"),
    ]
    async with open_agent(home, script) as here:
        made = await here.submit("ask", people=True)
        asked = await here.until(
            made.session_id, lambda each: each["payload"].get("status") == "waiting"
        )
        question = next(e for e in asked if e["event"] == "workflow.question.asked")["payload"]

        class Later:
            def now(self) -> Any:
                return here.services.clock.now().replace(year=9000)

            def monotonic(self) -> float:
                return 0.0

        late = make_recovery(here.services, Later())
        assert await late.expire_questions() == 1
        here.services.dispatcher.wake()
        events = await here.end_of(made)
        sound(events)
        answered = next(e for e in events if e["event"] == "workflow.question.answered")
        assert answered["payload"]["decision"] == "expired"
        with pytest.raises(Conflict, match="has expired; nothing was run"):
            await here.answer(question["question_id"])


@pytest.mark.slow
async def test_unreadable_attachments_are_waited_for(home: Path) -> None:
    async with open_agent(home, [Reply(text="read it")]) as here:
        services = here.services
        attachment = await services.attachments.put("a.txt", "text/plain", b"words")
        file = home / "attachments" / attachment.sha256[:2] / attachment.sha256
        file.rename(home / "kept")
        file.mkdir()  # reading it fails as a broken volume does
        made = await here.submit("read", attachments=(attachment,))
        for attempt in (1, 2):
            while (await here.run(made)).attempt < attempt or services.dispatcher.active_count:
                pass  # every read lets the dispatcher go on
            await make_recovery(services).requeue_orphaned(services.leases.owner, frozenset())
        assert (await here.run(made)).crashes == 0
        file.rmdir()
        (home / "kept").rename(file)
        events = await here.end_of(made)
        assert events[-1]["payload"]["final_answer"] == "read it"


class FailingDatabase(DatabaseWrapper):
    """Wraps a real database and fails every write while `full` is set."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.full = False

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        if self.full:
            raise StoreUnavailable("The disk is full; nothing was written.")
        return await super().write(work)


def with_database(built: AgentCoordinator, database: Database) -> AgentCoordinator:
    """Return a coordinator that stores in another database; its stages keep theirs."""
    return AgentCoordinator(
        replace(built.services, database=database),
        preparer=built._preparer,
        engine=built._engine,
        resumer=built._resumer,
        completer=built._completer,
        recovery=built._recovery,
        capabilities=built._capabilities,
        host=built._host,
    )


async def test_a_session_continues_its_run_after_a_full_disk_has_space_again(home: Path) -> None:
    rules = Rules(
        [Reply(text="room again", hold="go", when=When(all_results=1)), Reply(calls=[plan()])]
    )
    async with (
        open_agent(home, rules) as here,
        open_terminal(load(environ=beside(here, home))) as terminal,
    ):
        disk, errors = FailingDatabase(terminal.database), list[BaseException]()

        def on_error(error: BaseException) -> None:
            errors.append(error)
            disk.full = False

        runner = TerminalRunner(
            terminal.dispatcher,
            with_database(terminal.coordinator, disk),
            terminal.leases,
            waits=True,
            on_error=on_error,
        )
        async with TerminalGateway(
            terminal.database,
            terminal.stores,
            terminal.broadcaster,
            runner=runner,
            clock=terminal.clock,
            files=terminal.files,
            commands=terminal.commands,
            reviews=owner_reviews(terminal.home),
        ) as gateway:
            spec = build_run_spec(terminal.defaults, TaskOptions(), LOCAL_OWNER)
            made = await gateway.submit(Submission("work", spec, "cli"), LOCAL_OWNER)
            await here.model.until_asked(2)
            disk.full = True
            here.model.release("go")
            events = await here.end_of(made)
            sound(events)
    assert [str(error) for error in errors] == ["The disk is full; nothing was written."]
    assert events[-1]["payload"]["final_answer"] == "room again"


async def test_a_run_continues_after_a_full_disk_has_space_again(home: Path) -> None:
    rules = Rules(
        [Reply(text="room again", hold="go", when=When(all_results=1)), Reply(calls=[plan()])]
    )
    async with open_agent(home, rules) as here:
        app = here.services
        services = app.coordinator.services
        app.dispatcher.stop()
        made = await here.submit("work")
        disk = FailingDatabase(services.database)
        small = with_database(app.coordinator, disk)
        run = await services.database.write(
            partial(claim_run, services.stores, made.run_id, "here", lease_until=LONG, now=CLAIMED)
        )
        assert run is not None
        running = asyncio.create_task(small.execute_task(ActiveRun(run)))
        await here.model.until_asked(2)
        disk.full = True
        here.model.release("go")
        with pytest.raises(StoreUnavailable, match="disk is full"):
            await running
        durable = await here.durable(made)
        assert durable[-1]["event"] != "workflow.result.final"
    async with open_agent(home, Rules([Reply(text="room again")])) as here:
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "room again"
