"""The web channel on a real database and real sockets, without a coordinator.

Tasks are not run: tests store and publish the events of a run themselves. `working_web_app.py`
runs them.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.gateway import Gateway
from internal.agent.app.processes.process_list import ProcessList
from internal.agent.app.supervision import Supervisor
from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.errors import RunExit
from internal.agent.domain.events.envelope import EventRecord, RunIds, rfc3339, wrap_event
from internal.agent.domain.events.types import Event
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.tasks import Profile
from internal.agent.domain.tools import targets_by_tool
from internal.agent.domain.usage import PriceTable, RunLimits
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.channels.web.auth import Logins
from internal.channels.web.server import WebServer
from internal.channels.web.services import ComponentHealth, Health, WebServices, WebTimeouts
from internal.channels.web.static_page import Page
from internal.documents.reader import ChildDocumentReader
from internal.observability.clock import SystemClock
from internal.observability.processes import SystemProcesses
from internal.settings.server import ServerSettings
from internal.storage.database_url import open_database
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.instruction_trust import InstructionTrust
from internal.tools.registry import TOOLS
from tests.support.database_files import write_new_database
from tests.support.http_client import HttpClient
from tests.support.owner_reviews import owner_reviews
from tests.support.session_files import session_files
from tests.support.tools import native_sandbox

TOKEN = "t0ken-" * 8
NOT_BUILT = Page(b"", {})
DEFAULT_TIMEOUTS = WebTimeouts()


@dataclass
class IdleDispatcher:
    """A dispatcher that starts nothing and records requests."""

    cancelled: list[tuple[RunId, RunExit]] = field(default_factory=list)

    def wake(self) -> None:
        pass

    def reserve(self, _run_id: RunId, /) -> AbstractContextManager[None]:
        return nullcontext()

    def cancel(self, run_id: RunId, reason: RunExit, /) -> bool:
        self.cancelled.append((run_id, reason))
        return True


@dataclass
class WebApp:
    """A running web server; `client` sends its token."""

    database: Database
    gateway: Gateway
    broadcaster: EventBroadcaster
    dispatcher: IdleDispatcher
    server: WebServer
    client: HttpClient
    health: list[Health]

    async def task(self, text: str = "write a report", **fields: Any) -> RunIds:
        """Create a task over HTTP and return its IDs."""
        reply = await self.client.post("/api/tasks", {"task": text, **fields})
        assert reply.status == 201, reply
        task = reply.json()
        return RunIds(SessionId(task["session_id"]), TaskId(task["task_id"]), RunId(task["run_id"]))

    async def store(self, run: RunIds, *events: Event) -> None:
        """Store and publish durable events of a run in one transaction."""
        now, log = rfc3339(datetime.now(UTC)), Stores().events
        self.broadcaster.publish(
            await self.database.write(partial(log.append_idle, run, events, now))
        )

    def publish(self, run: RunIds, *events: Event) -> None:
        """Publish ephemeral events of a run."""
        now = rfc3339(datetime.now(UTC))
        self.broadcaster.publish(
            [EventRecord.ephemeral(wrap_event(run, event, now, None)) for event in events]
        )


async def report_healthy() -> Health:
    return healthy()


def healthy() -> Health:
    part = ComponentHealth(ok=True, since="2026-01-01T00:00:00.000Z", detail="as it should be")
    return Health(status="ok", database=part, dispatcher=part)


def defaults() -> TaskDefaults:
    return TaskDefaults(
        profiles={"default": Profile(), "brief": Profile(name="brief", tone="short")},
        policy=Policy(),
        targets=targets_by_tool(each.spec for each in TOOLS),
        limits=RunLimits(),
        gates="strict",
        provider="offline",
        model="offline-demo",
        prices=PriceTable(),
    )


class Backend(NamedTuple):
    """Dependencies of a web server: with a database, without a coordinator."""

    services: WebServices
    database: Database
    dispatcher: IdleDispatcher
    health: list[Health]


@asynccontextmanager
async def open_backend(
    folder: Path,
    page: Page = NOT_BUILT,
    timeouts: WebTimeouts = DEFAULT_TIMEOUTS,
    *,
    logins: Path | None = None,
    **settings: Any,
) -> AsyncGenerator[Backend]:
    """Open the database of a folder; the folder can be opened again afterwards.

    `logins` is the folder of the logins, if it is another one.
    """
    clock, stores = SystemClock(), Stores()
    write_new_database(folder / "larkspur.db")
    async with open_database(folder / "larkspur.db") as database, asyncio.TaskGroup() as tasks:
        broadcaster = EventBroadcaster(database, stores, clock, "1.2.3")
        await broadcaster.start()
        follower = tasks.create_task(broadcaster.follow(Supervisor(clock)))
        dispatcher, health = IdleDispatcher(), [healthy()]
        gateway = Gateway(
            database,
            stores,
            broadcaster=broadcaster,
            dispatcher=dispatcher,
            clock=clock,
            files=session_files(folder, database, stores),
            commands=BackgroundCommandPool(clock, InstructionTrust(folder)),
            reviews=owner_reviews(folder),
        )

        gateway.processes = ProcessList(
            database, stores, clock, processes=SystemProcesses(), lease_seconds=30.0
        )

        async def current_health() -> Health:
            return health[-1]

        services = WebServices(
            gateway=gateway,
            broadcaster=broadcaster,
            defaults=defaults(),
            token=lambda: TOKEN,
            settings=server_settings(settings),
            health=current_health,
            version="1.2.3",
            clock=clock,
            documents=ChildDocumentReader(native_sandbox(folder)),
            logins=Logins(logins or folder),
            page=page,
            timeouts=timeouts,
        )
        try:
            yield Backend(services, database, dispatcher, health)
        finally:
            follower.cancel()


@asynccontextmanager
async def open_web_app(
    folder: Path,
    page: Page = NOT_BUILT,
    timeouts: WebTimeouts = DEFAULT_TIMEOUTS,
    **settings: Any,
) -> AsyncGenerator[WebApp]:
    """Serve the database of a folder on a free port."""
    async with (
        open_backend(folder, page, timeouts, **settings) as (services, database, idle, health),
        serve(services) as (server, client),
    ):
        gateway, broadcaster = services.gateway, services.broadcaster
        yield WebApp(database, gateway, broadcaster, idle, server, client, health)


def server_settings(given: dict[str, Any]) -> ServerSettings:
    """Return settings with a free port and, unless given, no effective rate limit."""
    rates = {"rate_limit_per_minute": 60_000_000, "rate_limit_burst": 1_000_000}
    return ServerSettings(**{"port": 0, **rates, **given})


@asynccontextmanager
async def serve(services: WebServices) -> AsyncGenerator[tuple[WebServer, HttpClient]]:
    """Run a web server while the block runs."""
    async with asyncio.TaskGroup() as tasks:
        server = WebServer(services)
        running = tasks.create_task(server.serve(Supervisor(services.clock)))
        await server.ready()
        try:
            yield server, HttpClient(server.address.host, server.address.port, services.token())
        finally:
            if not running.done():
                await server.stop()


def ids_of(frames: Sequence[Any]) -> list[str]:
    return [frame.id for frame in frames if frame.id]
