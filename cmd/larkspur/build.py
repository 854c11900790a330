"""The composition root: settings in, a running house out, closed by one exit stack."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from ksuid import Ksuid

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.completion import RunCompleter
from internal.agent.app.runs.context import RunServices
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.engine import ReactEngine
from internal.agent.app.runs.preparation import RunPreparer
from internal.agent.app.runs.recovery import Recovery, is_interrupted
from internal.agent.app.runs.resume import RunResumer
from internal.agent.app.runs.tool_execution import ToolExecutor
from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.ports.llm import ModelBook
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.channels.chat.channel import ChatApp, ChatChannel
from internal.channels.registry import create_channels
from internal.config.loader import Loaded
from internal.config.settings import Settings
from internal.dispatch.leases import LeaseKeeper
from internal.dispatch.local import LocalDispatcher
from internal.dispatch.terminal import TerminalDispatcher
from internal.llm.model_catalog import make_model_book
from internal.llm.model_factory import build_model
from internal.llm.retry import RetryingModel
from internal.observability.clock import SystemClock
from internal.sandbox.native import NativeSandbox
from internal.storage.database_url import open_database
from internal.tools.http_client import Fetcher
from internal.tools.registry import ToolBox
from larkspur.mapping import briefing_defaults
from larkspur.version import VERSION
from larkspur.workspaces import Workspaces


@dataclass(frozen=True)
class _Frame:
    """What both houses stand on."""

    settings: Settings
    services: RunServices
    attachments: LocalAttachments
    model: RetryingModel
    book: ModelBook
    recovery: Recovery
    leases: LeaseKeeper
    defaults: TaskDefaults

    def coordinator(self) -> AgentCoordinator:
        """Return the coordinator with all that its stages need."""
        services, agent = self.services, self.settings.agent
        fetch = self.settings.tools.web_fetch
        tools = ToolBox(
            sandbox=NativeSandbox(),
            fetcher=Fetcher(
                max_bytes=fetch.max_bytes, allow_private_networks=fetch.allow_private_networks
            ),
        )
        executor = ToolExecutor(
            tools,
            self.attachments,
            services.clock,
            concurrency=agent.tool_concurrency,
            timeout_seconds=agent.tool_timeout_seconds,
        )
        return AgentCoordinator(
            services,
            preparer=RunPreparer(services, tools, self.attachments, book=self.book),
            engine=ReactEngine(services, self.model, self.book, tools=executor),
            resumer=RunResumer(services),
            completer=RunCompleter(services),
        )

    def gateway(self, dispatcher: LocalDispatcher | TerminalDispatcher) -> Gateway:
        """Return the gateway in front of a dispatcher."""
        services = self.services
        return Gateway(
            services.database,
            services.stores,
            broadcaster=services.broadcaster,
            dispatcher=dispatcher,
            clock=services.clock,
        )


@dataclass(frozen=True)
class GatewayHouse:
    """What `serve` runs."""

    gateway: Gateway
    broadcaster: EventBroadcaster
    database: Database
    stores: Stores
    attachments: LocalAttachments
    defaults: TaskDefaults
    dispatcher: LocalDispatcher
    coordinator: AgentCoordinator
    leases: LeaseKeeper
    clock: SystemClock


@dataclass(frozen=True)
class TerminalHouse:
    """What a terminal runs a task in, beside other terminals.

    `interrupted` are the tasks of terminals that were closed before they were done.
    """

    gateway: Gateway
    broadcaster: EventBroadcaster
    attachments: LocalAttachments
    defaults: TaskDefaults
    dispatcher: TerminalDispatcher
    coordinator: AgentCoordinator
    leases: LeaseKeeper
    interrupted: tuple[TaskId, ...] = ()

    @property
    def news(self) -> list[str]:
        """What a person should know who opens a terminal now."""
        return [
            f"A terminal was closed before its task was done. To go on: larkspur resume {task_id}"
            for task_id in self.interrupted
        ]

    @property
    def owner(self) -> str:
        """The name under which this process owns its run."""
        return self.leases.owner

    def lease(self) -> str:
        """Return until when a run submitted now is ours, RFC 3339."""
        return self.leases.expiry()

    async def run_own(self, run_id: RunId, *, waits: bool = True) -> None:
        """Run our queued run to its end, through its pauses; see `TerminalDispatcher.execute`."""
        await self.dispatcher.execute(run_id, self.coordinator, wait_for_answers=waits)

    async def adopt(self, run_id: RunId) -> bool:
        """Make a queued run ours that belongs to nobody; False when somebody else takes it."""
        return await self.dispatcher.adopt(run_id)

    async def release(self, run_id: RunId) -> None:
        """Leave our waiting run to whoever goes on with it."""
        await self.dispatcher.release(run_id)


@asynccontextmanager
async def gateway_house(loaded: Loaded) -> AsyncGenerator[GatewayHouse]:
    """Build the house of a gateway. The caller runs its dispatcher and holds the folder's lock.

    Raises:
        LarkspurError: the model has no key, or the database cannot be used.
    """
    async with _frame(loaded, "gateway") as frame:
        services = frame.services
        dispatcher = LocalDispatcher(
            services.database,
            services.stores,
            services.clock,
            leases=frame.leases,
            recovery=frame.recovery,
            concurrency=loaded.settings.dispatch.concurrency,
        )
        yield GatewayHouse(
            gateway=frame.gateway(dispatcher),
            broadcaster=services.broadcaster,
            database=services.database,
            stores=services.stores,
            attachments=frame.attachments,
            defaults=frame.defaults,
            dispatcher=dispatcher,
            coordinator=frame.coordinator(),
            leases=frame.leases,
            clock=SystemClock(),
        )


def chat_channels(loaded: Loaded, house: GatewayHouse) -> tuple[ChatChannel, ...]:
    """Return the enabled chat channels, not connected yet."""
    language = loaded.settings.ui.language
    app = ChatApp(house.gateway, house.defaults, house.clock, language)
    return create_channels(app, loaded.settings.channels)


@asynccontextmanager
async def terminal_house(loaded: Loaded) -> AsyncGenerator[TerminalHouse]:
    """Build the house of a terminal that runs its own task.

    Raises:
        LarkspurError: the model has no key, or the database cannot be used.
    """
    async with _frame(loaded, "terminal") as frame:
        services = frame.services
        dispatcher = TerminalDispatcher(
            services.database,
            services.stores,
            services.clock,
            leases=frame.leases,
            recovery=frame.recovery,
        )
        lost = await frame.recovery.recover_expired_leases()
        yield TerminalHouse(
            gateway=frame.gateway(dispatcher),
            broadcaster=services.broadcaster,
            attachments=frame.attachments,
            defaults=frame.defaults,
            dispatcher=dispatcher,
            coordinator=frame.coordinator(),
            leases=frame.leases,
            interrupted=tuple(run.task_id for run in lost if is_interrupted(run)),
        )


@asynccontextmanager
async def _frame(loaded: Loaded, role: str) -> AsyncGenerator[_Frame]:
    settings, stores, clock = loaded.settings, Stores(), SystemClock()
    async with AsyncExitStack() as stack:
        model = build_model(settings.llm)
        model.check_key()
        stack.push_async_callback(model.close)
        model.preload()
        database = await stack.enter_async_context(open_database(settings.database.path))
        broadcaster = EventBroadcaster(database, stores, clock, VERSION)
        await broadcaster.start()
        await stack.enter_async_context(background_task(broadcaster.follow()))
        stack.callback(broadcaster.close)
        book = make_model_book(settings.llm)
        owner = f"{role}-{Ksuid()}"
        yield _Frame(
            settings=settings,
            services=RunServices(
                database, stores, broadcaster, clock, Workspaces(loaded.home / "workspaces")
            ),
            attachments=LocalAttachments(loaded.home / "attachments"),
            model=model,
            book=book,
            recovery=Recovery(database, stores, broadcaster=broadcaster, clock=clock),
            leases=LeaseKeeper(
                owner,
                settings.dispatch.lease_seconds,
                database=database,
                stores=stores,
                clock=clock,
            ),
            defaults=briefing_defaults(settings, book),
        )
