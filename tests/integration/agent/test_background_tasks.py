"""Background tasks of a gateway after database failures: they continue, and health reports them."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from internal.agent.app.events.subscription import StreamItem
from internal.agent.app.runs.creation import Submission
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import StoreUnavailable
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.store.database import Read
from internal.channels.chat.channel import ChatChannel
from internal.channels.web.services import Health
from internal.config.loader import load
from internal.settings.chat import ChatAccess, ChatChannelSettings
from larkspur.health import ProcessHealth
from larkspur.services import open_terminal
from tests.support.agent_app import Core, open_agent, plain_gateway
from tests.support.agent_tasks import limit
from tests.support.anthropic_server import Reply, Rules
from tests.support.chat_services import EchoChat, eventually, open_channel
from tests.support.database_files import execute
from tests.support.database_wrapper import DatabaseWrapper

T = TypeVar("T")

SETTINGS = ChatChannelSettings(react_emoji="off", access=ChatAccess(operate=("*",)))
HELLO = Rules([Reply(text="hello")])


def failing(here: Core) -> dict[str, str]:
    """Return why each failing background task fails."""
    states = here.services.supervisor.states
    return {state.name: state.failure for state in states if state.failure}


async def report(here: Core, *channels: ChatChannel) -> Health:
    return await ProcessHealth(here.services, channels).report()


@pytest.mark.parametrize(
    ("table", "reasons"),
    [
        ("event_log", {"event follower": "event_log_bounds"}),
        (
            "runs",
            {
                "dispatcher": "next_runs_of_people",
                "leases": "stop_requests",
                "recovery": "held_runs",
            },
        ),
        (
            "outbox",
            {"echo outbox": "due_messages"},
        ),
        ("run_displays", {"echo displays": "abandoned_run_displays"}),
    ],
)
@pytest.mark.first_rows(1)
async def test_a_failing_task_shows_in_health_and_goes_on(
    home: Path, table: str, reasons: dict[str, str]
) -> None:
    service, file = EchoChat(), home / "larkspur.db"
    async with (
        open_agent(home, HELLO) as here,
        open_channel(service, here, SETTINGS) as channel,
        aclosing(here.services.gateway.watch(None, None)) as reader,
    ):
        await anext(reader)
        await here.end_of(await here.submit("hello"))  # the dispatcher has recovered earlier runs
        assert (await report(here, channel)).status == "ok"
        execute(file, f"alter table {table} rename to lost")
        await eventually(lambda: reasons.keys() <= failing(here).keys())
        for task, statement in reasons.items():
            assert failing(here)[task].startswith(f"The statement {statement} failed: ")
        execute(file, f"alter table lost rename to {table}")
        await eventually(lambda: not failing(here))
        assert (await report(here, channel)).status == "ok"
        await service.say("anybody there?")
        await service.until(lambda: bool(service.replies()))
        assert service.replies()[0][0] == "hello"


async def test_an_unforeseen_error_degrades_health_and_is_logged(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service, file = EchoChat(), home / "larkspur.db"
    async with open_agent(home, HELLO) as here, open_channel(service, here, SETTINGS) as channel:
        made = await here.submit("hello")
        await here.end_of(made)
        execute(
            file,
            "insert into run_displays (run_id, channel, owner, lease_until, last_position, closed,"
            " state) select id, 'echo:test', 'gone', '2026', 0, 0, 'no JSON' from runs",
        )
        await eventually(lambda: "echo displays" in failing(here))
        health = await report(here, channel)
        assert health.status == "degraded"
        assert "malformed" in health.tasks["echo displays"].detail
        execute(file, "delete from run_displays")
        await eventually(lambda: not failing(here))
        assert (await report(here, channel)).status == "ok"
    [record] = [each for each in caplog.records if each.message == "background task failed"]
    assert record.exc_info is not None


async def test_readers_get_the_events_of_other_processes_after_a_failure(home: Path) -> None:
    file = home / "larkspur.db"
    async with open_agent(home, HELLO) as here:
        environ = {"LARKSPUR_HOME": str(home), "LARKSPUR_LLM__PROVIDER": "offline"}
        first = await here.submit("first")
        await here.end_of(first)
        sessions = frozenset({first.session_id})
        async with (
            open_terminal(load(environ=environ)) as terminal,
            aclosing(here.services.gateway.watch(sessions, None)) as reader,
        ):
            await anext(reader)
            execute(file, "alter table event_log rename to lost")
            await eventually(lambda: "event follower" in failing(here))
            execute(file, "alter table lost rename to event_log")
            spec = build_run_spec(terminal.defaults, TaskOptions(), LOCAL_OWNER)
            second = Submission("second", spec, "cli", first.session_id)
            await plain_gateway(terminal).submit(second, LOCAL_OWNER)
            async with asyncio.timeout(30):
                async for batch in reader:
                    if any("second" in task for task in tasks_in(batch)):
                        break


def tasks_in(batch: list[StreamItem]) -> list[str]:
    """Return the tasks that the events of a batch report."""
    envelopes: list[dict[str, Any]] = [
        msgspec.json.decode(item.json) for item in batch if isinstance(item, EventRecord)
    ]
    return [str(envelope["payload"].get("task")) for envelope in envelopes]


async def test_a_full_disk_shows_at_once_and_its_end_too(home: Path) -> None:
    async with open_agent(home, HELLO) as here:
        limit(here, 1)
        health = await report(here)
        while health.database.ok:  # again if a write of the gateway that needed no page succeeded
            with pytest.raises(StoreUnavailable, match="is full"):
                await here.submit("x" * 100_000)
            health = await report(here)
        assert (health.status, health.database.ok) == ("failing", False)
        assert "is full: nothing was written" in health.database.detail
        limit(here, 1_000_000)
        await eventually(lambda: not here.services.database.state.failure)  # without a request
        assert (await report(here)).status == "ok"
        assert (await here.end_of(await here.submit("hello")))[-1]["payload"]["final_answer"]


async def test_waiting_replies_and_dead_letters_degrade_health(home: Path) -> None:
    service, file = EchoChat(), home / "larkspur.db"
    insert = (  # an attempt in more than a quarter of an hour would be due, and made
        "insert into outbox (key, channel, app, chat_id, reply_to, run_id, question_id, status,"
        " attempts, next_attempt, created, settled, remote_id, failure, error, body) select 'k',"
        " 'echo', 'test', 'c', '', '', '', '{}', 3,"
        " strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '10 minutes'), '2026', '9', '', '', '', ''"
    )
    async with open_agent(home, HELLO) as here, open_channel(service, here, SETTINGS) as channel:
        assert (await report(here, channel)).status == "ok"
        for status, detail in (
            ("pending", "1 message has waited for over a minute"),
            ("dead", "1 message of the last day was given up"),
        ):
            execute(file, insert.format(status))
            health = await report(here, channel)
            assert (health.status, health.channels["echo"].ok) == ("degraded", False)
            assert detail in health.channels["echo"].detail
            execute(file, "delete from outbox")
        assert (await report(here, channel)).status == "ok"


class CountingReads(DatabaseWrapper):
    """Counts the reads."""

    count = 0

    async def read(self, work: Callable[[], Read[T]], /, *, is_short: bool = False) -> T:
        self.count += 1
        return await super().read(work, is_short=is_short)


async def test_all_who_ask_for_the_health_at_once_get_the_same_report(home: Path) -> None:
    async with open_agent(home, HELLO) as here:
        database = CountingReads(here.services.database)
        health = ProcessHealth(msgspec.structs.replace(here.services, database=database), ())
        await health.report()
        alone = database.count
        async with asyncio.TaskGroup() as asking:
            reports = [asking.create_task(health.report()) for _ in range(50)]
        assert {each.result().status for each in reports} == {"ok"}
        assert database.count <= 3 * alone, "the first one, and one for all others"
