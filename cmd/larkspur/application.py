"""The process of a command: implements the interface that `internal.channels.cli` needs."""

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from internal.agent.app.gateway import Gateway
from internal.agent.app.processes.process_list import (
    ProcessActivity,
    ProcessView,
    view_processes,
)
from internal.agent.domain.errors import (
    LarkspurError,
    ModelKeyRejected,
    RequestError,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import RunId
from internal.agent.domain.permissions.rules import parse_allow_rule, parse_rule
from internal.agent.domain.secrets import mask_secrets, register_secret
from internal.agent.domain.system_errors import describe_system_error
from internal.agent.domain.tasks import MAX_CRASHES
from internal.agent.ports.documents import DocumentReader
from internal.agent.store.runs import ProcessEntry
from internal.channels.cli.application import (
    Check,
    FolderPrompt,
    InstructionItem,
    ListedModel,
    ListedProfile,
    ServerModels,
    SettingsSummary,
    ToolItem,
    TransportWork,
    UiChoices,
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
from internal.config.time_zone import enter_time_zone
from internal.i18n.runs import RunMessages
from internal.llm.model_catalog import make_model_book
from internal.model_providers.registry import (
    PRICES_AS_OF,
    find_providers_of_key,
)
from internal.normal_forms.time_zones import format_moment
from internal.observability.clock import SystemClock
from internal.observability.logs import configure_logging
from internal.observability.processes import SystemProcesses
from internal.settings.entered_text import clean_key
from internal.settings.server import ServerSettings
from internal.settings.types import ConfigError
from internal.storage.database_url import check_database, read_rows
from larkspur.file_storage import check_attachments, open_trust
from larkspur.model_list import list_models
from larkspur.provider_access import store_key
from larkspur.services import (
    Services,
    make_gateway,
    make_terminal_dispatcher,
    open_services,
    open_terminal,
)
from larkspur.task_defaults import TOOL_SPECS, tool_targets
from larkspur.version import VERSION

if TYPE_CHECKING:
    from larkspur.administration.database import DatabaseAdmin
    from larkspur.administration.hooks import HookAdmin
    from larkspur.administration.lessons import LessonAdmin
    from larkspur.administration.mcp_servers import McpAdmin
    from larkspur.administration.skills import SkillAdmin

_UNLIMITED = 1_000_000_000
_MAX_SESSION_LOG_BYTES = 1024 * 1024


def _memory_transport(
    services: Services,
    gateway: Gateway,
    adopt: Callable[[RunId], Coroutine[Any, Any, bool]],
    documents: DocumentReader | None = None,
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
        documents=documents,
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
    """Return the exit code and message of an expected error, None if it is unexpected."""
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
        self._load_settings = load_settings
        self._open_database = ""

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
            ui=UiChoices(loaded.settings.ui.notify, loaded.settings.ui.status_line),
            transcription=f"{audio.model} at {audio.base_url}" if audio.model else "",
            search_providers=[
                (each.title, each.missing)
                for each in loaded.settings.tools.web_search.configured_providers()
            ],
            cost_limit=_cost_limit(loaded),
        )

    def find_providers_of_key(self, key: str) -> list[tuple[str, str]]:
        """Return the names and titles of the providers whose keys look like this one."""
        return [(provider.name, provider.title) for provider in find_providers_of_key(key)]

    def clean_key(self, text: str) -> str:
        """Return a pasted key without quotes, `Bearer` or the name of a variable around it."""
        return clean_key(text).value

    def store_key(self, provider: str, key: str) -> str:
        """Store the key of a provider in the home folder, and return the title of the provider.

        Raises:
            NotFound, RequestError: there is no such provider, or it needs no key.
            Conflict: the file or the environment sets its key.
            ConfigError, HomeError: the settings cannot be used, or cannot be stored.
        """
        return store_key(self._load, provider, key)

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
            self._open_database = loaded.settings.database.address
            transport = _memory_transport(services, gateway, gateway.adopt, services.documents)
            yield transport, loaded.settings.ui.language

    def check_database(self, config: str | None) -> Check:
        """Check the database without changing it, unless this process has it open.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        database = self._load(config=config).settings.database
        if database.address == self._open_database:
            return Check("database", "ok", f"{database.shown} is open in this session.")
        if database.path is not None and not database.path.exists():
            finding = "does not exist yet; the first start creates it"
            return Check("database", "ok", f"{database.shown} {finding}.")
        try:
            version = asyncio.run(check_database(database.address))
        except (StoreCorrupt, StoreUnavailable) as error:
            return Check("database", "fail", str(error))
        finding = f"can be opened (schema version {version})"
        if names := database.without_effect:
            finding += f"; these parameters have no effect: {', '.join(names)}"
        return Check("database", "ok", f"{database.shown} {finding}.")

    def check_models(self, config: str | None) -> list[Check]:
        """Try the address and key of the model, and of its fallbacks.

        Raises:
            ConfigError, HomeError: other settings than llm.base_url cannot be used.
        """
        from larkspur.model_check import check_settings  # noqa: PLC0415 - only for this

        return check_settings(self._load, config)

    def check_dead_letters(self, config: str | None) -> list[Check]:
        """Return a check with the count of dead letters; an empty list if it is zero or unknown.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        database = self._load(config=config).settings.database
        if database.address == self._open_database:
            return []
        try:
            [counts] = asyncio.run(read_rows(database.address, "dead_letter_count", MAX_CRASHES))
        except StoreError:  # told by `check_database`
            return []
        if not (count := sum(map(int, counts))):
            return []
        sentence = f"Given up and waiting for you: {count} (messages and runs)."
        return [Check("dead letters", "warn", sentence, "larkspur dead-letters lists them.")]

    def check_processes(self, config: str | None) -> list[Check]:
        """Return a check for each gateway and worker of the database; none if not known.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        settings = self._load(config=config).settings
        address = settings.database.address
        if address == self._open_database:
            return []
        try:
            views = asyncio.run(_read_processes(address, settings.dispatch.lease_seconds))
        except StoreError:  # told by `check_database`
            return []
        return [_process_check(each) for each in views]

    def check_sandbox(self, config: str | None) -> list[Check]:
        """Check the sandbox by trying to get out of it.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        from larkspur.sandbox_checks import check_sandbox  # noqa: PLC0415 - only for this

        return check_sandbox(self._load(config=config))

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
            parse_allow_rule(rule, tool_targets())
        else:
            parse_rule(rule, tool_targets())

    def models(self, config: str | None) -> list[ListedModel]:
        """Return the known models of every provider, the one in use first."""
        return list(list_models(self._load(config=config)))

    def server_models(self, config: str | None, provider: str) -> ServerModels:
        """Ask the server of a provider for its models; "" is the provider of the settings."""
        from larkspur.model_check import server_models  # noqa: PLC0415 - only for this

        return server_models(self._load, config, provider)

    def lessons(self, config: str | None) -> "LessonAdmin":
        """Return the refusals learned from model servers.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        from larkspur.administration.lessons import LessonAdmin  # noqa: PLC0415 - only for this

        return LessonAdmin(self._load(config=config))

    def check_refused_tools(self, config: str | None) -> list[Check]:
        """Return a check for each tool that the server of a model does not accept.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        if self._load(config=config).settings.database.address == self._open_database:
            return []
        return list(self.lessons(config).checks())

    def profiles(self, config: str | None) -> list[ListedProfile]:
        """Return the profiles, unusable ones included."""
        from larkspur.profile_list import list_profiles  # noqa: PLC0415 - only for this

        return list(list_profiles(self._load(config=config)))

    def trust_text(self, config: str | None, path: Path, content: bytes) -> bool:
        """Let agents follow a text of an instruction file; False if this cannot be stored."""
        return open_trust(self._load(config=config)).trust(str(path.resolve()), content)

    def skills(self, config: str | None) -> "SkillAdmin":
        """Return the skills, shipped ones included.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        from larkspur.administration.skills import SkillAdmin  # noqa: PLC0415 - only for this

        loaded = self._load(config=config)
        prepare(loaded.home)
        return SkillAdmin(loaded)

    def mcp(self, config: str | None) -> "McpAdmin":
        """Return the MCP servers of the settings and the home folder.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        from larkspur.administration.mcp_servers import McpAdmin  # noqa: PLC0415 - only for this

        loaded = self._load(config=config)
        prepare(loaded.home)
        return McpAdmin(loaded)

    def hooks(self, config: str | None) -> "HookAdmin":
        """Return the hooks and webhooks of the settings.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        from larkspur.administration.hooks import HookAdmin  # noqa: PLC0415 - only for this

        return HookAdmin(self._load(config=config))

    def database(self, config: str | None) -> "DatabaseAdmin":
        """Return the database of the settings.

        Raises:
            ConfigError, HomeError: the settings cannot be used.
        """
        from larkspur.administration.database import DatabaseAdmin  # noqa: PLC0415 - only for this

        return DatabaseAdmin(self._prepare(config))

    def tools(self) -> list[ToolItem]:
        """Return the tools of the agent."""
        return [ToolItem(spec.name, spec.risk, spec.description) for spec in TOOL_SPECS]

    def instructions(self, config: str | None, folder: Path) -> list[InstructionItem]:
        """Return the instructions that apply to tasks in a folder, the most general first."""
        from larkspur.model_prompt import list_instructions  # noqa: PLC0415 - only for this

        return list_instructions(self._load(config=config), folder)

    def prompt(
        self,
        config: str | None,
        folder: Path,
        *,
        profile: str | None = None,
        skills: Sequence[str] | None = None,
    ) -> FolderPrompt:
        """Return the prompt before a task in a folder.

        Raises:
            LarkspurError, ConfigError, HomeError: the services cannot be opened, or the profile or
                a skill does not exist.
        """
        from larkspur.model_prompt import make_prompt  # noqa: PLC0415 - only for this

        return asyncio.run(make_prompt(self._prepare(config), folder, profile, skills))

    def serve(
        self,
        config: str | None,
        flags: Mapping[str, Any],
        *,
        with_simulator: bool = False,
        opens_page: bool = False,
        executes: bool = True,
    ) -> int:
        """Serve the gateway until a signal, with a simulator of Lark if no app is configured.

        `opens_page` opens the page in a browser, where there is one. Without `executes` the runs
        are left to other processes.

        Raises:
            LarkspurError, ConfigError, HomeError, OSError: the gateway cannot start.
        """
        from larkspur.serve import (  # noqa: PLC0415 - only the gateway needs uvloop and uvicorn
            SettingsSource,
            serve,
            serve_with_simulator,
        )

        source = SettingsSource(self._load, config, flags)
        start = serve_with_simulator if with_simulator else serve
        return start(source, opens_page=opens_page, executes=executes)

    def work(self, config: str | None, flags: Mapping[str, Any]) -> int:
        """Execute runs beside gateways until a signal.

        Raises:
            LarkspurError, ConfigError, HomeError: the worker cannot start.
        """
        from larkspur.serve import SettingsSource, work  # noqa: PLC0415 - as above

        return work(SettingsSource(self._load, config, flags))

    def simulate_lark(self, port: int, app_id: str | None, app_secret: str | None) -> int:
        """Serve the simulator of Lark until a signal.

        Raises:
            CliExit: an argument or the port cannot be used.
        """
        from larkspur.lark_simulator import simulate_lark  # noqa: PLC0415 - as above

        return simulate_lark(port, app_id, app_secret)

    def _load(self, **chosen: Any) -> Loaded:
        """Read the settings, and let this process live in their time zone."""
        loaded = self._load_settings(**chosen)
        enter_time_zone(loaded.settings.ui.time_zone)
        return loaded

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
            transport = _memory_transport(services, gateway, gateway.adopt, services.documents)
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


async def _read_processes(address: str, lease_seconds: float) -> list[ProcessView]:
    """Return the gateways and workers of a database without changing it."""
    entries = await read_rows(address, "processes")
    runs = await read_rows(address, "active_runs_of_owners")
    leaders = await read_rows(address, "leaders")
    return view_processes(
        sorted(map(ProcessEntry._make, entries), key=lambda each: each.started),
        ProcessActivity(dict(runs), sorted((name, owner) for name, owner in leaders)),
        processes=SystemProcesses(),
        lease_seconds=lease_seconds,
        now=SystemClock().now(),
    )


def _process_check(process: ProcessView) -> Check:
    since = format_moment(process.started)
    sentence = f"{process.name}, since {since}: {process.detail}."
    if not process.has_ended:
        return Check("process", "ok", sentence)
    return Check("process", "warn", sentence, "Other processes continue its runs.")


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


def _cost_limit(loaded: Loaded) -> str:
    """Return why the limit in US dollars does not apply to the model of the settings, or ""."""
    llm, agent = loaded.settings.llm, loaded.settings.agent
    price = make_model_book(llm).prices.price(llm.model)
    return RunMessages("en").cost_limit(
        llm.model,
        agent.max_cost or None,
        agent.max_tokens or None,
        is_priced=llm.provider == "offline" or price is not None,
    )
