"""The composition root: builds the application services from the settings.

Three roles share them: the gateway (`open_gateway`), a terminal that executes its own tasks
(`open_terminal`), and a terminal that only reads and writes records (`open_services`).
"""

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from ksuid import Ksuid

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.files.input_files import InputFiles
from internal.agent.app.files.remote_files import RemoteFiles
from internal.agent.app.files.request_images import RequestImages
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.completion import RunCompleter
from internal.agent.app.runs.context import RunServices
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.engine import ReactEngine
from internal.agent.app.runs.owners import OwnerWatch
from internal.agent.app.runs.preparation import RunPreparer
from internal.agent.app.runs.recovery import Recovery, is_interrupted
from internal.agent.app.runs.resume import RunResumer
from internal.agent.app.runs.tool_execution import ToolExecutor
from internal.agent.app.supervision import Supervisor
from internal.agent.app.task_options import TaskDefaults
from internal.agent.domain.errors import (
    LarkspurError,
    ModelKeyRejected,
    RequestError,
    StoreCorrupt,
    StoreUnavailable,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId, TaskId
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.permissions.rules import parse_allow_rule, parse_rule
from internal.agent.domain.permissions.targets import ToolTargets
from internal.agent.domain.secrets import mask_secrets, register_secret
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.tasks import Profile
from internal.agent.domain.tools import targets_by_tool
from internal.agent.domain.usage import RunLimits
from internal.agent.ports.attachments import Attachments
from internal.agent.ports.documents import DocumentReader
from internal.agent.ports.llm import ModelBook
from internal.agent.ports.runtime import ProcessIdentity
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.audio.reader import TranscribingAudioReader
from internal.channels.cli.application import (
    Check,
    ListedModel,
    SettingsSummary,
    ToolItem,
    TransportWork,
)
from internal.channels.cli.exit_codes import CONFIG, FAILED, USAGE, CliExit
from internal.channels.cli.output import print_error
from internal.channels.cli.transports.memory import MemoryTransport
from internal.channels.web.app import build_app
from internal.channels.web.auth import Logins
from internal.channels.web.services import ComponentHealth, Health, WebServices
from internal.channels.web.static_page import Page
from internal.config.home import HomeError, prepare
from internal.config.inspect import describe
from internal.config.loader import Loaded, load
from internal.config.server import ServerSettings
from internal.config.settings import Settings
from internal.config.types import ConfigError
from internal.dispatch.leases import LeaseKeeper
from internal.dispatch.local import LocalDispatcher
from internal.dispatch.terminal import TerminalDispatcher
from internal.dispatch.terminal_gateway import TerminalGateway, TerminalRunner
from internal.documents.reader import ChildDocumentReader
from internal.llm.model_catalog import make_model_book
from internal.llm.model_factory import build_model
from internal.llm.registry import PRICES_AS_OF, PROVIDERS, ModelInfo, Provider, find_model
from internal.llm.retry import RetryingModel
from internal.observability.clock import SystemClock
from internal.observability.logs import configure_logging
from internal.observability.processes import SystemProcesses
from internal.sandbox.native import NativeSandbox
from internal.sandbox.workspaces import Workspaces
from internal.storage.database_url import open_database
from internal.storage.sqlite.file_check import check_file
from internal.tools.http_client import Fetcher
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.registry import TOOLS, ToolBox
from larkspur.file_storage import check_attachments, make_session_files, open_attachments
from larkspur.version import VERSION

_UNLIMITED = 1_000_000_000
_MAX_SESSION_LOG_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Services:
    """The database and the services that need no model."""

    settings: Settings
    home: Path
    database: Database
    stores: Stores
    broadcaster: EventBroadcaster
    clock: SystemClock
    processes: SystemProcesses
    process: ProcessIdentity
    attachments: Attachments
    workspaces: Workspaces
    protected: ProtectedPaths
    files: SessionFiles
    remote_files: RemoteFiles
    documents: DocumentReader
    audio: TranscribingAudioReader
    model_book: ModelBook
    defaults: TaskDefaults
    recovery: Recovery
    leases: LeaseKeeper
    supervisor: Supervisor


@dataclass(frozen=True, kw_only=True)
class GatewayServices(Services):
    """The services of `larkspur serve`.

    The caller runs the dispatcher and holds the locks of the database.
    """

    gateway: Gateway
    dispatcher: LocalDispatcher
    coordinator: AgentCoordinator
    preload_model: Callable[[], None]
    """Starts importing the model's SDK, which takes a second; the first call waits for it."""


@dataclass(frozen=True, kw_only=True)
class TerminalServices(Services):
    """The services of a terminal that executes its own tasks, next to other terminals.

    `interrupted` are tasks of terminals that were closed while the tasks were running.
    """

    dispatcher: TerminalDispatcher
    coordinator: AgentCoordinator
    interrupted: tuple[TaskId, ...]

    @property
    def notices(self) -> list[str]:
        """Messages to show when the terminal starts."""
        return [
            f"A task was interrupted because its terminal was closed. Continue it with:"
            f" larkspur resume {task_id}"
            for task_id in self.interrupted
        ]

    def gateway(self, *, waits: bool, on_error: Callable[[BaseException], None]) -> TerminalGateway:
        """Return a gateway that executes the tasks it accepts; see `TerminalRunner`."""
        runner = TerminalRunner(
            self.dispatcher, self.coordinator, self.leases, waits=waits, on_error=on_error
        )
        return TerminalGateway(
            self.database,
            self.stores,
            self.broadcaster,
            runner=runner,
            clock=self.clock,
            files=self.files,
        )


@asynccontextmanager
async def open_services(loaded: Loaded, role: str) -> AsyncGenerator[Services]:
    """Open the database and the services that need no model.

    Raises:
        LarkspurError: the database cannot be used.
    """
    settings, clock = loaded.settings, SystemClock()
    stores = Stores(max_session_bytes=settings.attachments.max_session_bytes)
    processes = SystemProcesses()
    process = processes.current(f"{role}-{Ksuid()}")
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings.database.path))
        supervisor = Supervisor(clock)
        broadcaster = EventBroadcaster(database, stores, clock, VERSION)
        await broadcaster.start()
        await stack.enter_async_context(background_task(broadcaster.follow(supervisor)))
        stack.callback(broadcaster.close)
        owner, seconds = str(process), settings.dispatch.lease_seconds
        book = make_model_book(settings.llm)
        attachments = stack.enter_context(open_attachments(settings.attachments, loaded.home))
        workspaces = Workspaces(loaded.home)
        files = make_session_files(
            settings.attachments,
            attachments,
            workspaces,
            database=database,
            stores=stores,
            home=loaded.home,
            clock=clock,
        )
        audio = TranscribingAudioReader(settings.audio.transcription, settings.ui.language)
        stack.push_async_callback(audio.close)
        yield Services(
            settings=settings,
            home=loaded.home,
            database=database,
            stores=stores,
            broadcaster=broadcaster,
            clock=clock,
            processes=processes,
            process=process,
            attachments=attachments,
            workspaces=workspaces,
            protected=protected_paths(loaded, workspaces),
            files=files,
            remote_files=RemoteFiles(files),
            documents=ChildDocumentReader(),
            audio=audio,
            model_book=book,
            defaults=task_defaults(settings, book),
            recovery=Recovery(
                database,
                stores,
                broadcaster=broadcaster,
                clock=clock,
                owners=OwnerWatch(processes, clock, seconds),
            ),
            leases=LeaseKeeper(owner, seconds, database=database, stores=stores, clock=clock),
            supervisor=supervisor,
        )


@asynccontextmanager
async def open_gateway(loaded: Loaded) -> AsyncGenerator[GatewayServices]:
    """Open the services of a gateway.

    Raises:
        LarkspurError: the model has no key, or the database cannot be used.
    """
    async with _open_model(loaded) as model, open_services(loaded, "gateway") as services:
        await services.files.remove_unused()
        concurrency = loaded.settings.dispatch.concurrency
        dispatcher = LocalDispatcher(
            services.database,
            services.stores,
            services.clock,
            leases=services.leases,
            recovery=services.recovery,
            supervisor=services.supervisor,
            concurrency=concurrency,
        )
        yield GatewayServices(
            **_fields(services),
            gateway=make_gateway(services, dispatcher),
            dispatcher=dispatcher,
            coordinator=_coordinator(services, model),
            preload_model=model.preload,
        )


@asynccontextmanager
async def open_terminal(loaded: Loaded) -> AsyncGenerator[TerminalServices]:
    """Open the services of a terminal that executes its own tasks.

    Raises:
        LarkspurError: the model has no key, or the database cannot be used.
    """
    async with (
        _open_model(loaded, preload=True) as model,
        open_services(loaded, "terminal") as services,
    ):
        await services.files.remove_unused()
        dispatcher = make_terminal_dispatcher(services)
        expired = await services.recovery.recover_expired_leases()
        yield TerminalServices(
            **_fields(services),
            dispatcher=dispatcher,
            coordinator=_coordinator(services, model),
            interrupted=tuple(run.task_id for run in expired if is_interrupted(run)),
        )


@asynccontextmanager
async def _open_model(loaded: Loaded, *, preload: bool = False) -> AsyncGenerator[RetryingModel]:
    model = build_model(loaded.settings.llm)
    model.check_key()
    try:
        if preload:
            model.preload()
        yield model
    finally:
        await model.close()


def _fields(services: Services) -> dict[str, Any]:
    return {field.name: getattr(services, field.name) for field in fields(services)}


def make_gateway(services: Services, dispatcher: LocalDispatcher | TerminalDispatcher) -> Gateway:
    """Return a gateway that leaves the execution of tasks to the dispatcher."""
    return Gateway(
        services.database,
        services.stores,
        broadcaster=services.broadcaster,
        dispatcher=dispatcher,
        clock=services.clock,
        files=services.files,
    )


def make_terminal_dispatcher(services: Services) -> TerminalDispatcher:
    """Return a dispatcher for the runs that a terminal owns."""
    return TerminalDispatcher(
        services.database,
        services.stores,
        services.clock,
        leases=services.leases,
        recovery=services.recovery,
        supervisor=services.supervisor,
    )


def _coordinator(services: Services, model: RetryingModel) -> AgentCoordinator:
    """Return the coordinator and its stages."""
    agent, fetch = services.settings.agent, services.settings.tools.web_fetch
    database, stores, clock = services.database, services.stores, services.clock
    attachments, book = services.attachments, services.model_book
    documents, folders = services.documents, services.workspaces.file_folders
    input_files = InputFiles(
        services.files,
        services.remote_files,
        documents=documents,
        audio=services.audio,
        folders=folders,
    )
    tools = ToolBox(
        sandbox=NativeSandbox(services.workspaces.homes),
        documents=documents,
        fetcher=Fetcher(
            max_bytes=fetch.max_bytes, allow_private_networks=fetch.allow_private_networks
        ),
        protected=services.protected,
        folders=folders,
    )
    artifacts = ArtifactRecorder(
        database,
        stores,
        services.files,
        clock=clock,
        folders=folders,
    )
    executor = ToolExecutor(
        tools,
        services.files,
        artifacts,
        clock=clock,
        concurrency=agent.tool_concurrency,
        timeout_seconds=agent.tool_timeout_seconds,
    )
    run_services = RunServices(database, stores, services.broadcaster, clock, services.workspaces)
    return AgentCoordinator(
        run_services,
        preparer=RunPreparer(run_services, tools, input_files, book=book),
        engine=ReactEngine(
            run_services,
            model,
            book,
            tools=executor,
            input_files=input_files,
            images=RequestImages(attachments),
        ),
        resumer=RunResumer(run_services),
        completer=RunCompleter(run_services, artifacts),
        recovery=services.recovery,
    )


def protected_paths(loaded: Loaded, workspaces: Workspaces) -> ProtectedPaths:
    """Return the paths that no tool opens: all that Larkspur itself reads and writes."""
    database = loaded.settings.database.path
    suffixes = ("", "-wal", "-shm", "-journal", "-gateway")  # "-gateway": dispatch/lock.py
    files = [database.with_name(f"{database.name}{suffix}") for suffix in suffixes]
    if loaded.file is not None:
        files.append(loaded.file.absolute())
    session_folders = (
        workspaces.folders.root,
        workspaces.homes.root,
        workspaces.files.root,
    )
    return ProtectedPaths(loaded.home, files=files, session_folders=session_folders)


def task_defaults(settings: Settings, book: ModelBook) -> TaskDefaults:
    """Return the options of a task that sets none."""
    agent, targets = settings.agent, _targets()
    policy = Policy(allow=settings.tools.allow, deny=settings.tools.deny)
    policy.check(targets)
    return TaskDefaults(
        profiles={"default": Profile()},
        policy=policy,
        targets=targets,
        limits=RunLimits(
            max_iterations=agent.max_iterations,
            timeout_seconds=agent.run_timeout_seconds,
            max_consecutive_tool_failures=agent.max_consecutive_tool_failures,
            max_cost=agent.max_cost or None,
            max_tokens=agent.max_tokens or None,
            max_daily_cost=settings.access.max_daily_cost or None,
            max_daily_tokens=settings.access.max_daily_tokens or None,
        ),
        gates=agent.gates,
        provider=settings.llm.provider,
        model=settings.llm.model,
        prices=book.prices,
        profile=agent.profile,
        workspace=str(agent.workspace or ""),
        plan_review=agent.plan_review,
        question_ttl_minutes=agent.question_ttl_minutes,
    )


def _memory_transport(
    services: Services, gateway: Gateway, adopt: Callable[[RunId], Coroutine[Any, Any, bool]]
) -> MemoryTransport:
    """Return a transport to the web application of this process, which has no socket."""
    token, since = secrets.token_hex(32), rfc3339(services.clock.now())
    register_secret(token)
    settings = ServerSettings(
        rate_limit_per_minute=_UNLIMITED,
        rate_limit_burst=_UNLIMITED,
        streams_per_user=_UNLIMITED,
    )

    async def health() -> Health:
        return Health(
            status="ok",
            database=ComponentHealth(True, since),
            dispatcher=ComponentHealth(True, since),
        )

    web = WebServices(
        gateway=gateway,
        broadcaster=services.broadcaster,
        defaults=services.defaults,
        token=lambda: token,
        settings=settings,
        health=health,
        version=VERSION,
        clock=services.clock,
        documents=services.documents,
        logins=Logins(),
        page=Page(b"", {}),
    )
    return MemoryTransport(
        build_app(web),
        host=f"{settings.host}:{settings.port}",
        token=token,
        adopt=lambda run_id: adopt(RunId(run_id)),
    )


def describe_error(error: Exception) -> CliExit | None:
    """Return the exit code and message of an expected error, None for an unexpected one."""
    match error:
        case ConfigError() | HomeError() | ModelKeyRejected() | StoreCorrupt():
            return CliExit(CONFIG, str(error))
        case RequestError():
            return CliExit(USAGE, str(error))
        case LarkspurError():
            return CliExit(FAILED, str(error))
        case OSError():
            return CliExit(FAILED, describe_system_error(error))
        case _:
            return None


class Application:
    """The process of a command; implements `internal.channels.cli.application.Application`.

    `load_settings` has the parameters `config` and `flags` of `internal.config.loader.load`.
    """

    prices_as_of = PRICES_AS_OF

    def __init__(self, load_settings: Callable[..., Loaded] = load) -> None:
        self._load = load_settings
        self._open_database: Path | None = None

    def settings(self, config: str | None) -> SettingsSummary:
        """Read the settings.

        Raises:
            ConfigError, HomeError: they cannot be used.
        """
        loaded = self._load(config=config)
        llm, key_error = loaded.settings.llm, ""
        try:
            if llm.provider != "offline":
                llm.require_api_key()
        except ConfigError as error:
            key_error = str(error)
        audio = loaded.settings.audio.transcription
        return SettingsSummary(
            home=loaded.home,
            file=loaded.file,
            configured=len(loaded.origins),
            language=loaded.settings.ui.language,
            provider=llm.provider,
            model=llm.model,
            key_error=key_error,
            database=loaded.settings.database.path,
            rows=[(row.key, row.value, row.origin) for row in describe(loaded)],
            transcription=f"{audio.model} at {audio.base_url}" if audio.model else "",
        )

    def run_with_agent(self, config: str | None, work: TransportWork) -> int:
        """Run `work` on a transport whose tasks are executed in this process; return its result.

        Raises:
            LarkspurError, ConfigError, HomeError: the services cannot be opened, or the work fails.
        """
        loaded = self._prepare(config)
        if loaded.settings.llm.provider == "offline" and "llm.provider" not in loaded.origins:
            print_error(
                "No API key is set: using the offline demo model."
                " Set ANTHROPIC_API_KEY to use a real one."
            )
        return asyncio.run(self._work_with_agent(loaded, work))

    def run_with_records(self, config: str | None, work: TransportWork) -> int:
        """Run `work` on a transport that executes no tasks; return its result. Needs no model key.

        Raises:
            LarkspurError, ConfigError, HomeError: the services cannot be opened, or the work fails.
        """
        return asyncio.run(self._work_with_records(self._prepare(config), work))

    @asynccontextmanager
    async def open_session(
        self, config: str | None, notify: Callable[[str], None]
    ) -> AsyncGenerator[tuple[MemoryTransport, str]]:
        """Open the services of a session that executes its own tasks and logs to a file.

        `notify` receives notices, and the errors of runs that could not be stored.

        Raises:
            LarkspurError, ConfigError, HomeError: the services cannot be opened.
        """
        loaded = await asyncio.to_thread(self._load, config=config)
        prepare(loaded.home)
        _log_to_file(loaded)

        def on_error(error: BaseException) -> None:
            notify(str(error) if isinstance(error, LarkspurError) else mask_secrets(repr(error)))

        async with (
            open_terminal(loaded) as services,
            services.gateway(waits=True, on_error=on_error) as gateway,
        ):
            for notice in services.notices:
                notify(notice)
            self._open_database = loaded.settings.database.path
            yield _memory_transport(services, gateway, gateway.adopt), loaded.settings.ui.language

    def check_database(self, path: Path) -> Check:
        """Check the database file without changing it.

        The file that this process has open is not read: closing it again would release the locks
        of SQLite (https://sqlite.org/howtocorrupt.html, section 2.2).
        """
        if path == self._open_database:
            return Check("database", "ok", f"{path} is open in this session.")
        try:
            version = check_file(path).version
        except (StoreCorrupt, StoreUnavailable) as error:
            return Check("database", "fail", str(error))
        return Check("database", "ok", f"{path} can be opened (schema version {version}).")

    def check_attachments(self, config: str | None) -> Check:
        """Check the store of files.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        loaded = self._load(config=config)
        return check_attachments(loaded.settings.attachments, loaded.home)

    def check_lark(self, config: str | None) -> list[Check]:
        """Check the app of the Lark channel at Lark.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        from internal.channels.lark.app_check import check_app  # noqa: PLC0415 - only for this

        settings = self._load(config=config).settings.channels.lark
        found = asyncio.run(check_app(settings, SystemClock()))
        return [Check("lark", *finding) for finding in found]

    def check_rule(self, rule: str, *, allows: bool) -> None:
        """Check that a permission rule is valid as an allow or a deny rule.

        Raises:
            RuleError: it is invalid.
        """
        if allows:
            parse_allow_rule(rule, _targets())
        else:
            parse_rule(rule, _targets())

    def models(self, config: str | None) -> list[ListedModel]:
        """Return the known models of every provider, the one in use first."""
        return list(_listed_models(self._load(config=config)))

    def tools(self) -> list[ToolItem]:
        """Return the tools of the agent."""
        return [ToolItem(one.spec.name, one.spec.risk, one.spec.description) for one in TOOLS]

    def serve(
        self, config: str | None, flags: Mapping[str, Any], *, with_simulator: bool = False
    ) -> int:
        """Serve the gateway until a signal, with a simulator of Lark if no app is configured.

        Raises:
            LarkspurError, ConfigError, HomeError, OSError: the gateway cannot start.
        """
        from larkspur.serve import serve, serve_with_simulator  # noqa: PLC0415 - only the gateway needs uvloop and uvicorn

        if with_simulator:
            return serve_with_simulator(partial(self._load, config=config), flags)
        return serve(self._load(config=config, flags=flags))

    def simulate_lark(self, port: int, app_id: str | None, app_secret: str | None) -> int:
        """Serve the simulator of Lark until a signal.

        Raises:
            CliExit: an argument or the port cannot be used.
        """
        from larkspur.serve import simulate_lark  # noqa: PLC0415 - as above

        return simulate_lark(port, app_id, app_secret)

    async def _work_with_agent(self, loaded: Loaded, work: TransportWork) -> int:
        failed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def on_error(error: BaseException) -> None:
            if not failed.done():
                failed.set_exception(error)

        async with (
            open_terminal(loaded) as services,
            services.gateway(waits=False, on_error=on_error) as gateway,
        ):
            for notice in services.notices:
                print_error(notice)
            transport = _memory_transport(services, gateway, gateway.adopt)
            working = asyncio.create_task(work(transport))
            try:
                await asyncio.wait({working, failed}, return_when=asyncio.FIRST_COMPLETED)
                return working.result() if working.done() else failed.result()
            finally:
                failed.cancel()
                working.cancel()
                await asyncio.wait({working})

    async def _work_with_records(self, loaded: Loaded, work: TransportWork) -> int:
        async def adopt(_run_id: RunId) -> bool:
            return False

        async with open_services(loaded, "terminal") as services:
            dispatcher = make_terminal_dispatcher(services)
            gateway = make_gateway(services, dispatcher)
            return await work(_memory_transport(services, gateway, adopt))

    def _prepare(self, config: str | None) -> Loaded:
        """Read the settings, prepare the home folder and log errors to standard error."""
        loaded = self._load(config=config)
        prepare(loaded.home)
        configure_logging()
        _log_errors_only()
        return loaded


def _targets() -> ToolTargets:
    return targets_by_tool(one.spec for one in TOOLS)


def _listed_models(loaded: Loaded) -> Iterator[ListedModel]:
    llm, prices = loaded.settings.llm, make_model_book(loaded.settings.llm).prices
    for provider in PROVIDERS:
        models = [info for info in provider.models if not info.name.endswith("-")]
        used = llm.model if provider.name == llm.provider else ""
        first = used or provider.default_model
        if first not in {info.name for info in models}:
            models.insert(0, (find_model(first) or ModelInfo(first))._replace(name=first))
        for info in sorted(models, key=lambda info: info.name != first):
            price = prices.price(info.name)
            yield ListedModel(
                provider=provider.name,
                model=info.name,
                in_use=info.name == used,
                key=_key_state(provider, loaded),
                context_window=info.context_window,
                max_output_tokens=info.max_output_tokens,
                price=None if price is None else msgspec.to_builtins(price),
            )


def _key_state(provider: Provider, loaded: Loaded) -> Literal["set", "missing", "not needed"]:
    llm = loaded.settings.llm
    if provider.key_variable is None:
        return "not needed"
    own = provider.name == llm.provider and llm.api_key is not None
    return "set" if own or provider.name in {*loaded.keyed, *llm.keys} else "missing"


def _log_to_file(loaded: Loaded) -> None:
    """Log errors to `session.log`: the screen belongs to the session."""
    path = loaded.home / "session.log"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    if path.exists() and path.stat().st_size > _MAX_SESSION_LOG_BYTES:
        flags |= os.O_TRUNC
    stream = os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", buffering=1)
    configure_logging(stream)
    _log_errors_only()


def _log_errors_only() -> None:
    for name in ("internal", "larkspur"):
        logging.getLogger(name).setLevel(logging.ERROR)
