"""The composition root: builds the application services from the settings.

Three roles share them: the gateway (`open_gateway`), a terminal that executes its own tasks
(`open_terminal`), and a terminal that only reads and writes records (`open_services`).
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from ksuid import Ksuid

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.files.changed_files import ChangedFiles
from internal.agent.app.files.remote_files import RemoteFiles
from internal.agent.app.files.session_files import SessionFiles
from internal.agent.app.files.worktree_changes import WorktreeApplier
from internal.agent.app.gateway import Gateway
from internal.agent.app.hosts.host import ONLY_HOST
from internal.agent.app.hosts.shared_storage import SharedStorage
from internal.agent.app.hosts.workspace_keeper import WorkspaceKeeper
from internal.agent.app.mentions import MentionTool
from internal.agent.app.plain_completions import PlainCompletions
from internal.agent.app.processes.leadership import Leaderships
from internal.agent.app.processes.process_list import ProcessList
from internal.agent.app.runs.call_repairs import CallRepairCounts
from internal.agent.app.runs.completion import RunCompleter
from internal.agent.app.runs.context import RunServices
from internal.agent.app.runs.coordinator import AgentCoordinator
from internal.agent.app.runs.engine import ReactEngine
from internal.agent.app.runs.owners import OwnerWatch
from internal.agent.app.runs.preparation import RunPreparer
from internal.agent.app.runs.question_recipients import QuestionRecipients
from internal.agent.app.runs.recovery import Recovery, is_interrupted
from internal.agent.app.runs.resume import RunResumer
from internal.agent.app.runs.tool_execution import ExecutionLimits, ToolExecutor
from internal.agent.app.subtasks.tool_source import CreatorFolders, DelegationTools, SubtaskChoices
from internal.agent.app.supervision import Supervisor
from internal.agent.app.task_options import TaskDefaults, find_profile
from internal.agent.app.tool_sources import CombinedTools
from internal.agent.capabilities.titles import SessionTitler
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import TaskId
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.network import (
    REGISTRIES,
    network_access,
    rules_of_network,
)
from internal.agent.domain.permissions.rules import parse_rule, split_rule
from internal.agent.domain.permissions.targets import NETWORK
from internal.agent.domain.tasks import Run
from internal.agent.ports.attachments import Attachments
from internal.agent.ports.documents import DocumentReader
from internal.agent.ports.llm import ModelBook
from internal.agent.ports.reviews import Reviews
from internal.agent.ports.runtime import ProcessIdentity
from internal.agent.ports.sandbox import Sandbox
from internal.agent.store.database import Database
from internal.agent.store.history import MessageCache
from internal.agent.store.runs import Role
from internal.agent.store.stores import Stores
from internal.audio.reader import TranscribingAudioReader
from internal.config.loader import Loaded
from internal.config.time_zone import chosen_time_zone
from internal.dispatch.dispatcher import RunDispatcher
from internal.dispatch.leases import LeaseKeeper
from internal.dispatch.registry import ProcessRegistry
from internal.dispatch.terminal import TerminalDispatcher
from internal.dispatch.terminal_gateway import TerminalGateway, TerminalRunner
from internal.documents.reader import ChildDocumentReader
from internal.hooks.runner import HookRunner
from internal.hooks.signed_post import SignedPoster
from internal.hooks.webhooks import WebhookSender
from internal.llm.lessons.book import LessonBook
from internal.llm.model_catalog import make_model_book
from internal.llm.model_factory import build_model
from internal.llm.retry import RetryingModel, Sleep
from internal.mcp.results import ResultReader
from internal.mcp.server_reviews import ServerReviews
from internal.mcp.servers import McpServers
from internal.mcp.tool_source import McpTools, ServerReviewTool
from internal.observability.clock import SystemClock
from internal.observability.processes import SystemProcesses
from internal.sandbox.disk_quota import QuotaSandbox
from internal.sandbox.native import NativeSandbox
from internal.sandbox.packages import (
    PACKAGES_SESSION,
    PackageEnvironment,
    SandboxOpener,
    install_packages,
)
from internal.sandbox.selection import ContainerSettings, open_sandbox
from internal.sandbox.workspace_archives import FolderArchives
from internal.sandbox.workspaces import SessionFolders, Workspaces
from internal.settings.settings import Settings
from internal.skills.library import SkillLibrary
from internal.skills.tool_source import ReviewedSkills, SkillTools
from internal.storage.database_url import open_database
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.http_client import Fetcher
from internal.tools.instruction_files import WorkspaceInstructionFiles
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.registry import ToolBox
from internal.tools.tool import WebClients
from internal.workspace_changes.change_log import WorkspaceChangeLog
from larkspur.capabilities import make_capabilities
from larkspur.extensions import (
    denied_hosts,
    open_mcp_servers,
    open_skill_reviews,
    open_skills,
    skill_folders,
)
from larkspur.file_storage import (
    NO_HOST,
    changes_folder,
    find_host,
    has_local_files,
    make_changed_files,
    make_session_files,
    make_worktree_applier,
    open_attachments,
    open_trust,
    open_workspaces,
    packages_folder,
    private_places,
    protected_paths,
    spans_hosts,
    working_host,
)
from larkspur.plain_model import open_plain_completions
from larkspur.prompts import make_prompt_builder
from larkspur.task_defaults import make_web_search, open_profiles, task_defaults
from larkspur.version import VERSION

logger = logging.getLogger(__name__)

OUTPUTS_FOLDER = "call-output"
"""The folder of the output of running calls in the home folder."""


class Services(msgspec.Struct, frozen=True, kw_only=True):
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
    commands: BackgroundCommandPool
    protected: ProtectedPaths
    changes: WorkspaceChangeLog
    worktree_applier: WorktreeApplier
    changed_files: ChangedFiles
    instruction_files: WorkspaceInstructionFiles
    skills: SkillLibrary
    mcp_servers: McpServers
    reviews: Reviews
    files: SessionFiles
    remote_files: RemoteFiles
    question_recipients: QuestionRecipients
    mentions: MentionTool
    audio: TranscribingAudioReader
    model_book: ModelBook
    defaults: TaskDefaults
    recovery: Recovery
    leases: LeaseKeeper
    leaderships: Leaderships
    process_list: ProcessList
    keeper: WorkspaceKeeper
    supervisor: Supervisor
    hooks: HookRunner
    poster: SignedPoster
    repairs: CallRepairCounts


class GatewayServices(Services, frozen=True, kw_only=True):
    """The services of `larkspur serve` and `larkspur worker`.

    The caller runs the dispatcher and enters the process into the registry.
    """

    gateway: Gateway
    dispatcher: RunDispatcher
    coordinator: AgentCoordinator
    sandbox: Sandbox
    documents: DocumentReader
    registry: ProcessRegistry
    webhooks: WebhookSender
    plain: PlainCompletions
    preload: Callable[[], None]
    """Starts reading in the background what the first run needs."""


class TerminalServices(Services, frozen=True, kw_only=True):
    """The services of a terminal that executes its own tasks, next to other terminals.

    `interrupted` are tasks of terminals that were closed while the tasks were running.
    """

    dispatcher: TerminalDispatcher
    coordinator: AgentCoordinator
    sandbox: Sandbox
    documents: DocumentReader
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
        gateway = TerminalGateway(
            self.database,
            self.stores,
            self.broadcaster,
            runner=runner,
            clock=self.clock,
            files=self.files,
            commands=self.commands,
            reviews=self.reviews,
        )
        gateway.hooks = self.hooks
        gateway.processes = self.process_list
        gateway.worktrees = self.worktree_applier
        gateway.changed_files = self.changed_files
        return gateway


@asynccontextmanager
async def open_services(
    loaded: Loaded, role: str, *, executes: bool = False
) -> AsyncGenerator[Services]:
    """Open the database and the services that need no model. `executes`: it will execute runs.

    Raises:
        LarkspurError: the database cannot be used.
    """
    settings, clock = loaded.settings, SystemClock()
    stores = Stores(
        max_session_bytes=settings.attachments.max_session_bytes,
        outputs=loaded.home / OUTPUTS_FOLDER,
    )
    processes = SystemProcesses()
    process = processes.current(f"{role}-{Ksuid()}")
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings.database.address))
        supervisor = Supervisor(clock)
        broadcaster = EventBroadcaster(database, stores, clock, VERSION)
        await broadcaster.start()
        await stack.enter_async_context(background_task(broadcaster.follow(supervisor)))
        stack.callback(broadcaster.close)
        owner, seconds = str(process), settings.dispatch.lease_seconds
        book, skills = make_model_book(settings.llm), open_skills(loaded)
        mcp_servers = open_mcp_servers(loaded)
        attachments = stack.enter_context(open_attachments(settings.attachments, loaded.home))
        workspaces = open_workspaces(loaded)
        host = ONLY_HOST
        if executes:
            host = await find_host(loaded, database, stores, rfc3339(clock.now()))
        files = make_session_files(
            settings.attachments,
            attachments,
            workspaces,
            database=database,
            stores=stores,
            home=loaded.home,
            clock=clock,
        )
        files.unused.host = host.name or (NO_HOST if spans_hosts(settings) else "")
        protected, trust = protected_paths(loaded, workspaces), open_trust(loaded)
        changes = WorkspaceChangeLog(changes_folder(loaded), protected)
        audio = TranscribingAudioReader(settings.audio.transcription, settings.ui.language)
        stack.push_async_callback(audio.close)
        commands = BackgroundCommandPool(clock, trust, loaded.home / "commands")
        leases = LeaseKeeper(owner, seconds, database=database, stores=stores, clock=clock)
        leases.host = host
        poster = SignedPoster(clock)
        stack.push_async_callback(poster.close)
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
            commands=commands,
            protected=protected,
            changes=changes,
            worktree_applier=make_worktree_applier(
                workspaces, files, database=database, stores=stores, clock=clock
            ),
            changed_files=make_changed_files(
                workspaces, changes, protected, database=database, stores=stores, clock=clock
            ),
            skills=skills,
            mcp_servers=mcp_servers,
            reviews=Reviews(
                open_skill_reviews(loaded, skills),
                ServerReviews(mcp_servers),
            ),
            instruction_files=WorkspaceInstructionFiles(loaded.home, protected, trust),
            files=files,
            remote_files=RemoteFiles(files),
            question_recipients=QuestionRecipients(),
            mentions=MentionTool(database, stores),
            audio=audio,
            model_book=book,
            defaults=task_defaults(settings, book, open_profiles(loaded.home, book)),
            recovery=Recovery(
                database,
                stores,
                broadcaster=broadcaster,
                clock=clock,
                owners=OwnerWatch(
                    processes, clock, seconds, is_shared=settings.database.path is None
                ),
            ),
            leases=leases,
            leaderships=Leaderships(
                owner, seconds, database=database, stores=stores, clock=clock, processes=processes
            ),
            process_list=ProcessList(
                database, stores, clock, processes=processes, lease_seconds=seconds
            ),
            keeper=WorkspaceKeeper(
                host,
                database,
                stores,
                clock=clock,
                archives=FolderArchives(workspaces.root),
                attachments=attachments,
                commands=commands,
            ),
            supervisor=supervisor,
            hooks=HookRunner(settings.hooks, loaded.home, poster),
            poster=poster,
            repairs=CallRepairCounts(),
        )


@asynccontextmanager
async def open_gateway(
    loaded: Loaded,
    *,
    role: Role = "gateway",
    executes: bool = True,
    sleep: Sleep = asyncio.sleep,
) -> AsyncGenerator[GatewayServices]:
    """Open the services of a gateway or a worker.

    Args:
        loaded: the settings.
        role: of the process.
        executes: whether it executes runs.
        sleep: waits between two attempts to ask the model.

    Raises:
        LarkspurError: the model has no key, or the database cannot be used.
    """
    lessons = LessonBook()
    async with (
        _open_model(loaded, lessons, sleep=sleep) as model,
        open_services(loaded, role, executes=executes) as services,
        lessons.stored_in(services.database, services.stores),
        _working_host(loaded, services) as storage,
        open_sandbox_of(loaded, services) as sandbox,
        _open_titler(loaded, services, lessons) as titler,
        open_plain_completions(
            loaded.settings,
            services.database,
            services.stores,
            clock=services.clock,
            book=services.model_book,
            lessons=lessons,
        ) as plain,
        AsyncExitStack() as stack,
    ):
        documents = ChildDocumentReader(sandbox)
        await services.files.remove_unused()
        concurrency = loaded.settings.dispatch.concurrency if executes else 0
        dispatcher = RunDispatcher(
            services.database,
            services.stores,
            services.clock,
            leases=services.leases,
            recovery=services.recovery,
            supervisor=services.supervisor,
            concurrency=concurrency,
        )
        stack.enter_context(services.broadcaster.listen(dispatcher.on_event))
        dispatcher.may_start = lambda: not storage.problem
        yield GatewayServices(
            **_fields(services, sandbox),
            gateway=make_gateway(services, dispatcher),
            dispatcher=dispatcher,
            coordinator=_coordinator(
                services, model, lessons, sandbox=sandbox, documents=documents, titler=titler
            ),
            sandbox=sandbox,
            documents=documents,
            registry=ProcessRegistry(
                services.database,
                services.stores,
                services.clock,
                leases=services.leases,
                processes=services.processes,
                version=VERSION,
            ),
            webhooks=WebhookSender(
                loaded.settings.webhooks,
                services.database,
                services.stores,
                broadcaster=services.broadcaster,
                poster=services.poster,
                clock=services.clock,
                leadership=services.leaderships.of_webhooks(),
            ),
            plain=plain,
            preload=partial(_preload, services, model),
        )


def _preload(services: Services, model: RetryingModel) -> None:
    """Start to preload the needs of the first run in the background."""

    def read_files() -> None:
        len(services.defaults.profiles)
        services.skills.skills()

    model.preload()
    threading.Thread(target=read_files).start()


@asynccontextmanager
async def open_terminal(loaded: Loaded) -> AsyncGenerator[TerminalServices]:
    """Open the services of a terminal that executes its own tasks.

    Raises:
        LarkspurError: the model has no key, or the database cannot be used.
    """
    lessons = LessonBook()
    async with (
        _open_model(loaded, lessons, preload=True) as model,
        open_services(loaded, "terminal", executes=True) as services,
        lessons.stored_in(services.database, services.stores),
        _working_host(loaded, services, is_terminal=True),
        open_sandbox_of(loaded, services) as sandbox,
    ):
        documents = ChildDocumentReader(sandbox)
        await services.files.remove_unused()
        dispatcher = make_terminal_dispatcher(services)
        expired = await services.recovery.recover_expired_leases()
        yield TerminalServices(
            **_fields(services, sandbox),
            dispatcher=dispatcher,
            coordinator=_coordinator(
                services, model, lessons, sandbox=sandbox, documents=documents
            ),
            sandbox=sandbox,
            documents=documents,
            interrupted=_outermost(run for run in expired if is_interrupted(run)),
        )


def _working_host(
    loaded: Loaded, services: Services, *, is_terminal: bool = False
) -> AbstractAsyncContextManager[SharedStorage]:
    return working_host(
        loaded,
        services.keeper,
        services.attachments,
        database=services.database,
        stores=services.stores,
        broadcaster=services.broadcaster,
        supervisor=services.supervisor,
        is_terminal=is_terminal,
    )


def _outermost(runs: Iterable[Run]) -> tuple[TaskId, ...]:
    """Return the outermost tasks of these runs, which people started."""
    ids = (run.task_id if run.subtask is None else run.subtask.root_task_id for run in runs)
    return tuple(dict.fromkeys(ids))


@asynccontextmanager
async def _open_model(
    loaded: Loaded, lessons: LessonBook, *, preload: bool = False, sleep: Sleep = asyncio.sleep
) -> AsyncGenerator[RetryingModel]:
    model = build_model(loaded.settings.llm, sleep, lessons)
    model.check_key()
    try:
        if preload:
            model.preload()
        yield model
    finally:
        await model.close()


@asynccontextmanager
async def _open_titler(
    loaded: Loaded, services: Services, lessons: LessonBook
) -> AsyncGenerator[SessionTitler | None]:
    """Open the titler of sessions, if the settings name a model for it.

    It has its own connections and repeats no request, so that no run waits for it.
    """
    name, llm = loaded.settings.agent.title_model, loaded.settings.llm
    if not name:
        yield None
        return
    alone = {"fallbacks": (), "max_retries": 0, "concurrency": 1}
    model = build_model(llm.model_copy(update=alone), lessons=lessons)
    titler = SessionTitler(_run_services(services), model, name, services.model_book)
    try:
        async with background_task(titler.run(services.supervisor)):
            yield titler
    finally:
        await model.close()


def _run_services(services: Services) -> RunServices:
    return RunServices(
        services.database,
        services.stores,
        services.broadcaster,
        services.clock,
        services.workspaces.find,
        services.workspaces.create,
    )


def _fields(services: Services, sandbox: Sandbox) -> dict[str, Any]:
    """Return the services, with the default mode that this sandbox allows."""
    found = {name: getattr(services, name) for name in services.__struct_fields__}
    return {**found, "defaults": with_isolation(services, sandbox)}


def with_isolation(services: Services, sandbox: Sandbox) -> TaskDefaults:
    """Return the defaults of tasks with the isolation that the sandbox allows."""
    defaults, wanted = services.defaults, services.settings.tools.permission_mode
    able = sandbox.capabilities
    mode = Mode.RUN if able.isolated and wanted == "auto" else Mode.ASK
    allow = defaults.policy.allow
    if able.isolated and not able.hosts:
        allow = tuple(rule for rule in allow if split_rule(rule)[0] != NETWORK)
    policy = msgspec.structs.replace(defaults.policy, mode=mode, allow=allow)
    found = msgspec.structs.replace(
        defaults, policy=policy, isolated=able.isolated, hosts=able.hosts
    )
    # with several hosts the folder may be on another one
    if spans_hosts(services.settings):
        return found
    return msgspec.structs.replace(found, check_folder=services.workspaces.check)


def make_gateway(services: Services, dispatcher: RunDispatcher | TerminalDispatcher) -> Gateway:
    """Return a gateway that leaves the execution of tasks to the dispatcher."""
    gateway = Gateway(
        services.database,
        services.stores,
        broadcaster=services.broadcaster,
        dispatcher=dispatcher,
        clock=services.clock,
        files=services.files,
        commands=services.commands,
        reviews=services.reviews,
    )
    gateway.hooks = services.hooks
    gateway.processes = services.process_list
    gateway.worktrees = services.worktree_applier
    gateway.changed_files = services.changed_files
    return gateway


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


@asynccontextmanager
async def open_sandbox_of(loaded: Loaded, services: Services) -> AsyncGenerator[Sandbox]:
    """Open the sandbox that the settings choose.

    Raises:
        SandboxUnavailable: it cannot be used, or its packages cannot be installed.
    """
    homes = services.workspaces.homes
    async with (
        open_sandbox_in(loaded, homes) as sandbox,
        services.mcp_servers.running(sandbox, homes.create),
    ):
        try:
            yield sandbox
        finally:
            await services.commands.close()


@asynccontextmanager
async def open_sandbox_in(loaded: Loaded, homes: SessionFolders) -> AsyncGenerator[Sandbox]:
    """Open the sandbox that the settings choose; `homes` are the private folders of sessions.

    Raises:
        SandboxUnavailable: it cannot be used, or its packages cannot be installed.
    """
    settings = loaded.settings.sandbox
    opener = partial(
        open_sandbox,
        homes=homes,
        private=private_places(loaded),
        private_networks=settings.allow_private_networks,
        read_only=settings.read_only,
        skills=skill_folders(loaded),
        container=ContainerSettings(settings.engine, settings.image),
        time_zone=chosen_time_zone(),
    )
    packages = await _packages(loaded, homes, partial(opener, settings.provider))
    async with opener(settings.provider, packages=packages) as sandbox:
        if sandbox.capabilities.isolated and settings.session_disk_mb:
            folders = open_workspaces(loaded).of_session
            yield QuotaSandbox(sandbox, folders, settings.session_disk_mb * 1_000_000)
        else:
            yield sandbox


async def _packages(
    loaded: Loaded, homes: SessionFolders, open_provider: SandboxOpener
) -> PackageEnvironment | None:
    """Install the packages of commands, if there are any.

    Raises:
        SandboxUnavailable: they cannot be installed.
    """
    settings = loaded.settings.sandbox
    if not settings.packages:
        return None

    @asynccontextmanager
    async def open_installer() -> AsyncGenerator[Sandbox]:
        logger.info("packages of commands are installed", extra={"file": settings.packages})
        async with open_provider() as sandbox:
            network = sandbox.capabilities.hosts or not sandbox.capabilities.isolated
            yield sandbox if network else NativeSandbox(homes)

    rules = [parse_rule(text, {}) for text in rules_of_network(settings.network)]
    access = network_access(rules, denied_hosts(loaded), REGISTRIES)
    folder = packages_folder(loaded)
    try:
        return await install_packages(Path(settings.packages), folder, open_installer, access)
    finally:
        await homes.remove(PACKAGES_SESSION)


def _coordinator(
    services: Services,
    model: RetryingModel,
    lessons: LessonBook,
    *,
    sandbox: Sandbox,
    documents: DocumentReader,
    titler: SessionTitler | None = None,
) -> AgentCoordinator:
    """Return the coordinator and its stages."""
    agent = services.settings.agent
    database, stores, clock = services.database, services.stores, services.clock
    book = services.model_book
    tools = make_tools(services, sandbox, documents)
    artifacts = ArtifactRecorder(
        database,
        stores,
        services.files,
        clock=clock,
        folders=services.workspaces.file_folders,
        worktrees=services.workspaces.worktrees,
    )
    run_services = _run_services(services)
    capabilities = make_capabilities(
        services, run_services, artifacts, documents=documents, titler=titler
    )
    executor = ToolExecutor(
        tools,
        services.files,
        artifacts,
        clock=clock,
        outputs=stores.call_outputs,
        limits=ExecutionLimits(agent.tool_concurrency, agent.tool_timeout_seconds),
        capabilities=capabilities,
    )
    return AgentCoordinator(
        run_services,
        preparer=RunPreparer(
            run_services,
            make_prompt_builder(
                services, sandbox, tools, capabilities=capabilities, lessons=lessons
            ),
            capabilities=capabilities,
            messages=MessageCache(agent.message_cache_bytes),
            isolated=sandbox.capabilities.isolated,
            files_are_local=has_local_files(services.settings, services.home),
        ),
        engine=ReactEngine(
            run_services,
            model,
            book,
            tools=executor,
            capabilities=capabilities,
            repairs=services.repairs,
        ),
        resumer=RunResumer(run_services, book, isolated=sandbox.capabilities.isolated),
        completer=RunCompleter(run_services, capabilities, recipients=services.question_recipients),
        recovery=services.recovery,
        capabilities=capabilities,
        host=services.keeper.host,
    )


def make_tools(services: Services, sandbox: Sandbox, documents: DocumentReader) -> CombinedTools:
    """Return the tools of this process."""
    fetch = services.settings.tools.web_fetch
    box = ToolBox(
        sandbox=sandbox,
        background=services.commands,
        documents=documents,
        web=WebClients(
            Fetcher(max_bytes=fetch.max_bytes, allow_private_networks=fetch.allow_private_networks),
            make_web_search(services.settings.tools.web_search, services.clock),
        ),
        protected=services.protected,
        folders=services.workspaces.file_folders,
    )
    skills = SkillTools(services.skills, services.reviews.skills)
    mcp = McpTools(services.mcp_servers, ResultReader(documents))
    reviews = ServerReviewTool(services.mcp_servers, services.reviews.mcp)
    delegation = DelegationTools(
        services.database,
        services.stores,
        services.broadcaster,
        clock=services.clock,
        skills=ReviewedSkills(services.skills),
        folders=CreatorFolders(box, services.workspaces.worktrees),
        choices=SubtaskChoices(
            profile=partial(find_profile, services.defaults),
            tools=lambda: [spec.name for spec in tools.specs()],
            doubt_model=services.model_book.doubt,
        ),
    )
    tools = CombinedTools((box, skills, delegation, mcp, reviews, services.mentions))
    return tools
